package acceptance

import (
	"strings"
	"testing"
	"time"

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
	if !a.is(200, "") || !strings.Contains(string(a.body), `"rate":304.718462,`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if shown := svc[struct{ Source string }](t, "", "rates", "show", "--project",
		p.id); shown.Source != "openexchangerates" {
		t.Errorf("%+v", shown)
	}
}

// docs/decisions/currency.md#rates-by-date: a query reaches the function through the gateway, and the function's role
// may read a day and several. functions/currency TestDate has every rule.
func TestRatesOfAWeekAgo(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{}.make(t).exchange(t, project.Managed)
	day := time.Now().UTC().AddDate(0, 0, -7).Format(time.DateOnly)
	for path, want := range map[string]string{
		"/pair/USD/LKR?date=" + day:                                       `"rate":302.5854328,`,
		"/history/USD?symbols=LKR&from=" + day + "&to=" + day + "&base=x": `"rates":{"LKR":302.5854328}}]}`,
	} {
		a := request{method: "GET", path: currencies + path, as: p.dev}.do(t)
		if !a.is(200, "") || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}
