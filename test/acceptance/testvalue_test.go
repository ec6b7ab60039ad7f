package acceptance

import (
	"encoding/json"
	"strings"
	"testing"

	"svcapi/shared/project"
	"svcapi/shared/testvalue"
)

// docs/decisions/extensions.md#test-vendor: the vendor "test" responds to each value with its status, charges nothing
// and takes the place of an active vendor, which nobody calls.
func TestTestVendor(t *testing.T) {
	local(t)
	t.Parallel()
	const credits = 1_000_000
	s := newSandbox(t)
	for _, mode := range []project.Mode{project.Managed, project.BYOK} {
		var all []integration
		for kind, beside := range map[project.Kind]string{project.SMS: "twilio", project.Security: "ipinfo",
			project.Location: "ipinfo"} {
			all = append(all, integration{kind: kind, vendor: beside, mode: mode, endpoint: s.URL + "/" + beside},
				integration{kind: kind, vendor: project.TestVendor, mode: mode, priority: 9})
		}
		p := plan{credits: credits, integrations: all}.make(t)
		to := number()
		for _, v := range append(testvalue.All(), testvalue.Value{Number: to, Status: 200},
			testvalue.Value{Address: "112.134.0.1", Status: 200, Located: 200}) {
			for path, status := range map[string]int{send: v.Status, vpn: v.Status, location: v.Located} {
				body := single(v.Number, "Hello")
				if path != send {
					body = ip(v.Address)
				}
				if (path == send) != (v.Number != "") {
					continue
				}
				a := request{path: path, body: body, as: p.dev}.do(t)
				named := a.status != 200 || path == location || strings.Contains(string(a.body), `:"test"`)
				if a.status != status || !named || a.Data.CreditsCharged != 0 {
					t.Errorf("%s %+v: %d %s, want %d", path, v, a.status, a.body, status)
				}
			}
		}
		shield := request{path: burner, body: email("a@mailinator.com"), as: p.dev}.do(t)
		if shield.status != 200 || shield.Data.CreditsCharged != 0 {
			t.Errorf("%s: %+v", burner, shield)
		}
		a := request{path: send, body: bulkSame([]string{to, "0770000001"}, "Hello"), as: p.dev}.do(t)
		if permitted := mode == project.BYOK; a.is(200, "") != permitted ||
			permitted && !strings.Contains(string(a.body), `"counts":{"accepted":1,"rejected":1,`) {
			t.Errorf("%s, bulk: %d %s", mode, a.status, a.body)
		}
		var accepted struct {
			Data struct {
				Provider struct{ Reference string } `json:"provider_response"`
			}
		}
		a = request{path: send, body: single(to, "Hello"), as: p.dev}.do(t)
		if json.Unmarshal(a.body, &accepted) != nil {
			t.Fatal("no acceptance")
		}
		state := request{method: "GET", path: status + accepted.Data.Provider.Reference, as: p.dev}.do(t)
		state.has(t, "status", `"status":"delivered","vendor":"test"`)
		if entries := p.ledger(t); len(entries) != 1 || p.balance(t) != credits { // the grant
			t.Errorf("%s: balance %d, ledger %+v", mode, p.balance(t), entries)
		}
	}
	if calls := s.Calls(); len(calls) > 0 {
		t.Errorf("the vendor beside the test values was called: %+v", calls)
	}
}
