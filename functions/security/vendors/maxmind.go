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
	flags := a.Anonymizer.AnonymousRecord
	flags.ResidentialProxy = flags.ResidentialProxy || bool(a.Anonymizer.Residential)
	risk := anonymousRisk(flags)
	risk.CountryCode, risk.City = a.Country.Code.Country(), iplookup.Text(a.City.Names.English).Pointer()
	risk.ASN, risk.Network = a.Traits.ASN.ASN(), cmp.Or(a.Traits.Organization.Pointer(), a.Traits.ISP.Pointer())
	return risk, nil
}

// anonymousRisk returns the flags of the contract. A residential proxy counts as a proxy, and so does an anonymous address of
// no named kind, which is not clean.
func anonymousRisk(r iplookup.AnonymousRecord) Risk {
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
	var anonymous iplookup.AnonymousRecord
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
	risk := anonymousRisk(anonymous)
	risk.CountryCode, risk.City = city.Country.Code.Country(), iplookup.Text(city.City.Names.English).Pointer()
	risk.ASN, risk.Network = network.ASN(), network.Organization.Pointer()
	return risk, nil
}
