package vendors

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/oschwald/maxminddb-golang/v2"
)

// maxMindProduct returns the look-up with a product of MaxMind's web service: city for a place, insights for a risk.
func maxMindProduct(product string) lookup {
	return func(ctx context.Context, c Caller, addr netip.Addr) (document, error) {
		user := c.Account.Secrets["account_id"] + ":" + c.Account.Secrets["license_key"]
		r, err := c.get(ctx, "/geoip/v2.1/"+product+"/"+url.PathEscape(addr.String()), nil, http.Header{
			"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(user))},
			"Accept":        {"application/json"},
		})
		if err != nil {
			return nil, err
		}
		d, decoded := c.decode(r.Body)
		code := d.text("code")
		detail := string(code + ": " + d.text("error"))
		if meaning, ok := services()["maxmind"].Codes[code]; ok {
			return nil, c.fail(meaning, detail)
		}
		err = cmp.Or(c.byStatus(r), decoded)
		switch {
		case err != nil:
			return nil, err
		case code != "":
			return nil, c.fail(rejected, detail)
		case d.object("traits") == nil:
			return nil, c.fail(unusable, "response without traits")
		}
		return d, nil
	}
}

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

// record decodes the record of an address in the first file that exists, and returns false for an address without a
// record. Where none of the files exists, the error wraps fs.ErrNotExist, unless the files are optional.
func (d *Databases) record(files []string, optional bool, addr netip.Addr, into any) (found bool, err error) {
	reader, err := d.first(files)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
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

// location returns the record of the City database, with that of the ISP or ASN database as its traits: the fields of
// the web service.
func (c Caller) location(optional bool, addr netip.Addr) (found document, known bool, err error) {
	found = document{}
	inCity, err := c.Databases.record(cityFiles, optional, addr, &found)
	var network map[string]any
	inNetwork, networkErr := c.Databases.record(networkFiles, true, addr, &network)
	found["traits"] = network
	return found, inCity || inNetwork, errors.Join(err, networkErr)
}

// databaseRisk reads the Anonymous Plus or the Anonymous IP database, and the Residential Proxy, City and ASN databases
// where they exist. The databases of anonymous addresses list those alone, so an address that is in none of several
// databases is unknown.
func databaseRisk(_ context.Context, c Caller, addr netip.Addr) (document, error) {
	flags := map[string]any{} // only true flags are there
	var residential struct{}
	inAnonymous, err := c.Databases.record(anonymousFiles, false, addr, &flags)
	inResidential, residentialErr := c.Databases.record(residentialFiles, true, addr, &residential)
	d, known, locationErr := c.location(true, addr)
	if err := errors.Join(err, residentialErr, locationErr); err != nil {
		return nil, c.fail(unusable, err.Error())
	}
	if inResidential {
		flags["is_residential_proxy"] = true
	}
	_, noLocations := c.Databases.first(slices.Concat(cityFiles, networkFiles))
	if !inAnonymous && !inResidential && !known && noLocations == nil {
		return nil, ErrUnknown
	}
	d[services()["maxmind"].Object] = flags
	return d, nil
}

// databasePlace reads the City database, and the ISP or ASN database where one exists.
func databasePlace(_ context.Context, c Caller, addr netip.Addr) (document, error) {
	d, known, err := c.location(false, addr)
	switch {
	case err != nil:
		err = c.fail(unusable, err.Error())
	case !known:
		err = ErrUnknown
	}
	return d, err
}
