package sandbox

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

var maxmindAuth = basicAuth("100001", "maxmind-sandbox-license-key")

// lookUpRequests are a look-up at each IP vendor: IP is the address, KEY the vendor's key, and BAD is empty, or makes
// the credentials wrong.
var lookUpRequests = map[string]sample{
	"ipgeolocation":  {"GET", "/ipgeolocation/v3/ipgeo?include=security&apiKey=KEYBAD&ip=IP", "", ""},
	"ipinfo":         {"GET", "/ipinfo/lookup/IP", "Bearer KEYBAD", ""},
	"proxycheck":     {"GET", "/proxycheck/v3/IP?key=KEYBAD", "", ""},
	"vpnapi":         {"GET", "/vpnapi/api/IP?key=KEYBAD", "", ""},
	"maxmind":        {"GET", "/maxmind/geoip/v2.1/insights/IP", maxmindAuth + "BAD", ""},
	"ip-api":         {"GET", "/ip-api/json/IP?key=KEYBAD", "", ""},
	"ipinfo-lite":    {"GET", "/ipinfo-lite/lite/IP", "Bearer KEYBAD", ""},
	"ipqualityscore": {"GET", "/ipqualityscore/api/json/ip/KEYBAD/IP", "", ""},
	"ip2location":    {"GET", "/ip2location/?key=KEYBAD&ip=IP", "", ""},
}

// TestAddresses checks the table of magic addresses for every IP vendor: the status and a part of the body.
func TestAddresses(t *testing.T) {
	s := start(t)
	wants := map[string]map[string]string{
		"ipgeolocation": {
			"112.134.0.1": `200 "latitude":"6.92710","longitude":"79.86120"`, "45.83.0.4": `200 "is_relay":true`,
			"45.83.0.5": `200 "is_cloud_provider":true`,
			"45.83.0.7": `404 "message"`, "45.83.0.8": `429 "message"`, "x": `400 "message"`,
		},
		"ipinfo": {
			"112.134.0.1": `200 "latitude":6.9271,"longitude":79.8612`, "45.83.0.1": `200 "is_vpn":true`,
			"45.83.0.5": `200 "is_hosting":true`,
			"45.83.0.7": `200 "bogon":true`, "45.83.0.8": `429 "title"`, "x": `404 Wrong ip`,
		},
		"proxycheck": {
			"112.134.0.1": `200 "112.134.0.1":{`, "45.83.0.2": `200 "proxy":true`, "45.83.0.3": `200 "tor":true`,
			"45.83.0.7": `200 {"query_time":5,"status":"ok"}`, "45.83.0.8": `429 "status":"denied"`, "x": `400 "status":"error"`,
		},
		"vpnapi": {
			"112.134.0.1": `200 "autonomous_system_number":"AS9329"`, "45.83.0.6": `200 "security":{"proxy":true,"relay":true,` +
				`"tor":true,"vpn":true}`,
			"45.83.0.7": `200 "message"`, "45.83.0.8": `429 "message"`, "x": `400 "message"`,
		},
		"maxmind": {
			"112.134.0.1": `200 "autonomous_system_number":9329`, "45.83.0.3": `200 "anonymizer":{"is_anonymous":true,` +
				`"is_tor_exit_node":true}`,
			"45.83.0.12": `200 "anonymizer":{"residential":{"confidence"`,
			"45.83.0.7":  `404 IP_ADDRESS_NOT_FOUND`, "45.83.0.8": `402 INSUFFICIENT_FUNDS`, "x": `400 IP_ADDRESS_INVALID`,
		},
		"ip-api": {
			"112.134.0.1": `200 "as":"AS9329 Sri Lanka Telecom"`, "20.1.2.3": `200 "city":"Ashburn"`,
			"45.83.0.1": `200 "proxy":true`, "45.83.0.5": `200 "hosting":true`,
			"45.83.0.7": `200 "message":"reserved range"`, "45.83.0.8": `429 `, "x": `200 "message":"invalid query"`,
		},
		"ipinfo-lite": {
			"112.134.0.1": `200 "as_name":"Sri Lanka Telecom"`, "20.1.2.3": `200 "country_code":"US"`,
			"45.83.0.7": `200 "bogon":true`, "45.83.0.8": `429 "title"`, "x": `404 Wrong ip`,
		},
		"ipqualityscore": {
			"112.134.0.1": `200 "ASN":9329`, "45.83.0.1": `200 "proxy":true`, "45.83.0.5": `200 "connection_type":"Data Center"`,
			"45.83.0.7": `200 "success":false`, "45.83.0.8": `200 request quota`, "x": `200 Invalid IPv4 address`,
		},
		"ip2location": {
			"112.134.0.1": `200 "asn":"9329"`, "45.83.0.4": `200 "is_consumer_privacy_network":true`,
			"45.83.0.12": `200 "is_residential_proxy":true`,
			"45.83.0.7":  `200 "is_bogon":true`, "45.83.0.8": `429 `, "x": `400 "error_code":10006`,
		},
	}
	ask := func(ctx context.Context, name, ip, bad string) (int, string, error) {
		in := lookUpRequests[name]
		fill := strings.NewReplacer("IP", ip, "KEY", Account(name)["api_key"]+Account(name)["token"], "BAD", bad)
		in.path, in.authorization = fill.Replace(in.path), fill.Replace(in.authorization)
		return s.send(ctx, in)
	}
	for name := range lookUpRequests {
		want := wants[name]
		want["45.83.0.10"], want["45.83.0.11"] = "200 <!doctype html>", "500 Internal Server Error"
		for address, expected := range want {
			status, part, _ := strings.Cut(expected, " ")
			got, body, err := ask(t.Context(), name, address, "")
			if err != nil || fmt.Sprint(got) != status || !strings.Contains(body, part) {
				t.Errorf("%s about %s: %d %s %v, want %s", name, address, got, body, err, expected)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, body, err := ask(ctx, name, "45.83.0.9", ""); err == nil {
			t.Errorf("%s responds to a request that should hang: %s", name, body)
		}
		cancel()
	}
	for name := range lookUpRequests {
		got, body, err := ask(t.Context(), name, "112.134.0.1", "x")
		if refused := got == 401 || got == 403 ||
			name == "ipqualityscore" && strings.Contains(body, "Invalid or unauthorized key"); err != nil || !refused {
			t.Errorf("%s accepts wrong credentials: %d %s %v", name, got, body, err)
		}
	}
	for _, call := range s.Calls() {
		if call.Operation != "lookup" || len(call.To) != 1 ||
			strings.Contains(call.Path+fmt.Sprint(call.Headers), "sandbox-") {
			t.Errorf("recorded as %+v", call)
		}
	}
	if n := len(s.Calls()); n < 40 {
		t.Errorf("%d calls are recorded", n)
	}
}

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
		oxrAppID   = "openexchangerates-sandbox-app-id"
		v6Key      = "exchangerateapi-sandbox-key"
		frankfurt  = "/frankfurter/v2/rates"
		indicative = "/cbsl/cbsl_custom/exrates/exrates"
	)
	for _, c := range []struct {
		in     sample
		status int
		has    []string
		lacks  string
	}{
		{sample{"GET", oxr + "?app_id=" + oxrAppID, "", ""}, 200,
			[]string{`"base":"USD"`, `"LKR":304.718462`, `"BTC":`, `"USD":1`}, ""},
		{sample{"GET", oxr, "", ""}, 401, []string{`"message":"missing_app_id"`}, "LKR"},
		{sample{"GET", oxr + "?app_id=x", "", ""}, 401, []string{`"message":"invalid_app_id"`}, "LKR"},
		{sample{"GET", oxr + "?base=EUR&app_id=" + oxrAppID, "", ""}, 403,
			[]string{`"message":"not_allowed"`}, "LKR"},
		{sample{"GET", "/openexchangerates/api/none.json", "", ""}, 404, []string{`"message":"not_found"`}, ""},
		{sample{"GET", v6 + v6Key + "/latest/USD", "", ""}, 200,
			[]string{`"result":"success"`, `"base_code":"USD"`, `"LKR":304.718462`, `"KID":`}, ""},
		{sample{"GET", v6 + "x/latest/USD", "", ""}, 403, []string{`"error-type":"invalid-key"`}, "LKR"},
		{sample{"GET", v6 + v6Key + "/latest/XXX", "", ""}, 404,
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
		for _, key := range []string{oxrAppID, v6Key} {
			if strings.Contains(call.Path+call.Body, key) {
				t.Errorf("a key is shown: %+v", call)
			}
		}
		if call.Operation != "rates" && call.Operation != "" {
			t.Errorf("operation %q", call.Operation)
		}
	}
}
