package iplookup

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/oschwald/maxminddb-golang/v2"

	"svcapi/shared/upstream"
)

// Databases reads MaxMind's .mmdb files of one folder. Databases opens a file at its first use, and keeps it open.
type Databases struct {
	directory string

	mu   sync.Mutex
	open map[string]*maxminddb.Reader
}

// NewDatabases returns the reader of a folder without opening a file.
func NewDatabases(directory string) *Databases {
	return &Databases{directory: directory, open: map[string]*maxminddb.Reader{}}
}

// The file names of MaxMind by content, the more precise file first.
var (
	CityFiles        = []string{"GeoIP2-City.mmdb", "GeoLite2-City.mmdb"}
	NetworkFiles     = []string{"GeoIP2-ISP.mmdb", "GeoLite2-ASN.mmdb"}
	AnonymousFiles   = []string{"GeoIP-Anonymous-Plus.mmdb", "GeoIP2-Anonymous-IP.mmdb"}
	ResidentialFiles = []string{"GeoIP-Residential-Proxy.mmdb"}
)

// Record decodes the record of an address in the first file that exists, and returns false for an address without a record.
// The error wraps fs.ErrNotExist where none of the files exists.
func (d *Databases) Record(files []string, addr netip.Addr, into any) (found bool, err error) {
	reader, err := d.first(files)
	if err != nil {
		return false, err
	}
	result := reader.Lookup(addr)
	if err := result.Err(); err != nil || !result.Found() {
		return false, err
	}
	return true, result.Decode(into)
}

func (d *Databases) first(files []string) (*maxminddb.Reader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range files {
		if r := d.open[name]; r != nil {
			return r, nil
		}
		r, err := maxminddb.Open(filepath.Join(d.directory, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", name, err)
		}
		d.open[name] = r
		return r, nil
	}
	return nil, fmt.Errorf("%s: %w", strings.Join(files, ", "), fs.ErrNotExist)
}

// MaxMindDatabase is the specification of MaxMind's database files.
var MaxMindDatabase = upstream.Spec{Name: "maxmind-mmdb", Title: "MaxMind database files (.mmdb), in the function's MMDB_DIRECTORY"}

// Names holds the English name of a record.
type Names struct {
	English string `maxminddb:"en" json:"en"`
}

// CityRecord holds the used fields of the City databases (MaxMind, GeoIP2 City), and of the web service's responses.
type CityRecord struct {
	City struct {
		Names Names `maxminddb:"names" json:"names"`
	} `maxminddb:"city" json:"city"`
	Country struct {
		Code  Text  `maxminddb:"iso_code" json:"iso_code"`
		Names Names `maxminddb:"names" json:"names"`
	} `maxminddb:"country" json:"country"`
	Location struct {
		Latitude  Number `maxminddb:"latitude" json:"latitude"`
		Longitude Number `maxminddb:"longitude" json:"longitude"`
		Timezone  Text   `maxminddb:"time_zone" json:"time_zone"`
	} `maxminddb:"location" json:"location"`
}

// AnonymousRecord holds the flags of GeoIP Insights, Anonymous Plus and GeoIP2 Anonymous IP, which contain only true keys.
type AnonymousRecord struct {
	Anonymous        bool `maxminddb:"is_anonymous" json:"is_anonymous"`
	VPN              bool `maxminddb:"is_anonymous_vpn" json:"is_anonymous_vpn"`
	PublicProxy      bool `maxminddb:"is_public_proxy" json:"is_public_proxy"`
	ResidentialProxy bool `maxminddb:"is_residential_proxy" json:"is_residential_proxy"`
	Tor              bool `maxminddb:"is_tor_exit_node" json:"is_tor_exit_node"`
	Hosting          bool `maxminddb:"is_hosting_provider" json:"is_hosting_provider"`
}

// NetworkRecord holds the used fields of the ASN and ISP databases.
type NetworkRecord struct {
	Number       uint32 `maxminddb:"autonomous_system_number"`
	Organization Text   `maxminddb:"autonomous_system_organization"`
	ISP          Text   `maxminddb:"isp"`
}

// ASN returns the number as text, or nil for a record without a number.
func (r *NetworkRecord) ASN() *string { return Text(strconv.FormatUint(uint64(r.Number), 10)).ASN() }

// Optional decodes a record of files that need not exist.
func (d *Databases) Optional(files []string, addr netip.Addr, into any) (found bool, err error) {
	found, err = d.Record(files, addr, into)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return found, err
}

// Has reports whether a file of any group exists.
func (d *Databases) Has(groups ...[]string) bool {
	for _, files := range groups {
		if _, err := d.first(files); err == nil {
			return true
		}
	}
	return false
}
