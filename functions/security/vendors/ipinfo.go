package vendors

import (
	"context"
	"net/netip"

	"svcapi/shared/iplookup"
)

// ipInfo returns all five flags, on a Plus plan.
func ipInfo(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	a, err := c.IPInfo(ctx, addr)
	if err != nil {
		return Risk{}, err
	}
	if a.Anonymous == nil {
		return Risk{}, c.Fail(iplookup.Credentials, "response without anonymous: not in the token's plan")
	}
	s := a.Anonymous
	return Risk{
		VPN: s.VPN, Proxy: s.Proxy, Tor: s.Tor, Relay: s.Relay, Hosting: a.Hosting,
		CountryCode: a.Geo.CountryCode.Country(), City: a.Geo.City.Pointer(),
		ASN: a.AS.ASN.ASN(), Network: a.AS.Name.Pointer(),
	}, nil
}
