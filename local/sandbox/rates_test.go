package sandbox

import (
	"net/url"
	"strings"
	"testing"
)

const cbslField = "chk_cur[]"

func cbslPost(pairs ...string) string {
	form := url.Values{
		"lookupPage": {"lookup_daily_exchange_rates.php"}, "rangeType": {"dates"}, "txtStart": {"2026-11-13"},
		"txtEnd": {"2026-11-22"}, "submit_button": {"Submit"},
	}
	for i := 0; i < len(pairs); i += 2 {
		form[pairs[i]] = append(form[pairs[i]], pairs[i+1])
	}
	return form.Encode()
}

// TestRates checks the responses of each source of rates, also to wrong keys and malformed requests.
func TestRates(t *testing.T) {
	s := start(t)
	const (
		oxr        = "/openexchangerates/api/latest.json"
		v6         = "/exchangerateapi/v6/"
		frankfurt  = "/frankfurter/v2/rates"
		indicative = "/cbsl/cbsl_custom/exrates/exrates"
	)
	for _, c := range []struct {
		in     sample
		status int
		has    []string
		lacks  string
	}{
		{sample{"GET", oxr + "?app_id=" + OpenExchangeRatesAppID, "", ""}, 200,
			[]string{`"base":"USD"`, `"LKR":304.718462`, `"BTC":`, `"USD":1`}, ""},
		{sample{"GET", oxr, "", ""}, 401, []string{`"message":"missing_app_id"`}, "LKR"},
		{sample{"GET", oxr + "?app_id=x", "", ""}, 401, []string{`"message":"invalid_app_id"`}, "LKR"},
		{sample{"GET", oxr + "?base=EUR&app_id=" + OpenExchangeRatesAppID, "", ""}, 403,
			[]string{`"message":"not_allowed"`}, "LKR"},
		{sample{"GET", "/openexchangerates/api/none.json", "", ""}, 404, []string{`"message":"not_found"`}, ""},
		{sample{"GET", v6 + ExchangeRateAPIKey + "/latest/USD", "", ""}, 200,
			[]string{`"result":"success"`, `"base_code":"USD"`, `"LKR":304.718462`, `"KID":`}, ""},
		{sample{"GET", v6 + "x/latest/USD", "", ""}, 403, []string{`"error-type":"invalid-key"`}, "LKR"},
		{sample{"GET", v6 + ExchangeRateAPIKey + "/latest/XXX", "", ""}, 404,
			[]string{`"error-type":"unsupported-code"`}, "LKR"},
		{sample{"GET", frankfurt + "?base=USD", "", ""}, 200,
			[]string{`{"base":"USD","date":"`, `"quote":"LKR","rate":304.718462}`}, "BTC"},
		{sample{"GET", frankfurt, "", ""}, 422, []string{`"message"`}, "LKR"},
		{sample{"GET", indicative + ".php", "", ""}, 200,
			[]string{`name="chk_cur[]" value="USD~US Dollar"`, `value="MYR~Malaysia  Ringgit"`}, "Renminbi<"},
		{sample{"GET", "/cbsl/cbsl_custom/exratestt/exratestt.php", "", ""}, 200,
			[]string{`value="USD~United States Dollar"`, `value="CNY~Renminbi"`}, "MYR"},
		{sample{"POST", indicative + "_results.php", "", cbslPost(cbslField, "USD~US Dollar", cbslField, "EUR~Euro")}, 200,
			[]string{"<h2 id=\"LOOKUPS_IEXE0101\"> US Dollar </h2>", "1  USD  -&gt; LKR",
				"<td> 2026-11-20 </td><td> 304.6531 </td>", "<td> 2026-11-13 </td>", " Euro "}, "2026-11-21"},
		// the text must be exact
		{sample{"POST", indicative + "_results.php", "", cbslPost(cbslField, "USD~Dollar")}, 200, nil, "<table"},
		{sample{"POST", indicative + "_results.php", "",
			strings.Replace(cbslPost(cbslField, "USD~US Dollar"), "submit_button", "x", 1)}, 200, nil, "<table"},
		{sample{"POST", indicative + "_results.php", "",
			strings.ReplaceAll(cbslPost(cbslField, "USD~US Dollar"), "2026-11-13", "2026-11-21")}, 200, []string{"0 results"},
			"304.6531"},
		{sample{"POST", "/cbsl/cbsl_custom/exratestt/exrates_resultstt.php", "",
			cbslPost(cbslField, "USD~United States Dollar")}, 200,
			[]string{"Buy Rate (LKR)", "<td> 2026-11-20 </td><td> 301.2175 </td><td> 308.7702 </td>"}, "Euro"},
		{sample{"GET", "/cbsl/else", "", ""}, 404, []string{"Not Found"}, ""},
	} {
		status, body, err := s.send(t.Context(), c.in)
		if err != nil || status != c.status || c.lacks != "" && strings.Contains(body, c.lacks) {
			t.Errorf("%s %s: %d, %v\n%s", c.in.method, c.in.path, status, err, body)
		}
		for _, part := range c.has {
			if !strings.Contains(body, part) {
				t.Errorf("%s %s lacks %q:\n%s", c.in.method, c.in.path, part, body)
			}
		}
	}
	for _, call := range s.Calls() {
		for _, key := range []string{OpenExchangeRatesAppID, ExchangeRateAPIKey} {
			if strings.Contains(call.Path+call.Body, key) {
				t.Errorf("a key is shown: %+v", call)
			}
		}
		if call.Operation != "rates" && call.Operation != "" {
			t.Errorf("operation %q", call.Operation)
		}
	}
}
