// Package vendors looks up the risk and the location of IP addresses. A new vendor is a file, and a row of Risks, of
// Places or of both.
package vendors

import (
	"context"
	"errors"
	"net/netip"

	"svcapi/shared/upstream"
)

// Vendor is one row of a table. T is the result of a look-up.
type Vendor[T any] struct {
	upstream.Spec
	// Ask makes one look-up. The errors are ErrUnknown and *upstream.Error.
	Ask func(ctx context.Context, c Caller, addr netip.Addr) (T, error)
	// Uncached means that results are not cached: the vendor's terms do not clearly permit a cache, or a look-up is free.
	Uncached bool
	// Flags are the vendor's documented flags of an address (docs/look-ups.md#flags).
	Flags Flags
}

// lookup makes one look-up. It returns the vendor's response, and the object in it that has the flags.
type lookup func(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error)

func risk(spec upstream.Spec, f fields, flags Flags, ask lookup) Vendor[Risk] {
	return Vendor[Risk]{Spec: spec, Flags: flags, Ask: func(ctx context.Context, c Caller, addr netip.Addr) (Risk, error) {
		d, object, err := ask(ctx, c, addr)
		if err != nil {
			return Risk{}, err
		}
		return c.risk(d, f, flags, object)
	}}
}

func place(spec upstream.Spec, f fields, ask lookup) Vendor[Place] {
	return Vendor[Place]{Spec: spec, Ask: func(ctx context.Context, c Caller, addr netip.Addr) (Place, error) {
		d, _, err := ask(ctx, c, addr)
		if err != nil {
			return Place{}, err
		}
		return d.place(f), nil
	}}
}

// uncached returns the row of a vendor whose results are not cached.
func uncached[T any](v Vendor[T]) Vendor[T] {
	v.Uncached = true
	return v
}

// Risks returns the vendors that report the risk of an address. Responses of ipinfo, proxycheck and ip-api are cached:
// their published terms do not forbid caching, but no contract was read. A database file is as quick as the cache.
func Risks() []Vendor[Risk] {
	return []Vendor[Risk]{
		uncached(risk(ipGeolocationSpec, ipGeolocationFields, ipGeolocationFlags, ipGeolocationRisk)),
		risk(ipInfoSpec, ipInfoFields, ipInfoFlags, ipInfoRisk),
		risk(proxyCheckSpec, proxyCheckFields, proxyCheckFlags, proxyCheck),
		uncached(risk(vpnAPISpec, vpnAPIFields, vpnAPIFlags, vpnAPI)),
		risk(ipAPISpec, ipAPIFields, ipAPIFlags, ipAPIRisk),
		uncached(risk(ipQualityScoreSpec, ipQualityScoreFields, ipQualityScoreFlags, ipQualityScore)),
		uncached(risk(ip2LocationSpec, ip2LocationFields, ip2LocationFlags, ip2Location)),
		uncached(risk(maxMindSpec, maxMindFields, maxMindFlags, maxMind("insights"))),
		uncached(risk(databaseSpec, maxMindFields, maxMindFlags, databaseRisk)),
		test(testRisk),
	}
}

// Places returns the vendors that report the location of an address.
func Places() []Vendor[Place] {
	return []Vendor[Place]{
		place(ipAPISpec, ipAPIFields, ipAPI("country,countryCode,city,isp,lat,lon,timezone")),
		place(ipInfoSpec, ipInfoFields, ipInfo),
		place(ipInfoLiteSpec, ipInfoLiteFields, ipInfoLite),
		uncached(place(ipGeolocationSpec, ipGeolocationFields, ipGeolocation(""))),
		uncached(place(maxMindSpec, maxMindFields, maxMind("city"))),
		uncached(place(databaseSpec, maxMindFields, databasePlace)),
		test(testPlace),
	}
}

// Risk holds the fields of openapi.yaml#VpnResult about an address. A field that the vendor does not report is false or
// nil.
type Risk struct {
	VPN         bool    `json:"is_vpn"`
	Proxy       bool    `json:"is_proxy"`
	Tor         bool    `json:"is_tor"`
	Relay       bool    `json:"is_relay"`
	Hosting     bool    `json:"is_hosting"`
	CountryCode *string `json:"country_code"` // two capitals
	City        *string `json:"city"`
	ASN         *string `json:"asn"`          // "AS" and the number
	Network     *string `json:"network_name"` // operator of the network
}

// Place is openapi.yaml#LocationResult. A field that the vendor does not report is nil.
type Place struct {
	Country     *string  `json:"country"`      // English name
	CountryCode *string  `json:"country_code"` // two capitals
	City        *string  `json:"city"`
	ISP         *string  `json:"isp"`
	Latitude    *float64 `json:"latitude"`  // degrees, with Longitude or not at all
	Longitude   *float64 `json:"longitude"` // degrees
	Timezone    *string  `json:"timezone"`  // IANA name
}

// ErrUnknown reports that a vendor does not know the address.
var ErrUnknown = errors.New("the vendor does not know the address")

// OnDisk reports whether the vendor has neither an account nor a network address: a database file, or the test values.
func (v Vendor[T]) OnDisk() bool { return v.Endpoint == "" }

// Find returns the row with that name, or nil.
func Find[T any](table []Vendor[T], name string) *Vendor[T] {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
}
