package acceptance

import (
	"encoding/json"
	"testing"
)

// TestExamples sends every example request of openapi.yaml: each succeeds. The code samples of the documentation page
// send these requests; functions/docs/samples runs samples in each language.
func TestExamples(t *testing.T) {
	local(t) // they send
	t.Parallel()
	for _, e := range examples(fixture.spec) {
		r := request{method: e.method, path: e.target, as: demoProject("byok").dev}
		if e.body != nil {
			text, _ := json.Marshal(e.body) // an example of openapi.yaml
			r.body = string(text)
		}
		if a := r.send(t); a != nil && a.status != 200 {
			t.Errorf("%s %s %s: %d %.300s", e.method, e.path, r.body, a.status, a.body)
		}
	}
}
