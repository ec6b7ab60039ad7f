package vendors

import (
	"cmp"
	"context"
	"errors"
	"net/netip"

	"svcapi/shared/iplookup"
)

// maxMind calls GeoIP Insights, which reports no relays. A residential proxy counts as a proxy.
func maxMind(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	a, err := c.MaxMind(ctx, "insights", addr)
	if err != nil {
		return Risk{}, err
	}
	s := a.Anonymizer
	network := cmp.Or(a.Traits.Organization.Pointer(), a.Traits.ISP.Pointer())
	return Risk{
		VPN: s.VPN, Proxy: s.PublicProxy || s.ResidentialProxy, Tor: s.Tor, Hosting: s.Hosting,
		CountryCode: a.Country.Code.Country(), City: iplookup.Text(a.City.Names.English).Pointer(),
		ASN: a.Traits.ASN.ASN(), Network: network,
	}, nil
}

// anonymousRecord is a record of GeoIP2 Anonymous IP, which contains only true keys.
type anonymousRecord struct {
	VPN              bool `maxminddb:"is_anonymous_vpn"`
	PublicProxy      bool `maxminddb:"is_public_proxy"`
	ResidentialProxy bool `maxminddb:"is_residential_proxy"`
	Tor              bool `maxminddb:"is_tor_exit_node"`
	Hosting          bool `maxminddb:"is_hosting_provider"`
}

// maxMindDatabase reads the Anonymous IP database, and the City and ASN databases where they exist. The Anonymous IP database
// lists anonymous addresses only, so an address that is in none of several databases is unknown.
func maxMindDatabase(_ context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	var anonymous anonymousRecord
	var city iplookup.CityRecord
	var network iplookup.NetworkRecord
	inAnonymous, err := c.Databases.Record(iplookup.AnonymousFiles, addr, &anonymous)
	inCity, cityErr := c.Databases.Optional(iplookup.CityFiles, addr, &city)
	inNetwork, networkErr := c.Databases.Optional(iplookup.NetworkFiles, addr, &network)
	if err := errors.Join(err, cityErr, networkErr); err != nil {
		return Risk{}, c.Fail(iplookup.Unusable, err.Error())
	}
	if !inAnonymous && !inCity && !inNetwork && c.Databases.Has(iplookup.CityFiles, iplookup.NetworkFiles) {
		return Risk{}, iplookup.ErrUnknown
	}
	return Risk{
		VPN: anonymous.VPN, Proxy: anonymous.PublicProxy || anonymous.ResidentialProxy, Tor: anonymous.Tor, Hosting: anonymous.Hosting,
		CountryCode: iplookup.Text(city.Country.Code).Country(), City: iplookup.Text(city.City.Names.English).Pointer(),
		ASN: network.ASN(), Network: iplookup.Text(network.Organization).Pointer(),
	}, nil
}
