package vendors

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"svcapi/shared/pattern"
	"svcapi/shared/upstream"
)

// ipGeolocation is ipgeolocation.io, API v3 (the vendor's OpenAPI document of 2026-04-30). The vendor has no field for
// the ISP. The flags are those of the module security, where hosting is called a cloud provider.
var ipGeolocation = service{
	spec: upstream.Spec{
		Name: "ipgeolocation", Title: "ipgeolocation.io", Endpoint: "https://api.ipgeolocation.io",
		Secrets: key("api_key", "API key; IP risk needs a plan with the security module"),
	},
	fields: fields{
		country: "location.country_name", countryCode: "location.country_code2", city: "location.city",
		latitude: "location.latitude", longitude: "location.longitude", timezone: "time_zone.name",
		asn: "asn.as_number", network: []string{"asn.organization"}, isp: []string{"asn.organization"},
	},
	object: "security",
	flags: Flags{
		VPN: {"is_vpn"}, Proxy: {"is_proxy", "is_residential_proxy"}, Tor: {"is_tor"}, Relay: {"is_relay"},
		Unnamed: {"is_anonymous"}, Hosting: {"is_cloud_provider"},
	},
}

var ipGeolocationStatuses = map[int]meaning{
	http.StatusNotFound: unknown, // a valid address that is not in the database
	http.StatusLocked:   unknown, // bogon or private address
}

func ipGeolocationPlace(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	return c.ipGeolocation(ctx, url.Values{"ip": {addr.String()}})
}

func ipGeolocationRisk(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	d, err := c.ipGeolocation(ctx, url.Values{"ip": {addr.String()}, "include": {"security"}})
	if err == nil && d.object("security") == nil {
		err = c.fail(credentials, "response without security: not in the key's plan")
	}
	return d, err
}

func (c Caller) ipGeolocation(ctx context.Context, query url.Values) (document, error) {
	query.Set("apiKey", c.Account.Secrets["api_key"])
	d, err := c.getJSON(ctx, "/v3/ipgeo", query, nil, ipGeolocationStatuses)
	switch message := string(d.text("message")); {
	case err != nil || d.object("location") != nil:
		return d, err
	case message != "":
		return nil, c.fail(rejected, message)
	}
	return nil, c.fail(unusable, "response without location")
}

// ipInfo is ipinfo.io's Core and Plus API (the vendor's Go client of 2026-01 and OpenAPI document). The flags are those
// of the Plus API; in the example of its page is_res_proxy is true beside a false is_proxy.
var ipInfo = service{
	spec: upstream.Spec{
		Name: "ipinfo", Title: "ipinfo.io", Endpoint: "https://api.ipinfo.io",
		Secrets: key("token", "access token of a Core plan, for IP risk of a Plus plan"),
	},
	fields: fields{
		country: "geo.country", countryCode: "geo.country_code", city: "geo.city", timezone: "geo.timezone",
		latitude: "geo.latitude", longitude: "geo.longitude", asn: "as.asn", network: []string{"as.name"},
		isp: []string{"as.name"},
	},
	flags: Flags{
		VPN: {"anonymous.is_vpn"}, Proxy: {"anonymous.is_proxy", "anonymous.is_res_proxy"}, Tor: {"anonymous.is_tor"},
		Relay: {"anonymous.is_relay"}, Unnamed: {"is_anonymous"}, Hosting: {"is_hosting"},
	},
}

// ipInfoLite is ipinfo.io's Lite API (the vendor's OpenAPI document and Go client of 2026-01): country and network.
var ipInfoLite = service{
	spec: upstream.Spec{
		Name: "ipinfo-lite", Title: "ipinfo.io Lite", Endpoint: "https://api.ipinfo.io",
		Secrets: key("token", "access token of any plan, also the free one"),
	},
	fields: fields{country: "country", countryCode: "country_code", isp: []string{"as_name"}},
}

var ipInfoStatuses = map[int]meaning{http.StatusNotFound: unknown}

// ipInfo makes a look-up at ipinfo.io. An error is an object or a text.
func (c Caller) ipInfo(ctx context.Context, path string) (document, error) {
	header := http.Header{"Authorization": {"Bearer " + c.Account.Secrets["token"]}}
	d, err := c.getJSON(ctx, path, nil, header, ipInfoStatuses)
	switch bogon, _ := d.flag("bogon"); {
	case err != nil:
		return nil, err
	case bogon:
		return nil, ErrUnknown
	case d.text("title") != "" || d.at("error") != nil:
		return nil, c.fail(rejected, fmt.Sprint(d))
	case d.text("ip") == "":
		return nil, c.fail(unusable, "response without ip")
	}
	return d, nil
}

func ipInfoPlace(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	d, err := c.ipInfo(ctx, "/lookup/"+url.PathEscape(addr.String()))
	switch {
	case err != nil:
	case d.object("geo") == nil:
		err = c.fail(unusable, "response without geo")
	case d.text("geo.country_code").country() == nil && d.text("as.asn").asn() == nil:
		err = ErrUnknown
	}
	return d, err
}

func ipInfoRisk(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	d, err := ipInfoPlace(ctx, c, addr)
	if err == nil && d.object("anonymous") == nil {
		err = c.fail(credentials, "response without anonymous: not in the token's plan")
	}
	return d, err
}

func ipInfoLitePlace(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	d, err := c.ipInfo(ctx, "/lite/"+url.PathEscape(addr.String()))
	if err == nil && d.place(ipInfoLite.fields) == (Place{}) && d.text("asn").asn() == nil {
		err = ErrUnknown
	}
	return d, err
}

// proxyCheck is proxycheck.io, API v3 (the vendor's PHP client 1.0.3 of 2026-06; proxycheck.io/api). The fields are
// those of the response's member for the address, the flags its detections. The vendor has no flag for relays. An
// address that is anonymous without another detection has no named kind.
var proxyCheck = service{
	spec: upstream.Spec{
		Name: "proxycheck", Title: "proxycheck.io", Endpoint: "https://proxycheck.io", Secrets: key("api_key", "API key"),
	},
	fields: fields{
		countryCode: "location.country_code", city: "location.city_name", asn: "network.asn",
		network: []string{"network.provider", "network.organisation"},
	},
	object: "detections",
	flags:  Flags{VPN: {"vpn"}, Proxy: {"proxy"}, Tor: {"tor"}, Unnamed: {"anonymous"}, Hosting: {"hosting"}},
}

// proxyCheckVersion pins the format of the responses (proxycheck.io/api: a query without ver has the newest version).
const proxyCheckVersion = "10-October-2025"

// proxyCheckRisk returns the member of a response that is named by the address in any of its spellings.
func proxyCheckRisk(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	r, err := c.get(ctx, "/v3/"+url.PathEscape(addr.String()),
		url.Values{"key": {c.Account.Secrets["api_key"]}, "ver": {proxyCheckVersion}}, nil)
	if err != nil {
		return nil, err
	}
	d, err := c.decode(r.Body)
	if err != nil {
		return nil, cmp.Or(c.byStatus(r, nil), err)
	}
	if err := c.proxyCheckFailure(d, r); err != nil {
		return nil, err
	}
	for name, value := range d {
		member, _ := value.(map[string]any)
		found := document(member)
		if named, err := netip.ParseAddr(name); err == nil && named.Unmap() == addr && found.object("detections") != nil {
			return found, nil
		}
	}
	return nil, ErrUnknown
}

// proxyCheckFailure returns the error of the response. The body decides before the HTTP status: ok and warning are
// successes, denied is about the account, error about the request.
func (c Caller) proxyCheckFailure(d document, r *upstream.Response) error {
	detail := string(d.text("status") + ": " + d.text("message"))
	switch d.text("status") {
	case "ok", "warning":
		return nil
	case "denied":
		if r.Status == http.StatusTooManyRequests || strings.Contains(strings.ToLower(detail), "quer") {
			return c.fail(quota, detail)
		}
		return c.fail(credentials, detail)
	case "error":
		return c.fail(rejected, detail)
	}
	return cmp.Or(c.byStatus(r, nil), c.fail(unusable, "response without a known status"))
}

// vpnAPI is vpnapi.io (vpnapi.io/api-documentation for the path and the flags; clients for the rest). The vendor has no
// flag for hosting.
var vpnAPI = service{
	spec: upstream.Spec{
		Name: "vpnapi", Title: "vpnapi.io", Endpoint: "https://vpnapi.io", Secrets: key("api_key", "API key"),
	},
	fields: fields{
		countryCode: "location.country_code", city: "location.city", asn: "network.autonomous_system_number",
		network: []string{"network.autonomous_system_organization"},
	},
	object: "security",
	flags:  Flags{VPN: {"vpn"}, Proxy: {"proxy"}, Tor: {"tor"}, Relay: {"relay"}},
}

// vpnAPIPhrases are those of messages, also with HTTP 200, in the order in which they are looked for.
var vpnAPIPhrases = []phrase{
	{pattern.New(`(?i)\b(limit|quota|exceeded|too many|rate)\b`), quota},
	{pattern.New(`(?i)\b(api[ _-]?key|key|unauthori[sz]ed|account|subscription|plan)\b`), credentials},
	{pattern.New(`(?i)\b(private|reserved|bogon|not in (the|our) database|not found)\b`), unknown},
}

// vpnAPIRisk makes a look-up at vpnapi.io. A response without security is about an address that the vendor does not
// serve, unless the response names an error.
func vpnAPIRisk(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	query := url.Values{"key": {c.Account.Secrets["api_key"]}}
	d, err := c.getJSON(ctx, "/api/"+url.PathEscape(addr.String()), query, nil, nil)
	switch message := cmp.Or(d.text("message"), d.text("error")); {
	case err != nil || d.object("security") != nil:
		return d, err
	case message != "":
		return nil, c.byMessage(string(message), vpnAPIPhrases)
	}
	return nil, ErrUnknown
}

// ipAPI is ip-api.com's pro service (ip-api.com/docs/api:json), where the flag "proxy" is a proxy, a VPN or a Tor exit.
// The vendor sends the fields that the request names. The free service has no TLS and no commercial use.
var ipAPI = service{
	spec: upstream.Spec{
		Name: "ip-api", Title: "ip-api.com (pro)", Endpoint: "https://pro.ip-api.com",
		Secrets: key("api_key", "key of a pro subscription"),
	},
	fields: fields{
		country: "country", countryCode: "countryCode", city: "city", isp: []string{"isp"},
		latitude: "lat", longitude: "lon", timezone: "timezone", asn: asNumber, network: []string{asName, "asname", "isp"},
	},
	flags: Flags{Proxy: {"proxy"}, Hosting: {"hosting"}},
}

// The field "as" has a number and a name, such as "AS9329 Sri Lanka Telecom".
const asNumber, asName = "as number", "as name"

func ipAPIPlace(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	return c.ipAPI(ctx, addr, "country,countryCode,city,isp,lat,lon,timezone")
}

func ipAPIRisk(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	d, err := c.ipAPI(ctx, addr, "countryCode,city,isp,as,asname,proxy,hosting")
	_, proxy := d.flag("proxy")
	_, hosting := d.flag("hosting")
	if err == nil && (!proxy || !hosting) {
		err = c.fail(unusable, "response without proxy or hosting")
	}
	return d, err
}

// ipAPI makes a look-up of some fields at ip-api.com. The status in the body decides, because failures have HTTP status
// 200.
func (c Caller) ipAPI(ctx context.Context, addr netip.Addr, fields string) (document, error) {
	query := url.Values{"key": {c.Account.Secrets["api_key"]}, "fields": {"status,message," + fields + ",query"}}
	r, err := c.get(ctx, "/json/"+url.PathEscape(addr.String()), query, nil)
	if err != nil {
		return nil, err
	}
	// The response to an invalid key is plain text, with an undocumented status.
	if r.Status < http.StatusInternalServerError && strings.Contains(strings.ToLower(string(r.Body)), "invalid key") {
		return nil, c.fail(credentials, "invalid key")
	}
	d, err := c.document(r, nil)
	switch status, message := d.text("status"), d.text("message"); {
	case err != nil:
		return nil, err
	case status == "success":
		d[asNumber], d[asName], _ = strings.Cut(string(d.text("as")), " ")
		return d, nil
	case status == "fail" && (message == "private range" || message == "reserved range"):
		return nil, ErrUnknown
	case status == "fail":
		return nil, c.fail(rejected, string(message))
	}
	return nil, c.fail(unusable, "response without a known status")
}

// ipQualityScore is IPQualityScore's proxy detection API (fixtures and client of the Ruby gem geocoder). In recorded
// responses "proxy" is also true for a VPN and a Tor exit. The vendor has no flag for relays. A field of a higher plan
// may hold a text about the plan.
var ipQualityScore = service{
	spec: upstream.Spec{
		Name: "ipqualityscore", Title: "IPQualityScore", Endpoint: "https://www.ipqualityscore.com",
		Secrets: key("api_key", "private key"),
	},
	fields: fields{countryCode: "country_code", city: "city", asn: "ASN", network: []string{"organization", "ISP"}},
	flags: Flags{
		VPN: {"vpn", "active_vpn=true"}, Proxy: {"proxy"}, Tor: {"tor", "active_tor=true"},
		Hosting: {"connection_type=Data Center"},
	},
}

// ipQualityScorePhrases are those of a failure, in the order in which they are looked for.
var ipQualityScorePhrases = []phrase{
	{pattern.New(`(?i)insufficient credits|exceeded your request quota`), quota},
	{pattern.New(`(?i)\b(invalid|unauthorized)\b.*\bkey\b`), credentials},
}

// ipQualityScoreRisk makes a look-up at IPQualityScore. The body decides, because failures have HTTP status 200. The
// strictness is the least, and public access points are not proxies, as the vendor recommends for a start.
func ipQualityScoreRisk(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	path := "/api/json/ip/" + url.PathEscape(c.Account.Secrets["api_key"]) + "/" + url.PathEscape(addr.String())
	query := url.Values{"strictness": {"0"}, "allow_public_access_points": {"true"}}
	d, err := c.getJSON(ctx, path, query, nil, nil)
	switch success, known := d.flag("success"); {
	case err != nil:
		return nil, err
	case !known:
		return nil, c.fail(unusable, "response without success")
	case !success:
		return nil, c.byMessage(string(d.text("message")), ipQualityScorePhrases)
	}
	for _, flag := range []string{"vpn", "proxy", "tor"} {
		if _, known := d.flag(flag); !known {
			return nil, c.fail(unusable, "response without "+flag)
		}
	}
	return d, nil
}

// ip2Location is IP2Location.io's geolocation API (the vendor's SDKs, such as ip2location-io-go of 2025-09). Absent
// texts are "-". The flag is_proxy is true for each kind but a data center and a crawler. A consumer privacy network is
// a relay.
var ip2Location = service{
	spec: upstream.Spec{
		Name: "ip2location", Title: "IP2Location.io", Endpoint: "https://api.ip2location.io",
		Secrets: key("api_key", "API key of a Security plan"),
	},
	fields: fields{countryCode: "country_code", city: "city_name", asn: "asn", network: []string{"as", "isp"}},
	flags: Flags{
		Unnamed: {"is_proxy", "proxy.is_enterprise_private_network"}, VPN: {"proxy.is_vpn"}, Tor: {"proxy.is_tor"},
		Proxy: {"proxy.is_public_proxy", "proxy.is_web_proxy", "proxy.is_residential_proxy"},
		Relay: {"proxy.is_consumer_privacy_network"}, Hosting: {"proxy.is_data_center"},
	},
}

func ip2LocationRisk(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	query := url.Values{"key": {c.Account.Secrets["api_key"]}, "ip": {addr.String()}, "format": {"json"}}
	d, err := c.getJSON(ctx, "/", query, nil, nil)
	_, vpn := d.flag("proxy.is_vpn")
	_, tor := d.flag("proxy.is_tor")
	proxy, _ := d.flag("is_proxy")
	bogon, _ := d.flag("proxy.is_bogon")
	message := string(d.text("error.error_message"))
	switch {
	case err != nil:
	case d.object("error") != nil && strings.Contains(strings.ToLower(message), "key"):
		err = c.fail(credentials, message)
	case d.object("error") != nil:
		err = c.fail(rejected, message)
	case d.text("ip") == "":
		err = c.fail(unusable, "response without ip")
	case !vpn || !tor:
		err = c.fail(credentials, "response without the kinds of proxy: not in the key's plan")
	case bogon || d.text("country_code").country() == nil && d.text("asn").asn() == nil && !proxy:
		err = ErrUnknown
	}
	return d, err
}
