package vendors

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"svcapi/test/must"
)

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
	text, err := json.Marshal(response)
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
