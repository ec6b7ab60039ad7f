package vendors

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"svcapi/shared/iplookup"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
	"svcapi/test/mmdbtest"
)

// recorded is an answer of a vendor and what its adapter makes of it. Its
// source is V, the vendor's documentation; T, third-party code; or made, for
// this test.
type recorded struct {
	name, source string
	status       int
	body         string
	fails        upstream.Class // empty: accepted; unknown: the vendor does not know the address
	want         Place
}

const unknown upstream.Class = "unknown"

// secrets fill every secret field of every vendor.
var secrets = map[string]string{"api_key": "s3cret-key", "token": "s3cret-key", "account_id": "42", "license_key": "s3cret-key"}

// ask asks a vendor that is played by handler about an address.
func ask(t *testing.T, vendor string, handler http.HandlerFunc, addr string) (Place, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	caller := iplookup.Caller{
		Client: upstream.New(upstream.Config{TimeoutSeconds: 1, Local: true}),
		Account: upstream.Account{
			Integration: project.Integration{Vendor: vendor, Mode: project.BYOK}, Endpoint: server.URL, Secrets: secrets,
		},
	}
	return iplookup.Find(Table(), vendor).Ask(context.Background(), caller, netip.MustParseAddr(addr))
}

func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

var answers = map[string][]recorded{
	"ip-api": {
		{"success", "V", 200, `{"status":"success","continentCode":"AS","country":"Sri Lanka","countryCode":"LK","region":"1","regionName":"Western","city":"Colombo","zip":"","lat":6.93,"lon":79.85,
			"timezone":"Asia/Colombo","offset":19800,"currency":"LKR","isp":"Sri Lanka Telecom","org":"","as":"AS9329 Sri Lanka Telecom","asname":"SLTINT","mobile":false,"proxy":false,"hosting":false,"query":"112.134.0.1"}`,
			"", colombo(6.93, 79.85)},
		{"empty fields", "made", 200, `{"status":"success","country":"","countryCode":"","city":"","lat":0,"lon":0}`, "", Place{Latitude: new(0.0), Longitude: new(0.0)}},
		{"numbers as text", "made", 200, `{"status":"success","lat":"6.93","lon":"79.85"}`, "", Place{Latitude: new(6.93), Longitude: new(79.85)}},
		{"one coordinate", "made", 200, `{"status":"success","lat":6.93}`, "", Place{}},
		{"private range", "V", 200, `{"status":"fail","message":"private range","query":"192.168.0.1"}`, unknown, Place{}},
		{"reserved range", "V", 200, `{"status":"fail","message":"reserved range","query":"127.0.0.1"}`, unknown, Place{}},
		{"invalid query", "V", 200, `{"status":"fail","message":"invalid query","query":"x"}`, upstream.Rejected, Place{}},
		{"key, in plain text", "T", 403, `invalid key`, upstream.CredentialsRefused, Place{}},
		{"key, in plain text with 200", "T", 200, `invalid key`, upstream.CredentialsRefused, Place{}},
		{"over the limit", "V", 429, ``, upstream.Rejected, Place{}},
		{"no status", "made", 200, `{"country":"Sri Lanka"}`, upstream.Unusable, Place{}},
	},
	"ipinfo": {
		{"core", "V", 200, `{"ip":"8.8.8.8","geo":{"city":"Mountain View","region":"California","country":"United States","country_code":"US","latitude":37.4,"longitude":-122.1,
			"timezone":"America/Los_Angeles","postal_code":"94043"},"as":{"asn":"AS15169","name":"Google LLC","domain":"google.com","type":"hosting"},"is_hosting":true}`,
			"", Place{new("United States"), new("US"), new("Mountain View"), new("Google LLC"), new(37.4), new(-122.1), new("America/Los_Angeles")}},
		{"bogon", "V", 200, `{"ip":"10.0.0.1","bogon":true}`, unknown, Place{}},
		{"token", "V", 403, `{"status":403,"error":{"title":"Unknown token"}}`, upstream.CredentialsRefused, Place{}},
		{"quota", "V", 429, `{"status":429,"error":{"title":"Rate limit exceeded"}}`, upstream.Rejected, Place{}},
		{"error with 200", "made", 200, `{"title":"Wrong","message":"x"}`, upstream.Rejected, Place{}},
	},
	"ipgeolocation": {
		{"location", "V", 200, `{"ip":"91.128.103.196","location":{"continent_code":"EU","country_code2":"SE","country_name":"Sweden","city":"Stockholm","latitude":"59.40510","longitude":"17.95510"},
			"asn":{"as_number":"AS1257","organization":"Tele2 Sverige AB","country":"SE"},"time_zone":{"name":"Europe/Stockholm","offset":1}}`,
			"", Place{new("Sweden"), new("SE"), new("Stockholm"), new("Tele2 Sverige AB"), new(59.4051), new(17.9551), new("Europe/Stockholm")}},
		{"coordinates that are none", "made", 200, `{"location":{"latitude":"north","longitude":"17.95510"}}`, "", Place{}},
		{"coordinates out of bounds", "made", 200, `{"location":{"latitude":"90.1","longitude":"17.95510"}}`, "", Place{}},
		{"key", "V", 401, `{"message":"Provided API key is not valid."}`, upstream.CredentialsRefused, Place{}},
		{"not in the database", "V", 404, `{"message":"not in our database"}`, unknown, Place{}},
		{"bogon", "V", 423, `{"message":"bogon"}`, unknown, Place{}},
		{"plan limit", "V", 429, `{"message":"limit reached"}`, upstream.Rejected, Place{}},
		{"error with 200", "made", 200, `{"message":"Internal"}`, upstream.Rejected, Place{}},
	},
	"maxmind": {
		{"city", "V", 200, `{"city":{"names":{"en":"Los Angeles"},"geoname_id":1,"confidence":25},"country":{"iso_code":"US","names":{"en":"United States","de":"USA"}},
			"location":{"latitude":37.6,"longitude":-122.4,"time_zone":"America/Los_Angeles","accuracy_radius":20},
			"traits":{"ip_address":"1.2.3.4","autonomous_system_organization":"Linkem IR WiMax Network","isp":"Linkem spa"},"maxmind":{"queries_remaining":54321}}`,
			"", Place{new("United States"), new("US"), new("Los Angeles"), new("Linkem spa"), new(37.6), new(-122.4), new("America/Los_Angeles")}},
		{"organization for isp", "V", 200, `{"traits":{"autonomous_system_organization":"Someone"}}`, "", Place{ISP: new("Someone")}},
		{"not found", "V", 404, `{"code":"IP_ADDRESS_NOT_FOUND","error":"x"}`, unknown, Place{}},
		{"reserved", "V", 400, `{"code":"IP_ADDRESS_RESERVED","error":"x"}`, unknown, Place{}},
		{"key", "V", 401, `{"code":"AUTHORIZATION_INVALID","error":"x"}`, upstream.CredentialsRefused, Place{}},
		{"funds", "V", 402, `{"code":"INSUFFICIENT_FUNDS","error":"x"}`, upstream.Rejected, Place{}},
		{"error with 200", "made", 200, `{"code":"SOMETHING_NEW","error":"x"}`, upstream.Rejected, Place{}},
	},
}

func colombo(latitude, longitude float64) Place {
	return Place{new("Sri Lanka"), new("LK"), new("Colombo"), new("Sri Lanka Telecom"), new(latitude), new(longitude), new("Asia/Colombo")}
}

// everywhere are answers that mean the same from any vendor.
var everywhere = []recorded{
	{"server error", "made", 500, `Internal Server Error`, upstream.Unusable, Place{}},
	{"a page", "made", 200, `<!doctype html><title>We are back soon</title>`, upstream.Unusable, Place{}},
	{"nothing", "made", 200, ``, upstream.Unusable, Place{}},
	{"an array", "made", 200, `[]`, upstream.Unusable, Place{}},
	{"half an answer", "made", 200, `{"ip":"185.59.2`, upstream.Unusable, Place{}},
	{"a redirect", "made", 302, ``, upstream.Unusable, Place{}},
	{"forbidden", "made", 403, `s3cret-key is no key`, upstream.CredentialsRefused, Place{}},
	{"too many", "made", 429, `too many`, upstream.Rejected, Place{}},
}

func TestAnswers(t *testing.T) {
	for _, v := range Table() {
		if v.OnDisk() {
			continue
		}
		if len(answers[v.Name]) == 0 {
			t.Errorf("no answers of %s", v.Name)
		}
		for _, a := range append(answers[v.Name], everywhere...) {
			t.Run(v.Name+"/"+a.name, func(t *testing.T) {
				place, err := ask(t, v.Name, answering(a.status, a.body), "185.59.221.75")
				check(t, a, place, err)
			})
		}
	}
}

func check(t *testing.T, a recorded, place Place, err error) {
	t.Helper()
	var failed *upstream.Error
	switch {
	case a.fails == "" && (err != nil || !reflect.DeepEqual(place, a.want)):
		t.Errorf("%+v, %v; wants %+v", place, err, a.want)
	case a.fails == unknown && !errors.Is(err, iplookup.ErrUnknown):
		t.Errorf("%+v, %v; wants an unknown address", place, err)
	case a.fails != "" && a.fails != unknown && (!errors.As(err, &failed) || failed.Class != a.fails):
		t.Errorf("%+v, %v; wants %s", place, err, a.fails)
	case err != nil && strings.Contains(err.Error(), "s3cret"):
		t.Errorf("the error tells a secret: %v", err)
	}
}

// TestRequests checks what the vendors receive.
func TestRequests(t *testing.T) {
	for vendor, want := range map[string]string{
		"ip-api":        "GET /json/2001:470::1?fields=status%2Cmessage%2Ccountry%2CcountryCode%2Ccity%2Cisp%2Clat%2Clon%2Ctimezone%2Cquery&key=s3cret-key ",
		"ipinfo":        "GET /lookup/2001:470::1 Bearer s3cret-key",
		"ipgeolocation": "GET /v3/ipgeo?apiKey=s3cret-key&ip=2001%3A470%3A%3A1 ",
		"maxmind":       "GET /geoip/v2.1/city/2001:470::1 Basic NDI6czNjcmV0LWtleQ==",
	} {
		var got string
		_, _ = ask(t, vendor, func(_ http.ResponseWriter, r *http.Request) {
			got = r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Authorization")
		}, "2001:470::1")
		if got != want {
			t.Errorf("%s receives %q, wants %q", vendor, got, want)
		}
	}
}

// TestTransport: a vendor that does not answer, cannot be reached, or goes away.
func TestTransport(t *testing.T) {
	for _, v := range Table() {
		if v.OnDisk() {
			continue
		}
		_, err := ask(t, v.Name, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "1.1.1.1")
		check(t, recorded{fails: upstream.NoResponse}, Place{}, err)
		_, err = ask(t, v.Name, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "1.1.1.1")
		check(t, recorded{fails: upstream.NoResponse}, Place{}, err)
	}
}

func TestDatabase(t *testing.T) {
	all := mmdbtest.All(t)
	city := colombo(6.9271, 79.8612)
	city.ISP = nil
	for _, c := range []struct {
		name, folder, addr string
		fails              upstream.Class
		want               Place
	}{
		{"found", all, "112.134.0.1", "", colombo(6.9271, 79.8612)},
		{"found IPv6", all, "2402:d000::1", "", colombo(6.9271, 79.8612)},
		{"empty records", all, "112.135.0.1", "", Place{}},
		{"values out of bounds", all, "112.136.0.1", "", Place{}},
		{"in no database", all, "46.0.0.1", unknown, Place{}},
		{"city alone", mmdbtest.Some(t, "GeoLite2-City.mmdb"), "112.134.0.1", "", city},
		{"no city", mmdbtest.Some(t, "GeoLite2-ASN.mmdb"), "112.134.0.1", upstream.Unusable, Place{}},
		{"no database at all", t.TempDir(), "112.134.0.1", upstream.Unusable, Place{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			databases := iplookup.NewDatabases(c.folder)
			defer databases.Close()
			caller := iplookup.Caller{Databases: databases, Account: upstream.Account{Integration: project.Integration{Vendor: "maxmind-mmdb"}}}
			place, err := iplookup.Find(Table(), "maxmind-mmdb").Ask(t.Context(), caller, netip.MustParseAddr(c.addr))
			check(t, recorded{fails: c.fails, want: c.want}, place, err)
		})
	}
}

// FuzzAnswers: no answer makes an adapter panic, and none but a good one is taken.
func FuzzAnswers(f *testing.F) {
	for _, list := range answers {
		for _, a := range list {
			f.Add(a.status, a.body)
		}
	}
	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	f.Cleanup(server.Close)
	client := upstream.New(upstream.Config{TimeoutSeconds: 5, Local: true})
	f.Fuzz(func(t *testing.T, s int, b string) {
		if s < 200 || s > 599 || len(b) > 1<<16 {
			return
		}
		status, body = s, b
		for _, v := range Table() {
			if v.OnDisk() {
				continue
			}
			caller := iplookup.Caller{Client: client, Account: upstream.Account{
				Integration: project.Integration{Vendor: v.Name}, Endpoint: server.URL, Secrets: secrets,
			}}
			if _, err := v.Ask(t.Context(), caller, netip.MustParseAddr("185.59.221.75")); err == nil && s != 200 {
				t.Errorf("%s takes status %d: %q", v.Name, s, b)
			}
		}
	})
}
