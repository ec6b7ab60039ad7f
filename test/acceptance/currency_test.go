package acceptance

import (
	"strings"
	"testing"

	"svcapi/shared/project"
)

const currencies = "/utility/currency"

// exchange connects the project to a source of rates.
func (p *tenant) exchange(t *testing.T, mode project.Mode) *tenant {
	t.Helper()
	p.connect(t, integration{kind: project.Currency, vendor: "openexchangerates", mode: mode})
	return p
}

// docs/decisions/currency.md#own-rates: a BYOK integration's rates are fetched with its own key, and kept per project
// for the operator, too. functions/currency TestOwnKey has the stampede over several instances.
func TestOwnRates(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{}.make(t).exchange(t, project.BYOK)
	a := request{method: "GET", path: currencies + "/pair/USD/LKR", as: p.dev}.do(t)
	if a != nil && (!a.is(200, "") || !strings.Contains(string(a.body), `"rate":304.718462,`)) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if shown := svc[struct{ Source string }](t, "", "rates", "show", "--project",
		p.id); shown.Source != "openexchangerates" {
		t.Errorf("%+v", shown)
	}
}
