package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lambdaLevels are Lambda's, the one of the most detail first.
var lambdaLevels = []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}

// An event's metrics are in a line that Lambda passes on at every configured level; its entry is in one whose level is
// the event's own, and only where the level asks for it.
func TestEmit(t *testing.T) {
	for configured, name := range lambdaLevels {
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			for _, metrics := range [][]Metric{nil, {{Name: "Requests", Unit: Count, Value: 1}}} {
				var out bytes.Buffer
				New(&out, Config{Level: name, Stage: "test"}).Emit(t.Context(), Event{
					Level: level, Message: "request", Metrics: metrics, Attributes: []slog.Attr{slog.String("payload", "p")},
					Dimensions: []Dimension{{Name: "operation", Value: "sms"}},
				})
				entry := slices.Index(lambdaLevels, level.String()) >= configured
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
				if line.Level != want || slices.Index(lambdaLevels, line.Level) < configured || line.Timestamp == "" ||
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
		metrics := append([]Metric{{Name: "Low", SkipZero: true}, {Name: "Runs"}}, Failures(status)...)
		New(&out, Config{}).Emit(t.Context(), Event{Metrics: metrics})
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
	logger := func(stage, how string) *Logger {
		return New(&bytes.Buffer{}, Config{Stage: stage, SourceIP: how})
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

// TestDimensions checks the sets of dimensions that count the metrics of a line.
func TestDimensions(t *testing.T) {
	three := []Dimension{{"operation", "sms_send"}, {"outcome", "error"}, {"vendor", "twilio"}}
	requests := Metric{Name: "Requests", Value: 1, By: []string{"outcome"}}
	credits := Metric{Name: "Credits", Value: 5, By: []string{ByStage, "operation"}}
	internal := Metric{Name: "InternalErrors", Value: 1, By: []string{ByVersion}}
	unsettled := Metric{Name: "UnsettledReservations", Value: 1}
	for _, c := range []struct {
		name, detail string
		dimensions   []Dimension
		metrics      []Metric
		want         map[string][][]string // by the metrics of a directive
	}{
		{"basic", "basic", three, []Metric{requests, credits, unsettled}, map[string][][]string{
			"Requests ": {{"outcome"}}, "Credits ": {{}, {"operation"}}, "UnsettledReservations ": {{}},
		}},
		{"an unknown detail is basic", "", three, []Metric{requests}, map[string][][]string{"Requests ": {{"outcome"}}}},
		{"metrics with the same sets", "basic", three,
			[]Metric{requests, unsettled, {Name: "Refusals", By: []string{"outcome"}}},
			map[string][][]string{"Requests Refusals ": {{"outcome"}}, "UnsettledReservations ": {{}}}},
		{"full", "full", three, []Metric{requests, credits, unsettled}, map[string][][]string{
			"Requests ":              {{"outcome"}, {"operation"}, {"operation", "outcome"}, {"operation", "outcome", "vendor"}},
			"Credits ":               {{}, {"operation"}, {"operation", "outcome"}, {"operation", "outcome", "vendor"}},
			"UnsettledReservations ": {{}},
		}},
		{"full, without a vendor", "full", []Dimension{three[0], three[1], {"vendor", ""}},
			[]Metric{credits}, map[string][][]string{
				"Credits ": {{}, {"operation"}, {"operation", "outcome"}},
			}},
		{"by version alone", "full", three, []Metric{internal}, map[string][][]string{"InternalErrors ": {{"version"}}}},
		{"zeros that stay in the log", "full", three, []Metric{{Name: "Settled", SkipZero: true}}, map[string][][]string{}},
		{"without the dimension", "basic", three[:1], []Metric{requests}, map[string][][]string{"Requests ": {{}}}},
	} {
		var out bytes.Buffer
		New(&out, Config{Stage: "test", Detail: c.detail, Function: "svc-sms", Version: "7"}).Emit(t.Context(),
			Event{Dimensions: c.dimensions, Metrics: c.metrics})
		var line struct {
			Version string
			AWS     *struct{ CloudWatchMetrics []directive } `json:"_aws"`
		}
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", out.Bytes(), err)
		}
		if counted := strings.Contains(c.name, "version"); (line.Version == "svc-sms:7") != counted ||
			(line.Version == "") == counted {
			t.Errorf("%s: version %q", c.name, line.Version)
		}
		got := map[string][][]string{}
		if line.AWS == nil {
			line.AWS = &struct{ CloudWatchMetrics []directive }{}
		} else if len(line.AWS.CloudWatchMetrics) == 0 {
			t.Errorf("%s: a line of the format without a directive: %s", c.name, out.Bytes())
		}
		for _, d := range line.AWS.CloudWatchMetrics {
			names := ""
			for _, m := range d.Metrics {
				names += m.Name + " "
			}
			got[names] = d.Dimensions
			if d.Namespace != "SVC/test" {
				t.Errorf("%s: namespace %s", c.name, d.Namespace)
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
