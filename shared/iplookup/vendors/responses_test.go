package vendors

import (
	"testing"

	"svcapi/shared/upstream"
	"svcapi/test/mmdbtest"
)

func TestRiskResponses(t *testing.T) { testResponses(t, Risks(), responses[Risk](t, "risks.yaml")) }

func FuzzRiskResponses(f *testing.F) {
	fuzz(f, Risks(), responses[Risk](f, "risks.yaml"), "proxycheck")
}

func TestRiskRequests(t *testing.T) {
	testRequests(t, Risks(), map[string]string{
		"ipgeolocation":  "GET /v3/ipgeo?apiKey=s3cret-key&include=security&ip=2001%3A470%3A%3A1 ",
		"ipinfo":         "GET /lookup/2001:470::1 Bearer s3cret-key",
		"proxycheck":     "GET /v3/2001:470::1?key=s3cret-key&ver=10-October-2025 ",
		"ip-api":         "GET /json/2001:470::1?fields=status%2Cmessage%2CcountryCode%2Ccity%2Cisp%2Cas%2Casname%2Cproxy%2Chosting%2Cquery&key=s3cret-key ",
		"ipqualityscore": "GET /api/json/ip/s3cret-key/2001:470::1?allow_public_access_points=true&strictness=0 ",
		"ip2location":    "GET /?format=json&ip=2001%3A470%3A%3A1&key=s3cret-key ",
		"vpnapi":         "GET /api/2001:470::1?key=s3cret-key ",
		"maxmind":        "GET /geoip/v2.1/insights/2001:470::1 Basic NDI6czNjcmV0LWtleQ==",
	})
}

// The response of proxycheck may have another spelling of the address.
func TestIPv6Member(t *testing.T) {
	risk, err := ask(t, Risks(), "proxycheck",
		respond(200, `{"status":"ok","2001:0470:0:0::1":{"detections":{"vpn":true}}}`), "2001:470::1")
	if err != nil || !risk.VPN {
		t.Errorf("%+v, %v", risk, err)
	}
}

func TestRiskDatabase(t *testing.T) {
	all := mmdbtest.Some(t)
	for _, c := range []struct {
		name, folder, addr string
		fails              upstream.Class
		want               Risk
	}{
		{"clean", all, "112.134.0.1", "",
			Risk{CountryCode: new("LK"), City: new("Colombo"), ASN: new("AS9329"), Network: new("Sri Lanka Telecom")}},
		{"clean IPv6", all, "2402:d000::1", "",
			Risk{CountryCode: new("LK"), City: new("Colombo"), ASN: new("AS9329"), Network: new("Sri Lanka Telecom")}},
		{"vpn", all, "45.83.0.1", "", Risk{VPN: true}},
		{"every flag", all, "2001:470:1::5", "", Risk{VPN: true, Proxy: true, Tor: true, Hosting: true}},
		{"empty records", all, "112.135.0.1", "", Risk{}},
		{"in no database", all, "46.0.0.1", unknown, Risk{}},
		{"anonymous, of no named kind", all, "45.83.0.14", "", Risk{Proxy: true}},
		{"vpn of Anonymous Plus", mmdbtest.Some(t, "GeoIP-Anonymous-Plus.mmdb"), "45.83.0.1", "", Risk{VPN: true}},
		{"residential proxy of Anonymous Plus", mmdbtest.Some(t, "GeoIP-Anonymous-Plus.mmdb"), "45.83.0.12",
			"", Risk{Proxy: true}},
		{"Anonymous Plus comes first", mmdbtest.Some(t, "GeoIP-Anonymous-Plus.mmdb", "GeoIP2-Anonymous-IP.mmdb"),
			"45.83.0.12", "", Risk{Proxy: true}},
		{"residential proxy of its own database",
			mmdbtest.Some(t, "GeoIP2-Anonymous-IP.mmdb", "GeoLite2-City.mmdb",
				"GeoIP-Residential-Proxy.mmdb"), "45.83.0.13", "", Risk{Proxy: true}},
		{"not listed by the only database", mmdbtest.Some(t, "GeoIP2-Anonymous-IP.mmdb"), "46.0.0.1", "", Risk{}},
		{"no database of anonymous addresses", mmdbtest.Some(t, "GeoLite2-City.mmdb"), "112.134.0.1", unusable, Risk{}},
		{"no database at all", t.TempDir(), "112.134.0.1", unusable, Risk{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			testDatabase(t, Risks(), c.folder, c.addr, c.fails, c.want)
		})
	}
}

func colombo(latitude, longitude float64) Place {
	return Place{new("Sri Lanka"), new("LK"), new("Colombo"), new("Sri Lanka Telecom"), new(latitude),
		new(longitude), new("Asia/Colombo")}
}

func TestPlaceResponses(t *testing.T) { testResponses(t, Places(), responses[Place](t, "places.yaml")) }

func FuzzPlaceResponses(f *testing.F) { fuzz(f, Places(), responses[Place](f, "places.yaml")) }

func TestPlaceRequests(t *testing.T) {
	testRequests(t, Places(), map[string]string{
		"ip-api":        "GET /json/2001:470::1?fields=status%2Cmessage%2Ccountry%2CcountryCode%2Ccity%2Cisp%2Clat%2Clon%2Ctimezone%2Cquery&key=s3cret-key ",
		"ipinfo":        "GET /lookup/2001:470::1 Bearer s3cret-key",
		"ipinfo-lite":   "GET /lite/2001:470::1 Bearer s3cret-key",
		"ipgeolocation": "GET /v3/ipgeo?apiKey=s3cret-key&ip=2001%3A470%3A%3A1 ",
		"maxmind":       "GET /geoip/v2.1/city/2001:470::1 Basic NDI6czNjcmV0LWtleQ==",
	})
}

func TestPlaceDatabase(t *testing.T) {
	all := mmdbtest.Some(t)
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
		{"no city", mmdbtest.Some(t, "GeoLite2-ASN.mmdb"), "112.134.0.1", unusable, Place{}},
		{"no database at all", t.TempDir(), "112.134.0.1", unusable, Place{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			testDatabase(t, Places(), c.folder, c.addr, c.fails, c.want)
		})
	}
}
