package credit

import (
	"errors"
	"testing"

	"svcapi/cmd/svc/app"
)

// A file of grants gives grants that each name a project once, or says what is wrong.
func FuzzGrants(f *testing.F) {
	for _, text := range []string{"project,credits,reason\nacme,100,x\n", "\ufeffacme,100\n", "acme,1e3\n", "acme,-1\n",
		"a,1\na,2\n", "\"a\n", "acme;100", "", "a,9223372036854775808\n", "#x\na,1,,\n"} {
		f.Add(text, "2026-03-31-invoices", "why")
		f.Add(text, "2026-02-30", "")
	}
	f.Fuzz(func(t *testing.T, text, batch, reason string) {
		grants, err := readGrants(text, batch, reason)
		if err != nil {
			if _, ok := errors.AsType[*app.FailureError](err); !ok || grants != nil {
				t.Errorf("%v beside %v", grants, err)
			}
			return
		}
		seen := map[string]bool{}
		for _, g := range grants {
			if g.Credits < 1 || g.Reason == "" || seen[g.ProjectID] || g.ID == "" {
				t.Errorf("%+v", g)
			}
			seen[g.ProjectID] = true
		}
	})
}
