package vendors

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"svcapi/shared/upstream"
)

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
	d, err := c.getJSON(ctx, "/v3/ipgeo", query, nil)
	switch message := string(d.text("message")); {
	case err != nil || d.object("location") != nil:
		return d, err
	case message != "":
		return nil, c.fail(rejected, message)
	}
	return nil, c.fail(unusable, "response without location")
}

// ipInfo makes a look-up at ipinfo.io. An error is an object or a text.
func (c Caller) ipInfo(ctx context.Context, path string) (document, error) {
	header := http.Header{"Authorization": {"Bearer " + c.Account.Secrets["token"]}}
	d, err := c.getJSON(ctx, path, nil, header)
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
	if err == nil && d.place(services()["ipinfo-lite"].Fields) == (Place{}) && d.text("asn").asn() == nil {
		err = ErrUnknown
	}
	return d, err
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
		return nil, cmp.Or(c.byStatus(r), err)
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
	return cmp.Or(c.byStatus(r), c.fail(unusable, "response without a known status"))
}

// vpnAPIRisk makes a look-up at vpnapi.io. A response without security is about an address that the vendor does not
// serve, unless the response names an error.
func vpnAPIRisk(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	query := url.Values{"key": {c.Account.Secrets["api_key"]}}
	d, err := c.getJSON(ctx, "/api/"+url.PathEscape(addr.String()), query, nil)
	switch message := cmp.Or(d.text("message"), d.text("error")); {
	case err != nil || d.object("security") != nil:
		return d, err
	case message != "":
		return nil, c.byMessage(string(message))
	}
	return nil, ErrUnknown
}

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
	d, err := c.document(r)
	switch status, message := d.text("status"), d.text("message"); {
	case err != nil:
		return nil, err
	case status == "success":
		d["as number"], d["as name"], _ = strings.Cut(string(d.text("as")), " ") // such as AS9329 Sri Lanka Telecom
		return d, nil
	case status == "fail" && (message == "private range" || message == "reserved range"):
		return nil, ErrUnknown
	case status == "fail":
		return nil, c.fail(rejected, string(message))
	}
	return nil, c.fail(unusable, "response without a known status")
}

// ipQualityScoreRisk makes a look-up at IPQualityScore. The body decides, because failures have HTTP status 200. The
// strictness is the least, and public access points are not proxies, as the vendor recommends for a start.
func ipQualityScoreRisk(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	path := "/api/json/ip/" + url.PathEscape(c.Account.Secrets["api_key"]) + "/" + url.PathEscape(addr.String())
	query := url.Values{"strictness": {"0"}, "allow_public_access_points": {"true"}}
	d, err := c.getJSON(ctx, path, query, nil)
	switch success, known := d.flag("success"); {
	case err != nil:
		return nil, err
	case !known:
		return nil, c.fail(unusable, "response without success")
	case !success:
		return nil, c.byMessage(string(d.text("message")))
	}
	for _, flag := range []string{"vpn", "proxy", "tor"} {
		if _, known := d.flag(flag); !known {
			return nil, c.fail(unusable, "response without "+flag)
		}
	}
	return d, nil
}

func ip2LocationRisk(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
	query := url.Values{"key": {c.Account.Secrets["api_key"]}, "ip": {addr.String()}, "format": {"json"}}
	d, err := c.getJSON(ctx, "/", query, nil)
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
