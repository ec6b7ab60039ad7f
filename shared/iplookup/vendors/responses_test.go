package vendors

import (
	"testing"

	"svcapi/shared/upstream"
	"svcapi/test/mmdbtest"
)

// riskResponses has no failure by an HTTP status that testResponses has.
var riskResponses = map[string][]recorded[Risk]{
	"ipgeolocation": {
		{"security and location", "V", 200,
			`{"ip":"185.233.0.1","security":{"threat_score":80,"is_tor":false,"is_proxy":true,"proxy_provider_names":["Zyte Proxy"],"proxy_confidence_score":80,
			"is_residential_proxy":true,"is_vpn":true,"vpn_provider_names":["Nord VPN"],"is_relay":false,"relay_provider_name":"","is_anonymous":true,"is_known_attacker":true,"is_bot":false,
			"is_spam":false,"is_cloud_provider":true,"cloud_provider_name":"Packethub S.A."},
			"location":{"country_code2":"SE","country_name":"Sweden","city":"Stockholm","latitude":"59.40510","longitude":"17.95510"},
			"asn":{"as_number":"AS147049","organization":"Packethub S.A.","country":"SE"}}`,
			"", Risk{VPN: true, Proxy: true, Hosting: true, CountryCode: new("SE"), City: new("Stockholm"), ASN: new("AS147049"),
				Network: new("Packethub S.A.")}},
		{"tor and relay", "made", 200,
			`{"location":{"country_code2":"","city":""},"security":{"is_tor":true,"is_relay":true}}`, "", Risk{Tor: true,
				Relay: true}},
		{"number for text", "made", 200,
			`{"location":{"country_code2":"DE","city":7},"asn":{"as_number":3320},"security":{}}`, "",
			Risk{CountryCode: new("DE"), City: new("7"), ASN: new("AS3320")}},
		{"plan without security", "made", 200, `{"ip":"8.8.8.8","location":{"country_code2":"US"}}`, credentials, Risk{}},
		{"error with 200", "made", 200, `{"message":"Internal"}`, rejected, Risk{}},
		{"nothing with 200", "made", 200, `{}`, unusable, Risk{}},
		{"flag that is no boolean", "made", 200, `{"location":{},"security":{"is_vpn":"yes"}}`, unusable, Risk{}},
		{"key", "V", 401, `{"message":"Provided API key is not valid."}`, credentials, Risk{}},
		{"not in the database", "V", 404, `{"message":"not in our database"}`, unknown, Risk{}},
		{"bogon", "V", 423, `{"message":"'10.0.0.0' is a bogon IP address."}`, unknown, Risk{}},
		{"bad address", "V", 400, `{"message":"not a valid IP address"}`, rejected, Risk{}},
		{"too big, from the web server", "V", 413, `<html>413</html>`, rejected, Risk{}},
	},
	"ipinfo": {
		{"plus", "V", 200, `{"ip":"8.8.8.8","geo":{"city":"Mountain View","region":"California","country":"United States","country_code":"US","latitude":37.4,"longitude":-122.1,
			"timezone":"America/Los_Angeles","postal_code":"94043"},"as":{"asn":"AS15169","name":"Google LLC","domain":"google.com","type":"hosting"},
			"anonymous":{"name":"","is_proxy":false,"is_relay":true,"is_tor":true,"is_vpn":true},
			"is_anonymous":true,"is_anycast":true,"is_hosting":true,"is_mobile":false,"is_satellite":false}`,
			"", Risk{VPN: true, Tor: true, Relay: true, Hosting: true, CountryCode: new("US"), City: new("Mountain View"),
				ASN: new("AS15169"), Network: new("Google LLC")}},
		{"core plan, without anonymous", "V", 200,
			`{"ip":"8.8.8.8","geo":{"country_code":"US"},"as":{"asn":"AS15169"},"is_hosting":true}`, credentials,
			Risk{}},
		{"bogon", "V", 200, `{"ip":"10.0.0.1","bogon":true}`, unknown, Risk{}},
		{"nothing known", "made", 200,
			`{"ip":"46.0.0.1","geo":{"country_code":""},"as":{"asn":""},"anonymous":{}}`, unknown, Risk{}},
		{"bad address", "V", 404, `{"status":404,"error":{"title":"Wrong ip","message":"Please provide a valid IP address"}}`,
			unknown, Risk{}},
		{"wrong module", "V", 400, `{"error":"wrong module"}`, rejected, Risk{}},
		{"error with 200, nested", "made", 200, `{"status":404,"error":{"title":"Wrong ip"}}`, rejected, Risk{}},
		{"error with 200, as text", "made", 200, `{"error":"wrong"}`, rejected, Risk{}},
		{"error with 200, flat", "made", 200, `{"title":"Wrong","message":"x"}`, rejected, Risk{}},
		{"nothing with 200", "made", 200, `{}`, unusable, Risk{}},
	},
	"proxycheck": {
		{"detections", "V", 200, `{"status":"ok","185.59.221.75":{"network":{"asn":"AS60068","range":"185.59.221.0/24","hostname":"x","provider":"Datacamp Limited","organisation":"CDN77","type":"Hosting"},
			"location":{"continent_name":"Europe","continent_code":"EU","country_name":"United Kingdom","country_code":"GB","region_name":"England","region_code":"ENG","city_name":"London",
			"postal_code":"W1B","latitude":51.5072,"longitude":-0.1276,"timezone":"Europe/London","currency":{"code":"GBP"}},"device_estimate":{"address":50,"subnet":1890},
			"detections":{"proxy":false,"vpn":true,"compromised":true,"scraper":false,"tor":false,"hosting":true,"anonymous":true,"risk":100},"operator":null,
			"last_updated":"2025-10-12T00:43:53Z"},"query_time":5}`,
			"", Risk{VPN: true, Hosting: true, CountryCode: new("GB"), City: new("London"), ASN: new("AS60068"),
				Network: new("Datacamp Limited")}},
		{"warning, with data", "V", 200,
			`{"status":"warning","message":"95% of your queries","185.59.221.75":{"network":{"asn":null,"provider":null,"organisation":"CDN77"},
			"location":{"country_code":"Unknown","city_name":"Unknown"},"detections":{"proxy":true,"tor":true}}}`,
			"", Risk{Proxy: true, Tor: true, Network: new("CDN77")}},
		{"warning, without data", "V", 200, `{"status":"warning","message":"x"}`, unknown, Risk{}},
		{"no member for the address", "V", 200, `{"status":"ok","1.1.1.1":{"detections":{}}}`, unknown, Risk{}},
		{"no detections", "made", 200, `{"status":"ok","185.59.221.75":{"network":{}}}`, unknown, Risk{}},
		{"denied key", "V", 200, `{"status":"denied","message":"API Key invalid"}`, credentials, Risk{}},
		{"denied, queries used up", "V", 200, `{"status":"denied","message":"1,000 Free queries exhausted."}`,
			rejected, Risk{}},
		{"denied by status", "made", 429, `{"status":"denied","message":"slow down"}`, rejected, Risk{}},
		{"error", "V", 200, `{"status":"error","message":"No valid IP Addresses supplied."}`, rejected, Risk{}},
		{"no status", "made", 200, `{}`, unusable, Risk{}},
	},
	"vpnapi": {
		{"security", "T", 200, `{"ip":"185.59.221.75","security":{"vpn":true,"proxy":false,"tor":false,"relay":true},
			"location":{"city":"Amsterdam","region":"","country":"Netherlands","continent":"","region_code":"","country_code":"NL","continent_code":"EU","latitude":"52.37","longitude":"4.89",
			"time_zone":"Europe/Amsterdam","locale_code":"en","metro_code":"","is_in_european_union":true},
			"network":{"network":"185.59.220.0/22","autonomous_system_number":"AS60068","autonomous_system_organization":"Datacamp Limited"}}`,
			"", Risk{VPN: true, Relay: true, CountryCode: new("NL"), City: new("Amsterdam"), ASN: new("AS60068"),
				Network: new("Datacamp Limited")}},
		{"number for text", "made", 200,
			`{"security":{"tor":true,"proxy":true},"network":{"autonomous_system_number":60068}}`, "", Risk{Tor: true,
				Proxy: true, ASN: new("AS60068")}},
		{"no security", "made", 200, `{"ip":"10.0.0.1","message":"IP address is a private IP address"}`, unknown, Risk{}},
		{"no security, no message", "made", 200, `{"ip":"10.0.0.1"}`, unknown, Risk{}},
		{"security is null", "made", 200, `{"ip":"10.0.0.1","security":null}`, unknown, Risk{}},
		{"not in the database", "made", 200, `{"message":"IP address is not in the database"}`, unknown, Risk{}},
		{"key with 200", "made", 200, `{"message":"Invalid API Key."}`, credentials, Risk{}},
		{"account with 200", "made", 200, `{"message":"Your account is unauthorized."}`, credentials, Risk{}},
		{"quota with 200", "made", 200, `{"message":"You have exceeded your daily limit with this API key"}`,
			rejected, Risk{}},
		{"requests used up with 200", "made", 200, `{"message":"Too many requests"}`, rejected, Risk{}},
		{"another error with 200", "made", 200, `{"message":"Something went wrong"}`, rejected, Risk{}},
		{"an error field with 200", "made", 200, `{"error":"Invalid API Key."}`, credentials, Risk{}},
	},
	"ip-api": {
		{"proxy and hosting", "V (ip-api.com/docs/api:json)", 200,
			`{"status":"success","countryCode":"LK","city":"Colombo","isp":"Sri Lanka Telecom","as":"AS9329 Sri Lanka Telecom ` +
				`Internet","asname":"SLTINT","proxy":true,"hosting":true,"query":"112.134.0.1"}`,
			"", Risk{Proxy: true, Hosting: true, CountryCode: new("LK"), City: new("Colombo"), ASN: new("AS9329"),
				Network: new("Sri Lanka Telecom Internet")}},
		{"clean, without a network", "made", 200,
			`{"status":"success","isp":"Sri Lanka Telecom","as":"","asname":"","proxy":false,"hosting":false}`, "",
			Risk{Network: new("Sri Lanka Telecom")}},
		{"network without a name", "made", 200,
			`{"status":"success","as":"AS9329","asname":"SLTINT","proxy":false,"hosting":false}`, "", Risk{ASN: new("AS9329"),
				Network: new("SLTINT")}},
		{"without proxy", "made", 200, `{"status":"success","hosting":false}`, unusable, Risk{}},
		{"without hosting", "made", 200, `{"status":"success","proxy":false}`, unusable, Risk{}},
		{"flag that is no boolean", "made", 200, `{"status":"success","proxy":"no","hosting":false}`, unusable, Risk{}},
		{"private range", "V", 200, `{"status":"fail","message":"private range","query":"192.168.0.1"}`, unknown, Risk{}},
		{"invalid query", "V", 200, `{"status":"fail","message":"invalid query","query":"x"}`, rejected, Risk{}},
		{"key, in plain text with 200", "T", 200, `invalid key`, credentials, Risk{}},
		{"no status", "made", 200, `{"proxy":false,"hosting":false}`, unusable, Risk{}},
	},
	"ipqualityscore": {
		{"vpn", "T (geocoder, test/fixtures/ipqualityscore_74_200_247_59)", 200,
			`{"request_id":"3YqddtowOADDvCm","success":true,"message":"Success","fraud_score":78,"country_code":"US","region":"New Jersey","city":"Jersey City",
			"ISP":"Rackspace Hosting","ASN":19994,"organization":"Rackspace Hosting","latitude":40.73,"longitude":-74.04,"is_crawler":false,"timezone":"America/New_York","mobile":false,"host":"74.200.247.59",
			"proxy":true,"vpn":true,"tor":false,"active_vpn":false,"active_tor":false,"recent_abuse":false,"bot_status":false,"connection_type":"Corporate","abuse_velocity":"low"}`,
			"", Risk{VPN: true, Proxy: true, CountryCode: new("US"), City: new("Jersey City"), ASN: new("AS19994"),
				Network: new("Rackspace Hosting")}},
		{"data center, tor", "made", 200,
			`{"success":true,"message":"Success","proxy":true,"vpn":false,"tor":true,"connection_type":"Data Center",` +
				`"ISP":"Someone","organization":""}`,
			"", Risk{Proxy: true, Tor: true, Hosting: true, Network: new("Someone")}},
		{"premium field as a text", "made", 200,
			`{"success":true,"proxy":false,"vpn":false,"tor":false,"connection_type":"Premium required."}`, "", Risk{}},
		{"without vpn", "made", 200, `{"success":true,"proxy":false,"tor":false}`, unusable, Risk{}},
		{"flag that is no boolean", "made", 200, `{"success":true,"proxy":"Premium required.","vpn":false,"tor":false}`,
			unusable, Risk{}},
		{"key", "T (geocoder, lookups/ipqualityscore.rb)", 200,
			`{"success":false,"message":"Invalid or unauthorized key. Please check the API key and try again.","request_id":"x"}`, credentials, Risk{}},
		{"credits", "T", 200, `{"success":false,"message":"You have insufficient credits to make this query."}`,
			rejected, Risk{}},
		{"quota", "T", 200, `{"success":false,"message":"You have exceeded your request quota of 35 per day. Please ` +
			`upgrade to increase your request quota."}`, rejected, Risk{}},
		{"bad address", "T", 200, `{"success":false,"message":"Invalid IPv4 address, IPv6 address or hostname."}`,
			rejected, Risk{}},
		{"no success", "made", 200, `{"message":"Success"}`, unusable, Risk{}},
	},
	"ip2location": {
		{"data center", "V (ip2location-io SDKs, README)", 200,
			`{"ip":"8.8.8.8","country_code":"US","country_name":"United States of America","region_name":"California","city_name":"Mountain View","latitude":37.405992,"longitude":-122.078515,
			"asn":"15169","as":"Google LLC","isp":"Google LLC","usage_type":"DCH","is_proxy":false,"fraud_score":0,"proxy":{"last_seen":14,"proxy_type":"DCH","threat":"-","provider":"-","is_vpn":false,"is_tor":false,
			"is_data_center":true,"is_public_proxy":false,"is_web_proxy":false,"is_web_crawler":false,"is_residential_proxy":false,"is_consumer_privacy_network":false,"is_enterprise_private_network":false,
			"is_spammer":false,"is_scanner":false,"is_botnet":false}}`,
			"", Risk{Hosting: true, CountryCode: new("US"), City: new("Mountain View"), ASN: new("AS15169"),
				Network: new("Google LLC")}},
		{"every flag", "made", 200, `{"ip":"1.2.3.4","country_code":"DE","is_proxy":true,"proxy":{"is_vpn":true,` +
			`"is_tor":true,"is_data_center":true,"is_public_proxy":true,"is_consumer_privacy_network":true}}`,
			"", Risk{VPN: true, Proxy: true, Tor: true, Relay: true, Hosting: true, CountryCode: new("DE")}},
		{"web proxy", "made", 200, `{"ip":"1.2.3.4","country_code":"DE","is_proxy":true,"proxy":{"is_vpn":false,` +
			`"is_tor":false,"is_web_proxy":true}}`, "", Risk{Proxy: true, CountryCode: new("DE")}},
		{"residential proxy", "made", 200,
			`{"ip":"1.2.3.4","country_code":"DE","is_proxy":true,"proxy":{"is_vpn":false,"is_tor":false,` +
				`"is_residential_proxy":true}}`, "", Risk{Proxy: true, CountryCode: new("DE")}},
		{"proxy of no named kind", "made", 200,
			`{"ip":"1.2.3.4","country_code":"DE","is_proxy":true,"proxy":{"is_vpn":false,"is_tor":false}}`, "", Risk{Proxy: true,
				CountryCode: new("DE")}},
		{"private network of an enterprise", "made", 200,
			`{"ip":"1.2.3.4","country_code":"DE","is_proxy":true,"proxy":{"is_vpn":false,"is_tor":false,` +
				`"is_enterprise_private_network":true}}`, "", Risk{Proxy: true, CountryCode: new("DE")}},
		{"plan without proxy", "V (README: proxy.* by plan)", 200, `{"ip":"1.2.3.4","country_code":"DE","is_proxy":false}`,
			credentials, Risk{}},
		{"plan with the type alone", "V (ip2location-io-php, README)", 200,
			`{"ip":"1.2.3.4","country_code":"DE","is_proxy":true,"proxy":{"last_seen":18,"proxy_type":"VPN","threat":"-",` +
				`"provider":"-"}}`, credentials, Risk{}},
		{"bogon", "V (ip2location-io-go, is_bogon)", 200,
			`{"ip":"10.0.0.1","country_code":"-","asn":"-","is_proxy":false,"proxy":{"is_vpn":false,"is_tor":false,` +
				`"is_bogon":true}}`, unknown, Risk{}},
		{"nothing known", "T (a recorded response of 2026-10 for a reserved address)", 200,
			`{"ip":"0.0.0.0","country_code":"-","city_name":"-","asn":"-","as":"-","is_proxy":false,"proxy":{"is_vpn":false,` +
				`"is_tor":false,"is_bogon":false}}`, unknown, Risk{}},
		{"key", "V (ip2location-io-go: error_message with 400 and 401)", 401,
			`{"error":{"error_code":10001,"error_message":"Invalid API key or insufficient credit."}}`,
			credentials, Risk{}},
		{"bad address", "V (format), made", 400, `{"error":{"error_code":10006,"error_message":"Invalid IP address."}}`,
			rejected, Risk{}},
		{"error with 200", "made", 200, `{"error":{"error_code":10001,"error_message":"API key not found."}}`,
			credentials, Risk{}},
		{"nothing with 200", "made", 200, `{}`, unusable, Risk{}},
	},
	"maxmind": {
		{"insights", "V", 200, `{"anonymizer":{"confidence":99,"is_anonymous":true,"is_anonymous_vpn":true,"is_hosting_provider":true,"is_tor_exit_node":true,"provider_name":"x"},
			"city":{"names":{"en":"Los Angeles","de":"Los Angeles"},"geoname_id":1,"confidence":25},"country":{"iso_code":"US","names":{"en":"United States"}},
			"location":{"latitude":37.6,"longitude":-122.4,"time_zone":"America/Los_Angeles","accuracy_radius":20},
			"traits":{"ip_address":"1.128.0.0","network":"1.128.0.0/24","autonomous_system_number":1239,"autonomous_system_organization":"Linkem IR WiMax Network","isp":"Linkem spa"},
			"maxmind":{"queries_remaining":54321}}`,
			"", Risk{VPN: true, Tor: true, Hosting: true, CountryCode: new("US"), City: new("Los Angeles"), ASN: new("AS1239"),
				Network: new("Linkem IR WiMax Network")}},
		{"residential proxy", "V", 200, `{"anonymizer":{"is_residential_proxy":true},"traits":{"isp":"Someone"}}`, "",
			Risk{Proxy: true, Network: new("Someone")}},
		{"residential proxy of the feed alone",
			"V (GeoIP2-dotnet 6.1.0, geoip2-node 7.1.0: residential may be set alone)", 200,
			`{"anonymizer":{"residential":{"confidence":80,"network_last_seen":"2026-07-01","provider_name":"x"}},"traits":{}}`,
			"", Risk{Proxy: true}},
		{"residential proxy with false flags", "made", 200,
			`{"anonymizer":{"is_anonymous":false,"is_anonymous_vpn":false,"is_public_proxy":false,` +
				`"is_residential_proxy":false,"residential":{"confidence":1}},"traits":{}}`, "", Risk{Proxy: true}},
		{"residential as a boolean", "made", 200, `{"anonymizer":{"residential":true},"traits":{}}`, "", Risk{Proxy: true}},
		{"feed without data", "V (GeoIP2-dotnet 6.1.0: an empty object)", 200,
			`{"anonymizer":{"residential":{}},"traits":{}}`, "", Risk{}},
		{"feed that is null, false", "made", 200,
			`{"anonymizer":{"residential":null,"residential":false},"traits":{}}`, "", Risk{}},
		{"anonymous, of no named kind", "made", 200, `{"anonymizer":{"is_anonymous":true,"provider_name":"x"},"traits":{}}`,
			"", Risk{Proxy: true}},
		{"anonymous and hosting", "V", 200, `{"anonymizer":{"is_anonymous":true,"is_hosting_provider":true},"traits":{}}`,
			"", Risk{Hosting: true}},
		{"public proxy", "V", 200, `{"anonymizer":{"is_public_proxy":true},"traits":{}}`, "", Risk{Proxy: true}},
		{"nothing against it", "V", 200, `{"country":{"iso_code":"LK"},"traits":{"ip_address":"1.2.3.4"}}`, "",
			Risk{CountryCode: new("LK")}},
		{"not found", "V", 404, `{"code":"IP_ADDRESS_NOT_FOUND","error":"The address is not in our database."}`, unknown,
			Risk{}},
		{"reserved", "V", 400, `{"code":"IP_ADDRESS_RESERVED","error":"reserved"}`, unknown, Risk{}},
		{"key", "V", 401, `{"code":"AUTHORIZATION_INVALID","error":"invalid"}`, credentials, Risk{}},
		{"plan", "V", 402, `{"code":"PERMISSION_REQUIRED","error":"no permission"}`, credentials, Risk{}},
		{"funds", "V", 402, `{"code":"INSUFFICIENT_FUNDS","error":"out of queries"}`, rejected, Risk{}},
		{"a path that is none", "made", 404, `<html></html>`, rejected, Risk{}},
		{"error with 200", "made", 200, `{"code":"SOMETHING_NEW","error":"x"}`, rejected, Risk{}},
		{"nothing with 200", "made", 200, `{}`, unusable, Risk{}},
	},
}

func TestRiskResponses(t *testing.T) { testResponses(t, Risks(), riskResponses) }

func FuzzRiskResponses(f *testing.F) { fuzz(f, Risks(), riskResponses, "proxycheck") }

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

// placeResponses has no failure that riskResponses has of the same call.
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
		{"reserved range", "V", 200, `{"status":"fail","message":"reserved range","query":"127.0.0.1"}`, unknown, Place{}},
	},
	"ipinfo": {
		{"core", "V", 200, `{"ip":"8.8.8.8","geo":{"city":"Mountain View","region":"California","country":"United States","country_code":"US","latitude":37.4,"longitude":-122.1,
			"timezone":"America/Los_Angeles","postal_code":"94043"},"as":{"asn":"AS15169","name":"Google LLC","domain":"google.com","type":"hosting"},"is_hosting":true}`,
			"", Place{new("United States"), new("US"), new("Mountain View"), new("Google LLC"), new(37.4), new(-122.1),
				new("America/Los_Angeles")}},
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
	},
	"ipgeolocation": {
		{"location", "V", 200, `{"ip":"91.128.103.196","location":{"continent_code":"EU","country_code2":"SE","country_name":"Sweden","city":"Stockholm","latitude":"59.40510","longitude":"17.95510"},
			"asn":{"as_number":"AS1257","organization":"Tele2 Sverige AB","country":"SE"},"time_zone":{"name":"Europe/Stockholm","offset":1}}`,
			"", Place{new("Sweden"), new("SE"), new("Stockholm"), new("Tele2 Sverige AB"), new(59.4051), new(17.9551),
				new("Europe/Stockholm")}},
		{"coordinates that are none", "made", 200, `{"location":{"latitude":"north","longitude":"17.95510"}}`, "", Place{}},
		{"coordinates out of bounds", "made", 200, `{"location":{"latitude":"90.1","longitude":"17.95510"}}`, "", Place{}},
	},
	"maxmind": {
		{"city", "V", 200, `{"city":{"names":{"en":"Los Angeles"},"geoname_id":1,"confidence":25},"country":{"iso_code":"US","names":{"en":"United States","de":"USA"}},
			"location":{"latitude":37.6,"longitude":-122.4,"time_zone":"America/Los_Angeles","accuracy_radius":20},
			"traits":{"ip_address":"1.2.3.4","autonomous_system_organization":"Linkem IR WiMax Network","isp":"Linkem spa"},"maxmind":{"queries_remaining":54321}}`,
			"", Place{new("United States"), new("US"), new("Los Angeles"), new("Linkem spa"), new(37.6), new(-122.4),
				new("America/Los_Angeles")}},
		{"organization for isp", "V", 200, `{"traits":{"autonomous_system_organization":"Someone"}}`, "",
			Place{ISP: new("Someone")}},
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
		{"no city", mmdbtest.Some(t, "GeoLite2-ASN.mmdb"), "112.134.0.1", unusable, Place{}},
		{"no database at all", t.TempDir(), "112.134.0.1", unusable, Place{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			testDatabase(t, Places(), c.folder, c.addr, c.fails, c.want)
		})
	}
}
