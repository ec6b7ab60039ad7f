// Package mmdbtest writes small MaxMind databases for tests, in the format of the vendor's databases.
package mmdbtest

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"go4.org/netipx"

	"svcapi/test/must"
)

// Record is a database's record of a network.
type Record = mmdbtype.Map

// The networks of the databases.
const (
	Colombo = "112.134.0.0/16"  // Sri Lanka Telecom
	Bare    = "112.135.0.0/16"  // in the databases, with an empty record
	VPN     = "45.83.0.1/32"    // in the anonymous database only
	Every   = "2001:470:1::/48" // all flags of the vendor
	IPv6    = "2402:d000::/32"  // the data of Colombo
	Wrong   = "112.136.0.0/16"  // values that no reader should pass on

	Residential = "45.83.0.12/32" // in the Anonymous Plus and the Residential Proxy databases
	Feed        = "45.83.0.13/32" // in the Residential Proxy database only
	Unnamed     = "45.83.0.14/32" // anonymous, of no named kind
)

func names(english string) Record { return Record{"names": Record{"en": mmdbtype.String(english)}} }

var colombo = Record{
	"city":    names("Colombo"),
	"country": Record{"iso_code": mmdbtype.String("LK"), "names": Record{"en": mmdbtype.String("Sri Lanka")}},
	"location": Record{
		"latitude": mmdbtype.Float64(6.9271), "longitude": mmdbtype.Float64(79.8612),
		"time_zone": mmdbtype.String("Asia/Colombo"), "accuracy_radius": mmdbtype.Uint16(20),
	},
}

var telecom = Record{
	"autonomous_system_number":       mmdbtype.Uint32(9329),
	"autonomous_system_organization": mmdbtype.String("Sri Lanka Telecom"),
}

// common are the databases that are written where none is named.
var common = []string{"GeoLite2-City.mmdb", "GeoLite2-ASN.mmdb", "GeoIP2-Anonymous-IP.mmdb"}

// files are the databases by their names.
var files = map[string]map[string]Record{
	"GeoLite2-City.mmdb": {
		Colombo: colombo, IPv6: colombo, Bare: {},
		Wrong: {
			"country":  Record{"iso_code": mmdbtype.String("lanka"), "names": Record{"en": mmdbtype.String(" ")}},
			"location": Record{"latitude": mmdbtype.Float64(91), "longitude": mmdbtype.Float64(0)},
		},
	},
	"GeoLite2-ASN.mmdb": {Colombo: telecom, IPv6: telecom, Bare: {}},
	"GeoIP2-Anonymous-IP.mmdb": {
		VPN: {"is_anonymous": mmdbtype.Bool(true), "is_anonymous_vpn": mmdbtype.Bool(true)},
		Every: {
			"is_anonymous": mmdbtype.Bool(true), "is_anonymous_vpn": mmdbtype.Bool(true),
			"is_hosting_provider": mmdbtype.Bool(true),
			"is_public_proxy":     mmdbtype.Bool(true), "is_residential_proxy": mmdbtype.Bool(true),
			"is_tor_exit_node": mmdbtype.Bool(true),
		},
		Unnamed: {"is_anonymous": mmdbtype.Bool(true)},
	},
	"GeoIP-Anonymous-Plus.mmdb": {
		VPN: {
			"is_anonymous": mmdbtype.Bool(true), "is_anonymous_vpn": mmdbtype.Bool(true),
			"anonymizer_confidence": mmdbtype.Uint16(99),
			"network_last_seen":     mmdbtype.String("2026-01-01"), "provider_name": mmdbtype.String("Example"),
		},
		Residential: {"is_anonymous": mmdbtype.Bool(true), "is_residential_proxy": mmdbtype.Bool(true)},
	},
	"GeoIP-Residential-Proxy.mmdb": {
		Residential: {"anonymizer_confidence": mmdbtype.Uint16(80), "provider_name": mmdbtype.String("Example")},
		Feed:        {"anonymizer_confidence": mmdbtype.Uint16(5)},
	},
}

// Some writes the named databases into a new folder, the common ones where none is named, and returns the folder.
func Some(t testing.TB, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	must.Succeed(t, Write(dir, names...))
	return dir
}

// Write writes the named databases into a folder, the common ones where none is named.
func Write(dir string, names ...string) error {
	if len(names) == 0 {
		names = common
	}
	for _, name := range names {
		tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: name, RecordSize: 24})
		if err != nil {
			return err
		}
		for network, record := range files[name] {
			if err := tree.Insert(netipx.PrefixIPNet(netip.MustParsePrefix(network)), record); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		_, err = tree.WriteTo(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}
