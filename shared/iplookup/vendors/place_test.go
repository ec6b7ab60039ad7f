package vendors

import (
	"testing"

	"svcapi/shared/upstream"
	"svcapi/test/mmdbtest"
)

var placeResponses = map[string][]recorded[Place]{
	"ip-api": {
		{"success", "V", 200, `{"status":"success","continentCode":"AS","country":"Sri Lanka","countryCode":"LK","region":"1","regionName":"Western","city":"Colombo","zip":"","lat":6.93,"lon":79.85,
			"timezone":"Asia/Colombo","offset":19800,"currency":"LKR","isp":"Sri Lanka Telecom","org":"","as":"AS9329 Sri Lanka Telecom","asname":"SLTINT","mobile":false,"proxy":false,"hosting":false,"query":"112.134.0.1"}`,
			"", colombo(6.93, 79.85)},
		{"empty fields", "made", 200, `{"status":"success","country":"","countryCode":"","city":"","lat":0,"lon":0}`, "",
			Place{Latitude: new(0.0), Longitude: new(0.0)}},
		{"numbers as text", "made", 200, `{"status":"success","lat":"6.93","lon":"79.85"}`, "",
			Place{Latitude: new(6.93), Longitude: new(79.85)}},
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
			"", Place{new("United States"), new("US"), new("Mountain View"), new("Google LLC"), new(37.4), new(-122.1),
				new("America/Los_Angeles")}},
		{"bogon", "V", 200, `{"ip":"10.0.0.1","bogon":true}`, unknown, Place{}},
		{"token", "V", 403, `{"status":403,"error":{"title":"Unknown token"}}`, upstream.CredentialsRefused, Place{}},
		{"quota", "V", 429, `{"status":429,"error":{"title":"Rate limit exceeded"}}`, upstream.Rejected, Place{}},
		{"error with 200", "made", 200, `{"title":"Wrong","message":"x"}`, upstream.Rejected, Place{}},
	},
	"ipinfo-lite": {
		{"country and network", "V (OpenAPI schema LiteResponse)", 200,
			`{"ip":"8.8.8.8","asn":"AS15169","as_name":"Google LLC","as_domain":"google.com","country_code":"US",` +
				`"country":"United States","continent_code":"NA","continent":"North America"}`,
			"", Place{Country: new("United States"), CountryCode: new("US"), ISP: new("Google LLC")}},
		{"network alone", "made", 200,
			`{"ip":"8.8.8.8","asn":"AS15169","as_name":"Google LLC","country_code":"","country":""}`, "",
			Place{ISP: new("Google LLC")}},
		{"number of the network alone", "made", 200, `{"ip":"8.8.8.8","asn":"AS15169"}`, "", Place{}},
		{"nothing known", "made", 200, `{"ip":"46.0.0.1","asn":"","country_code":""}`, unknown, Place{}},
		{"bogon", "V", 200, `{"ip":"10.0.0.1","bogon":true}`, unknown, Place{}},
		{"token", "V", 403, `{"status":403,"error":{"title":"Unknown token"}}`, upstream.CredentialsRefused, Place{}},
		{"quota", "V", 429, `{"status":429,"error":{"title":"Rate limit exceeded"}}`, upstream.Rejected, Place{}},
		{"bad address", "V", 404, `{"status":404,"error":{"title":"Wrong ip"}}`, unknown, Place{}},
		{"error with 200", "made", 200, `{"error":"wrong"}`, upstream.Rejected, Place{}},
		{"nothing with 200", "made", 200, `{}`, upstream.Unusable, Place{}},
	},
	"ipgeolocation": {
		{"location", "V", 200, `{"ip":"91.128.103.196","location":{"continent_code":"EU","country_code2":"SE","country_name":"Sweden","city":"Stockholm","latitude":"59.40510","longitude":"17.95510"},
			"asn":{"as_number":"AS1257","organization":"Tele2 Sverige AB","country":"SE"},"time_zone":{"name":"Europe/Stockholm","offset":1}}`,
			"", Place{new("Sweden"), new("SE"), new("Stockholm"), new("Tele2 Sverige AB"), new(59.4051), new(17.9551),
				new("Europe/Stockholm")}},
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
			"", Place{new("United States"), new("US"), new("Los Angeles"), new("Linkem spa"), new(37.6), new(-122.4),
				new("America/Los_Angeles")}},
		{"organization for isp", "V", 200, `{"traits":{"autonomous_system_organization":"Someone"}}`, "",
			Place{ISP: new("Someone")}},
		{"not found", "V", 404, `{"code":"IP_ADDRESS_NOT_FOUND","error":"x"}`, unknown, Place{}},
		{"reserved", "V", 400, `{"code":"IP_ADDRESS_RESERVED","error":"x"}`, unknown, Place{}},
		{"key", "V", 401, `{"code":"AUTHORIZATION_INVALID","error":"x"}`, upstream.CredentialsRefused, Place{}},
		{"funds", "V", 402, `{"code":"INSUFFICIENT_FUNDS","error":"x"}`, upstream.Rejected, Place{}},
		{"error with 200", "made", 200, `{"code":"SOMETHING_NEW","error":"x"}`, upstream.Rejected, Place{}},
	},
}

func colombo(latitude, longitude float64) Place {
	return Place{new("Sri Lanka"), new("LK"), new("Colombo"), new("Sri Lanka Telecom"), new(latitude),
		new(longitude), new("Asia/Colombo")}
}

func TestPlaceResponses(t *testing.T) { testResponses(t, Places(), placeResponses) }

func FuzzPlaceResponses(f *testing.F) { fuzz(f, Places(), placeResponses) }

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
		{"no city", mmdbtest.Some(t, "GeoLite2-ASN.mmdb"), "112.134.0.1", upstream.Unusable, Place{}},
		{"no database at all", t.TempDir(), "112.134.0.1", upstream.Unusable, Place{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			testDatabase(t, Places(), c.folder, c.addr, c.fails, c.want)
		})
	}
}
