package vendors

import (
	"context"
	"net/netip"
	"net/url"

	"svcapi/shared/iplookup"
	"svcapi/shared/upstream"
)

// vpnAPISpec is vpnapi.io (the vendor's API documentation for the path; clients for the rest).
func vpnAPISpec() upstream.Spec {
	return upstream.Spec{
		Name: "vpnapi", Title: "vpnapi.io", Endpoint: "https://vpnapi.io",
		Secrets: []upstream.Field{{Name: "api_key", Description: "API key", Required: true}},
	}
}

// vpnAPIResponse is the used part of a response.
type vpnAPIResponse struct {
	Message  iplookup.Text `json:"message"` // of an error
	Security *struct {
		VPN   bool `json:"vpn"`
		Proxy bool `json:"proxy"`
		Tor   bool `json:"tor"`
		Relay bool `json:"relay"`
	} `json:"security"`
	Location struct {
		CountryCode iplookup.Text `json:"country_code"`
		City        iplookup.Text `json:"city"`
	} `json:"location"`
	Network struct {
		ASN          iplookup.Text `json:"autonomous_system_number"`
		Organization iplookup.Text `json:"autonomous_system_organization"`
	} `json:"network"`
}

// vpnAPI returns no hosting. The vendor sends a response without security for addresses that it does not serve.
func vpnAPI(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	var a vpnAPIResponse
	query := url.Values{"key": {c.Account.Secrets["api_key"]}}
	if _, err := c.GetJSON(ctx, "/api/"+url.PathEscape(addr.String()), query, nil, nil, &a); err != nil {
		return Risk{}, err
	}
	if a.Security == nil {
		return Risk{}, iplookup.ErrUnknown
	}
	return Risk{
		VPN: a.Security.VPN, Proxy: a.Security.Proxy, Tor: a.Security.Tor, Relay: a.Security.Relay,
		CountryCode: a.Location.CountryCode.Country(), City: a.Location.City.Pointer(),
		ASN: a.Network.ASN.ASN(), Network: a.Network.Organization.Pointer(),
	}, nil
}
