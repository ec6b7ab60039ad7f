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

// ipAPISpec is ip-api.com's pro service (ip-api.com/docs/api:json). The free service has no TLS and no commercial use.
var ipAPISpec = upstream.Spec{
	Name: "ip-api", Title: "ip-api.com (pro)", Endpoint: "https://pro.ip-api.com",
	Secrets: []upstream.Field{{Name: "api_key", Description: "key of a pro subscription", Required: true}},
}

// ipAPIFields are the used fields of a response. The vendor sends the fields that the request names.
var ipAPIFields = fields{
	country: "country", countryCode: "countryCode", city: "city", isp: []string{"isp"},
	latitude: "lat", longitude: "lon", timezone: "timezone", network: []string{"asname", "isp"},
}

// ipAPIFlags are the flags of ip-api.com/docs/api:json, where "proxy" is a proxy, a VPN or a Tor exit.
var ipAPIFlags = []Flag{
	{Path: "proxy", Sets: Proxy},
	{Path: "hosting", Sets: Hosting},
	{Path: "mobile", Sets: Ignored},
}

// ipAPI makes a look-up of some fields at ip-api.com. The status in the body decides, because failures have HTTP status 200.
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
	if err := c.byStatus(r, nil); err != nil {
		return nil, err
	}
	d, err := c.decode(r.Body)
	if err != nil {
		return nil, err
	}
	switch status, message := d.text("status"), d.text("message"); {
	case status == "success":
		return d, nil
	case status == "fail" && (message == "private range" || message == "reserved range"):
		return nil, ErrUnknown
	case status == "fail":
		return nil, c.fail(rejected, string(message))
	}
	return nil, c.fail(unusable, "response without a known status")
}

// ipAPIRisk makes a look-up of the risk. The field "as" has the number and the name, such as "AS9329 Sri Lanka Telecom".
func ipAPIRisk(ctx context.Context, c Caller, addr netip.Addr) (Risk, error) {
	d, err := c.ipAPI(ctx, addr, "countryCode,city,isp,as,asname,proxy,hosting")
	if err != nil {
		return Risk{}, err
	}
	_, proxy := d.flag("proxy")
	_, hosting := d.flag("hosting")
	if !proxy || !hosting {
		return Risk{}, c.fail(unusable, "response without proxy or hosting")
	}
	number, name, _ := strings.Cut(string(d.text("as")), " ")
	risk, err := c.risk(d, ipAPIFields, ipAPIFlags, d)
	risk.ASN, risk.Network = text(number).asn(), cmp.Or(text(name).pointer(), risk.Network)
	return risk, err
}

func ipAPIPlace(ctx context.Context, c Caller, addr netip.Addr) (Place, error) {
	d, err := c.ipAPI(ctx, addr, "country,countryCode,city,isp,lat,lon,timezone")
	if err != nil {
		return Place{}, err
	}
	return d.place(ipAPIFields), nil
}
