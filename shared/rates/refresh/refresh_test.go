package refresh

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/upstream"
	"svcapi/test/conntest"
	"svcapi/test/enginetest"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// accounts are the service's own, by vendor, in production.
type accounts map[string]upstream.SecretValues

func (a accounts) Fields(_ context.Context, kind project.Kind, owner string, env project.Environment,
	vendor string) (upstream.SecretValues, error) {
	if kind != project.Currency || owner != upstream.ManagedOwner || env != project.Production {
		return nil, nil
	}
	return a[vendor], nil
}

// fixture is the sandbox behind a proxy that can replace its responses, and a table.
type fixture struct {
	*Refresher
	t       *testing.T
	sandbox *sandbox.Server
	clock   atomic.Int64 // nanoseconds beside the real time

	mu     sync.Mutex
	bodies map[string]string // bodies by a source's name
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, tables := enginetest.Client(t)
	server := must.Get(sandbox.Start()).Or(t)
	t.Cleanup(func() { _ = server.Close() })
	f := &fixture{t: t, sandbox: server, bodies: map[string]string{}}
	at := must.Get(url.Parse(server.URL)).Or(t)
	through := conntest.Buffer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }})
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		f.mu.Lock()
		body, own := f.bodies[name]
		f.mu.Unlock()
		if own {
			_, _ = rw.Write([]byte(body))
			return
		}
		through.ServeHTTP(rw, r)
	}))
	t.Cleanup(proxy.Close)
	f.Refresher = &Refresher{
		Store: rates.NewStore(db, tables.Rates), Client: upstream.New(upstream.Config{TimeoutSeconds: 3, Local: true}),
		Secrets: accounts{"openexchangerates": sandbox.Account("openexchangerates"),
			"exchangerateapi": sandbox.Account("exchangerateapi")},
		Endpoint: proxy.URL, Now: func() time.Time { return time.Now().Add(time.Duration(f.clock.Load())) },
	}
	return f
}

// respond sets the response body of a source; without a body the sandbox responds again.
func (f *fixture) respond(name string, body ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.bodies, name)
	if len(body) > 0 {
		f.bodies[name] = body[0]
	}
}

// run runs once and compares the outcomes, such as "openexchangerates taken".
func (f *fixture) run(o Options, want error, outcomes ...string) *Report {
	f.t.Helper()
	report, err := f.Run(f.t.Context(), o)
	if !errors.Is(err, want) {
		f.t.Fatalf("%v, want %v; %+v", err, want, report.Results)
	}
	var got []string
	for _, outcome := range report.Results {
		got = append(got, outcome.Source+" "+string(outcome.Outcome))
	}
	if strings.Join(got, ", ") != strings.Join(outcomes, ", ") {
		f.t.Errorf("outcomes are %v, want %v: %+v", got, outcomes, report.Results)
	}
	return report
}

func (f *fixture) current() *rates.Set {
	f.t.Helper()
	set, err := f.Store.Current(f.t.Context())
	if err != nil || set == nil {
		f.t.Fatalf("%v, %v", set, err)
	}
	return set
}

func (f *fixture) history() string {
	f.t.Helper()
	events, err := f.Store.History(f.t.Context(), 100)
	must.Succeed(f.t, err)
	var list []string
	for _, e := range events {
		list = append(list, e.Source+" "+e.Outcome+" "+e.Actor)
	}
	return strings.Join(list, ", ")
}

const bankTaken = "cbsl taken"

func TestRun(t *testing.T) {
	f := newFixture(t)
	schedule := Options{Actor: "schedule"}
	f.run(schedule, nil, "openexchangerates taken", bankTaken)
	set := f.current()
	if set.Source != "openexchangerates" || set.Rates["LKR"].String() != "304.718462" || len(set.Bank) != 6 ||
		set.Bank["USD"].Sell.Rate.String() != "308.7702" {
		t.Errorf("%+v", set)
	}
	first := "cbsl taken schedule, openexchangerates taken schedule"
	if got := f.history(); got != first {
		t.Errorf("history: %s", got)
	}
	// Nothing new is no event, but the age is that of the last fetch.
	f.run(schedule, nil, "openexchangerates taken", bankTaken)
	if got := f.history(); got != first || !f.current().Fetched.After(set.Fetched) {
		t.Errorf("history: %s; fetched %s", got, f.current().Fetched)
	}
	// The run uses the next source after a failure, and the first source again afterwards.
	must.Succeed(t, f.sandbox.SetRules(sandbox.Rule{Vendor: "openexchangerates", Outcome: sandbox.CredentialsRefused}))
	f.run(schedule, nil, "openexchangerates failed", "exchangerateapi taken", bankTaken)
	if got := f.current(); got.Source != "exchangerateapi" || len(got.Bank) != 6 {
		t.Errorf("%+v", got)
	}
	if got := f.history(); got != "exchangerateapi taken schedule, openexchangerates failed schedule, "+first {
		t.Errorf("history: %s", got)
	}
	stored, err := f.Store.Stored(t.Context())
	if source := stored.Sources["openexchangerates"]; err != nil || !strings.Contains(source.Failure, "invalid_app_id") ||
		source.Table == nil {
		t.Errorf("%+v, %v", source, err)
	}
	f.Secrets = accounts{}
	f.run(schedule, nil, "openexchangerates skipped", "exchangerateapi skipped", "frankfurter taken", bankTaken)
	// An operator's choice is asked alone.
	must.Succeed(t, f.Store.PutPin(t.Context(), &rates.Pin{Source: "frankfurter", At: time.Now()}))
	f.run(schedule, nil, "frankfurter taken", bankTaken)
	f.respond("frankfurter", "[]")
	f.run(schedule, ErrNoRates, "frankfurter failed", bankTaken)
	if got := f.current(); got.Source != "frankfurter" || len(got.Rates) < 20 {
		t.Errorf("%+v", got)
	}
}

// body returns Open Exchange Rates' response with the sandbox's numbers and a time, after replacements of texts.
func body(at time.Time, pairs ...string) string {
	text := fmt.Sprintf(`{"timestamp":%d,"base":"USD","rates":{"USD":1,"EUR":0.864128,"GBP":0.761934,"JPY":154.8315,`+
		`"CNY":7.11385,"AUD":1.527319,"CHF":0.805432,"LKR":304.718462,"IDR":16698}}`, at.Unix())
	for i := 0; i < len(pairs); i += 2 {
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// Rejected and failed fetches keep the last good set, are noted, and raise an alarm.
func TestAbsurdFetches(t *testing.T) {
	f := newFixture(t)
	f.respond("exchangerateapi", `{"result":"error","error-type":"quota-reached"}`)
	f.respond("frankfurter", `{"message":"not found"}`)
	at := time.Now().Truncate(time.Hour)
	// A number of a code that ISO 4217 does not name is dropped, whatever the number is.
	f.respond("openexchangerates", body(at, `"USD":1,`, `"USD":1,"VEF":0,"BTC":1e-30,"ZWL":-5,`))
	f.run(Options{}, nil, "openexchangerates taken", bankTaken)
	good := f.current()
	if len(good.Rates) != 9 {
		t.Errorf("%+v", good.Rates)
	}
	rest := []string{"exchangerateapi failed", "frankfurter failed", bankTaken}
	for name, c := range map[string]struct {
		body    string
		outcome Outcome
	}{
		"negative":               {body(at, "16698", "-16698"), Refused},
		"a jump":                 {body(at, "154.8315", "240"), Refused},
		"HTML instead of JSON":   {"<!doctype html><title>We are back soon</title>", Failed},
		"huge":                   {`{"rates":"` + strings.Repeat("9", 2<<20) + `"}`, Failed},
		"older than stored":      {body(at.Add(-time.Second)), Refused},
		"an error with HTTP 200": {`{"error":true,"status":429,"message":"not_allowed"}`, Failed},
	} {
		f.respond("openexchangerates", c.body)
		report := f.run(Options{Actor: "schedule"}, ErrNoRates,
			append([]string{"openexchangerates " + string(c.outcome)}, rest...)...)
		if got := f.current(); got.Source != good.Source || !got.Date.Equal(good.Date) ||
			got.Rates["LKR"].String() != "304.718462" || got.Rates["IDR"].String() != "16698" ||
			len(got.Rates) != len(good.Rates) {
			t.Errorf("%s: in use is %+v", name, got)
		}
		stored, err := f.Store.Stored(t.Context())
		if source := stored.Sources["openexchangerates"]; err != nil || source.Failure == "" || source.Table == nil ||
			!source.Table.Date.Equal(good.Date) {
			t.Errorf("%s: stored is %+v, %v", name, source, err)
		}
		if report.Count(Refused)+report.Count(Failed) != 3 {
			t.Errorf("%s: %+v", name, report.Results)
		}
	}
	if history := f.history(); strings.Count(history, "openexchangerates refused schedule") != 3 ||
		strings.Count(history, "openexchangerates failed schedule") != 3 {
		t.Errorf("history: %s", history)
	}
	// A move that an operator accepts is taken, and becomes the reference of the next fetch.
	f.respond("openexchangerates", body(at.Add(time.Minute), "304.718462", "609.4"))
	f.run(Options{}, ErrNoRates, append([]string{"openexchangerates refused"}, rest...)...)
	f.run(Options{AcceptMoves: true}, nil, "openexchangerates taken", bankTaken)
	f.run(Options{}, nil, "openexchangerates taken", bankTaken)
	if got := f.current().Rates["LKR"].String(); got != "609.4" {
		t.Errorf("LKR is %s", got)
	}
}

// TestBankFails: after a failure of the central bank its last valid values stay in use, and the other rates change.
func TestBankFails(t *testing.T) {
	f := newFixture(t)
	f.run(Options{}, nil, "openexchangerates taken", bankTaken)
	for _, page := range []string{"", "<p>We are back soon", `{"a":1}`} {
		f.respond("cbsl", page)
		f.run(Options{}, nil, "openexchangerates taken", "cbsl failed")
		stored, err := f.Store.Stored(t.Context())
		if err != nil || len(f.current().Bank) != 6 || stored.Sources["cbsl"].Failure == "" ||
			len(stored.Sources["cbsl"].Bank) != 6 {
			t.Errorf("%q: %+v, %v", page, stored.Sources["cbsl"], err)
		}
	}
	// The bank's values alone are not a set.
	f = newFixture(t)
	for _, source := range []string{"openexchangerates", "exchangerateapi", "frankfurter"} {
		f.respond(source, "")
	}
	f.run(Options{}, ErrNoRates, "openexchangerates failed", "exchangerateapi failed", "frankfurter failed", bankTaken)
	if set, err := f.Store.Current(t.Context()); set != nil || err != nil {
		t.Errorf("%+v, %v", set, err)
	}
	f.respond("openexchangerates")
	f.respond("cbsl", "")
	f.run(Options{}, nil, "openexchangerates taken", "cbsl failed")
	if got := f.current(); len(got.Bank) != 6 {
		t.Errorf("the values stored before the first set are %+v", got.Bank)
	}
}

// Runs at once end with the newest fetch in use, and a reader never sees a mixture.
func TestRunsAtOnce(t *testing.T) {
	f := newFixture(t)
	at := time.Now().Truncate(time.Hour)
	f.respond("openexchangerates", body(at))
	f.run(Options{}, nil, "openexchangerates taken", bankTaken)
	done := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			set, err := f.Store.Current(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			// The rates of EUR and IDR of one response belong together.
			if eur, idr := set.Rates["EUR"].String(), set.Rates["IDR"].String(); idr[len(idr)-1] != eur[len(eur)-1] &&
				idr != "16698" || len(set.Bank) != 6 {
				t.Errorf("EUR %s with IDR %s, %d of the bank's", eur, idr, len(set.Bank))
			}
		}
	})
	for round := range 4 {
		digit := fmt.Sprint(round + 1)
		f.respond("openexchangerates",
			body(at.Add(time.Duration(round+1)*time.Second), "0.864128", "0.86412"+digit, "16698", "1669"+digit))
		var running sync.WaitGroup
		for range 3 {
			running.Go(func() {
				if _, err := f.Run(t.Context(), Options{}); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		if got := f.current(); got.Rates["IDR"].String() != "1669"+digit ||
			!got.Date.Equal(at.Add(time.Duration(round+1)*time.Second)) {
			t.Errorf("round %d: %s of %s", round, got.Rates["IDR"], got.Date)
		}
	}
	close(done)
	reading.Wait()
}

// dying lets so many requests pass and fails all others, as a process that is killed sends no more.
type dying struct {
	left atomic.Int64
	next http.RoundTripper
}

func (d *dying) Do(r *http.Request) (*http.Response, error) {
	if d.left.Add(-1) < 0 {
		return nil, errors.New("killed")
	}
	return d.next.RoundTrip(r)
}

// A run that dies between any two of its writes leaves the old set or the new one, and the next run ends what it began.
func TestRunDies(t *testing.T) {
	db, tables := enginetest.Client(t)
	at := time.Now().Truncate(time.Hour)
	f := newFixture(t)
	healthy := rates.NewStore(db, tables.Rates)
	f.Store = healthy
	f.respond("openexchangerates", body(at))
	f.run(Options{}, nil, "openexchangerates taken", bankTaken)
	for died, n := true, 0; died; n++ {
		before := f.current()
		d := &dying{next: http.DefaultTransport}
		d.left.Store(int64(n))
		f.Store = rates.NewStore(dynamodb.New(db.Options(),
			func(o *dynamodb.Options) { o.HTTPClient = d; o.RetryMaxAttempts = 1 }), tables.Rates)
		lkr := fmt.Sprintf("30%d.5", n)
		f.respond("openexchangerates", body(at.Add(time.Duration(n+1)*time.Second), "304.718462", lkr))
		_, err := f.Run(t.Context(), Options{})
		died = err != nil
		if n > 12 {
			t.Fatal("never lives")
		}
		f.Store = healthy
		after := f.current()
		if got := after.Rates["LKR"].String(); got != lkr && got != before.Rates["LKR"].String() ||
			len(after.Rates) != len(before.Rates) || len(after.Bank) != 6 {
			t.Errorf("killed after %d requests: LKR %s", n, got)
		}
		if !died && after.Rates["LKR"].String() != lkr {
			t.Errorf("alive, but LKR is %s", after.Rates["LKR"])
		}
		f.run(Options{}, nil, "openexchangerates taken", bankTaken)
		if got := f.current().Rates["LKR"].String(); got != lkr {
			t.Errorf("after the next run LKR is %s, want %s", got, lkr)
		}
	}
}

// docs/decisions/currency.md#bank-schedule: two hours on a working day, a growing pause after failures, a daily limit.
func TestBankNext(t *testing.T) {
	at := func(text string) time.Time { // in Colombo
		return must.Get(time.Parse("Mon 2006-01-02 15:04 -0700", text+" +0530")).Or(t)
	}
	hours := BankSchedule{12, 16}
	for name, c := range map[string]struct {
		schedule          BankSchedule
		tried             string
		failures, fetches int
		want              string // empty: at once
	}{
		"no schedule":                  {nil, "Wed 2026-11-18 12:20", 0, 1, ""},
		"never":                        {hours, "", 0, 0, ""},
		"before the first hour":        {hours, "Wed 2026-11-18 00:20", 0, 1, "Wed 2026-11-18 12:00"},
		"after the first hour":         {hours, "Wed 2026-11-18 12:20", 0, 1, "Wed 2026-11-18 16:00"},
		"at the hour":                  {hours, "Wed 2026-11-18 12:00", 0, 1, "Wed 2026-11-18 16:00"},
		"the day's limit":              {hours, "Wed 2026-11-18 12:20", 0, 2, "Thu 2026-11-19 12:00"},
		"after the last hour":          {hours, "Wed 2026-11-18 16:20", 0, 1, "Thu 2026-11-19 12:00"},
		"on Friday":                    {hours, "Fri 2026-11-20 16:20", 0, 2, "Mon 2026-11-23 12:00"},
		"on a weekend":                 {hours, "Sat 2026-11-21 03:20", 0, 1, "Mon 2026-11-23 12:00"},
		"one failure":                  {hours, "Wed 2026-11-18 12:20", 1, 1, "Wed 2026-11-18 13:20"},
		"two failures":                 {hours, "Wed 2026-11-18 13:20", 2, 2, "Thu 2026-11-19 00:00"},
		"two failures, late":           {hours, "Wed 2026-11-18 23:20", 2, 2, "Thu 2026-11-19 01:20"},
		"five failures":                {hours, "Thu 2026-11-19 04:20", 5, 1, "Thu 2026-11-19 20:20"},
		"many failures":                {hours, "Thu 2026-11-19 04:20", 500, 1, "Fri 2026-11-20 04:20"},
		"a failure before the weekend": {hours, "Fri 2026-11-20 16:20", 1, 2, "Sat 2026-11-21 00:00"},
	} {
		last := rates.Source{Failures: c.failures, FetchesToday: c.fetches}
		if c.tried != "" {
			last.Tried = at(c.tried)
		}
		var want time.Time
		if c.want != "" {
			want = at(c.want)
		}
		if got := c.schedule.next(last); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Of runs at once one asks the bank. A run that dies counts as a failure, and a failure is reported until a fetch
// succeeds.
func TestBankClaim(t *testing.T) {
	f := newFixture(t)
	scheduled := Options{Bank: BankSchedule{12, 16}}
	var runs sync.WaitGroup
	for range 3 {
		runs.Go(func() {
			if _, err := f.Run(t.Context(), scheduled); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	requests := 0
	for _, call := range f.sandbox.Calls() {
		if call.Vendor == rates.BankSource {
			requests++
		}
	}
	if requests != 4 {
		t.Errorf("%d requests of three runs", requests)
	}
	f.run(scheduled, nil, "openexchangerates taken", "cbsl skipped")
	stored := must.Get(f.Store.Stored(t.Context())).Or(t)
	before := stored.Sources[rates.BankSource]
	if before.Failures != 0 || before.FetchesToday != 1 || len(before.Bank) != 6 {
		t.Errorf("%+v", before)
	}

	f.clock.Store(int64(7 * 24 * time.Hour))
	claimed, err := f.Store.ClaimFetch(t.Context(), rates.BankSource, before, f.Now())
	if err != nil || claimed.Failures != 1 || claimed.FetchesToday != 1 || len(claimed.Bank) != 6 {
		t.Errorf("%+v, %v", claimed, err)
	}
	if _, err := f.Store.ClaimFetch(t.Context(), rates.BankSource, before,
		f.Now().Add(time.Second)); !errors.Is(err, rates.ErrChanged) {
		t.Errorf("a second claim: %v", err)
	}
	f.run(scheduled, nil, "openexchangerates taken", "cbsl skipped")
	f.clock.Add(int64(time.Hour))
	must.Succeed(t, f.sandbox.SetRules(sandbox.Rule{Vendor: rates.BankSource, Outcome: sandbox.Unparseable}))
	f.run(scheduled, nil, "openexchangerates taken", "cbsl failed")
	history := f.history()
	f.run(scheduled, nil, "openexchangerates taken", "cbsl waiting")
	if got := f.history(); got != history {
		t.Errorf("history %q, want %q", got, history)
	}
	noon, last := time.Date(2026, 11, 18, 6, 30, 0, 0, time.UTC), rates.Source{}
	for i, want := range []int{1, 2, 1} { // of the day in Colombo
		at := noon.Add([]time.Duration{0, time.Hour, 13 * time.Hour}[i])
		if last, err = f.Store.ClaimFetch(t.Context(), "made", last, at); err != nil || last.FetchesToday != want ||
			last.Failures != i+1 {
			t.Errorf("claim %d: %+v, %v", i, last, err)
		}
	}
	// An operator's run asks at once.
	must.Succeed(t, f.sandbox.SetRules())
	f.run(Options{}, nil, "openexchangerates taken", bankTaken)
}
