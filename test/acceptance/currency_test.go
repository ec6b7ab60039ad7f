package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

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
		secrets, _ = json.Marshal(accounts[vendor])
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

// refusals sends requests that must fail alike.
func refusals(t *testing.T, as credential, status int, code string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if a := (request{method: "GET", path: currencies + path, as: as}).do(t); a != nil && !a.is(status, code) {
			t.Errorf("%s: %d %s, want %d %s", path, a.status, a.body, status, code)
		}
	}
}

// openapi.yaml#CurrencyBase, docs/decisions.md#currency-codes: three letters in any case, of an active code; 400
// invalid_currency_code for one that is unknown, inactive or invalid.
func TestCurrencyCodesInPaths(t *testing.T) {
	t.Parallel()
	p := exchanging(t)
	for _, base := range []string{"USD", "usd", "uSd", "%55%53%44", "u%73d"} {
		if f := look(t, p.dev, "/latest/"+base); f.Base != "USD" {
			t.Errorf("%s: base %s", base, f.Base)
		}
		if f := look(t, p.dev, "/pair/"+base+"/lkr"); f.Base != "USD" || f.Target != "LKR" {
			t.Errorf("%s: %+v", base, f)
		}
		if f := look(t, p.dev, "/pair/lkr/"+base+"/1"); f.Base != "LKR" || f.Target != "USD" {
			t.Errorf("%s: %+v", base, f)
		}
	}
	for _, target := range []string{"LKR%2DSELL", "%4CKR-BUY"} {
		if f := look(t, p.dev, "/pair/USD/"+target); !strings.HasPrefix(f.Target, "LKR-") {
			t.Errorf("%s: %+v", target, f)
		}
	}
	bad := []string{
		"US", "USDX", "U$D", "US1", "123", "XYZ", "XXX", "XTS", "BTC", "KID", "%20USD", "USD%20", "USD%0A", "USD%00", "US%C4%8E", "%E2%82%AC%E2%82%AC%E2%82%AC",
		"USD%2FLKR", "USD%3F", "U-D", "...", "LKR-", "LKR-SELL-", "LKR_SELL", "LKR-sell", "lkr-SELL", "LKR-SELLS", "LKR-MID", "USD-SELL", "null", "USD,EUR", "%25", "USD;a=b",
	}
	var paths []string
	for _, code := range append(bad, "LKR-SELL", "LKR-BUY", "LKR-CENTRAL") { // those are never a base
		paths = append(paths, "/latest/"+code, "/pair/"+code+"/USD", "/pair/"+code+"/USD/1")
	}
	for _, code := range bad {
		paths = append(paths, "/pair/USD/"+code, "/pair/USD/"+code+"/1")
	}
	refusals(t, p.dev, 400, "invalid_currency_code", paths...)
	refusals(t, p.dev, 404, "http_error", "", "/latest", "/latest/", "/latest/USD/", "/latest//", "/pair/USD", "/pair/USD/", "/pair//USD", "/pair/USD//1", "/pair/USD/LKR/",
		"/pair/USD/LKR/1/", "/pair/USD/LKR/1/2", "/codes/", "/codes/USD", "/Latest/USD", "/latest%2FUSD", "/pair%2FUSD/LKR")
	for _, path := range []string{"/latest/USD", "/pair/USD/LKR", "/pair/USD/LKR/1", "/codes"} {
		for _, method := range []string{"POST", "PUT", "DELETE", "HEAD", "OPTIONS"} {
			if a := (request{method: method, path: currencies + path, as: p.dev}).do(t); a != nil && (a.status != 405 || a.header.Get("Allow") != "GET") {
				t.Errorf("%s %s: %d %v", method, path, a.status, a.header)
			}
		}
	}
}

// docs/decisions.md#amounts: a bad amount is 422 validation_failed on amount: 1 to 15 digits, at most 8 decimals, above
// 0.
func TestAmounts(t *testing.T) {
	t.Parallel()
	p := exchanging(t)
	for amount, want := range map[string]string{
		"1": "1", "0.1": "0.1", "007": "7", "1.50": "1.5", "0.00000001": "0.00000001", "999999999999999": "999999999999999", "999999999999999.99999999": "999999999999999.99999999", "%31%30": "10",
	} {
		if f := look(t, p.dev, "/pair/USD/USD/"+amount); string(f.Amount) != want || f.Rate != "1" {
			t.Errorf("%s: %+v", amount, f)
		}
	}
	for _, amount := range []string{
		"0", "0.0", "00", "-1", "+1", "1.", ".1", "1,0", "1e3", "1E-3", "0x1", "NaN", "Infinity", "null", "1.123456789", "1234567890123456", "1%20", "%201", "1%0A", "%D9%A1", "1.0.0",
		"1%2F2", "--1", "%00", strings.Repeat("9", 2000),
	} {
		a := request{method: "GET", path: currencies + "/pair/USD/LKR/" + amount, as: p.dev}.do(t)
		if a != nil && (!a.is(422, "validation_failed") || len(a.Error.Details.fields) != 1 || len(a.Error.Details.fields["amount"]) != 1) {
			t.Errorf("%.40s: %d %s", amount, a.status, a.body)
		}
	}
}

// docs/decisions.md#currency-codes: a malformed code is 400 before a bad amount, that before the integration, and the
// integration before an unknown code.
func TestCurrencyOrder(t *testing.T) {
	t.Parallel()
	p, none := exchanging(t), plainProject(t)
	for as, name := range map[credential]string{p.dev: "with an integration", none.dev: "without"} {
		t.Log(name)
		refusals(t, as, 400, "invalid_currency_code", "/pair/US1/LKR/0", "/pair/USD/LKR-X/0", "/pair/LKR-BUY/USD/x", "/latest/US1")
		refusals(t, as, 422, "validation_failed", "/pair/USD/LKR/0", "/pair/XYZ/LKR/0")
	}
	refusals(t, none.dev, 422, "provider_selection_failed", "/pair/XYZ/LKR/1", "/pair/XYZ/LKR", "/latest/XYZ", "/latest/USD", "/codes")
	refusals(t, p.dev, 400, "invalid_currency_code", "/pair/XYZ/LKR/1", "/pair/USD/XYZ", "/latest/XYZ")
	refusals(t, credential{p.dev.ID, "wrong"}, 401, "unauthorized", "/pair/US1/LKR/0", "/codes")
	limited := plan{limit: 2}.make(t)
	limited.exchange(t, "openexchangerates", project.Managed)
	forget()
	refusals(t, limited.dev, 400, "invalid_currency_code", "/latest/US1", "/latest/XYZ") // refused requests count
	refusals(t, limited.dev, 429, "rate_limit_exceeded", "/latest/US1", "/codes")
	svc[any](t, "", "project", "pause", limited.id)
	forget()
	refusals(t, limited.dev, 503, "project_paused", "/latest/US1", "/codes")
}

// The sandbox's central bank, as it publishes: buying, selling, indicative.
var bankFigures = map[string][3]string{
	"USD": {"301.2175", "308.7702", "304.6531"}, "GBP": {"394.0172", "406.3318", "399.8911"}, "EUR": {"346.9204", "358.7335", "352.6013"},
	"JPY": {"1.9318", "2.0071", "1.9682"}, "CNY": {"41.9650", "43.8127", "42.8293"}, "AUD": {"195.3911", "203.9082", "199.4406"},
}

// docs/decisions.md#central-bank: the matching value for the six bases, with the bank's own decimals; the normal LKR
// rate with status 200 for every other base; no extra credentials and no credits.
func TestCentralBankTargets(t *testing.T) {
	local(t)
	t.Parallel()
	byok := plan{}.make(t).exchange(t, "exchangerateapi", project.BYOK)
	for _, p := range []*tenant{exchanging(t), byok} {
		for _, code := range look(t, p.dev, "/codes").Codes {
			if strings.HasPrefix(code.Code, "LKR-") {
				continue
			}
			plain := look(t, p.dev, "/pair/"+code.Code+"/LKR")
			for i, target := range []string{"LKR-BUY", "LKR-SELL", "LKR-CENTRAL"} {
				want := string(plain.Rate)
				if direct, ok := bankFigures[code.Code]; ok {
					want = direct[i]
				}
				f := look(t, p.dev, "/pair/"+code.Code+"/"+target)
				if string(f.Rate) != want || f.Base != code.Code || f.Target != target {
					t.Errorf("%s to %s is %+v, want %s", code.Code, target, f, want)
				}
			}
		}
		if balance := p.balance(t); balance != 0 || len(p.ledger(t)) != 0 {
			t.Errorf("balance %d, %v", balance, p.ledger(t))
		}
	}
}

var plainNumber = regexp.MustCompile(`^(0|[1-9]\d*)(\.\d+)?$`)

// docs/decisions.md#currency-codes, docs/decisions.md#decimals: latest holds three-letter codes, the base with 1;
// pair(a, b) is the entry of latest(a) in text; there and back is 1 within the rounding; numbers are plain.
func TestLatestAndPairs(t *testing.T) {
	t.Parallel()
	p := exchanging(t)
	codes := look(t, p.dev, "/codes")
	var plain, listed []string
	for _, c := range codes.Codes {
		listed = append(listed, c.Code)
		if len(c.Code) == 3 {
			plain = append(plain, c.Code)
		}
		if c.Name == "" {
			t.Errorf("%s has no name", c.Code)
		}
	}
	if codes.Count != len(listed) || !slices.IsSorted(listed) || len(slices.Compact(listed)) != codes.Count || !slices.Contains(plain, "USD") {
		t.Fatalf("codes are %v", codes)
	}
	r := rand.New(rand.NewPCG(1, 2))
	bound := big.NewRat(2, 1_000_000_000)
	all := map[string]map[string]json.Number{}
	for _, base := range plain {
		f := look(t, p.dev, "/latest/"+base)
		if f.Base != base || f.Rates[base] != "1" || f.Updated == "" || !slices.Equal(slices.Sorted(maps.Keys(f.Rates)), plain) {
			t.Errorf("latest of %s: %+v", base, f)
		}
		all[base] = f.Rates
	}
	for _, a := range plain {
		for _, b := range plain {
			there, ok1 := new(big.Rat).SetString(string(all[a][b]))
			back, ok2 := new(big.Rat).SetString(string(all[b][a]))
			if !ok1 || !ok2 || !plainNumber.MatchString(string(all[a][b])) || there.Sign() <= 0 {
				t.Errorf("%s to %s: %s, %s", a, b, all[a][b], all[b][a])
				continue
			}
			off := new(big.Rat).Sub(new(big.Rat).Mul(there, back), big.NewRat(1, 1))
			if off.Abs(off).Cmp(bound) > 0 {
				t.Errorf("%s to %s and back is off by %s", a, b, off.FloatString(15))
			}
		}
	}
	for range 60 {
		a, b := plain[r.IntN(len(plain))], plain[r.IntN(len(plain))]
		if f := look(t, p.dev, "/pair/"+a+"/"+b); f.Rate != all[a][b] || f.Base != a || f.Target != b || f.Updated == "" {
			t.Errorf("pair %s %s is %+v, latest has %s", a, b, f, all[a][b])
		}
	}
}

// openapi.yaml#Conversion, docs/decisions.md#decimals: conversion_result is the exact product, at most 6 decimals, half
// to even.
func TestConversionResults(t *testing.T) {
	t.Parallel()
	p := exchanging(t)
	r := rand.New(rand.NewPCG(3, 4))
	codes := []string{"USD", "EUR", "LKR", "JPY", "GBP", "INR"}
	for range 40 {
		amount := fmt.Sprintf("%d.%0*d", r.IntN(1_000_000), 1+r.IntN(8), 1+r.IntN(9))
		f := look(t, p.dev, "/pair/"+codes[r.IntN(len(codes))]+"/"+codes[r.IntN(len(codes))]+"/"+amount)
		rate, _ := new(big.Rat).SetString(string(f.Rate))
		times, _ := new(big.Rat).SetString(string(f.Amount))
		got, ok := new(big.Rat).SetString(string(f.Result))
		sent, _ := new(big.Rat).SetString(amount)
		if !ok || times.Cmp(sent) != 0 || !plainNumber.MatchString(string(f.Result)) {
			t.Errorf("%s: %+v", amount, f)
			continue
		}
		scaled := new(big.Rat).Mul(new(big.Rat).Mul(rate, times), big.NewRat(1_000_000, 1))
		whole, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
		if twice := rest.Lsh(rest, 1).Cmp(scaled.Denom()); twice > 0 || twice == 0 && whole.Bit(0) == 1 {
			whole.Add(whole, big.NewInt(1))
		}
		if want := new(big.Rat).SetFrac(whole, big.NewInt(1_000_000)); got.Cmp(want) != 0 {
			t.Errorf("%s × %s is %s, want %s", f.Rate, f.Amount, f.Result, want.FloatString(6))
		}
	}
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

// docs/decisions.md#own-rates: 422 provider_selection_failed without a usable active integration: inactive, without its
// key, or with one that the source refuses while no good set is held.
func TestUnusableRates(t *testing.T) {
	t.Parallel()
	inactive := exchanging(t)
	svc[any](t, "", "integration", "disable", inactive.id, "currency", "openexchangerates")
	incomplete := plan{}.make(t).exchange(t, "openexchangerates", project.BYOK, "--incomplete")
	forget()
	for _, p := range []*tenant{inactive, incomplete} {
		refusals(t, p.dev, 422, "provider_selection_failed", "/latest/USD", "/pair/USD/LKR", "/pair/USD/LKR/1", "/codes")
	}
	if fixture.stack != nil {
		refused := plan{}.make(t).exchange(t, "openexchangerates", project.BYOK)
		svc[any](t, `{"app_id":"wrong"}`, "integration", "set", refused.id, "currency", "openexchangerates", "--secrets", "-")
		refusals(t, refused.dev, 422, "provider_selection_failed", "/latest/USD", "/codes")
	}
}
