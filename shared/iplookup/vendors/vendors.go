// Package vendors looks up the risk and the location of IP addresses. A new vendor is an entry of services.json, its
// look-ups, and a row of Risks, of Places or of both.
package vendors

import (
	"context"
	_ "embed" // services.json
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"svcapi/shared/project"
	"svcapi/shared/testvalue"
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

// service is what the rows of a vendor declare. services.json has the services, each with the documents of its vendor.
type service struct {
	upstream.Spec

	Uncached bool   `json:"uncached"`
	Fields   fields `json:"fields"`
	// Statuses and Codes are what HTTP statuses and codes of errors mean that differ from those of other vendors.
	Statuses map[int]meaning  `json:"statuses"`
	Codes    map[text]meaning `json:"codes"`
	// Phrases are patterns of the vendor's messages, also with HTTP 200, in the order in which they are looked for.
	Phrases []struct {
		Pattern string  `json:"pattern"`
		Meaning meaning `json:"meaning"`
	} `json:"phrases"`
	Object string `json:"object"` // the path of the object that has the flags; empty: the response itself
	Flags  Flags  `json:"flags"`
}

//go:embed services.json
var servicesJSON []byte

// services returns the services by name. The first call reads services.json.
var services = sync.OnceValue(func() map[string]service {
	var all []service
	if err := json.Unmarshal(servicesJSON, &all); err != nil {
		panic(fmt.Errorf("services.json: %w", err)) // each test reads the file
	}
	byName := map[string]service{}
	for _, s := range all {
		byName[s.Name] = s
	}
	// The records of the database files have the fields and the flags of the web service.
	files := byName["maxmind"]
	files.Spec = upstream.Spec{Name: "maxmind-mmdb",
		Title: "MaxMind database files (.mmdb), in the function's MMDB_DIRECTORY"}
	byName[files.Name] = files
	return byName
})

// lookup makes one look-up and returns the vendor's response.
type lookup func(ctx context.Context, c Caller, addr netip.Addr) (document, error)

// risk returns the row of a service that reports the risk of an address.
func risk(name string, ask lookup) Vendor[Risk] {
	s := services()[name]
	return Vendor[Risk]{s.Spec, func(ctx context.Context, c Caller, addr netip.Addr) (Risk, error) {
		d, err := ask(ctx, c, addr)
		if err != nil {
			return Risk{}, err
		}
		object := d
		if s.Object != "" {
			object = d.object(s.Object)
		}
		risk, err := c.flagged(s.Flags, object)
		risk.CountryCode, risk.City = d.first(s.Fields["country_code"]).country(), d.first(s.Fields["city"]).pointer()
		risk.ASN, risk.Network = d.first(s.Fields["asn"]).asn(), d.first(s.Fields["network_name"]).pointer()
		return risk, err
	}, s.Uncached, s.Flags}
}

// place returns the row of a service that reports the location of an address.
func place(name string, ask lookup) Vendor[Place] {
	s := services()[name]
	return Vendor[Place]{s.Spec, func(ctx context.Context, c Caller, addr netip.Addr) (Place, error) {
		d, err := ask(ctx, c, addr)
		return d.place(s.Fields), err
	}, s.Uncached, nil}
}

// Risks returns the vendors that report the risk of an address. Responses of ipinfo, proxycheck and ip-api are cached:
// their published terms do not forbid caching, but no contract was read. A database file is as quick as the cache.
func Risks() []Vendor[Risk] {
	return []Vendor[Risk]{
		risk("ipgeolocation", ipGeolocationRisk), risk("ipinfo", ipInfoRisk), risk("proxycheck", proxyCheckRisk),
		risk("vpnapi", vpnAPIRisk), risk("ip-api", ipAPIRisk), risk("ipqualityscore", ipQualityScoreRisk),
		risk("ip2location", ip2LocationRisk), risk("maxmind", maxMindProduct("insights")),
		risk("maxmind-mmdb", databaseRisk), test(testRisk),
	}
}

// Places returns the vendors that report the location of an address.
func Places() []Vendor[Place] {
	return []Vendor[Place]{
		place("ip-api", ipAPIPlace), place("ipinfo", ipInfoPlace), place("ipinfo-lite", ipInfoLitePlace),
		place("ipgeolocation", ipGeolocationPlace), place("maxmind", maxMindProduct("city")),
		place("maxmind-mmdb", databasePlace), test(testPlace),
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

// Mark is what a vendor's flag sets in openapi.yaml#VpnResult.
type Mark string

// The marks. Unnamed sets is_proxy where no flag names VPN, proxy, Tor or relay; UnnamedOrHosting does so where none
// names hosting either, because the vendor's flag includes hosting.
const (
	VPN              Mark = "is_vpn"
	Proxy            Mark = "is_proxy"
	Tor              Mark = "is_tor"
	Relay            Mark = "is_relay"
	Hosting          Mark = "is_hosting"
	Unnamed          Mark = "is_proxy, if no other kind"
	UnnamedOrHosting Mark = "is_proxy, if no other kind and no hosting"
)

// marks are all marks.
var marks = []Mark{VPN, Proxy, Tor, Relay, Hosting, Unnamed, UnnamedOrHosting}

// Flags are the documented flags of a vendor's response about anonymity, not about abuse, by what they set: paths, each
// with "=" and the text that sets the mark where the flag is no boolean.
type Flags map[Mark][]string

// flagged returns the risk that the flags of an object set. An absent object has no flags. A flag that is absent or
// null is not set, and a flag that is an object is set where the object has members.
func (c Caller) flagged(flags Flags, object document) (Risk, error) {
	set := map[Mark]bool{}
	for _, mark := range marks {
		for _, flag := range flags[mark] {
			path, text, _ := strings.Cut(flag, "=")
			switch v := object.at(path).(type) {
			case nil:
			case bool:
				set[mark] = set[mark] || v
			case map[string]any:
				set[mark] = set[mark] || len(v) > 0
			case string:
				if text == "" {
					return Risk{}, c.fail(unusable, "the flag "+path+" is "+v)
				}
				set[mark] = set[mark] || v == text
			default:
				return Risk{}, c.fail(unusable, "the flag "+path+" is no boolean")
			}
		}
	}
	named := set[VPN] || set[Proxy] || set[Tor] || set[Relay]
	proxy := set[Proxy] || !named && (set[Unnamed] || set[UnnamedOrHosting] && !set[Hosting])
	return Risk{VPN: set[VPN], Proxy: proxy, Tor: set[Tor], Relay: set[Relay], Hosting: set[Hosting]}, nil
}

// test returns the row of the vendor "test", which responds by the table of shared/testvalue and calls nobody
// (docs/decisions/extensions.md#test-vendor).
func test[T any](result func(testvalue.Flags, testvalue.Place) T) Vendor[T] {
	return Vendor[T]{
		Spec:     upstream.Spec{Name: project.TestVendor, Title: "Test values, in development only"},
		Uncached: true,
		Ask: func(_ context.Context, _ Caller, addr netip.Addr) (none T, err error) {
			value := testvalue.Of(addr.String())
			if value.Outcome == testvalue.UnknownAddress {
				return none, ErrUnknown
			}
			if err := upstream.TestFailure(value); err != nil {
				return none, err
			}
			return result(value.Flags, testvalue.PlaceOf(addr.String())), nil
		},
	}
}

func testRisk(f testvalue.Flags, p testvalue.Place) Risk {
	asn := fmt.Sprintf("AS%d", p.ASN)
	return Risk{VPN: f.VPN, Proxy: f.Proxy, Tor: f.Tor, Relay: f.Relay, Hosting: f.Hosting, CountryCode: &p.Code,
		City: &p.City, ASN: &asn, Network: &p.Network}
}

func testPlace(_ testvalue.Flags, p testvalue.Place) Place {
	return Place{Country: &p.Country, CountryCode: &p.Code, City: &p.City, ISP: &p.Network, Latitude: &p.Latitude,
		Longitude: &p.Longitude, Timezone: &p.Timezone}
}
