package vendors

import (
	"cmp"
	"context"
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
	cityFiles        = []string{"GeoIP2-City.mmdb", "GeoLite2-City.mmdb"}
	networkFiles     = []string{"GeoIP2-ISP.mmdb", "GeoLite2-ASN.mmdb"}
	anonymousFiles   = []string{"GeoIP-Anonymous-Plus.mmdb", "GeoIP2-Anonymous-IP.mmdb"}
	residentialFiles = []string{"GeoIP-Residential-Proxy.mmdb"}
)

// record decodes the record of an address in the first file that exists, and returns false for an address without a record.
// The error wraps fs.ErrNotExist where none of the files exists.
func (d *Databases) record(files []string, addr netip.Addr, into any) (found bool, err error) {
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

// databaseSpec is the specification of MaxMind's database files.
var databaseSpec = upstream.Spec{Name: "maxmind-mmdb", Title: "MaxMind database files (.mmdb), in the function's MMDB_DIRECTORY"}

// Names holds the English name of a record.
type Names struct {
	English string `maxminddb:"en" json:"en"`
}

// cityRecord holds the used fields of the City databases (MaxMind, GeoIP2 City), and of the web service's responses.
type cityRecord struct {
	City struct {
		Names Names `maxminddb:"names" json:"names"`
	} `maxminddb:"city" json:"city"`
	Country struct {
		Code  text  `maxminddb:"iso_code" json:"iso_code"`
		Names Names `maxminddb:"names" json:"names"`
	} `maxminddb:"country" json:"country"`
	Location struct {
		Latitude  number `maxminddb:"latitude" json:"latitude"`
		Longitude number `maxminddb:"longitude" json:"longitude"`
		Timezone  text   `maxminddb:"time_zone" json:"time_zone"`
	} `maxminddb:"location" json:"location"`
}

// networkRecord holds the used fields of the ASN and ISP databases.
type networkRecord struct {
	Number       uint32 `maxminddb:"autonomous_system_number"`
	Organization text   `maxminddb:"autonomous_system_organization"`
	ISP          text   `maxminddb:"isp"`
}

// asn returns the number as text, or nil for a record without a number.
func (r *networkRecord) asn() *string { return text(strconv.FormatUint(uint64(r.Number), 10)).asn() }

// optional decodes a record of files that need not exist.
func (d *Databases) optional(files []string, addr netip.Addr, into any) (found bool, err error) {
	found, err = d.record(files, addr, into)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return found, err
}

// has reports whether a file of any group exists.
func (d *Databases) has(groups ...[]string) bool {
	for _, files := range groups {
		if _, err := d.first(files); err == nil {
			return true
		}
	}
	return false
}

// databaseRisk reads the Anonymous Plus or the Anonymous IP database, and the Residential Proxy, City and ASN databases
// where they exist. The databases of anonymous addresses list those alone, so an address that is in none of several databases
// is unknown.
func databaseRisk(_ context.Context, c Caller, addr netip.Addr) (Risk, error) {
	var anonymous map[string]any // only true flags are there
	var residential struct{}
	var city cityRecord
	var network networkRecord
	inAnonymous, err := c.Databases.record(anonymousFiles, addr, &anonymous)
	inResidential, residentialErr := c.Databases.optional(residentialFiles, addr, &residential)
	inCity, cityErr := c.Databases.optional(cityFiles, addr, &city)
	inNetwork, networkErr := c.Databases.optional(networkFiles, addr, &network)
	if err := errors.Join(err, residentialErr, cityErr, networkErr); err != nil {
		return Risk{}, c.fail(unusable, err.Error())
	}
	if !inAnonymous && !inResidential && !inCity && !inNetwork && c.Databases.has(cityFiles, networkFiles) {
		return Risk{}, ErrUnknown
	}
	risk, err := c.marked(maxMindFlags, func(path string) any { return anonymous[path] })
	risk.Proxy = risk.Proxy || inResidential
	risk.CountryCode, risk.City = city.Country.Code.country(), text(city.City.Names.English).pointer()
	risk.ASN, risk.Network = network.asn(), network.Organization.pointer()
	return risk, err
}

// databasePlace reads the City database, and the ISP or ASN database where one exists.
func databasePlace(_ context.Context, c Caller, addr netip.Addr) (Place, error) {
	var city cityRecord
	var network networkRecord
	inCity, err := c.Databases.record(cityFiles, addr, &city)
	inNetwork, networkErr := c.Databases.optional(networkFiles, addr, &network)
	if err := errors.Join(err, networkErr); err != nil {
		return Place{}, c.fail(unusable, err.Error())
	}
	if !inCity && !inNetwork {
		return Place{}, ErrUnknown
	}
	return cityPlace(city, network.ISP, network.Organization), nil
}

func cityPlace(r cityRecord, isp, organization text) Place {
	return Place{
		Country: text(r.Country.Names.English).pointer(), CountryCode: r.Country.Code.country(),
		City: text(r.City.Names.English).pointer(), Timezone: r.Location.Timezone.pointer(),
		ISP: cmp.Or(isp.pointer(), organization.pointer()),
	}.at(r.Location.Latitude, r.Location.Longitude)
}
