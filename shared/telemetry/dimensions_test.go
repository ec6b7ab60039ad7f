package telemetry

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// TestDimensions checks which dimensions the metrics of a line have: each leading part, and the second alone where a
// metric counts across the first.
func TestDimensions(t *testing.T) {
	three := []Dimension{{"operation", "sms_send"}, {"outcome", "error"}, {"vendor", "twilio"}}
	requests, credits := Metric{Name: "Requests", Value: 1, Across: true}, Metric{Name: "Credits", Value: 5}
	for _, c := range []struct {
		name       string
		dimensions []Dimension
		metrics    []Metric
		want       map[string][][]string // by the metrics of a directive
	}{
		{"across", three, []Metric{requests, credits}, map[string][][]string{
			"Requests Credits ": {{"operation"}, {"operation", "outcome"}, {"operation", "outcome", "vendor"}},
			"Requests ":         {{"outcome"}},
		}},
		{"without a vendor", []Dimension{three[0], three[1], {"vendor", ""}}, []Metric{credits}, map[string][][]string{
			"Credits ": {{"operation"}, {"operation", "outcome"}},
		}},
		{"one dimension", three[:1], []Metric{requests}, map[string][][]string{"Requests ": {{"operation"}}}},
		{"none", nil, []Metric{requests}, map[string][][]string{"Requests ": {{}}}},
	} {
		var out bytes.Buffer
		New(&out, Config{Stage: "test"}).Emit(t.Context(), Event{Dimensions: c.dimensions, Metrics: c.metrics})
		var line struct {
			AWS metadata `json:"_aws"`
		}
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", out.Bytes(), err)
		}
		got := map[string][][]string{}
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
