package vendors

import (
	"cmp"
	"context"
	"errors"
	"net/netip"

	"svcapi/shared/iplookup"
)

// maxMind calls GeoIP Insights, which reports no relays.
func maxMind(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	a, err := c.MaxMind(ctx, "insights", addr)
	if err != nil {
		return Risk{}, err
	}
	s := a.Anonymizer
	flags := anonymousRecord{s.Anonymous, s.VPN, s.PublicProxy, s.ResidentialProxy || bool(s.Residential), s.Tor, s.Hosting}
	risk := flags.risk()
	risk.CountryCode, risk.City = a.Country.Code.Country(), iplookup.Text(a.City.Names.English).Pointer()
	risk.ASN, risk.Network = a.Traits.ASN.ASN(), cmp.Or(a.Traits.Organization.Pointer(), a.Traits.ISP.Pointer())
	return risk, nil
}

// anonymousRecord holds the flags of GeoIP Insights, and of a record of GeoIP Anonymous Plus and GeoIP2 Anonymous IP, which
// contain only true keys.
type anonymousRecord struct {
	Anonymous        bool `maxminddb:"is_anonymous"`
	VPN              bool `maxminddb:"is_anonymous_vpn"`
	PublicProxy      bool `maxminddb:"is_public_proxy"`
	ResidentialProxy bool `maxminddb:"is_residential_proxy"`
	Tor              bool `maxminddb:"is_tor_exit_node"`
	Hosting          bool `maxminddb:"is_hosting_provider"`
}

// risk returns the flags of the contract. A residential proxy counts as a proxy, and so does an anonymous address of no named
// kind, which is not clean.
func (r anonymousRecord) risk() Risk {
	risk := Risk{VPN: r.VPN, Proxy: r.PublicProxy || r.ResidentialProxy, Tor: r.Tor, Hosting: r.Hosting}
	if r.Anonymous && risk == (Risk{}) {
		risk.Proxy = true
	}
	return risk
}

// maxMindDatabase reads the Anonymous Plus or the Anonymous IP database, and the Residential Proxy, City and ASN databases
// where they exist. The databases of anonymous addresses list those alone, so an address that is in none of several databases
// is unknown.
func maxMindDatabase(_ context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	var anonymous anonymousRecord
	var residential struct{}
	var city iplookup.CityRecord
	var network iplookup.NetworkRecord
	inAnonymous, err := c.Databases.Record(iplookup.AnonymousFiles, addr, &anonymous)
	inResidential, residentialErr := c.Databases.Optional(iplookup.ResidentialFiles, addr, &residential)
	inCity, cityErr := c.Databases.Optional(iplookup.CityFiles, addr, &city)
	inNetwork, networkErr := c.Databases.Optional(iplookup.NetworkFiles, addr, &network)
	if err := errors.Join(err, residentialErr, cityErr, networkErr); err != nil {
		return Risk{}, c.Fail(iplookup.Unusable, err.Error())
	}
	if !inAnonymous && !inResidential && !inCity && !inNetwork && c.Databases.Has(iplookup.CityFiles, iplookup.NetworkFiles) {
		return Risk{}, iplookup.ErrUnknown
	}
	anonymous.ResidentialProxy = anonymous.ResidentialProxy || inResidential
	risk := anonymous.risk()
	risk.CountryCode, risk.City = iplookup.Text(city.Country.Code).Country(), iplookup.Text(city.City.Names.English).Pointer()
	risk.ASN, risk.Network = network.ASN(), iplookup.Text(network.Organization).Pointer()
	return risk, nil
}
