package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"regexp"
	"slices"
	"testing"

	"svcapi/shared/telemetry"
)

// levels are Lambda's, the one of the most detail first.
var levels = []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}

// An event's metrics are in a line that Lambda passes on at every configured level; its entry is in one whose level is
// the event's own, and only where the level asks for it.
func TestEmit(t *testing.T) {
	for configured, name := range levels {
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			for _, metrics := range [][]telemetry.Metric{nil, {{Name: "Requests", Unit: telemetry.Count, Value: 1}}} {
				var out bytes.Buffer
				telemetry.New(&out, telemetry.Config{Level: name, Stage: "test"}).Emit(t.Context(), telemetry.Event{
					Level: level, Message: "request", Metrics: metrics, Attributes: []slog.Attr{slog.String("payload", "p")},
					Dimensions: []telemetry.Dimension{{Name: "operation", Value: "sms"}},
				})
				entry := slices.Index(levels, level.String()) >= configured
				if !entry && metrics == nil {
					if out.Len() > 0 {
						t.Errorf("%s at %s: %s", level, name, out.Bytes())
					}
					continue
				}
				var line struct {
					Timestamp, Level, Message, Payload, Operation string
					Requests                                      float64
					AWS                                           struct{ CloudWatchMetrics []struct{ Namespace string } } `json:"_aws"`
				}
				if err := json.Unmarshal(out.Bytes(), &line); err != nil {
					t.Fatalf("%s: %v", out.Bytes(), err)
				}
				want := level.String()
				if !entry {
					want = "FATAL"
				}
				if line.Level != want || slices.Index(levels, line.Level) < configured || line.Timestamp == "" ||
					line.Operation != "sms" {
					t.Errorf("%s at %s: %s", level, name, out.Bytes())
				}
				if (line.Message == "request") != entry || (line.Payload == "p") != entry {
					t.Errorf("%s at %s: the entry: %s", level, name, out.Bytes())
				}
				if (line.Requests == 1) != (metrics != nil) || (len(line.AWS.CloudWatchMetrics) == 1) != (metrics != nil) {
					t.Errorf("%s at %s: the metrics: %s", level, name, out.Bytes())
				}
			}
		}
	}
}

// docs/decisions/operating.md#log-lines: a metric of 0 costs nothing, and each status is a metric of the gateway.
func TestMetricsThatCost(t *testing.T) {
	for status, want := range map[int]string{304: "", 400: "ClientErrors", 499: "ClientErrors",
		500: "ServerErrors", 503: "ServerErrors"} {
		var out bytes.Buffer
		metrics := append([]telemetry.Metric{{Name: "Low", SkipZero: true}, {Name: "Runs"}}, telemetry.Failures(status)...)
		telemetry.New(&out, telemetry.Config{}).Emit(t.Context(), telemetry.Event{Metrics: metrics})
		var got string
		for _, name := range regexp.MustCompile(`"Name":"(\w+)"`).FindAllStringSubmatch(out.String(), -1) {
			got += name[1]
		}
		if got != "Runs"+want || !bytes.Contains(out.Bytes(), []byte(`"Low":0`)) {
			t.Errorf("%d: %s", status, out.Bytes())
		}
	}
}

// TestSource checks how a request's line names the address that the request came from.
func TestSource(t *testing.T) {
	logger := func(stage, how string) *telemetry.Logger {
		return telemetry.New(&bytes.Buffer{}, telemetry.Config{Stage: stage, SourceIP: how})
	}
	hashed := regexp.MustCompile(`^[0-9a-f]{6}$`)
	for _, c := range []struct{ address, plain string }{
		{"192.0.2.1", "192.0.2.1"}, {"::ffff:192.0.2.1", "192.0.2.1"}, {"2001:db8::1", "2001:db8::1"}, {"",
			""}, {"no address", ""},
	} {
		if got := logger("dev", "plain").Source(c.address); got.Key != "source_ip" || got.Value.String() != c.plain {
			t.Errorf("%q, plain: %v", c.address, got)
		}
		for _, how := range []string{"hash", ""} {
			got := logger("dev", how).Source(c.address).Value.String()
			if hashed.MatchString(got) != (c.plain != "") {
				t.Errorf("%q, %q: %q", c.address, how, got)
			}
			if same := logger("dev", how).Source(c.plain).Value.String(); got != same {
				t.Errorf("%q and %q: %q and %q", c.address, c.plain, got, same)
			}
			if other := logger("prod", how).Source(c.address).Value.String(); c.plain != "" && got == other {
				t.Errorf("%q: two stages have the same hash %q", c.address, got)
			}
		}
	}
}
