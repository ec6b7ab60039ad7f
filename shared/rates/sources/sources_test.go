package sources

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/rates"
	"svcapi/shared/upstream"
	"svcapi/test/must"
)

func client() *upstream.Client { return upstream.New(upstream.Config{TimeoutSeconds: 1, Local: true}) }

const key = "k/e?y secret"

var secrets = upstream.SecretValues{"app_id": key, "api_key": key}

// accepted are the secrets that the sandbox knows.
var accepted = map[string]upstream.SecretValues{
	"openexchangerates": sandbox.Account("openexchangerates"),
	"exchangerateapi":   sandbox.Account("exchangerateapi"),
	"frankfurter":       nil,
}

// Every row of the table has what operators see, and reads the sandbox's table.
func TestSandbox(t *testing.T) {
	server := must.Get(sandbox.Start()).Or(t)
	t.Cleanup(func() { _ = server.Close() })
	now := time.Now()
	for _, v := range Table() {
		if Find(v.Name) == nil || Spec(v.Name).Title == "" || !strings.HasPrefix(v.Endpoint, "https://") {
			t.Errorf("%s: %+v", v.Name, v.Spec)
		}
		account := upstream.Account{Endpoint: server.URL + "/" + v.Name, Secrets: accepted[v.Name]}
		table, err := v.Fetch(t.Context(), client(), account)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if err := rates.Validate(table, nil, nil, now, false); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		if table.Source != v.Name || table.Base != "USD" || table.Rates["LKR"].String() != "304.718462" ||
			now.Sub(table.Date) > 96*time.Hour {
			t.Errorf("%s: %+v", v.Name, table)
		}
		if len(v.Secrets) == 0 {
			continue
		}
		account.Secrets = secrets
		if _, err := v.Fetch(t.Context(), client(), account); err == nil ||
			upstream.ClassOf(err) != upstream.CredentialsRefused {
			t.Errorf("%s: wrong key: %v", v.Name, err)
		}
	}
	if Find("nobody") != nil || Spec("nobody") != nil {
		t.Error("found nobody")
	}
}

// sample is a vendor's response with the expected rates as text, or the expected class of the error.
type sample struct {
	from   string // the vendor's documentation (V), a fixture of another project (T), or invented
	status int
	body   string
	date   string
	rates  string
	class  upstream.Class
}

const many = `"LKR":300.1,"EUR":0.92`

var samples = map[string][]sample{
	"openexchangerates": {
		{"T", 200, `{"disclaimer":"..","license":"..","timestamp":1449877801,"base":"USD","rates":{"LKR":300.1,"EUR":0.92}}`,
			"2015-12-11T23:50:01Z", "EUR=0.92 LKR=300.1 USD=1", ""},
		{"made", 200, `{"timestamp":1449877801,"base":"USD","rates":{"USD":1,"BTC":1.2e-05,"LKR":300.10,"usd":2,"LKRX":3}}`,
			"2015-12-11T23:50:01Z", "LKR=300.10 USD=1", ""},
		// Codes that ISO 4217 does not name: former currencies and coins, with numbers that are not rates.
		{"made", 200, `{"timestamp":1449877801,"base":"USD","rates":{"LKR":300.1,"VEF":0,"ZWL":-1,"BTC":1e-30,"DOGE":"x",` +
			`"XXX":null,"STD":1e999}}`, "2015-12-11T23:50:01Z", "LKR=300.1 USD=1", ""},
		{"made", 200, `{"timestamp":1449877801,"base":"USD","rates":{"VEF":0}}`, "", "", upstream.Unusable},
		{"T", 401, `{"error":true,"status":401,"message":"invalid_app_id","description":".."}`, "", "",
			upstream.CredentialsRefused},
		{"T", 403, `{"error":true,"status":403,"message":"not_allowed","description":".."}`, "", "",
			upstream.CredentialsRefused},
		{"T", 429, `{"error":true,"status":429,"message":"access_restricted","description":".."}`, "", "",
			upstream.CredentialsRefused},
		{"made", 200, `{"error":true,"status":401,"message":"missing_app_id"}`, "", "", upstream.CredentialsRefused},
		{"T", 404, `{"error":true,"status":404,"message":"not_found","description":".."}`, "", "", upstream.Rejected},
		{"made", 200, `{"timestamp":1449877801,"base":"EUR","rates":{` + many + `}}`, "", "", upstream.Unusable},
		{"made", 200, `{"base":"USD","rates":{` + many + `}}`, "", "", upstream.Unusable},
		{"made", 200, `{"timestamp":1449877801,"base":"USD","rates":{}}`, "", "", upstream.Unusable},
		{"made", 200, `{"timestamp":1449877801,"base":"USD"}`, "", "", upstream.Unusable},
		{"made", 200, `{"timestamp":1449877801,"base":"USD","rates":{"LKR":"300.1"}}`, "", "", upstream.Unusable},
		{"made", 200, `{"timestamp":1449877801,"base":"USD","rates":{"LKR":NaN}}`, "", "", upstream.Unusable},
		{"made", 200, `{"timestamp":1449877801,"base":"USD","rates":{"LKR":null}}`, "", "", upstream.Unusable},
		{"made", 200, `{"timestamp":1449877801,"base":"USD","rates":{"LKR":1e999}}`, "", "", upstream.Unusable},
		{"made", 200, `{"timestamp":1449877801,"base":"USD","rates":{"LKR":300,"LKR":30}}`, "", "", upstream.Unusable},
		{"made", 200, `{"timestamp":1449877801,"base":"USD","rates":{"LKR":300`, "", "", upstream.Unusable},
		{"made", 200, `{"timestamp":1449877801,"base":"USD","rates":{` + many + `}} and more`, "", "", upstream.Unusable},
		{"made", 503, `{"timestamp":1449877801,"base":"USD","rates":{` + many + `}}`, "", "", upstream.Unusable},
		{"made", 200, `[]`, "", "", upstream.Unusable},
		{"made", 200, `null`, "", "", upstream.Unusable},
		{"made", 200, ``, "", "", upstream.Unusable},
		{"made", 200, `<!doctype html><title>Sign in</title>`, "", "", upstream.Unusable},
		{"made", 302, ``, "", "", upstream.Unusable},
		{"made", 200, `{"x":"` + strings.Repeat("x", 1<<20) + `"}`, "", "", upstream.Unusable},
	},
	"exchangerateapi": {
		{"V", 200, `{"result":"success","documentation":"..","terms_of_use":"..","time_last_update_unix":1748390402,` +
			`"time_last_update_utc":"..","time_next_update_unix":1748476802,"time_next_update_utc":"..","base_code":"USD",` +
			`"conversion_rates":{"USD":1,"LKR":300.1}}`, "2025-05-28T00:00:02Z", "LKR=300.1 USD=1", ""},
		{"made", 200, `{"result":"success","time_last_update_unix":1748390402,"base_code":"USD",` +
			`"conversion_rates":{"USD":1,"LKR":300.1,"KID":0}}`, "2025-05-28T00:00:02Z", "LKR=300.1 USD=1", ""},
		{"V", 404, `{"result":"error","documentation":"..","error-type":"unsupported-code"}`, "", "", upstream.Rejected},
		{"V", 403, `{"result":"error","error-type":"invalid-key"}`, "", "", upstream.CredentialsRefused},
		{"V", 200, `{"result":"error","error-type":"inactive-account"}`, "", "", upstream.CredentialsRefused},
		{"T", 200, `{"result":"error","error_type":"invalid-key"}`, "", "", upstream.CredentialsRefused},
		{"V", 429, `{"result":"error","error-type":"quota-reached"}`, "", "", upstream.Rejected},
		{"made", 200, `{"result":"success","time_last_update_unix":1748390402,"base_code":"EUR","conversion_rates":{` + many +
			`}}`, "", "", upstream.Unusable},
		{"made", 200, `{"result":"maybe","time_last_update_unix":1748390402,"base_code":"USD","conversion_rates":{` + many +
			`}}`, "", "", upstream.Unusable},
		{"made", 200, `{"result":"success","base_code":"USD","conversion_rates":{` + many + `}}`, "", "", upstream.Unusable},
		{"made", 200, `<html>`, "", "", upstream.Unusable},
	},
	"frankfurter": {
		{"V", 200, `[{"date":"2026-08-20","base":"USD","quote":"LKR","rate":300.1}]`, "2026-08-20T00:00:00Z",
			"LKR=300.1 USD=1", ""},
		{"made", 200, `[{"date":"2026-08-19","base":"USD","quote":"LKR","rate":300.1},{"date":"2026-08-20","base":"USD",` +
			`"quote":"EUR","rate":0.9},{"date":"2026-08-12","base":"USD","quote":"CUP","rate":24}]`, "2026-08-20T00:00:00Z",
			"EUR=0.9 LKR=300.1 USD=1", ""},
		{"made", 200, `[{"date":"2026-08-20","base":"USD","quote":"LKR","rate":300.1},{"date":"2026-08-20","base":"USD",` +
			`"quote":"VEF","rate":0}]`, "2026-08-20T00:00:00Z", "LKR=300.1 USD=1", ""},
		{"V", 422, `{"message":"invalid base"}`, "", "", upstream.Rejected},
		{"V", 404, `{"message":"not found"}`, "", "", upstream.Rejected},
		{"V", 503, `{"message":"unavailable"}`, "", "", upstream.Unusable},
		{"made", 200, `[{"date":"2026-08-20","base":"EUR","quote":"LKR","rate":300.1}]`, "", "", upstream.Unusable},
		{"made", 200, `[{"date":"20.08.2026","base":"USD","quote":"LKR","rate":300.1}]`, "", "", upstream.Unusable},
		{"made", 200, `[{"date":"2026-08-20","base":"USD","quote":"LKR","rate":300.1},{"date":"2026-08-20","base":"USD",` +
			`"quote":"LKR","rate":30}]`, "", "", upstream.Unusable},
		{"made", 200, `[{"date":"2026-08-20","base":"USD","quote":"LKR"}]`, "", "", upstream.Unusable},
		{"made", 200, `[]`, "", "", upstream.Unusable},
		{"made", 200, `{"message":"ok"}`, "", "", upstream.Unusable},
	},
}

// The vendors classify every response by its body, and no error contains the key.
func TestResponses(t *testing.T) {
	for name, list := range samples {
		v := Find(name)
		for i, s := range list {
			t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(s.status)
					// A vendor may repeat what it was sent.
					_, _ = w.Write([]byte(strings.ReplaceAll(s.body, "..", r.URL.String())))
				}))
				defer server.Close()
				table, err := v.Fetch(t.Context(), client(), upstream.Account{Endpoint: server.URL, Secrets: secrets})
				if s.class != "" {
					if err == nil || upstream.ClassOf(err) != s.class {
						t.Errorf("%v, want %s", err, s.class)
					} else if text := err.Error(); strings.Contains(text, "secret") || len(text) > 800 {
						t.Errorf("the error says %s", text)
					}
					return
				}
				must.Succeed(t, err)
				if got := text(table); got != s.rates || table.Date.Format(time.RFC3339) != s.date || table.Base != "USD" {
					t.Errorf("%s of %s, want %s of %s", got, table.Date, s.rates, s.date)
				}
			})
		}
	}
}

func text(table *rates.Table) string {
	var list []string
	for _, code := range slices.Sorted(maps.Keys(table.Rates)) {
		list = append(list, code+"="+table.Rates[code].String())
	}
	return strings.Join(list, " ")
}

func FuzzRead(f *testing.F) {
	for _, list := range samples {
		for _, s := range list {
			if len(s.body) < 1000 {
				f.Add([]byte(s.body))
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, v := range Table() {
			table, err := v.read(caller{v.Name, nil}, &upstream.Response{Status: 200, Body: body})
			if err == nil && (len(table.Rates) == 0 || table.Base != base) {
				t.Errorf("%s reads %q as %+v", v.Name, body, table)
			}
		}
	})
}
