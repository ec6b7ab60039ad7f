package vendors

import (
	"cmp"
	"context"
	"net/netip"
	"net/url"

	"svcapi/shared/pattern"
	"svcapi/shared/upstream"
)

// vpnAPISpec is vpnapi.io (the vendor's API documentation for the path; clients for the rest).
var vpnAPISpec = upstream.Spec{
	Name: "vpnapi", Title: "vpnapi.io", Endpoint: "https://vpnapi.io",
	Secrets: []upstream.Field{{Name: "api_key", Description: "API key", Required: true}},
}

var vpnAPIFields = fields{
	countryCode: "location.country_code", city: "location.city", asn: "network.autonomous_system_number",
	network: []string{"network.autonomous_system_organization"},
}

// vpnAPIFlags are the flags of the object security (vpnapi.io/api-documentation). The vendor has no flag for hosting.
var vpnAPIFlags = Flags{
	VPN: {"vpn"}, Proxy: {"proxy"}, Tor: {"tor"}, Relay: {"relay"},
}

// vpnAPIPhrases are those of messages, also with HTTP 200, in the order in which they are looked for.
var vpnAPIPhrases = []phrase{
	{pattern.New(`(?i)\b(limit|quota|exceeded|too many|rate)\b`), quota},
	{pattern.New(`(?i)\b(api[ _-]?key|key|unauthori[sz]ed|account|subscription|plan)\b`), credentials},
	{pattern.New(`(?i)\b(private|reserved|bogon|not in (the|our) database|not found)\b`), unknown},
}

// vpnAPI makes a look-up at vpnapi.io. A response without security is about an address that the vendor does not serve,
// unless the response names an error.
func vpnAPI(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error) {
	query := url.Values{"key": {c.Account.Secrets["api_key"]}}
	if d, err = c.getJSON(ctx, "/api/"+url.PathEscape(addr.String()), query, nil, nil); err != nil {
		return nil, nil, err
	}
	security, message := d.object("security"), cmp.Or(d.text("message"), d.text("error"))
	switch {
	case security != nil:
		return d, security, nil
	case message != "":
		return nil, nil, c.byMessage(string(message), vpnAPIPhrases)
	}
	return nil, nil, ErrUnknown
}
