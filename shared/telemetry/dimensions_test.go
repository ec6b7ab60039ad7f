package telemetry

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

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
