package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
)

const currencies = "/utility/currency"

// exchange connects the project to a source of rates, with the sandbox's account where the flags do not say otherwise.
func (p *tenant) exchange(t *testing.T, vendor string, mode project.Mode, flags ...string) *tenant {
	t.Helper()
	args := []string{"integration", "set", p.id, "currency", vendor, "--mode", string(mode)}
	if fixture.stack != nil {
		args = append(args, "--setting", "endpoint="+fixture.stack.SandboxURL+"/"+vendor)
	}
	secrets := []byte("{}")
	if mode == project.BYOK && !slices.Contains(flags, "--incomplete") {
		args = append(args, "--secrets", "-")
		secrets, _ = json.Marshal(sandbox.Accounts[vendor])
	}
	svc[any](t, string(secrets), append(args, flags...)...)
	return p
}

// exchanging is a project with a Managed source of rates.
func exchanging(t *testing.T) *tenant {
	t.Helper()
	return plan{}.make(t).exchange(t, "openexchangerates", project.Managed)
}

// figures is the data of a currency response, with numbers as they are written.
type figures struct {
	Base, Target string
	Rate         json.Number
	Updated      string `json:"last_updated"`
	Amount       json.Number
	Result       json.Number `json:"conversion_result"`
	Rates        map[string]json.Number
	Count        int
	Codes        []struct{ Code, Name string }
}

// look requests rates or codes, and the request must succeed.
func look(t *testing.T, as credential, path string) (f figures) {
	t.Helper()
	a := request{method: "GET", path: currencies + path, as: as}.do(t)
	if a == nil {
		return f
	}
	var envelope struct{ Data figures }
	if err := json.Unmarshal(a.body, &envelope); err != nil || !a.is(200, "") {
		t.Errorf("%s: %d %s, %v", path, a.status, a.body, err)
	}
	return envelope.Data
}

// docs/decisions.md#own-rates: a BYOK integration's rates are fetched with its own key, on demand, at most hourly, and
// kept per project: a stampede over many instances is one fetch.
func TestOwnRates(t *testing.T) {
	local(t)
	t.Parallel()
	at, err := url.Parse(fixture.stack.SandboxURL)
	if err != nil {
		t.Fatal(err)
	}
	var fetches atomic.Int64
	through := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }}
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetches.Add(1)
		through.ServeHTTP(w, r)
	}))
	defer source.Close()
	p := plan{}.make(t).exchange(t, "openexchangerates", project.BYOK, "--setting", "endpoint="+source.URL+"/openexchangerates")
	responses := atOnce(60, 30, func(int) *response {
		return request{method: "GET", path: currencies + "/pair/USD/LKR", as: p.dev}.send(t)
	})
	for _, a := range responses {
		if a != nil && (!a.is(200, "") || !strings.Contains(string(a.body), `"rate":304.718462,`)) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if n := fetches.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
	source.Close() // a set that is held needs no source
	look(t, p.dev, "/latest/EUR")
	if shown := svc[struct{ Source string }](t, "", "rates", "show", "--project", p.id); shown.Source != "openexchangerates" {
		t.Errorf("%+v", shown)
	}
}

// openapi.yaml#CurrencyBase, docs/decisions.md#currency-codes, docs/decisions.md#amounts,
// docs/decisions.md#central-bank: rates of the sandbox's source and of its central bank. functions/currency has the
// tests of every code, amount and rounding.
func TestAmounts(t *testing.T) {
	local(t)
	t.Parallel()
	p := exchanging(t)
	week := time.Now().UTC().AddDate(0, 0, -7).Format(time.DateOnly)
	for path, want := range map[string]figures{
		"/pair/usd/%4CKR":            {Base: "USD", Target: "LKR", Rate: "304.718462"},
		"/pair/USD/LKR-BUY":          {Base: "USD", Target: "LKR-BUY", Rate: "301.2175"},
		"/pair/USD/LKR%2DSELL":       {Base: "USD", Target: "LKR-SELL", Rate: "308.7702"},
		"/pair/JPY/LKR-CENTRAL":      {Base: "JPY", Target: "LKR-CENTRAL", Rate: "1.9682"},
		"/pair/USD/LKR/0003.50":      {Base: "USD", Target: "LKR", Rate: "304.718462", Amount: "3.5", Result: "1066.514617"},
		"/pair/USD/USD/0.00000001":   {Base: "USD", Target: "USD", Rate: "1", Amount: "0.00000001", Result: "0.00000001"},
		"/pair/VND/USD/1":            {Base: "VND", Target: "USD", Rate: "0.0000379567862", Amount: "1", Result: "0.0000379567862"},
		"/pair/USD/LKR?date=" + week: {Base: "USD", Target: "LKR", Rate: "302.5854328"},
	} {
		got := look(t, p.dev, path)
		updated := got.Updated
		if got.Updated = ""; updated == "" || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	codes, latest := look(t, p.dev, "/codes"), look(t, p.dev, "/latest/eur")
	if codes.Count != len(codes.Codes) || codes.Count != len(latest.Rates)+3 || latest.Base != "EUR" || latest.Rates["EUR"] != "1" || latest.Updated == "" {
		t.Errorf("%d codes, %d rates: %+v", codes.Count, len(latest.Rates), latest)
	}
	if balance := p.balance(t); balance != 0 || len(p.ledger(t)) != 0 {
		t.Errorf("balance %d, %v", balance, p.ledger(t))
	}
}
