package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestExamples sends every example request of openapi.yaml: each succeeds. The code samples of the documentation page
// send these requests; functions/docs/samples runs samples in each language.
func TestExamples(t *testing.T) {
	local(t) // they send
	t.Parallel()
	as := demoProject("byok").dev
	sent := request{path: send, body: single(number(), "m"), as: as}.do(t)
	if sent == nil || !sent.is(200, "") {
		t.Fatal("no send whose status can be asked for")
	}
	reference := fmt.Sprint(fixture.spec.Components.Parameters["SmsSendReference"].Value.Example)
	for _, e := range examples(fixture.spec) {
		r := request{method: e.method, path: strings.Replace(e.target, reference, sent.provider(t).Reference, 1), as: as}
		if e.body != nil {
			text, _ := json.Marshal(e.body) // an example of openapi.yaml
			r.body = string(text)
		}
		if a := r.send(t); a != nil && a.status != 200 {
			t.Errorf("%s %s %s: %d %.300s", e.method, e.path, r.body, a.status, a.body)
		}
	}
}
