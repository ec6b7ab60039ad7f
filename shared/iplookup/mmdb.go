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

// Close closes the files.
func (d *Databases) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var failures []error
	for name, r := range d.open {
		failures = append(failures, r.Close())
		delete(d.open, name)
	}
	return errors.Join(failures...)
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
func MaxMindDatabase() upstream.Spec {
	return upstream.Spec{Name: "maxmind-mmdb", Title: "MaxMind database files (.mmdb), in the function's MMDB_DIRECTORY"}
}

// Names holds the English name of a record.
type Names struct {
	English string `maxminddb:"en" json:"en"`
}

// CityRecord holds the used fields of the City databases (MaxMind, GeoIP2 City).
type CityRecord struct {
	City struct {
		Names Names `maxminddb:"names"`
	} `maxminddb:"city"`
	Country struct {
		Code  string `maxminddb:"iso_code"`
		Names Names  `maxminddb:"names"`
	} `maxminddb:"country"`
	Location struct {
		Latitude  *float64 `maxminddb:"latitude"`
		Longitude *float64 `maxminddb:"longitude"`
		Timezone  string   `maxminddb:"time_zone"`
	} `maxminddb:"location"`
}

// Coordinates returns the coordinates of the record, or nil for both.
func (r *CityRecord) Coordinates() (*float64, *float64) {
	if r.Location.Latitude == nil || r.Location.Longitude == nil {
		return nil, nil
	}
	return bothOrNone(within(*r.Location.Latitude, true, MaxLatitude), within(*r.Location.Longitude, true, MaxLongitude))
}

// NetworkRecord holds the used fields of the ASN and ISP databases.
type NetworkRecord struct {
	Number       uint32 `maxminddb:"autonomous_system_number"`
	Organization string `maxminddb:"autonomous_system_organization"`
	ISP          string `maxminddb:"isp"`
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
