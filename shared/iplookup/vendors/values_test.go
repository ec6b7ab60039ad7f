package vendors

import (
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"svcapi/test/must"
)

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
		if p := (Place{}).at(parsed, parsed); (p.Latitude == nil) != (p.Longitude == nil) ||
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
	text, err := json.Marshal(response, json.Deterministic(true))
	must.Succeed(t, err)
	return strings.Replace(string(text), "member", address, 1)
}

// TestFlags: each flag of docs/look-ups.md alone, true, sets the flag of its column and no other, and the code reads
// every flag that has a column, and no others. A flag with stars is silent beside the kinds that the stars name.
func TestFlags(t *testing.T) {
	page, err := os.ReadFile("../../../docs/look-ups.md")
	must.Succeed(t, err)
	_, table, _ := strings.Cut(string(page), "| None |\n|---|---|---|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	columns := []Risk{{VPN: true}, {Proxy: true}, {Tor: true}, {Relay: true}, {Hosting: true}, {}}
	flag := regexp.MustCompile("`([^`=]+)(?:=([^`]+))?`(\\**)")
	seen := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		name := strings.Trim(strings.FieldsFunc(cells[1], func(r rune) bool { return r == ',' || r == '(' })[0], " ")
		vendor, known := Find(Risks(), name), bare[name]
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
