package sandbox

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"strconv"
	"strings"
)

// flags are the kinds of network that an address belongs to.
type flags struct {
	vpn, proxy, tor, relay, hosting bool
	residential                     bool // the proxy is a residential one
}

// facts are what every IP vendor of the sandbox knows of an address.
type facts struct {
	flags
	country, code, city, timezone string
	latitude, longitude           float64
	network                       string
	asn                           int
}

// as returns the autonomous-system number as text.
func (f facts) as() string { return "AS" + strconv.Itoa(f.asn) }

// kind returns the vendor's word for the kind of network.
func (f facts) kind(hosting, other string) string {
	if f.hosting {
		return hosting
	}
	return other
}

// anonymous reports whether the network hides its users.
func (f facts) anonymous() bool { return f.vpn || f.proxy || f.tor || f.relay }

// degrees formats a coordinate for the vendors that return text.
func degrees(f float64) string { return strconv.FormatFloat(f, 'f', 5, 64) }

var (
	colombo = facts{
		country: "Sri Lanka", code: "LK", city: "Colombo", timezone: "Asia/Colombo",
		latitude: 6.9271, longitude: 79.8612, network: "Sri Lanka Telecom", asn: 9329,
	}
	ashburn = facts{
		country: "United States", code: "US", city: "Ashburn", timezone: "America/New_York",
		latitude: 39.0438, longitude: -77.4874, network: "Amazon.com, Inc.", asn: 14618,
	}
	sriLankaTelecom = netip.MustParsePrefix("112.134.0.0/16")
)

// flagged are the addresses of networks that hide their users.
var flagged = map[string]flags{
	"45.83.0.1":  {vpn: true},
	"45.83.0.2":  {proxy: true},
	"45.83.0.3":  {tor: true},
	"45.83.0.4":  {relay: true},
	"45.83.0.5":  {hosting: true},
	"45.83.0.6":  {vpn: true, proxy: true, tor: true, relay: true, hosting: true},
	"45.83.0.12": {proxy: true, residential: true},
}

// lookUp is an IP vendor: its paths, its key, what it finds about an address and its failures.
type lookUp struct {
	name   string
	paths  []string // of GET; the address is the parameter ip of the path or of the query
	secret string   // the parameter of the path or of the query that holds the key
	key    string
	// basic is the vendor's way to authorize a request besides the parameter, where it has one.
	basic func(*request) bool
	found func(r *request, ip string, f facts) object
	// failures are responses as reply reads them, with $IP for the address: to a path that the vendor does not have,
	// CredentialsRefused, invalidAddress, QuotaUsed, and UnknownAddress and Rejected where they are not invalidAddress.
	failures map[Outcome]string
}

const unknownPath Outcome = "unknown_path"

func lookUps() []lookUp {
	ipInfoAuthorized := func(r *request) bool {
		return r.Header.Get("Authorization") == "Bearer "+IPInfoToken || r.basic(IPInfoToken, "")
	}
	ipInfoFailures := map[Outcome]string{
		unknownPath:        `400 {"status":400,"error":{"title":"Wrong module","message":"The requested module does not exist."}}`,
		CredentialsRefused: `403 {"status":403,"error":{"title":"Unknown token","message":"Please ensure you've entered your token correctly."}}`,
		invalidAddress:     `404 {"status":404,"error":{"title":"Wrong ip","message":"Please provide a valid IP address"}}`,
		Rejected:           `400 {"title":"Bad request","message":"The request cannot be served."}`,
		UnknownAddress:     `200 {"ip":"$IP","bogon":true}`,
		QuotaUsed:          `429 {"status":429,"error":{"title":"Rate limit exceeded","message":"You've hit the monthly limit of your plan."}}`,
	}
	return []lookUp{
		{ // API v3
			name: "ipgeolocation", paths: []string{"/v3/ipgeo", "/v3/security"}, secret: "apiKey", key: IPGeolocationKey, found: ipGeolocation,
			failures: map[Outcome]string{
				unknownPath:        `404 {"message":"Not Found"}`,
				CredentialsRefused: `401 {"message":"Provided API key is not valid. Contact technical support for assistance at support@ipgeolocation.io"}`,
				invalidAddress:     `400 {"message":"'$IP' is not a valid IP address."}`,
				UnknownAddress:     `404 {"message":"Provided IP address '$IP' does not exist in our database."}`,
				QuotaUsed:          `429 {"message":"You have exceeded the limit of your plan."}`,
			},
		},
		{ // the Plus API
			name: "ipinfo", paths: []string{"/lookup/{ip}"}, secret: "token", key: IPInfoToken, basic: ipInfoAuthorized,
			found: ipInfoPlus, failures: ipInfoFailures,
		},
		{ // the Lite API, with the token of the other API
			name: "ipinfo-lite", paths: []string{"/lite/{ip}"}, secret: "token", key: IPInfoToken, basic: ipInfoAuthorized,
			found: ipInfoLite, failures: ipInfoFailures,
		},
		{ // API v3, one address a request
			name: "proxycheck", paths: []string{"/v3/{ip}"}, secret: "key", key: ProxyCheckKey, found: proxyCheck,
			failures: map[Outcome]string{
				unknownPath:        `400 {"status":"error","message":"No IP address was supplied."}`,
				CredentialsRefused: `403 {"status":"denied","message":"The API key that was supplied is not valid."}`,
				invalidAddress:     `400 {"status":"error","message":"No valid IP address was supplied."}`,
				UnknownAddress:     `200 {"query_time":5,"status":"ok"}`,
				QuotaUsed:          `429 {"status":"denied","message":"1,000 free queries exhausted. Please try again tomorrow."}`,
			},
		},
		{
			name: "vpnapi", paths: []string{"/api/{ip}"}, secret: "key", key: VPNAPIKey, found: vpnAPI,
			failures: map[Outcome]string{
				unknownPath:        `404 {"message":"Not found"}`,
				CredentialsRefused: `403 {"message":"Invalid API key"}`,
				invalidAddress:     `400 {"message":"$IP is an invalid IP address"}`,
				UnknownAddress:     `200 {"ip":"$IP","message":"IP address is not in the database"}`,
				QuotaUsed:          `429 {"message":"Daily rate limit exceeded"}`,
			},
		},
		{ // GeoIP's City, and Insights with the anonymizer
			name: "maxmind", paths: []string{"/geoip/v2.1/city/{ip}", "/geoip/v2.1/insights/{ip}"}, key: MaxMindLicenseKey, found: maxMind,
			basic: func(r *request) bool { return r.basic(MaxMindAccountID, MaxMindLicenseKey) },
			failures: map[Outcome]string{
				unknownPath:        `404 Not Found`,
				CredentialsRefused: `401 {"code":"AUTHORIZATION_INVALID","error":"You have supplied an invalid MaxMind account ID and/or license key in the Authorization header."}`,
				invalidAddress:     `400 {"code":"IP_ADDRESS_INVALID","error":"The value $IP is not a valid IP address."}`,
				UnknownAddress:     `404 {"code":"IP_ADDRESS_NOT_FOUND","error":"The address $IP is not in our database."}`,
				QuotaUsed:          `402 {"code":"INSUFFICIENT_FUNDS","error":"The license key you have provided is out of queries."}`,
			},
		},
		{ // the pro API, whose failures have status 200
			name: "ip-api", paths: []string{"/json/{ip}"}, secret: "key", key: IPAPIKey, found: ipAPI,
			failures: map[Outcome]string{
				unknownPath:        `404 404 Not Found`,
				CredentialsRefused: `403 invalid key`,
				invalidAddress:     `200 {"status":"fail","message":"invalid query","query":"$IP"}`,
				UnknownAddress:     `200 {"status":"fail","message":"reserved range","query":"$IP"}`,
				QuotaUsed:          `429 `,
			},
		},
		{ // proxy detection, whose failures have status 200
			name: "ipqualityscore", paths: []string{"/api/json/ip/{key}/{ip}"}, secret: "key", key: IPQualityScoreKey, found: ipQualityScore,
			failures: map[Outcome]string{
				unknownPath:        `404 Not Found`,
				CredentialsRefused: `200 {"success":false,"message":"Invalid or unauthorized key. Please check the API key and try again.","request_id":"4DT1"}`,
				invalidAddress: `200 {"success":false,"message":"Invalid IPv4 address, IPv6 address or hostname. Please check the input and try ` +
					`again.","request_id":"4DT3"}`,
				QuotaUsed: `200 {"success":false,"message":"You have exceeded your request quota of 35 per day. Please upgrade to increase ` +
					`your request quota.","request_id":"4DT2"}`,
			},
		},
		{ // the geolocation API with a Security plan
			name: "ip2location", paths: []string{"/{$}"}, secret: "key", key: IP2LocationKey, found: ip2Location,
			failures: map[Outcome]string{
				unknownPath:        `404 Not Found`,
				CredentialsRefused: `401 {"error":{"error_code":10001,"error_message":"Invalid API key or insufficient credit."}}`,
				invalidAddress:     `400 {"error":{"error_code":10006,"error_message":"Invalid IP address."}}`,
				UnknownAddress: `200 {"ip":"$IP","country_code":"-","country_name":"-","city_name":"-","asn":"-","as":"-","isp":"-","is_proxy":false,` +
					`"proxy":{"proxy_type":"-","is_vpn":false,"is_tor":false,"is_data_center":false,"is_bogon":true}}`,
				QuotaUsed: `429 `,
			},
		},
	}
}

// vendor returns the row of the look-up in the table of the vendors.
func (l lookUp) vendor() vendor {
	v := vendor{name: l.name, accepted: []string{l.key}, unknown: reply(l.failures[unknownPath])}
	if l.secret != "" {
		v.secrets = []string{l.secret}
	}
	for _, path := range l.paths {
		v.routes = append(v.routes, route{"GET " + path, l.serve})
	}
	return v
}

func (l lookUp) serve(r *request) result {
	parameter := func(name string) string { return cmp.Or(r.PathValue(name), r.URL.Query().Get(name)) }
	ip := parameter("ip")
	addr, err := netip.ParseAddr(ip)
	f := ashburn
	if sriLankaTelecom.Contains(addr) {
		f = colombo
	}
	f.flags = flagged[ip]
	quoted, _ := json.Marshal(ip) // a text always marshals
	all := responses{Accepted: success(l.found(r, ip, f))}
	texts := map[Outcome]string{Rejected: l.failures[invalidAddress], UnknownAddress: l.failures[invalidAddress]}
	maps.Copy(texts, l.failures)
	for outcome, text := range texts {
		all[outcome] = reply(strings.ReplaceAll(text, "$IP", strings.Trim(string(quoted), `"`)))
	}
	authorized := l.secret != "" && parameter(l.secret) == l.key || l.basic != nil && l.basic(r)
	return result{
		operation: "lookup", to: []string{ip}, responses: all,
		problems: []problem{{!authorized, all[CredentialsRefused]}, {err != nil, all[invalidAddress]}},
	}
}

func ipGeolocation(r *request, ip string, f facts) object {
	body := object{
		"ip": ip,
		"location": object{
			"continent_code": "", "country_code2": f.code, "country_name": f.country, "city": f.city,
			"latitude": degrees(f.latitude), "longitude": degrees(f.longitude),
		},
		"asn":       object{"as_number": f.as(), "organization": f.network, "country": f.code},
		"time_zone": object{"name": f.timezone},
	}
	if in := r.URL; in.Query().Get("include") == "security" || in.Path == "/ipgeolocation/v3/security" {
		body["security"] = object{
			"threat_score": 0, "is_tor": f.tor, "is_proxy": f.proxy, "proxy_provider_names": []string{}, "proxy_confidence_score": 0,
			"is_residential_proxy": false, "is_vpn": f.vpn, "vpn_provider_names": []string{}, "is_relay": f.relay,
			"relay_provider_name": "", "is_anonymous": f.anonymous(), "is_known_attacker": false,
			"is_bot": false, "is_spam": false, "is_cloud_provider": f.hosting, "cloud_provider_name": "",
		}
	}
	return body
}

func ipInfoPlus(_ *request, ip string, f facts) object {
	return object{
		"ip": ip,
		"geo": object{
			"city": f.city, "region": "", "region_code": "", "country": f.country, "country_code": f.code, "continent": "",
			"continent_code": "", "latitude": f.latitude, "longitude": f.longitude, "timezone": f.timezone, "postal_code": "",
		},
		"as":           object{"asn": f.as(), "name": f.network, "domain": "", "type": f.kind("hosting", "isp")},
		"anonymous":    object{"name": "", "is_proxy": f.proxy, "is_relay": f.relay, "is_tor": f.tor, "is_vpn": f.vpn},
		"is_anonymous": f.anonymous(), "is_anycast": false, "is_hosting": f.hosting,
		"is_mobile": false, "is_satellite": false,
	}
}

func ipInfoLite(_ *request, ip string, f facts) object {
	return object{
		"ip": ip, "asn": f.as(), "as_name": f.network, "as_domain": "", "country_code": f.code, "country": f.country,
		"continent_code": "", "continent": "",
	}
}

func proxyCheck(_ *request, ip string, f facts) object {
	return object{
		"status": "ok",
		ip: object{
			"network": object{
				"asn": f.as(), "range": nil, "hostname": nil, "provider": f.network, "organisation": f.network,
				"type": f.kind("Hosting", "Residential"),
			},
			"location": object{
				"continent_name": nil, "continent_code": nil, "country_name": f.country, "country_code": f.code, "region_name": nil,
				"region_code": nil, "city_name": f.city, "postal_code": nil, "latitude": f.latitude, "longitude": f.longitude, "timezone": f.timezone,
			},
			"device_estimate": object{"address": 1, "subnet": 1},
			"detections": object{
				"proxy": f.proxy, "vpn": f.vpn, "compromised": false, "scraper": false, "tor": f.tor, "hosting": f.hosting,
				"anonymous": f.vpn || f.proxy || f.tor, "risk": 0,
			},
			"operator": nil, "last_updated": "2026-01-01T00:00:00Z",
		},
		"query_time": 5,
	}
}

func vpnAPI(_ *request, ip string, f facts) object {
	return object{
		"ip":       ip,
		"security": object{"vpn": f.vpn, "proxy": f.proxy, "tor": f.tor, "relay": f.relay},
		"location": object{
			"city": f.city, "region": "", "country": f.country, "continent": "", "region_code": "", "country_code": f.code, "continent_code": "",
			"latitude": degrees(f.latitude), "longitude": degrees(f.longitude), "time_zone": f.timezone, "locale_code": "en", "metro_code": "",
			"is_in_european_union": false,
		},
		"network": object{"network": "", "autonomous_system_number": f.as(), "autonomous_system_organization": f.network},
	}
}

func maxMind(r *request, ip string, f facts) object {
	body := object{
		"city":     object{"geoname_id": 1, "names": object{"en": f.city}},
		"country":  object{"iso_code": f.code, "geoname_id": 2, "names": object{"en": f.country}},
		"location": object{"latitude": f.latitude, "longitude": f.longitude, "time_zone": f.timezone, "accuracy_radius": 20},
		"traits": object{
			"ip_address": ip, "network": ip + "/32", "autonomous_system_number": f.asn,
			"autonomous_system_organization": f.network, "isp": f.network, "organization": f.network,
		},
		"maxmind": object{"queries_remaining": 54321},
	}
	public := f.proxy && !f.residential
	anonymizer := object{
		"is_anonymous": f.vpn || public || f.tor, "is_anonymous_vpn": f.vpn, "is_public_proxy": public,
		"is_tor_exit_node": f.tor, "is_hosting_provider": f.hosting,
	}
	maps.DeleteFunc(anonymizer, func(_ string, is any) bool { return is == false }) // the vendor omits false members
	if f.residential {                                                              // known to the feed alone
		anonymizer["residential"] = object{"confidence": 80, "network_last_seen": "2026-01-01", "provider_name": "Example"}
	}
	if strings.HasPrefix(r.URL.Path, "/maxmind/geoip/v2.1/insights/") && len(anonymizer) > 0 {
		body["anonymizer"] = anonymizer
	}
	return body
}

func ipAPI(_ *request, ip string, f facts) object {
	return object{
		"status": "success", "country": f.country, "countryCode": f.code, "region": "", "regionName": "", "city": f.city, "zip": "",
		"lat": f.latitude, "lon": f.longitude, "timezone": f.timezone, "isp": f.network, "org": f.network,
		"as": f.as() + " " + f.network, "asname": "", "query": ip, "proxy": f.proxy || f.vpn || f.tor, "hosting": f.hosting,
	}
}

func ipQualityScore(_ *request, ip string, f facts) object {
	return object{
		"success": true, "message": "Success", "fraud_score": 0, "country_code": f.code, "region": "", "city": f.city, "ISP": f.network,
		"ASN": f.asn, "organization": f.network, "latitude": f.latitude, "longitude": f.longitude, "is_crawler": false,
		"timezone": f.timezone, "mobile": false, "host": ip, "proxy": f.proxy || f.vpn || f.tor, "vpn": f.vpn, "tor": f.tor,
		"active_vpn": false, "active_tor": false, "recent_abuse": false, "bot_status": false,
		"connection_type": f.kind("Data Center", "Residential"), "abuse_velocity": "none", "request_id": messageID(),
	}
}

func ip2Location(_ *request, ip string, f facts) object {
	kind := "-"
	for name, is := range map[string]bool{"VPN": f.vpn, "TOR": f.tor, "PUB": f.proxy, "CPN": f.relay, "DCH": f.hosting} {
		if is {
			kind = name
		}
	}
	return object{
		"ip": ip, "country_code": f.code, "country_name": f.country, "region_name": "-", "city_name": f.city, "latitude": f.latitude,
		"longitude": f.longitude, "zip_code": "-", "time_zone": "+05:30", "asn": strconv.Itoa(f.asn), "as": f.network, "isp": f.network,
		"is_proxy": f.anonymous(), "fraud_score": 0,
		"proxy": object{
			"last_seen": 1, "proxy_type": kind, "threat": "-", "provider": "-", "is_vpn": f.vpn, "is_tor": f.tor, "is_data_center": f.hosting,
			"is_public_proxy": f.proxy && !f.residential, "is_web_proxy": false, "is_web_crawler": false, "is_residential_proxy": f.residential,
			"is_consumer_privacy_network": f.relay, "is_enterprise_private_network": false, "is_spammer": false, "is_scanner": false,
			"is_botnet": false, "is_bogon": false,
		},
	}
}
