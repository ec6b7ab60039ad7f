package vendors

import (
	"context"
	"net/netip"

	"svcapi/shared/iplookup"
)

// maxMind asks GeoIP Insights. It reports no relays; a residential proxy is a proxy.
func maxMind(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	a, err := c.MaxMind(ctx, "insights", addr)
	if err != nil {
		return Risk{}, err
	}
	s := a.Anonymizer
	network := a.Traits.Organization.Pointer()
	if network == nil {
		network = a.Traits.ISP.Pointer()
	}
	return Risk{
		VPN: s.VPN, Proxy: s.PublicProxy || s.ResidentialProxy, Tor: s.Tor, Hosting: s.Hosting,
		CountryCode: a.Country.Code.Country(), City: iplookup.Text(a.City.Names.English).Pointer(),
		ASN: a.Traits.ASN.ASN(), Network: network,
	}, nil
}

// anonymousRecord is GeoIP2 Anonymous IP; keys are there only when true.
type anonymousRecord struct {
	VPN              bool `maxminddb:"is_anonymous_vpn"`
	PublicProxy      bool `maxminddb:"is_public_proxy"`
	ResidentialProxy bool `maxminddb:"is_residential_proxy"`
	Tor              bool `maxminddb:"is_tor_exit_node"`
	Hosting          bool `maxminddb:"is_hosting_provider"`
}

// maxMindDatabase reads the Anonymous IP database, and the City and ASN ones
// where they are there. The Anonymous IP database lists what is anonymous only:
// an address that none of the files holds is unknown, unless it is the only one.
func maxMindDatabase(_ context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	var anonymous anonymousRecord
	var city iplookup.CityRecord
	var network iplookup.NetworkRecord
	listed, err := c.Databases.Record(iplookup.AnonymousFiles, addr, &anonymous)
	if err != nil {
		return Risk{}, c.Fail(iplookup.Unusable, err.Error())
	}
	placed, err := c.Databases.Optional(iplookup.CityFiles, addr, &city)
	if err != nil {
		return Risk{}, c.Fail(iplookup.Unusable, err.Error())
	}
	routed, err := c.Databases.Optional(iplookup.NetworkFiles, addr, &network)
	if err != nil {
		return Risk{}, c.Fail(iplookup.Unusable, err.Error())
	}
	if !listed && !placed && !routed && c.Databases.Has(iplookup.CityFiles, iplookup.NetworkFiles) {
		return Risk{}, iplookup.ErrUnknown
	}
	return Risk{
		VPN: anonymous.VPN, Proxy: anonymous.PublicProxy || anonymous.ResidentialProxy, Tor: anonymous.Tor, Hosting: anonymous.Hosting,
		CountryCode: iplookup.Text(city.Country.Code).Country(), City: iplookup.Text(city.City.Names.English).Pointer(),
		ASN: network.ASN(), Network: iplookup.Text(network.Organization).Pointer(),
	}, nil
}
