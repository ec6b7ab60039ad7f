package sandbox

import (
	"context"
	"fmt"
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
		fill := strings.NewReplacer("IP", ip, "KEY", Accounts[name]["api_key"]+Accounts[name]["token"], "BAD", bad)
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
