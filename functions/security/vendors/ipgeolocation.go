package vendors

import (
	"context"
	"net/netip"

	"svcapi/shared/iplookup"
)

// ipGeolocation returns all five flags. The vendor calls hosting a cloud provider.
func ipGeolocation(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	a, err := c.IPGeolocation(ctx, addr, "security")
	if err != nil {
		return Risk{}, err
	}
	if a.Security == nil {
		return Risk{}, c.Fail(iplookup.Credentials, "response without security: not in the key's plan")
	}
	s := a.Security
	return Risk{
		VPN: s.VPN, Proxy: s.Proxy, Tor: s.Tor, Relay: s.Relay, Hosting: s.Hosting,
		CountryCode: a.Location.CountryCode.Country(), City: a.Location.City.Pointer(),
		ASN: a.ASN.Number.ASN(), Network: a.ASN.Organization.Pointer(),
	}, nil
}
