package vendors

import (
	"cmp"
	"context"
	"net/netip"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/pattern"
	"svcapi/shared/upstream"
)

// vpnAPISpec is vpnapi.io (the vendor's API documentation for the path; clients for the rest).
var vpnAPISpec = upstream.Spec{
	Name: "vpnapi", Title: "vpnapi.io", Endpoint: "https://vpnapi.io",
	Secrets: []upstream.Field{{Name: "api_key", Description: "API key", Required: true}},
}

// vpnAPIResponse is the used part of a response.
type vpnAPIResponse struct {
	Message  text           `json:"message"` // of an error, or about an address that the vendor does not serve
	Error    text           `json:"error"`   // of an error
	Security jsontext.Value `json:"security"`
	Location struct {
		CountryCode text `json:"country_code"`
		City        text `json:"city"`
	} `json:"location"`
	Network struct {
		ASN          text `json:"autonomous_system_number"`
		Organization text `json:"autonomous_system_organization"`
	} `json:"network"`
}

// vpnAPIFlags are the flags of the object security (vpnapi.io/api-documentation). The vendor has no flag for hosting.
var vpnAPIFlags = []Flag{
	{Path: "vpn", Sets: VPN},
	{Path: "proxy", Sets: Proxy},
	{Path: "tor", Sets: Tor},
	{Path: "relay", Sets: Relay},
}

// vpnAPIPhrases are those of messages, also with HTTP 200, in the order in which they are looked for.
var vpnAPIPhrases = []phrase{
	{pattern.New(`(?i)\b(limit|quota|exceeded|too many|rate)\b`), quota},
	{pattern.New(`(?i)\b(api[ _-]?key|key|unauthori[sz]ed|account|subscription|plan)\b`), credentials},
	{pattern.New(`(?i)\b(private|reserved|bogon|not in (the|our) database|not found)\b`), unknown},
}

// vpnAPI makes a look-up at vpnapi.io. A response without security is about an address that the vendor does not serve, unless the
// response names an error.
func vpnAPI(ctx context.Context, c Caller, addr netip.Addr) (Risk, error) {
	var a vpnAPIResponse
	query := url.Values{"key": {c.Account.Secrets["api_key"]}}
	if _, err := c.getJSON(ctx, "/api/"+url.PathEscape(addr.String()), query, nil, nil, &a); err != nil {
		return Risk{}, err
	}
	if message := string(cmp.Or(a.Message, a.Error)); a.Security.Kind() != '{' && message != "" {
		return Risk{}, c.byMessage(message, vpnAPIPhrases)
	}
	if a.Security.Kind() != '{' {
		return Risk{}, ErrUnknown
	}
	risk, err := c.flagged(vpnAPIFlags, a.Security)
	risk.CountryCode, risk.City = a.Location.CountryCode.country(), a.Location.City.pointer()
	risk.ASN, risk.Network = a.Network.ASN.asn(), a.Network.Organization.pointer()
	return risk, err
}
