package acceptance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"svcapi/local/sandbox"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

const (
	burner   = "/security/burner-email-shield"
	vpn      = "/security/vpn-shield"
	location = "/location/lookup"
)

// price is what an operation costs on the local stack.
func price(operation string) int64 { return fixture.stack.Prices.Of(operation) }

// data decodes the data of a success.
func data[T any](t *testing.T, a *response) (d T) {
	t.Helper()
	var envelope struct{ Data *T }
	if err := json.Unmarshal(a.body, &envelope); err != nil || envelope.Data == nil {
		t.Errorf("no data in %s: %v", a.body, err)
		return d
	}
	return *envelope.Data
}

func email(address string) string { return object(map[string]any{"email": address}) }

func ip(address string) string { return object(map[string]any{"ip": address}) }

// openapi.yaml#BurnerEmailRequest, openapi.yaml#VpnRequest, openapi.yaml#LocationRequest: 422 validation_failed names
// all fields that fail.
func TestLookupFields(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	for _, c := range []struct{ path, body, fields string }{
		{burner, `{}`, "email"},
		{burner, ``, "email"},
		{burner, `{"email":null}`, "email"},
		{burner, `{"email":""}`, "email"},
		{burner, `{"email":7}`, "email"},
		{burner, `{"email":["a@example.com"]}`, "email"},
		{burner, `{"Email":"a@example.com"}`, "Email email"},
		{burner, email("a"), "email"},
		{burner, email("a@example"), "email"},
		{burner, email("a@example.com."), "email"},
		{burner, email(" a@example.com"), "email"},
		{burner, email("A <a@example.com>"), "email"},
		{burner, email("a@[192.0.2.1]"), "email"},
		{burner, email("a@" + strings.Repeat("b.", 125) + "com"), ""},
		{burner, email("ab@" + strings.Repeat("b.", 125) + "com"), "email"},
		{burner, email(strings.Repeat("a", 64) + "@example.com"), ""},
		{burner, email(`"a b"@example.com`), ""},
		{burner, email("a@bücher.example"), ""},
		{burner, `{"email":"a@example.com","other":7}`, ""},
		{vpn, `{}`, "ip"},
		{vpn, `{"ip":null}`, "ip"},
		{vpn, `{"ip":""}`, "ip"},
		{vpn, `{"ip":16909060}`, "ip"},
		{vpn, ip("1.2.3"), "ip"},
		{vpn, ip("1.2.3.4 "), "ip"},
		{vpn, ip(" 1.2.3.4"), "ip"},
		{vpn, ip("1.2.3.256"), "ip"},
		{vpn, ip("01.2.3.4"), "ip"},
		{vpn, ip("1.2.3.4/32"), "ip"},
		{vpn, ip("fe80::1%eth0"), "ip"},
		{vpn, ip("[::1]"), "ip"},
		{vpn, ip("example.com"), "ip"},
		{vpn, ip("1.2.3.4"), ""},
		{vpn, ip("2A00::1"), ""},
		{location, `{}`, "ip"},
		{location, `{"ip":"x","provider":""}`, "ip provider"},
		{location, `{"ip":"1.2.3.4","provider":7}`, "provider"},
		{location, `{"ip":"1.2.3.4","provider":"a b"}`, "provider"},
		{location, `{"ip":"1.2.3.4","provider":"a.b"}`, "provider"},
		{location, `{"ip":"1.2.3.4","provider":"é"}`, "provider"},
		{location, `{"ip":"1.2.3.4","provider":"` + strings.Repeat("a", 51) + `"}`, "provider"},
		{location, `{"ip":"1.2.3.4","provider":"` + strings.Repeat("a", 50) + `"}`, ""},
		{location, `{"ip":"1.2.3.4","provider":null}`, ""},
		{location, `{"ip":"1.2.3.4","provider":"-_A9"}`, ""},
		{location, ip("1.2.3.4\n"), "ip"},
	} {
		a := request{path: c.path, body: c.body, as: p.dev}.do(t)
		if a == nil {
			continue
		}
		want := "validation_failed"
		if c.fields == "" {
			want = "provider_selection_failed" // the next check: there is no integration
		}
		if !a.is(422, want) || a.fields() != c.fields {
			t.Errorf("%s %s: %d %s, want %s on %q", c.path, c.body, a.status, a.body, want, c.fields)
		}
	}
}

type emailData struct {
	Email       string
	Domain      string
	ValidSyntax bool `json:"is_valid_syntax"`
	Disposable  bool `json:"is_disposable"`
	Source      string
	Time        *float64 `json:"execution_time_ms"`
}

// docs/decisions.md#disposable-domains: the domain or a parent domain is in a list. The project's own list comes first,
// and is the project's alone.
func TestBurnerEmailShield(t *testing.T) {
	t.Parallel()
	security := []integration{{kind: project.Security, vendor: "ipinfo", mode: project.Managed, bare: true}}
	p := plan{credits: 1_000_000, integrations: security}.make(t)
	svc[any](t, "", "burner", "add", p.id, "own.example", "Bücher.example", "yopmail.com")
	svc[any](t, "imported.example\n", "burner", "import", p.id, "-")
	svc[any](t, "", "burner", "add", p.id, "gone.example")
	svc[any](t, "", "burner", "remove", p.id, "gone.example")
	other := plan{integrations: []integration{{kind: project.Security, vendor: "ipinfo", mode: project.BYOK, bare: true}}}.make(t)
	for _, c := range []struct {
		as            *tenant
		email, domain string
		source        string
	}{
		{p, "a@own.example", "own.example", "custom"},
		{p, "a@x.y.own.example", "x.y.own.example", "custom"},
		{p, "a@notown.example", "notown.example", "none"},
		{p, "a@BÜCHER.example", "xn--bcher-kva.example", "custom"},
		{p, "a@imported.example", "imported.example", "custom"},
		{p, "a@gone.example", "gone.example", "none"},
		{p, "a@yopmail.com", "yopmail.com", "custom"},
		{p, "A.b+c@Sub.Mailinator.COM", "sub.mailinator.com", "global"},
		{p, `"a@b"@mailinator.com`, "mailinator.com", "global"},
		{p, "a@gmail.com", "gmail.com", "none"},
		{p, "a@example", "", ""},
		{other, "a@own.example", "own.example", "none"},
		{other, "a@yopmail.com", "yopmail.com", "global"},
	} {
		a := request{path: burner, body: email(c.email), as: c.as.dev}.do(t)
		if a == nil || c.source == "" {
			continue
		}
		d := data[emailData](t, a)
		if !a.is(200, "") || d.Email != c.email || d.Domain != c.domain || !d.ValidSyntax || d.Source != c.source ||
			d.Disposable != (c.source != "none") || d.Time == nil || *d.Time < 0 || *d.Time > 5000 {
			t.Errorf("%s: %d %s, want %s, %s", c.email, a.status, a.body, c.domain, c.source)
		}
	}
	if fixture.stack == nil {
		return
	}
	if got, want := p.balance(t), 1_000_000-10*price(credit.BurnerEmailShield); got != want {
		t.Errorf("balance %d, want %d: ten checks were charged", got, want)
	}
	if got := other.balance(t); got != 0 {
		t.Errorf("balance of the Manual project is %d", got)
	}
}

// docs/decisions.md#modes: the e-mail shield needs an active security integration, not a complete one; IP risk and
// location need one that is complete.
func TestLookupIntegrations(t *testing.T) {
	local(t)
	t.Parallel()
	for _, c := range []struct {
		project, path string
		status        int
		code          string
	}{
		{"bare", burner, 422, "provider_selection_failed"},
		{"bare", vpn, 422, "provider_selection_failed"},
		{"bare", location, 422, "provider_selection_failed"},
		{"incomplete", burner, 200, ""},
		{"incomplete", vpn, 422, "provider_selection_failed"},
		{"incomplete", location, 422, "provider_selection_failed"},
		{"broke", burner, 402, "insufficient_funds"},
		{"broke", vpn, 402, "insufficient_funds"},
		{"broke", location, 402, "insufficient_funds"},
		{"byok", burner, 200, ""},
		{"byok", vpn, 200, ""},
		{"byok", location, 200, ""},
		{"unreachable", burner, 200, ""},
		{"unreachable", vpn, 503, "service_unavailable"},
		{"unreachable", location, 500, "internal_error"},
		{"paused", burner, 503, "project_paused"},
		{"paused", vpn, 503, "project_paused"},
		{"paused", location, 503, "project_paused"},
	} {
		body := ip("112.134.0.1")
		if c.path == burner {
			body = email("a@example.com")
		}
		p := demoProject(c.project)
		before := p.balance(t)
		a := request{path: c.path, body: body, as: p.dev}.do(t)
		if a != nil && !a.is(c.status, c.code) {
			t.Errorf("%s %s: %d %s, want %d %s", c.project, c.path, a.status, a.body, c.status, c.code)
		}
		if after := p.balance(t); after != before && (c.status != 200 || c.project == "byok") {
			t.Errorf("%s %s: balance %d after %d", c.project, c.path, after, before)
		}
	}
}

type riskData struct {
	IP       string  `json:"ip_address"`
	VPN      bool    `json:"is_vpn"`
	Proxy    bool    `json:"is_proxy"`
	Tor      bool    `json:"is_tor"`
	Relay    bool    `json:"is_relay"`
	Hosting  bool    `json:"is_hosting"`
	Country  *string `json:"country_code"`
	City     *string
	ASN      *string
	Network  *string `json:"network_name"`
	Provider string  `json:"provider_name"`
}

// flags writes the flags that are set.
func (d riskData) flags() string {
	var set []string
	for _, f := range []struct {
		name string
		is   bool
	}{{"vpn", d.VPN}, {"proxy", d.Proxy}, {"tor", d.Tor}, {"relay", d.Relay}, {"hosting", d.Hosting}} {
		if f.is {
			set = append(set, f.name)
		}
	}
	return strings.Join(set, " ")
}

// place writes where the address is, and whose.
func (d riskData) place() string {
	if d.Country == nil || d.City == nil || d.ASN == nil || d.Network == nil {
		return ""
	}
	return strings.Join([]string{*d.Country, *d.City, *d.ASN, *d.Network}, " ")
}

// docs/decisions.md#not-routable: addresses that are not globally routable get a response at once: flags false, fields
// null, no vendor call, no charge, no credits needed. A v4-mapped address is evaluated as v4.
func TestNotRoutable(t *testing.T) {
	local(t)
	t.Parallel()
	p := demoProject("broke")
	for address, canonical := range map[string]string{
		"0.0.0.0": "0.0.0.0", "10.1.2.3": "10.1.2.3", "100.64.0.1": "100.64.0.1", "127.0.0.1": "127.0.0.1", "169.254.169.254": "169.254.169.254",
		"172.31.255.255": "172.31.255.255", "192.0.0.8": "192.0.0.8", "192.0.2.7": "192.0.2.7", "192.168.0.1": "192.168.0.1",
		"198.19.0.1": "198.19.0.1", "198.51.100.9": "198.51.100.9", "203.0.113.5": "203.0.113.5", "224.0.0.251": "224.0.0.251",
		"250.1.1.1": "250.1.1.1", "255.255.255.255": "255.255.255.255", "::": "::", "::1": "::1", "::ffff:10.9.8.7": "10.9.8.7",
		"::FFFF:C0A8:1": "192.168.0.1", "2001:DB8::0:1": "2001:db8::1", "fc00::1": "fc00::1", "fd00:0::1": "fd00::1", "fe80::1": "fe80::1",
		"ff02::fb": "ff02::fb", "2002:a00::1": "2002:a00::1", "100::5": "100::5", "3fff::1": "3fff::1", "5f00::1": "5f00::1",
	} {
		if a := (request{path: vpn, body: ip(address), as: p.dev}).do(t); a != nil {
			if d := data[riskData](t, a); !a.is(200, "") || d != (riskData{IP: canonical, Provider: "none"}) {
				t.Errorf("%s: %d %s", address, a.status, a.body)
			}
		}
		if a := (request{path: location, body: ip(address), as: p.dev}).do(t); a != nil {
			const nothing = `"data":{"country":null,"country_code":null,"city":null,"isp":null,"latitude":null,"longitude":null,"timezone":null},"meta":{"provider_override":null}`
			if !a.is(200, "") || !strings.Contains(string(a.body), nothing) {
				t.Errorf("%s: %d %s", address, a.status, a.body)
			}
		}
		if calls := lookups(fixture.stack.Sandbox, address, canonical); len(calls) > 0 {
			t.Errorf("%s: a vendor was asked: %v", address, calls)
		}
	}
}

// lookups are what a sandbox received for addresses.
func lookups(s *sandbox.Server, addresses ...string) []sandbox.Call {
	return slices.DeleteFunc(s.Calls(), func(c sandbox.Call) bool {
		return c.Operation != "lookup" || !slices.ContainsFunc(addresses, func(a string) bool { return slices.Contains(c.To, a) })
	})
}

// lookupCase is one row of the table of vendors and failures: what a vendor does, and what comes of it.
type lookupCase struct {
	address string
	good    bool // a vendor's result: charged
	unknown bool
	why     string
}

// lookupCases hold what the sandbox's addresses and the rules of the test make vendors do.
var lookupCases = []lookupCase{
	{"112.134.0.1", true, false, "good"},
	{"45.83.0.1", true, false, "vpn"},
	{"45.83.0.2", true, false, "proxy"},
	{"45.83.0.3", true, false, "tor"},
	{"45.83.0.4", true, false, "relay"},
	{"45.83.0.5", true, false, "hosting"},
	{"45.83.0.6", true, false, "all five"},
	{"2402:d000::7", true, false, "IPv6"},
	{"45.83.0.7", false, true, "unknown"},
	{"45.83.0.8", false, false, "quota used up"},
	{"45.83.0.9", false, false, "never responds"},
	{"45.83.0.10", false, false, "cannot be parsed"},
	{"45.83.0.11", false, false, "HTTP 500"},
	{"20.0.0.1", false, false, "credentials refused"},
	{"20.0.0.2", false, false, "error with HTTP 200"},
	{"20.0.0.3", false, false, "rejected"},
	{"20.0.0.4", false, false, "connection ends before the response"},
	{"20.0.0.5", false, false, "connection ends in the response"},
}

var lookupRules = []sandbox.Rule{
	{To: "20.0.0.1", Outcome: sandbox.CredentialsRefused},
	{To: "20.0.0.2", Outcome: sandbox.ErrorIn200},
	{To: "20.0.0.3", Outcome: sandbox.Rejected},
	{To: "20.0.0.4", Outcome: sandbox.Closed},
	{To: "20.0.0.5", Outcome: sandbox.Truncated},
}

// reported are the flags of a vendor in place of a flag of the address. A flag that a vendor does not report is false.
var reported = map[string]map[string]string{
	"proxycheck": {"relay": ""}, "vpnapi": {"hosting": ""}, "maxmind": {"relay": ""},
	"ip-api":         {"vpn": "proxy", "tor": "proxy", "relay": ""},
	"ipqualityscore": {"vpn": "vpn proxy", "tor": "proxy tor", "relay": ""},
}

// reportedFlags returns the flags that a vendor reports of an address with flags.
func reportedFlags(vendor, flags string) string {
	var set []string
	for flag := range strings.FieldsSeq(flags) {
		as, other := reported[vendor][flag]
		if !other {
			as = flag
		}
		set = append(set, strings.Fields(as)...)
	}
	all := strings.Fields("vpn proxy tor relay hosting")
	return strings.Join(slices.DeleteFunc(all, func(f string) bool { return !slices.Contains(set, f) }), " ")
}

// lookupFailures are the responses when no vendor had a result (docs/decisions.md#lookup-chain).
var lookupFailures = map[string]struct {
	status int
	code   string
}{vpn: {503, "service_unavailable"}, location: {500, "internal_error"}}

// Each vendor and each way to fail: only success is charged.
func TestLookupVendors(t *testing.T) {
	local(t)
	t.Parallel()
	const credits = 1_000_000
	for _, c := range []struct {
		path, operation string
		kind            project.Kind
		vendors         []string
	}{
		{vpn, credit.VPNShield, project.Security, []string{"ipgeolocation", "ipinfo", "proxycheck", "vpnapi", "maxmind", "ip-api", "ipqualityscore", "ip2location"}},
		{location, credit.Location, project.Location, []string{"ip-api", "ipinfo", "ipinfo-lite", "ipgeolocation", "maxmind"}},
	} {
		for _, vendor := range c.vendors {
			s := newSandbox(t)
			if err := s.SetRules(lookupRules...); err != nil {
				t.Fatal(err)
			}
			at := integration{kind: c.kind, vendor: vendor, mode: project.Managed, endpoint: s.URL + "/" + vendor}
			p := plan{credits: credits, integrations: []integration{at}}.make(t)
			closed := closedEndpoint(t)
			t.Run(c.path+" "+vendor, func(t *testing.T) {
				t.Parallel()
				responses := atOnce(len(lookupCases), 6, func(i int) *response {
					return request{path: c.path, body: ip(lookupCases[i].address), as: p.dev}.do(t)
				})
				left, charged := int64(credits), map[string]bool{}
				for i, row := range lookupCases {
					a := responses[i]
					if a == nil {
						continue
					}
					row.check(t, c.path, vendor, a)
					if row.good {
						left -= price(c.operation)
						charged[a.RequestID] = true
					}
					// A GET on a kept connection that dies is sent again, by Go's transport: a look-up may be.
					if n := len(lookups(s, row.address)); n != 1 && (n != 2 || row.address != "20.0.0.4") {
						t.Errorf("%s: the vendor was asked %d times", row.why, n)
					}
				}
				// The vendor goes away: a refused connection.
				at.endpoint = closed
				p.connect(t, at)
				forget()
				a := request{path: c.path, body: ip("20.0.0.9"), as: p.dev}.do(t)
				if want := lookupFailures[c.path]; a != nil && !a.is(want.status, want.code) {
					t.Errorf("refused connection: %d %s, want %v", a.status, a.body, want)
				}
				if got := p.balance(t); got != left {
					t.Errorf("balance %d, want %d", got, left)
				}
				for id, e := range p.ledger(t) {
					if e.Operation == c.operation && (!charged[id] || e.State != "captured" || e.Credits != price(c.operation) || e.Vendor != vendor) {
						t.Errorf("ledger %s: %+v", id, e)
					}
				}
			})
		}
	}
}

func (row lookupCase) check(t *testing.T, path, vendor string, a *response) {
	t.Helper()
	want := lookupFailures[path]
	switch {
	case row.good && path == vpn:
		flags := map[string]string{"all five": "vpn proxy tor relay hosting", "good": "", "IPv6": ""}
		expected, special := flags[row.why]
		if !special {
			expected = row.why
		}
		expected = reportedFlags(vendor, expected)
		place := "US Ashburn AS14618 Amazon.com, Inc."
		if row.why == "good" {
			place = "LK Colombo AS9329 Sri Lanka Telecom"
		}
		d := data[riskData](t, a)
		if !a.is(200, "") || d.flags() != expected || d.IP != row.address || d.Provider != vendor ||
			d.place() != place {
			t.Errorf("%s: %d %s, want %q in %s", row.why, a.status, a.body, expected, place)
		}
	case row.good:
		want := `"data":{"country":"United States","country_code":"US","city":"Ashburn","isp":"Amazon.com, Inc.","latitude":39.0438,"longitude":-77.4874,"timezone":"America/New_York"}`
		if row.why == "good" {
			want = `"data":{"country":"Sri Lanka","country_code":"LK","city":"Colombo","isp":"Sri Lanka Telecom","latitude":6.9271,"longitude":79.8612,"timezone":"Asia/Colombo"}`
		}
		if vendor == "ipinfo-lite" { // country and network only
			head, _, _ := strings.Cut(want, `"city"`)
			_, isp, _ := strings.Cut(want, `"isp":`)
			isp, _, _ = strings.Cut(isp, `,"latitude"`)
			want = head + `"city":null,"isp":` + isp + `,"latitude":null,"longitude":null,"timezone":null}`
		}
		if !a.is(200, "") || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d %s, want %s", row.why, a.status, a.body, want)
		}
	case row.unknown && path == location:
		if !a.is(200, "") || !strings.Contains(string(a.body), `"data":{"country":null,`) {
			t.Errorf("%s: %d %s, want nulls", row.why, a.status, a.body)
		}
	case !a.is(want.status, want.code):
		t.Errorf("%s: %d %s, want %v", row.why, a.status, a.body, want)
	}
}

// docs/decisions.md#lookup-chain: several active integrations are a fail-over chain by priority. The demo projects show
// it.
func TestLookupFailover(t *testing.T) {
	local(t)
	t.Parallel()
	p := demoProject("failover")
	for range 5 { // more often than a breaker takes to open
		if a := (request{path: vpn, body: ip("45.83.0.6"), as: p.dev}).do(t); a != nil {
			if d := data[riskData](t, a); !a.is(200, "") || d.Provider != "ipinfo" || d.flags() != "vpn proxy tor relay hosting" {
				t.Errorf("%d %s", a.status, a.body)
			}
		}
		if a := (request{path: location, body: ip("112.134.9.9"), as: p.dev}).do(t); a != nil && (!a.is(200, "") || !strings.Contains(string(a.body), `"city":"Colombo"`)) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	// Unknown to the first: IP risk asks the next and ends in 503, location says so.
	managed := demoProject("managed")
	if a := (request{path: vpn, body: ip("45.83.0.7"), as: managed.dev}).do(t); a != nil && !a.is(503, "service_unavailable") {
		t.Errorf("unknown to all: %d %s", a.status, a.body)
	}
	if calls := lookups(fixture.stack.Sandbox, "45.83.0.7"); len(calls) < 2 {
		t.Errorf("unknown to the first: %d vendors were asked", len(calls))
	}
}

// docs/decisions.md#location-provider: a provider that is not active for the environment is 422; meta mirrors the hint.
func TestLocationProvider(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{prod: true, integrations: []integration{
		{kind: project.Location, vendor: "ip-api", mode: project.BYOK, priority: 1},
		{kind: project.Location, vendor: "ipgeolocation", mode: project.BYOK, priority: 2},
		{kind: project.Location, vendor: "ipinfo", mode: project.BYOK, priority: 3, bare: true},
		{kind: project.Location, vendor: onDisk, mode: project.BYOK, priority: 4},
	}}.make(t)
	for _, c := range []struct {
		provider, asked string // the vendor that is asked; empty: refused
	}{
		{`null`, "ip-api"}, {`"ip-api"`, "ip-api"}, {`"ipgeolocation"`, "ipgeolocation"}, {`"maxmind-mmdb"`, onDisk},
		{`"IP-API"`, ""}, {`"ipinfo"`, ""}, {`"maxmind"`, ""}, {`"nobody"`, ""},
	} {
		address := "112.134.77." + fmt.Sprint(len(c.provider)) // no other test asks for it
		a := request{path: location, body: `{"ip":"` + address + `","provider":` + c.provider + `}`, as: p.dev}.do(t)
		if a == nil {
			continue
		}
		calls := lookups(fixture.stack.Sandbox, address)
		switch {
		case c.asked == "":
			if !a.is(422, "provider_selection_failed") {
				t.Errorf("%s: %d %s", c.provider, a.status, a.body)
			}
		case !a.is(200, "") || !strings.Contains(string(a.body), `"meta":{"provider_override":`+c.provider+`}`) || !strings.Contains(string(a.body), `"city":"Colombo"`):
			t.Errorf("%s: %d %s", c.provider, a.status, a.body)
		case c.asked != onDisk && (len(calls) == 0 || calls[len(calls)-1].Vendor != c.asked):
			t.Errorf("%s: asked were %v", c.provider, calls)
		}
	}
	if a := (request{path: location, body: `{"ip":"10.0.0.1","provider":"ip-api"}`, as: p.dev}).do(t); a != nil && (!a.is(200, "") || !strings.Contains(string(a.body), `"provider_override":"ip-api"`)) {
		t.Errorf("not routable, with a hint: %d %s", a.status, a.body)
	}
	if a := (request{path: location, body: ip("112.134.0.1"), as: p.prod, header: map[string]string{"X-ENV": "production"}}).do(t); a != nil && !a.is(422, "provider_selection_failed") {
		t.Errorf("in production: %d %s", a.status, a.body)
	}
}

// MaxMind's database files, found in the folder of the stack's parameter.
func TestDatabaseFiles(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{integrations: []integration{
		{kind: project.Security, vendor: onDisk, mode: project.BYOK}, {kind: project.Location, vendor: onDisk, mode: project.BYOK},
	}}.make(t)
	for _, c := range []struct {
		path, address string
		status        int
		part          string
	}{
		{vpn, "45.83.0.1", 200, `"is_vpn":true,"is_proxy":false,"is_tor":false,"is_relay":false,"is_hosting":false,"country_code":null`},
		{vpn, "112.134.0.1", 200, `"country_code":"LK","city":"Colombo","asn":"AS9329","network_name":"Sri Lanka Telecom","provider_name":"maxmind-mmdb"`},
		{vpn, "46.0.0.1", 503, `service_unavailable`},
		{location, "112.134.0.1", 200, `"isp":"Sri Lanka Telecom","latitude":6.9271,"longitude":79.8612,"timezone":"Asia/Colombo"`},
		{location, "46.0.0.1", 200, `"country":null,`},
	} {
		if a := (request{path: c.path, body: ip(c.address), as: p.dev}).do(t); a != nil && (a.status != c.status || !strings.Contains(string(a.body), c.part)) {
			t.Errorf("%s %s: %d %s, want %s", c.path, c.address, a.status, a.body, c.part)
		}
	}
}
