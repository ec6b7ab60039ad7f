package vendors

import (
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
	latitude: "lat", longitude: "lon", timezone: "timezone", asn: asNumber, network: []string{asName, "asname", "isp"},
}

// The field "as" has a number and a name, such as "AS9329 Sri Lanka Telecom".
const asNumber, asName = "as number", "as name"

// ipAPIFlags are the flags of ip-api.com/docs/api:json, where "proxy" is a proxy, a VPN or a Tor exit.
var ipAPIFlags = Flags{
	Proxy: {"proxy"}, Hosting: {"hosting"},
}

// ipAPI makes a look-up of some fields at ip-api.com. The status in the body decides, because failures have HTTP status
// 200.
func ipAPI(fields string) lookup {
	return func(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error) {
		query := url.Values{"key": {c.Account.Secrets["api_key"]}, "fields": {"status,message," + fields + ",query"}}
		r, err := c.get(ctx, "/json/"+url.PathEscape(addr.String()), query, nil)
		if err != nil {
			return nil, nil, err
		}
		// The response to an invalid key is plain text, with an undocumented status.
		if r.Status < http.StatusInternalServerError && strings.Contains(strings.ToLower(string(r.Body)), "invalid key") {
			return nil, nil, c.fail(credentials, "invalid key")
		}
		if err := c.byStatus(r, nil); err != nil {
			return nil, nil, err
		}
		if d, err = c.decode(r.Body); err != nil {
			return nil, nil, err
		}
		switch status, message := d.text("status"), d.text("message"); {
		case status == "success":
			d[asNumber], d[asName], _ = strings.Cut(string(d.text("as")), " ")
			return d, d, nil
		case status == "fail" && (message == "private range" || message == "reserved range"):
			return nil, nil, ErrUnknown
		case status == "fail":
			return nil, nil, c.fail(rejected, string(message))
		}
		return nil, nil, c.fail(unusable, "response without a known status")
	}
}

func ipAPIRisk(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error) {
	d, flags, err = ipAPI("countryCode,city,isp,as,asname,proxy,hosting")(ctx, c, addr)
	_, proxy := d.flag("proxy")
	_, hosting := d.flag("hosting")
	if err == nil && (!proxy || !hosting) {
		err = c.fail(unusable, "response without proxy or hosting")
	}
	return d, flags, err
}
