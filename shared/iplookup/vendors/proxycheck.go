package vendors

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"svcapi/shared/upstream"
)

// proxyCheckSpec is proxycheck.io, API v3 (the vendor's PHP client 1.0.3 of 2026-06).
var proxyCheckSpec = upstream.Spec{
	Name: "proxycheck", Title: "proxycheck.io", Endpoint: "https://proxycheck.io",
	Secrets: []upstream.Field{{Name: "api_key", Description: "API key", Required: true}},
}

// proxyCheckVersion pins the format of the responses (proxycheck.io/api: a query without ver has the newest version).
const proxyCheckVersion = "10-October-2025"

// proxyCheckFields are the used fields of a response's member for the address.
var proxyCheckFields = fields{
	countryCode: "location.country_code", city: "location.city_name", asn: "network.asn",
	network: []string{"network.provider", "network.organisation"},
}

// proxyCheckFlags are the detections (proxycheck.io/api, version 3). The vendor has no flag for relays. An address that
// is anonymous without another detection has no named kind.
var proxyCheckFlags = Flags{
	VPN: {"vpn"}, Proxy: {"proxy"}, Tor: {"tor"}, Unnamed: {"anonymous"}, Hosting: {"hosting"},
}

// proxyCheck makes a look-up at proxycheck.io. A member of the response is named by the address in any of its
// spellings.
func proxyCheck(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error) {
	r, err := c.get(ctx, "/v3/"+url.PathEscape(addr.String()),
		url.Values{"key": {c.Account.Secrets["api_key"]}, "ver": {proxyCheckVersion}}, nil)
	if err != nil {
		return nil, nil, err
	}
	if d, err = c.decode(r.Body); err != nil {
		return nil, nil, cmp.Or(c.byStatus(r, nil), err)
	}
	if err := c.proxyCheckFailure(d, r); err != nil {
		return nil, nil, err
	}
	for name, value := range d {
		member, _ := value.(map[string]any)
		found := document(member)
		if named, err := netip.ParseAddr(name); err == nil && named.Unmap() == addr && found.object("detections") != nil {
			return found, found.object("detections"), nil
		}
	}
	return nil, nil, ErrUnknown
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
	if err := c.byStatus(r, nil); err != nil {
		return err
	}
	return c.fail(unusable, "response without a known status")
}
