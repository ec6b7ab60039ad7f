package acceptance

import (
	"bytes"
	"fmt"
	"image/png"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/shared/wallet"
)

const (
	burner   = "/security/burner-email-shield"
	vpn      = "/security/vpn-shield"
	location = "/location/lookup"
	barcodes = "/utilities/barcode/generate"
	qrcodes  = "/utilities/qrcode/generate"

	currencies = "/utility/currency"
)

// price is what an operation costs on the local stack.
func price(operation string) int64 { return fixture.stack.Prices[operation] }

func email(address string) string { return object(map[string]any{"email": address}) }

func ip(address string) string { return object(map[string]any{"ip": address}) }

// lookups are what a sandbox received for addresses.
func lookups(s *sandbox.Server, addresses ...string) []sandbox.Call {
	return slices.DeleteFunc(s.Calls(), func(c sandbox.Call) bool {
		return c.Operation != "lookup" ||
			!slices.ContainsFunc(addresses, func(a string) bool { return slices.Contains(c.To, a) })
	})
}

// MaxMind's database files, found in the folder of the stack's parameter. shared/iplookup/vendors TestRiskDatabase and
// TestPlaceDatabase have the other addresses.
func TestDatabaseFiles(t *testing.T) {
	localParallel(t)
	p := plan{integrations: []integration{
		{kind: project.Security, vendor: onDisk, mode: project.BYOK}, {kind: project.Location,
			vendor: onDisk, mode: project.BYOK},
	}}.make(t)
	for path, part := range map[string]string{
		vpn: `"country_code":"LK","city":"Colombo","asn":"AS9329","network_name":"Sri Lanka Telecom",` +
			`"provider_name":"maxmind-mmdb"`,
		location: `"isp":"Sri Lanka Telecom","latitude":6.9271,"longitude":79.8612,"timezone":"Asia/Colombo"`,
	} {
		request{path: path, body: ip("112.134.0.1"), as: p.dev}.do(t).has(t, path, part)
	}
}

// has checks that a response is a success whose body contains each of the parts.
func (a *response) has(t *testing.T, about string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !a.is(200, "") || !strings.Contains(string(a.body), part) {
			t.Errorf("%s: %d %s, want %s", about, a.status, a.body, part)
		}
	}
}

// docs/decisions/look-ups.md#disposable-domains: the domain or a parent domain is in a list. The project's own
// judgement comes first, and is the project's alone.
func TestBurnerEmailShield(t *testing.T) {
	t.Parallel()
	p := plan{credits: 1_000_000, integrations: []integration{{kind: project.Security, vendor: "ipinfo",
		mode: project.Managed, bare: true}}}.make(t)
	svc[any](t, "", "burner", "add", p.id, "own.example", "yopmail.com", "gone.example")
	svc[any](t, "imported.example\n", "burner", "import", p.id, "-")
	svc[any](t, "", "burner", "remove", p.id, "gone.example")
	svc[any](t, "", "burner", "allow", "guerrillamail.com", "fine.own.example", "denied.own.example", "--project", p.id)
	svc[any](t, "", "burner", "deny", "denied.own.example", "--project", p.id)
	other := plan{integrations: []integration{{kind: project.Security, vendor: "ipinfo",
		mode: project.BYOK, bare: true}}}.make(t)
	for _, c := range []struct {
		as                    *tenant
		email, domain, source string
	}{
		{p, "a@x.y.own.example", "x.y.own.example", "custom"}, {p, "a@imported.example", "imported.example", "custom"},
		{p, "a@gone.example", "gone.example", "none"}, {p, "a@yopmail.com", "yopmail.com", "custom"},
		{p, "A.b+c@Sub.Mailinator.COM", "sub.mailinator.com", "global"}, {p, "a@BÜCHER.example",
			"xn--bcher-kva.example", "none"},
		{p, "a@x.guerrillamail.com", "x.guerrillamail.com", "none"}, {other, "a@guerrillamail.com",
			"guerrillamail.com", "global"},
		{p, "a@fine.own.example", "fine.own.example", "none"}, {p, "a@denied.own.example", "denied.own.example", "custom"},
		{p, "用户@例え.jp", "xn--r8jz45g.jp", "none"},
		{other, "a@own.example", "own.example", "none"}, {other, "a@yopmail.com", "yopmail.com", "global"},
	} {
		request{path: burner, body: email(c.email), as: c.as.dev}.do(t).has(t, c.email,
			fmt.Sprintf(`"email":%q,"domain":%q,"is_valid_syntax":true,"is_disposable":%t,"source":%q`, c.email, c.domain,
				c.source != "none", c.source))
	}
	if fixture.stack == nil {
		return
	}
	if got, want := p.balance(t), 1_000_000-10*price(wallet.BurnerEmailShield); got != want || other.balance(t) != 0 {
		t.Errorf("balance %d, want %d: ten checks were charged", got, want)
	}
}

// TestLookupVendors checks every vendor beside the sandbox. The packages of the vendors test what each vendor reports
// and how each call fails; TestOutcomes of shared/request tests what a project is charged.
func TestLookupVendors(t *testing.T) {
	localParallel(t)
	for _, c := range []struct {
		path    string
		kind    project.Kind
		vendors []string
		part    string // of the response; VENDOR: the vendor
		unknown int    // status where the vendor knows nothing
	}{
		{vpn, project.Security,
			[]string{"ipgeolocation", "ipinfo", "proxycheck", "vpnapi", "maxmind", "ip-api", "ipqualityscore", "ip2location"},
			`"country_code":"US","city":"Ashburn","asn":"AS14618","network_name":"Amazon.com, Inc.","provider_name":"VENDOR"`,
			503},
		{location, project.Location, []string{"ip-api", "ipinfo", "ipinfo-lite", "ipgeolocation", "maxmind"},
			`"country":"United States","country_code":"US"`, 200},
	} {
		for _, vendor := range c.vendors {
			p := plan{integrations: []integration{{kind: c.kind, vendor: vendor, mode: project.BYOK}}}.make(t)
			ask := func(address string) *response { return request{path: c.path, body: ip(address), as: p.dev}.do(t) }
			found := ask("45.83.0.2") // a proxy
			found.has(t, vendor, strings.ReplaceAll(c.part, "VENDOR", vendor))
			if proxy := strings.Contains(string(found.body), `"is_proxy":true`); proxy != (c.path == vpn) {
				t.Errorf("%s: %s", vendor, found.body)
			}
			for address, status := range map[string]int{"45.83.0.7": c.unknown, "45.83.0.11": lookupFailure[c.path]} {
				if a := ask(address); a.status != status {
					t.Errorf("%s, %s: %d %s, want %d", vendor, address, a.status, a.body, status)
				}
			}
		}
	}
}

// lookupFailure are the statuses when no vendor had a result (docs/decisions/look-ups.md#lookup-chain).
var lookupFailure = map[string]int{vpn: 503, location: 500}

// docs/decisions/look-ups.md#location-provider: a provider that is not active is 422; meta repeats the hint.
func TestLocationProvider(t *testing.T) {
	localParallel(t)
	p := plan{integrations: []integration{
		{kind: project.Location, vendor: "ip-api", mode: project.BYOK, priority: 1}, {kind: project.Location,
			vendor: "ipgeolocation", mode: project.BYOK, priority: 2},
	}}.make(t)
	for provider, asked := range map[string]string{`null`: "ip-api", `"ipgeolocation"`: "ipgeolocation",
		`"IP-API"`: "", `"maxmind"`: ""} {
		address := "112.134.77." + fmt.Sprint(len(provider)) // no other test asks for it
		a := request{path: location, body: `{"ip":"` + address + `","provider":` + provider + `}`, as: p.dev}.do(t)
		calls := lookups(fixture.stack.Sandbox, address)
		if asked != "" {
			a.has(t, provider, `"meta":{"provider_override":`+provider+`}`, `"city":"Colombo"`)
		} else if !a.is(422, "provider_selection_failed") {
			t.Errorf("%s: %d %s", provider, a.status, a.body)
		}
		if (len(calls) == 1) != (asked != "") || len(calls) == 1 && calls[0].Vendor != asked {
			t.Errorf("%s: asked were %v", provider, calls)
		}
	}
}

// exchange connects the project to a source of rates.
func (p *tenant) exchange(t *testing.T, mode project.Mode) *tenant {
	t.Helper()
	p.connect(t, integration{kind: project.Currency, vendor: "openexchangerates", mode: mode})
	return p
}

// docs/decisions/currency.md#own-rates: a BYOK integration's rates are fetched with its own key, and kept per project
// for the operator, too. functions/currency TestOwnKey has the stampede over several instances.
func TestOwnRates(t *testing.T) {
	localParallel(t)
	p := plan{}.make(t).exchange(t, project.BYOK)
	request{method: "GET", path: currencies + "/pair/USD/LKR", as: p.dev}.do(t).has(t, "own rates", `"rate":304.718462,`)
	if shown := svc[struct{ Source string }](t, "", "rates", "show", "--project",
		p.id); shown.Source != "openexchangerates" {
		t.Errorf("%+v", shown)
	}
}

// docs/decisions/currency.md#rates-by-date: a query reaches the function through the gateway, and the function's role
// may read a day and several. functions/currency TestDate has every rule.
func TestRatesOfAWeekAgo(t *testing.T) {
	localParallel(t)
	p := plan{}.make(t).exchange(t, project.Managed)
	day := time.Now().UTC().AddDate(0, 0, -7).Format(time.DateOnly)
	for path, want := range map[string]string{
		"/pair/USD/LKR?date=" + day:                                       `"rate":302.5854328,`,
		"/history/USD?symbols=LKR&from=" + day + "&to=" + day + "&base=x": `"rates":{"LKR":302.5854328}}]}`,
	} {
		request{method: "GET", path: currencies + path, as: p.dev}.do(t).has(t, path, want)
	}
}

// drawing connects the project to the built-in renderer.
func (p *tenant) drawing(t *testing.T, mode project.Mode) *tenant {
	t.Helper()
	svc[any](t, "", "integration", "set", p.id, "barcode", "builtin", "--env", "development", "--mode", string(mode))
	return p
}

// openapi.yaml#generateBarcode, openapi.yaml#generateQrCode: a picture arrives in bytes, also through API Gateway.
// functions/barcode has the tests of every type, option and size.
func TestPictures(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).drawing(t, project.BYOK) // without credits: Manual (BYOK) is free
	for body, warning := range map[string]string{`{"data":"x"}`: "", `{"data":"x","color":"ffff00"}`: "low-contrast"} {
		for path, want := range map[string]int{barcodes: 92, qrcodes: 256} {
			a := request{path: path, body: body, as: p.dev}.send(t)
			size, err := png.DecodeConfig(bytes.NewReader(a.body))
			length, warned := a.header.Get("Content-Length"), a.header.Get("X-SVC-Warnings")
			if err != nil || a.status != 200 || size.Width != want || length != strconv.Itoa(len(a.body)) || warned != warning {
				t.Errorf("%s: %d %v, %d pixels, %v", path, a.status, a.header, size.Width, err)
			}
		}
	}
}
