package vendors

import (
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"svcapi/shared/project"
	"svcapi/shared/upstream"
	"svcapi/test/must"
)

// recorded is a response of a vendor with the result of the adapter. The source is V for the vendor's documentation, T
// for third-party code, or made for this test. An empty Fails means that the adapter accepts the response.
type recorded[T any] struct {
	Name, Source string
	Status       int
	Body         string
	Fails        upstream.Class
	Want         T
}

// responses reads the recorded responses of each vendor from a file of testdata.
func responses[T any](t testing.TB, file string) (all map[string][]recorded[T]) {
	t.Helper()
	var document any
	must.Succeed(t, yaml.Unmarshal(must.Get(os.ReadFile(filepath.Join("testdata", file))).Or(t), &document))
	text := must.Get(json.Marshal(document)).Or(t)
	must.Succeed(t, json.Unmarshal(text, &all, json.MatchCaseInsensitiveNames(true), json.RejectUnknownMembers(true)))
	return all
}

// address is the address of all look-ups except those of testRequests.
const address = "185.59.221.75"

// secrets has a value for every secret field of every vendor.
var secrets = map[string]string{"api_key": "s3cret-key", "token": "s3cret-key", "account_id": "42",
	"license_key": "s3cret-key"}

func caller(vendor, endpoint string) Caller {
	return Caller{
		Client: upstream.New(upstream.Config{TimeoutSeconds: 1, Local: true}),
		Account: upstream.Account{
			Integration: project.Integration{Vendor: vendor, Mode: project.BYOK}, Endpoint: endpoint, Secrets: secrets,
		},
	}
}

// ask looks up an address with a vendor that the handler emulates.
func ask[T any](t *testing.T, table []Vendor[T], vendor string, handler http.HandlerFunc, addr string) (T, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	return upstream.Find(table, vendor).Ask(t.Context(), caller(vendor, server.URL), netip.MustParseAddr(addr))
}

// respond returns a handler with a constant response.
func respond(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// testResponses compares the results of the recorded responses, and of responses with one meaning for all vendors.
func testResponses[T any](t *testing.T, table []Vendor[T], rows map[string][]recorded[T]) {
	for _, v := range overNetwork(table) {
		if len(rows[v.Name]) == 0 {
			t.Errorf("no responses of %s", v.Name)
		}
		cases := []recorded[T]{
			{Name: "server error", Status: 500, Body: `Internal Server Error`, Fails: unusable},
			{Name: "a page", Status: 200, Body: `<!doctype html><title>We are back soon</title>`, Fails: unusable},
			{Name: "nothing", Status: 200, Fails: unusable},
			{Name: "an array", Status: 200, Body: `[]`, Fails: unusable},
			{Name: "half a response", Status: 200, Body: `{"ip":"185.59.2`, Fails: unusable},
			{Name: "a redirect", Status: 302, Fails: unusable},
			{Name: "forbidden", Status: 403, Body: `s3cret-key is no key`, Fails: credentials},
			{Name: "too many", Status: 429, Body: `too many`, Fails: rejected},
		}
		for _, c := range append(cases, rows[v.Name]...) {
			t.Run(v.Name+"/"+c.Name, func(t *testing.T) {
				value, err := ask(t, table, v.Name, respond(c.Status, c.Body), address)
				check(t, value, err, c.Fails, c.Want)
			})
		}
		value, err := ask(t, table, v.Name, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, address)
		check(t, value, err, upstream.NoResponse, value)
	}
}

func overNetwork[T any](table []Vendor[T]) []Vendor[T] {
	return slices.DeleteFunc(slices.Clone(table), Vendor[T].OnDisk)
}

func check[T any](t *testing.T, value T, err error, fails upstream.Class, want T) {
	t.Helper()
	var failed *upstream.Error
	switch {
	case fails == "" && (err != nil || !reflect.DeepEqual(value, want)):
		t.Errorf("%+v, %v; wants %+v", value, err, want)
	case fails == unknown && !errors.Is(err, ErrUnknown):
		t.Errorf("%+v, %v; wants an unknown address", value, err)
	case fails != "" && fails != unknown && (!errors.As(err, &failed) || failed.Class != fails):
		t.Errorf("%+v, %v; wants %s", value, err, fails)
	case err != nil && strings.Contains(err.Error(), "s3cret"):
		t.Errorf("the error contains a secret: %v", err)
	}
}

// testRequests compares the requests that the vendors receive for the address 2001:470::1.
func testRequests[T any](t *testing.T, table []Vendor[T], requests map[string]string) {
	for vendor, want := range requests {
		var got string
		_, _ = ask(t, table, vendor, func(_ http.ResponseWriter, r *http.Request) {
			got = r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Authorization")
		}, "2001:470::1")
		if got != want {
			t.Errorf("%s receives %q, wants %q", vendor, got, want)
		}
	}
}

// testDatabase compares the result for an address in the databases of a folder.
func testDatabase[T any](t *testing.T, table []Vendor[T], folder, addr string, fails upstream.Class, want T) {
	t.Helper()
	c := Caller{Databases: NewDatabases(folder),
		Account: upstream.Account{Integration: project.Integration{Vendor: "maxmind-mmdb"}}}
	value, err := upstream.Find(table, "maxmind-mmdb").Ask(t.Context(), c, netip.MustParseAddr(addr))
	check(t, value, err, fails, want)
}

// fuzz fails for a response that causes a panic of an adapter, and for one that is accepted with another status than
// 200, unless the body of the vendor decides before the status.
func fuzz[T any](f *testing.F, table []Vendor[T], rows map[string][]recorded[T], bodyDecides ...string) {
	for _, responses := range rows {
		for _, row := range responses {
			f.Add(row.Status, row.Body)
		}
	}
	var handler http.HandlerFunc
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(w, r) }))
	f.Cleanup(server.Close)
	callers := map[string]Caller{}
	for _, v := range table {
		callers[v.Name] = caller(v.Name, server.URL)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 || len(body) > 1<<16 {
			return
		}
		handler = respond(status, body)
		for _, v := range overNetwork(table) {
			_, err := v.Ask(t.Context(), callers[v.Name], netip.MustParseAddr(address))
			if err == nil && status != 200 && !slices.Contains(bodyDecides, v.Name) {
				t.Errorf("%s accepts status %d: %q", v.Name, status, body)
			}
		}
	})
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// Vendors use several types for texts and numbers, and several texts for an absent value.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		in                         string
		text, country, asn, number any
	}{
		{`"Colombo"`, "Colombo", nil, nil, nil},
		{`" Colombo "`, "Colombo", nil, nil, nil},
		{`""`, nil, nil, nil, nil},
		{`" "`, nil, nil, nil, nil},
		{`null`, nil, nil, nil, nil},
		{`"Unknown"`, nil, nil, nil, nil},
		{`"-"`, nil, nil, nil, nil},
		{`"N/A"`, nil, nil, nil, nil},
		{`"LK"`, "LK", "LK", nil, nil},
		{`"lk"`, "lk", "LK", nil, nil},
		{`"LKA"`, "LKA", nil, nil, nil},
		{`"AS9329"`, "AS9329", nil, "AS9329", nil},
		{`"as9329"`, "as9329", nil, "AS9329", nil},
		{`"9329"`, "9329", nil, "AS9329", nil}, // as a number it is no latitude
		{`9329`, "9329", nil, "AS9329", nil},
		{`"AS0"`, "AS0", nil, nil, nil},
		{`0`, "0", nil, nil, 0.0},
		{`-0`, "-0", nil, nil, 0.0},
		{`"AS9329 Sri Lanka Telecom"`, "AS9329 Sri Lanka Telecom", nil, nil, nil},
		{`6.9271`, "6.9271", nil, nil, 6.9271},
		{`"6.9271"`, "6.9271", nil, nil, 6.9271},
		{`"-77.4874"`, "-77.4874", nil, nil, -77.4874},
		{`90`, "90", nil, "AS90", 90.0},
		{`90.001`, "90.001", nil, nil, nil},
		{`"NaN"`, "NaN", nil, nil, nil},
		{`"Inf"`, "Inf", nil, nil, nil},
		{`"1e400"`, "1e400", nil, nil, nil},
		{`true`, "true", nil, nil, nil},
		{`{}`, nil, nil, nil, nil},
		{`["Colombo"]`, nil, nil, nil, nil},
	} {
		var value any
		if err := json.Unmarshal([]byte(c.in), &value); err != nil {
			t.Errorf("%s: %v", c.in, err)
		}
		parsed := textOf(value)
		got := []any{deref(parsed.pointer()), deref(parsed.country()), deref(parsed.asn()), deref(parsed.within(maxLatitude))}
		for i, want := range []any{c.text, c.country, c.asn, c.number} {
			if got[i] != want {
				t.Errorf("%s: reading %d is %v, wants %v", c.in, i, got[i], want)
			}
		}
	}
}

// A parsed value of a vendor has one format or is null.
func FuzzValues(f *testing.F) {
	for _, v := range []string{`"LK"`, `"lk "`, `"AS9329"`, `9329`, `"as00012"`, `6.9271`, `"-79.8612"`, `"NaN"`,
		`"0x1p-2"`, `"1e400"`, `null`, `"unknown"`, `true`, `{"a":1}`, `"\ud83d"`, "\"\xff\""} {
		f.Add([]byte(v))
	}
	country, asn := regexp.MustCompile(`\A[A-Z]{2}\z`), regexp.MustCompile(`\AAS[1-9][0-9]{0,9}\z`)
	f.Fuzz(func(t *testing.T, value []byte) {
		var decoded any
		if json.Unmarshal(value, &decoded, laxJSON) != nil {
			return
		}
		parsed := textOf(decoded)
		if c := parsed.country(); c != nil && !country.MatchString(*c) {
			t.Errorf("%q is the country %q", value, *c)
		}
		if a := parsed.asn(); a != nil && !asn.MatchString(*a) {
			t.Errorf("%q is the number %q", value, *a)
		}
		if p := parsed.pointer(); p != nil && (*p == "" || !utf8.ValidString(*p)) {
			t.Errorf("%q is the text %q", value, *p)
		}
		if n := parsed.within(maxLongitude); n != nil &&
			(math.Abs(*n) > maxLongitude || math.IsNaN(*n) || math.Signbit(*n) && *n == 0) {
			t.Errorf("%q is the number %v", value, *n)
		}
		both := fields{"latitude": {"n"}, "longitude": {"n"}}
		if p := (document{"n": decoded}).place(both); (p.Latitude == nil) != (p.Longitude == nil) ||
			p.Latitude != nil && math.Abs(*p.Latitude) > maxLatitude {
			t.Errorf("%q is a place", value)
		}
	})
}

// bare has a response of each vendor without flags, and the object that has the flags.
var bare = map[string][2]string{
	"ipgeolocation":  {`{"location":{},"security":{}}`, "security."},
	"ipinfo":         {`{"ip":"185.59.221.75","geo":{"country_code":"LK"},"anonymous":{}}`},
	"proxycheck":     {`{"status":"ok","member":{"detections":{}}}`, "member.detections."},
	"vpnapi":         {`{"security":{}}`, "security."},
	"ip-api":         {`{"status":"success","proxy":false,"hosting":false}`},
	"ipqualityscore": {`{"success":true,"vpn":false,"proxy":false,"tor":false}`},
	"ip2location":    {`{"ip":"185.59.221.75","country_code":"LK","proxy":{"is_vpn":false,"is_tor":false}}`},
	"maxmind":        {`{"traits":{},"anonymizer":{}}`, "anonymizer."},
}

// with returns a JSON object with a value at a path.
func with(t *testing.T, object, path string, value any) string {
	t.Helper()
	var response map[string]any
	must.Succeed(t, json.Unmarshal([]byte(object), &response))
	names := strings.Split(path, ".")
	inner := response
	for _, name := range names[:len(names)-1] {
		inner = inner[name].(map[string]any)
	}
	inner[names[len(names)-1]] = value
	text := must.Get(json.Marshal(response, json.Deterministic(true))).Or(t)
	return strings.Replace(string(text), "member", address, 1)
}

// TestFlags: each flag of docs/look-ups.md alone, true, sets the flag of its column and no other, and the code reads
// every flag that has a column, and no others. A flag with stars is silent beside the kinds that the stars name.
func TestFlags(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/look-ups.md")).Or(t)
	_, table, _ := strings.Cut(string(page), "| None |\n|---|---|---|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	columns := []Risk{{VPN: true}, {Proxy: true}, {Tor: true}, {Relay: true}, {Hosting: true}, {}}
	flag := regexp.MustCompile("`([^`=]+)(?:=([^`]+))?`(\\**)")
	seen := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		name := strings.Trim(strings.FieldsFunc(cells[1], func(r rune) bool { return r == ',' || r == '(' })[0], " ")
		vendor, known := upstream.Find(Risks(), name), bare[name]
		documented := map[string]bool{}
		for column, cell := range cells[2 : len(cells)-1] {
			for _, m := range flag.FindAllStringSubmatch(cell, -1) {
				if columns[column] != (Risk{}) {
					documented[m[1]] = true
				}
				value := any(true)
				if m[2] != "" {
					value = m[2]
				}
				risk := func(object string, value any) Risk {
					body := with(t, object, known[1]+m[1], value)
					got, err := ask(t, Risks(), name, respond(200, body), address)
					if err != nil {
						t.Errorf("%s: %s: %v", name, body, err)
					}
					return Risk{VPN: got.VPN, Proxy: got.Proxy, Tor: got.Tor, Relay: got.Relay, Hosting: got.Hosting}
				}
				if got := risk(known[0], value); got != columns[column] {
					t.Errorf("%s: %s alone gives %+v, want %+v", name, m[1], got, columns[column])
				}
				if got := risk(known[0], false); got != (Risk{}) {
					t.Errorf("%s: a false %s gives %+v", name, m[1], got)
				}
				for mark, paths := range vendor.Flags {
					silent := len(m[3]) > 0 && slices.Contains([]Mark{VPN, Tor, Relay}, mark) ||
						len(m[3]) > 1 && mark == Hosting
					for _, other := range paths {
						path, text, _ := strings.Cut(other, "=")
						beside := with(t, known[0], known[1]+path, true)
						beside = strings.Replace(beside, address+`":{"d`, `member":{"d`, 1)
						if got := risk(beside, value); len(m[3]) > 0 && text == "" && got.Proxy == silent {
							t.Errorf("%s: %s beside %s gives %+v", name, m[1], path, got)
						}
					}
				}
			}
		}
		read := map[string]bool{}
		for _, flag := range slices.Concat(slices.Collect(maps.Values(vendor.Flags))...) {
			path, _, _ := strings.Cut(flag, "=")
			read[path] = true
		}
		if seen[name] = true; !maps.Equal(read, documented) {
			t.Errorf("%s: the code has the flags %v, the page %v", name, read, documented)
		}
	}
	for _, v := range overNetwork(Risks()) {
		if !seen[v.Name] {
			t.Errorf("the page has no flags of %s", v.Name)
		}
	}
}
