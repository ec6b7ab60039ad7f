package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"svcapi/local/sandbox"
	"svcapi/shared/cache"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/rates"
	"svcapi/shared/request"
	"svcapi/shared/secret"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
	"svcapi/test/clocktest"
	"svcapi/test/enginetest"
	"svcapi/test/logtest"
	"svcapi/test/must"
	"svcapi/test/secretstest"
	"svcapi/test/wallettest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

const (
	managed  = "pays-credits"
	own      = "own"
	lifetime = time.Minute // of the set in an instance
)

// fixture is the function with its tables, secrets and vendors.
type fixture struct {
	t        *testing.T
	store    *rates.Store
	projects *admin.Store
	writer   *secret.Writer
	sandbox  *sandbox.Server
	clock    *clocktest.Clock
	dynamoDB wallettest.Faults // counts the calls
	log      logtest.Buffer
	newOne   func() http.Handler // another instance
	handler  http.Handler
	access   map[string][2]string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	plain, tables := enginetest.Client(t)
	w := &fixture{t: t, clock: clocktest.New(), access: map[string][2]string{}}
	db := w.dynamoDB.Client(t)
	var err error
	w.sandbox, err = sandbox.Start()
	must.Succeed(t, err)
	t.Cleanup(func() { _ = w.sandbox.Close() })
	manager := secretsmanager.New(secretstest.Start(t))
	w.store, w.projects, w.writer = rates.NewStore(plain, tables.Rates), admin.NewStore(plain, tables.Projects),
		secret.NewWriter(manager, "test")
	w.newOne = func() http.Handler {
		g := newGroup(rates.NewStore(db, tables.Rates), upstream.New(upstream.Config{TimeoutSeconds: 3, Local: true}),
			upstream.NewSecretCache(manager, "test", upstream.SecretConfig{}, nil), lifetime, cache.ClockOf(w.clock.Now))
		service := request.New(request.Config{Stage: "test", ProjectsTable: tables.Projects, TransientTable: tables.Transient,
			ProjectCacheSeconds: 60}, db, telemetry.New(&w.log, telemetry.Config{}))
		return service.Handler(g.routes()...)
	}
	w.handler = w.newOne()
	for id, mode := range map[string]project.Mode{managed: project.Managed, own: project.BYOK} {
		w.project(id)
		w.connect(id, mode, "openexchangerates", 1, w.sandbox.URL)
	}
	return w
}

// project creates a project with one credential.
func (w *fixture) project(id string) {
	w.t.Helper()
	_, err := w.projects.CreateProject(w.t.Context(),
		project.Project{ID: id, Name: id, Limit: project.RateLimit{Requests: 1_000_000, Window: time.Hour}})
	must.Succeed(w.t, err)
	key, issued, err := w.projects.IssueCredential(w.t.Context(), id, project.Development)
	must.Succeed(w.t, err)
	w.access[id] = [2]string{key, issued}
}

func (w *fixture) connect(id string, mode project.Mode, vendor string, priority int, endpoint string) {
	w.t.Helper()
	err := w.projects.PutIntegration(w.t.Context(), id, project.Integration{
		Kind: project.Currency, Environment: project.Development, Vendor: vendor, Mode: mode, Active: true,
		Priority: priority,
		Settings: map[string]string{"endpoint": endpoint + "/" + vendor},
	})
	if err == nil && mode == project.BYOK {
		err = w.writer.Put(w.t.Context(), project.Currency, id,
			secret.Change{Environment: project.Development, Vendor: vendor, After: sandbox.Account(vendor)})
	}
	must.Succeed(w.t, err)
}

// putInUse stores a set as the set in use.
func (w *fixture) putInUse(set *rates.Set) {
	w.t.Helper()
	held, err := w.store.Stored(w.t.Context())
	must.Succeed(w.t, err)
	must.Succeed(w.t, w.store.PutCurrent(w.t.Context(), held, set))
}

func dec(t *testing.T, text string) rates.Decimal {
	t.Helper()
	d, err := rates.Parse(text)
	must.Succeed(t, err)
	return d
}

// sample returns a set of now, with the central bank's values of today.
func (w *fixture) sample() *rates.Set {
	set := &rates.Set{
		Table: rates.Table{Source: "made", Base: "USD", Date: w.clock.Now().UTC().Truncate(time.Hour), Fetched: w.clock.Now(),
			Rates: map[string]rates.Decimal{}},
		Bank: rates.Bank{},
	}
	for code, rate := range map[string]string{"USD": "1", "EUR": "0.864128", "GBP": "0.761934", "JPY": "154.8315",
		"CNY": "7.11385", "AUD": "1.527319", "LKR": "304.718462", "CHF": "0.80", "BTC": "0.00001"} {
		set.Rates[code] = dec(w.t, rate)
	}
	for _, base := range rates.BankBases() {
		quote := func(rate string) rates.Quote {
			return rates.Quote{Rate: dec(w.t, rate), Date: rates.DayOf(w.clock.Now())}
		}
		set.Bank[base] = rates.Record{Buy: quote("300.1250"), Sell: quote("310.2500"), Central: quote("305.5000")}
	}
	return set
}

// response is a response with its numbers as text.
type response struct {
	status int
	text   string
	Error  struct{ Code string }
	Data   struct {
		Rate    json.Number
		Updated string `json:"last_updated"`
		Count   int
	}
}

func (w *fixture) get(handler http.Handler, id, path string) *response {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodGet, currencyPath+path, http.NoBody)
	r.Header.Set("X-API-KEY", w.access[id][0])
	r.Header.Set("X-API-SECRET", w.access[id][1])
	out := httptest.NewRecorder()
	handler.ServeHTTP(out, r)
	a := &response{status: out.Code, text: out.Body.String()}
	if err := json.Unmarshal(out.Body.Bytes(), a); err != nil {
		w.t.Errorf("%s: %s: %v", path, a.text, err)
	}
	return a
}

// expect compares the rate, or the error's code.
func (w *fixture) expect(id, path, want string) {
	w.t.Helper()
	a := w.get(w.handler, id, path)
	if got := string(a.Data.Rate) + a.Error.Code; got != want {
		w.t.Errorf("%s: %d %s, want %s", path, a.status, a.text, want)
	}
}

// docs/decisions/currency.md#rates-in-use: 422 provider_selection_failed while no good set is stored.
func TestNothingStored(t *testing.T) {
	w := newFixture(t)
	for _, path := range []string{"/latest/USD", "/pair/USD/LKR", "/pair/USD/LKR/1", "/codes"} {
		if a := w.get(w.handler, managed, path); a.status != 422 || a.Error.Code != "provider_selection_failed" {
			t.Errorf("%s: %s", path, a.text)
		}
	}
	w.putInUse(w.sample())
	w.expect(managed, "/pair/USD/LKR", "304.718462") // at once, because an absent set is not cached
	w.expect(managed, "/latest/BTC", "invalid_currency_code")
	w.expect(managed, "/pair/USD/BTC", "invalid_currency_code")
	// docs/decisions/currency.md#central-bank: the direct value while usable, else the ordinary LKR rate.
	w.clock.Move(7 * 24 * time.Hour)
	w.expect(managed, "/pair/USD/LKR-BUY", "300.1250")
	if a := w.get(w.handler, managed, "/codes"); a.Data.Count != 8+3 {
		t.Errorf("%s", a.text)
	}
	w.clock.Move(24 * time.Hour)
	w.expect(managed, "/pair/USD/LKR-BUY", "304.718462")
	if a := w.get(w.handler, managed, "/codes"); a.Data.Count != 8 {
		t.Errorf("%s", a.text)
	}
}

// A free request has one DynamoDB phase: the count, beside at most one read, whose result is cached in the instance.
func TestCalls(t *testing.T) {
	w := newFixture(t)
	w.putInUse(w.sample())
	for i, step := range []struct {
		later time.Duration
		calls int64
		id    string
	}{
		{0, 3, managed}, // cold: also the project's record
		{0, 1, managed},
		{lifetime - time.Second, 1, managed},
		{2 * time.Second, 2, managed},
		{0, 1, managed},
		{0, 8, own}, // record, count, project rates, claim, the set of the service, write, read
		{0, 1, own},
		{59 * time.Minute, 1, own},
	} {
		w.clock.Move(step.later)
		before := w.dynamoDB.Calls.Load()
		if a := w.get(w.handler, step.id, "/latest/EUR"); a.status != 200 {
			t.Fatalf("%d: %s", i, a.text)
		}
		if got := w.dynamoDB.Calls.Load() - before; got != step.calls && (step.calls < 8 || got > step.calls) {
			t.Errorf("%d, %s: %d calls, want %d", i, step.id, got, step.calls)
		}
	}
}

// docs/decisions/currency.md#own-rates: the rates of a BYOK integration are fetched with its own key, on demand, at
// most once an hour, by one of many concurrent requests, and stored per project.
func TestOwnKey(t *testing.T) {
	w := newFixture(t)
	w.putInUse(w.sample())
	fetches := func() (n int) {
		for _, c := range w.sandbox.Calls() {
			if c.Operation == "rates" {
				n++
			}
		}
		return n
	}
	stampede := func(want int) {
		t.Helper()
		before := fetches()
		instances := []http.Handler{w.newOne(), w.newOne(), w.newOne(), w.newOne()}
		var all sync.WaitGroup
		var bad atomic.Int64
		for i := range 60 {
			all.Go(func() {
				if a := w.get(instances[i%4], own, "/pair/USD/LKR"); a.status != 200 || a.Data.Rate != "304.718462" {
					bad.Add(1)
				}
			})
		}
		all.Wait()
		if got := fetches() - before; got != want || bad.Load() > 0 {
			t.Errorf("%d fetches, want %d; %d bad responses", got, want, bad.Load())
		}
	}
	slow := sandbox.Rule{Operation: "rates", DelayMS: 300}
	must.Succeed(t, w.sandbox.SetRules(slow))
	stampede(1)
	stampede(0)
	w.clock.Move(59 * time.Minute)
	stampede(0)
	w.clock.Move(time.Minute)
	stampede(1)
	// The central bank's values are those of the service and need no key of the project.
	w.expect(own, "/pair/USD/LKR-SELL", "310.2500")

	// After a later failed fetch the last good set is served, and the fetch is not repeated before the end of the hour.
	must.Succeed(t, w.sandbox.SetRules(sandbox.Rule{Operation: "rates", Outcome: sandbox.ServerError}))
	w.clock.Move(time.Hour)
	stampede(1)
	w.clock.Move(30 * time.Minute)
	stampede(0)
	w.clock.Move(31 * time.Minute)
	stampede(1)
	if log := w.log.String(); !strings.Contains(log, `"rates_failure":"unusable_response"`) ||
		!strings.Contains(log, "OwnRatesFailed") {
		t.Error("the failure is not logged")
	}
}

// Without a good set a failed fetch is 422, and is repeated soon.
func TestOwnKeyFails(t *testing.T) {
	w := newFixture(t)
	w.putInUse(w.sample())
	for _, outcome := range []sandbox.Outcome{sandbox.CredentialsRefused, sandbox.Unparseable,
		sandbox.Rejected, sandbox.Closed} {
		must.Succeed(t, w.sandbox.SetRules(sandbox.Rule{Operation: "rates", Outcome: outcome}))
		w.sandbox.Forget()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { w.expect(own, "/pair/USD/LKR", "provider_selection_failed") })
		}
		all.Wait()
		if n := len(w.sandbox.Calls()); n != 1 {
			t.Errorf("%s: %d fetches", outcome, n)
		}
		w.clock.Move(retryInterval)
	}
	// The next vendor of the chain is called, and the first one again after the vendor of the set is removed.
	w.connect(own, project.BYOK, "exchangerateapi", 2, w.sandbox.URL)
	must.Succeed(t, w.sandbox.SetRules(sandbox.Rule{Vendor: "openexchangerates", Outcome: sandbox.CredentialsRefused}))
	w.handler = w.newOne()
	w.expect(own, "/pair/USD/LKR", "304.718462")
	kept, err := w.store.ProjectRates(t.Context(), own, project.Development, true)
	if err != nil || kept.Set == nil || kept.Set.Source != "exchangerateapi" {
		t.Errorf("%+v, %v", kept, err)
	}
	err = w.projects.EditIntegrations(t.Context(), own, func(rec *project.Record) ([]project.Integration, error) {
		i := admin.Integration(rec, project.Development, project.Currency, "exchangerateapi")
		i.Active = false
		return []project.Integration{*i}, nil
	})
	must.Succeed(t, err)
	must.Succeed(t, w.sandbox.SetRules())
	w.handler = w.newOne()
	w.clock.Move(fetchLease)
	w.expect(own, "/pair/USD/LKR", "304.718462")
	if kept, err = w.store.ProjectRates(t.Context(), own, project.Development, true); err != nil ||
		kept.Set.Source != "openexchangerates" {
		t.Errorf("%+v, %v", kept, err)
	}
}

// An invalid table fetched with a project's own key is rejected, and the last good table is served, if there is one.
func TestOwnKeyRejected(t *testing.T) {
	w := newFixture(t)
	set := w.sample()
	set.Rates["LKR"] = dec(t, "3047.18") // ten times the rate of the sandbox
	w.putInUse(set)
	w.expect(own, "/pair/USD/LKR", "provider_selection_failed")
	w.putInUse(w.sample())
	w.clock.Move(lifetime)
	w.expect(own, "/pair/USD/LKR", "304.718462")
}

// docs/decisions/currency.md#decimals: 0.1 × 3 is 0.3, and numbers are plain (docs/decisions/currency.md#amounts).
func TestConversion(t *testing.T) {
	w := newFixture(t)
	set := w.sample()
	set.Rates["EUR"] = dec(t, "0.1")
	set.Rates["JPY"] = dec(t, "0.0000001")
	w.putInUse(set)
	for path, want := range map[string]string{
		"/USD/EUR/3":       `"rate":0.1,"last_updated":"*","amount":3,"conversion_result":0.3`,
		"/USD/EUR/0003.50": `"rate":0.1,"last_updated":"*","amount":3.5,"conversion_result":0.35`,
		"/USD/JPY/1":       `"rate":0.0000001,"last_updated":"*","amount":1,"conversion_result":0.0000001`,
		"/USD/JPY/15":      `"rate":0.0000001,"last_updated":"*","amount":15,"conversion_result":0.0000015`,
		"/USD/JPY/25":      `"rate":0.0000001,"last_updated":"*","amount":25,"conversion_result":0.0000025`,
		"/USD/LKR/999999999999999.99999999": `"rate":304.718462,"last_updated":"*","amount":999999999999999.99999999,` +
			`"conversion_result":304718461999999999.999997`,
		"/USD/LKR-BUY/2": `"rate":300.1250,"last_updated":"*","amount":2,"conversion_result":600.25`,
		"/JPY/USD/1":     `"rate":10000000,"last_updated":"*","amount":1,"conversion_result":10000000`,
	} {
		a := w.get(w.handler, managed, "/pair"+path)
		if got := strings.ReplaceAll(a.text, a.Data.Updated, "*"); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", path, a.text, want)
		}
	}
	for _, amount := range []string{"0", "0.0", "-1", "+1", "1e3", "1.", ".5", "1,5", "1.123456789", "1234567890123456",
		"NaN", "x", "1%20", "%31%30x", "0x10", "%D9%A3", "1%0A"} {
		a := w.get(w.handler, managed, "/pair/USD/LKR/"+amount)
		if a.status != 422 || a.Error.Code != "validation_failed" || !strings.Contains(a.text, `"details":{"amount":[`) {
			t.Errorf("%s: %s", amount, a.text)
		}
	}
}

// docs/decisions/currency.md#rates-by-date: the set of a day, or the first and the last day; also for a project's key.
func TestDate(t *testing.T) {
	w := newFixture(t)
	w.putInUse(w.sample())
	today := w.clock.Now().UTC().Truncate(24 * time.Hour)
	day := func(back int) string { return today.AddDate(0, 0, -back).Format(time.DateOnly) }
	for n, rate := range map[int]string{2: "302.5", 9: "309.5"} {
		set := w.sample()
		set.Date, set.Rates["LKR"] = today.AddDate(0, 0, -n), dec(t, rate)
		set.Bank["USD"] = rates.Record{Buy: rates.Quote{Rate: dec(t, "299"), Date: rates.DayOf(set.Date)}}
		must.Succeed(t, w.store.PutEvent(t.Context(), rates.Event{At: set.Date.Add(time.Hour), Set: set}, 0))
	}
	stored := fmt.Sprintf(`"Rates are stored from %s to %s."`, day(9), day(0))
	now := fmt.Sprintf(`"Rates are stored from %s to %[1]s."`, day(0))
	for _, c := range []struct{ id, path, want string }{
		{managed, "/pair/USD/LKR?date=" + day(0), `"rate":304.718462`},
		{managed, "/pair/USD/LKR?date=" + day(1), `"rate":302.5,"last_updated":"` + day(2)},
		{managed, "/pair/USD/LKR/2?date=" + day(2), `"conversion_result":605`},
		{managed, "/latest/USD?date=" + day(3), `"LKR":309.5`},
		{managed, "/pair/USD/LKR-BUY?date=" + day(9), `"rate":299`},
		{managed, "/pair/USD/LKR-BUY?date=" + day(3), `"rate":299`}, // six days after the bank's day
		{managed, "/pair/USD/LKR?date=" + day(10), stored},
		{managed, "/latest/USD?date=" + day(-1), stored},
		{managed, "/latest/USD?date=1970-01-01", `"reason":"date_not_stored"`},
		{managed, "/pair/USD/XXX?date=" + day(2), "invalid_currency_code"},
		{managed, "/pair/US/LKR?date=x", "invalid_currency_code"},
		{own, "/pair/USD/LKR?date=" + day(0), `"rate":304.718462`},
		{own, "/pair/USD/LKR?date=" + day(1), now},
		{own, "/pair/USD/LKR?date=" + day(-1), now},
		{managed, "/latest/USD?symbols=lkr,USD", `"rates":{"LKR":304.718462,"USD":1}}`},
		{managed, "/latest/USD?symbols=LKR,LKR&date=" + day(2), `"rates":{"LKR":302.5}}`},
		{managed, "/latest/USD?symbols=LKR,XXX", "invalid_currency_code"},
		{managed, "/latest/USD?symbols=LKR-BUY", `"details":{"symbols":[`},
		{managed, "/latest/USD?symbols=", `"details":{"symbols":[`},
		{managed, "/history/usd?symbols=LKR&from=" + day(3) + "&to=" + day(1), fmt.Sprintf(`"data":{"base":"USD","from":%q,`+
			`"to":%q,"days":[{"date":%[1]q,"last_updated":"%[3]sT00:00:00Z","rates":{"LKR":309.5}},{"date":%[4]q,`+
			`"last_updated":"%[4]sT00:00:00Z","rates":{"LKR":302.5}},{"date":%[2]q,"last_updated":"%[4]sT00:00:00Z",`+
			`"rates":{"LKR":302.5}}]}`, day(3), day(1), day(9), day(2))},
		{managed, "/history/USD?from=" + day(0), `"LKR":304.718462`},
		{managed, "/history/USD?from=" + day(10), stored},
		{managed, "/history/USD?from=" + day(1) + "&to=" + day(-1), stored},
		{managed, "/history/XXX?from=" + day(1), "invalid_currency_code"},
		{managed, "/history/U?from=x", "invalid_currency_code"},
		{managed, "/history/USD?symbols=XXX&from=" + day(1), "invalid_currency_code"},
		{managed, "/history/USD?from=" + day(89), stored},
		{managed, "/history/USD?from=" + day(90), `"details":{"from":["must be a day from which 1 to 90 days`},
		{managed, "/history/USD?from=" + day(0) + "&to=" + day(1), `"details":{"from":[`},
		{managed, "/history/USD", `"days":[{"date":"` + day(0)},
		{managed, "/history/USD?to=" + day(1), `"days":[{"date":"` + day(1)},
		{managed, "/history/USD?to=0001-01-01&from=0001-01-01", `"details":{"from":["must be a day`},
		{own, "/history/USD?symbols=LKR&from=" + day(0), `"rates":{"LKR":304.718462}}]}`},
		{own, "/history/USD?from=" + day(1), now},
	} {
		if a := w.get(w.handler, c.id, c.path); !strings.Contains(a.text, c.want) {
			t.Errorf("%s: %s, want %s", c.path, a.text, c.want)
		}
	}
	for _, date := range []string{"", "2026-1-2", "2026-02-30", "20260102", "2026-01-02T00:00:00Z",
		"2026-01-02&date=2026-01-03", "today"} {
		if a := w.get(w.handler, managed, "/latest/USD?date="+date); a.status != 422 ||
			!strings.Contains(a.text, `"details":{"date":[`) {
			t.Errorf("%s: %s", date, a.text)
		}
	}
	calls := w.dynamoDB.Calls.Load()
	w.expect(managed, "/pair/USD/LKR?date="+day(2), "302.5")
	if calls = w.dynamoDB.Calls.Load() - calls; calls != 1 { // the count
		t.Errorf("%d calls for a day that was read before", calls)
	}
}

func TestConfig(t *testing.T) {
	good := func() config {
		return config{API: request.Config{Stage: "x"}, Upstream: upstream.Config{TimeoutSeconds: 4},
			Secrets: upstream.SecretConfig{CacheSeconds: 300}, RatesCacheSeconds: 60}
	}
	base := fmt.Sprint(good().Validate())
	for name, change := range map[string]func(*config){
		"SECRET_CACHE_SECONDS":   func(c *config) { c.Secrets.CacheSeconds = -1 },
		"RATES_CACHE_SECONDS":    func(c *config) { c.RatesCacheSeconds = 4000 },
		"VENDOR_TIMEOUT_SECONDS": func(c *config) { c.Upstream.TimeoutSeconds = 0 },
	} {
		c := good()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), name) || err.Error() == base {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A path whose parameters decode is one of openapi.yaml#convertPairRate, and its amount is the number that was sent.
func FuzzParameters(f *testing.F) {
	for _, p := range [][3]string{
		{"USD", "LKR", "1"}, {"usd", "LKR-BUY", "000000000000001.50000000"}, {"LKR-SELL", "USD", "1"}, {"USD", "lkr-buy",
			"0"}, {"US\u212a", "ſKR", "٣"},
		{"USD\n", "LKR", "1\n"}, {"USD", "LKR", "1e3"}, {"USD", "LKR", "-1"}, {"USD", "LKR", "+1"}, {"USD", "LKR",
			"0.00000000"}, {"USD", "LKR", "1."}, {"%00", "..", "1/2"},
	} {
		f.Add(p[0], p[1], p[2])
	}
	base, target := regexp.MustCompile(`\A[A-Za-z]{3}\z`),
		regexp.MustCompile(`\A([A-Za-z]{3}|LKR-SELL|LKR-BUY|LKR-CENTRAL)\z`)
	number := regexp.MustCompile(`\A[0-9]{1,15}(\.[0-9]{1,8})?\z`)
	f.Fuzz(func(t *testing.T, b, to, amount string) {
		in, err := request.ReadInput(nil, map[string]string{"base": b, "target": to, "amount": amount})
		must.Succeed(t, err)
		r, err := decodeConversion(in)
		var refused *request.Error
		if err != nil {
			if !errors.As(err, &refused) || refused.Status != 400 || base.MatchString(b) && target.MatchString(to) {
				t.Errorf("%q, %q: %v", b, to, err)
			}
			return
		}
		sent, _ := new(big.Rat).SetString(amount)
		good := number.MatchString(amount) && sent.Sign() > 0
		if !base.MatchString(b) || !target.MatchString(to) || good != (len(in.Problems()) == 0) {
			t.Errorf("%q, %q, %q: %+v, %v", b, to, amount, r, in.Problems())
		}
		if got, ok := new(big.Rat).SetString(r.amount.String()); good && (!ok || got.Cmp(sent) != 0) {
			t.Errorf("%q is %s", amount, r.amount)
		}
	})
}
