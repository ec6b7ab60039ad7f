package vendors

import (
	"context"
	"fmt"
	"net/netip"

	"svcapi/shared/project"
	"svcapi/shared/testvalue"
	"svcapi/shared/upstream"
)

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
