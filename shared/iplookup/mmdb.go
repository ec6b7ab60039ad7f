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

// Databases reads MaxMind's .mmdb files of one folder. A file is opened when it
// is first asked for, and stays open.
type Databases struct {
	directory string

	mu   sync.Mutex
	open map[string]*maxminddb.Reader
}

// NewDatabases makes the reader of a folder. It opens nothing.
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

// The files by what they tell, the better one first (MaxMind's names).
var (
	CityFiles      = []string{"GeoIP2-City.mmdb", "GeoLite2-City.mmdb"}
	NetworkFiles   = []string{"GeoIP2-ISP.mmdb", "GeoLite2-ASN.mmdb"}
	AnonymousFiles = []string{"GeoIP2-Anonymous-IP.mmdb"}
)

// Record decodes what the first of the files that is there says of an address.
// Found is false where it has no record of it. The error wraps fs.ErrNotExist
// where none of the files is there.
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

// MaxMindDatabase is the spec of MaxMind's database files, without account and network.
func MaxMindDatabase() upstream.Spec {
	return upstream.Spec{Name: "maxmind-mmdb", Title: "MaxMind database files (.mmdb), in the function's MMDB_DIRECTORY"}
}

// Names are names by language, of which English is used.
type Names struct {
	English string `maxminddb:"en" json:"en"`
}

// CityRecord is what is used of the City databases (MaxMind, GeoIP2 City).
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

// Coordinates are those of the record, or both nil.
func (r *CityRecord) Coordinates() (*float64, *float64) {
	if r.Location.Latitude == nil || r.Location.Longitude == nil {
		return nil, nil
	}
	lat, lon := within(*r.Location.Latitude, true, MaxLatitude), within(*r.Location.Longitude, true, MaxLongitude)
	if lat == nil || lon == nil {
		return nil, nil
	}
	return lat, lon
}

// NetworkRecord is what is used of the ASN and ISP databases.
type NetworkRecord struct {
	Number       uint32 `maxminddb:"autonomous_system_number"`
	Organization string `maxminddb:"autonomous_system_organization"`
	ISP          string `maxminddb:"isp"`
}

// ASN is the number as text, nil where the record has none.
func (r *NetworkRecord) ASN() *string {
	return Text(strconv.FormatUint(uint64(r.Number), 10)).ASN()
}

// Optional reads a record of files that need not be there.
func (d *Databases) Optional(files []string, addr netip.Addr, into any) (found bool, err error) {
	found, err = d.Record(files, addr, into)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return found, err
}

// Has tells whether a file of any of the groups is there.
func (d *Databases) Has(groups ...[]string) bool {
	for _, files := range groups {
		if _, err := d.first(files); err == nil {
			return true
		}
	}
	return false
}
