package sources

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/rates"
	"svcapi/shared/upstream"
	"svcapi/test/must"
)

func bank(t *testing.T) (*CentralBank, *sandbox.Server) {
	t.Helper()
	server, err := sandbox.Start()
	must.Succeed(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return &CentralBank{upstream.New(upstream.Config{TimeoutSeconds: 1, Local: true}), server.URL + "/cbsl",
		"ops@example.com"}, server
}

// The newest row counts, with its own date: weekends have none.
func TestFetch(t *testing.T) {
	client, server := bank(t)
	colombo := func(day int) time.Time { return time.Date(2026, 11, day, 3, 30, 0, 0, time.UTC) } // 9 in the morning
	for day, want := range map[int]rates.Day{20: "2026-11-20", 21: "2026-11-20", 22: "2026-11-20", 23: "2026-11-23"} {
		got, err := client.Fetch(t.Context(), colombo(day))
		must.Succeed(t, err)
		for _, base := range rates.BankBases() {
			r := got[base]
			if r.Buy.Date != want || r.Sell.Date != want || r.Central.Date != want {
				t.Errorf("on the %d: %s is of %s, %s, %s; want %s", day, base, r.Buy.Date, r.Sell.Date, r.Central.Date, want)
			}
		}
		usd := got["USD"]
		if len(got) != 6 || usd.Buy.Rate.String() != "301.2175" || usd.Sell.Rate.String() != "308.7702" ||
			usd.Central.Rate.String() != "304.6531" {
			t.Errorf("%+v", got)
		}
	}
	// Four requests with the texts of the form pages, each with the product and the operator's contact.
	server.Forget()
	if _, err := client.Fetch(t.Context(), colombo(23)); err != nil {
		t.Fatal(err)
	}
	var posts []url.Values
	calls := server.Calls()
	if len(calls) != 4 {
		t.Errorf("%d requests", len(calls))
	}
	for _, c := range calls {
		if got := c.Headers["User-Agent"]; got != "SVC-API (ops@example.com)" {
			t.Errorf("%s %s: User-Agent %q", c.Method, c.Path, got)
		}
		if c.Method == "POST" {
			form, err := url.ParseQuery(c.Body)
			must.Succeed(t, err)
			posts = append(posts, form)
		}
	}
	if len(posts) != 2 || len(posts[0][currencyField]) != 6 || len(posts[1][currencyField]) != 6 ||
		posts[0].Get("txtStart") != "2026-11-13" || posts[0].Get("txtEnd") != "2026-11-23" ||
		!strings.Contains(strings.Join(posts[0][currencyField], " "), "CNY~Chinese Yuan (Renminbi)") ||
		!slices.Contains(posts[1][currencyField], "CNY~Renminbi") {
		t.Errorf("%v", posts)
	}
}

// What could not be read is an error, and what could be is there all the same.
func TestFetchFails(t *testing.T) {
	for outcome, class := range map[sandbox.Outcome]upstream.Class{
		sandbox.Rejected: upstream.Unusable, sandbox.Unparseable: upstream.Unusable, sandbox.ServerError: upstream.Unusable,
		sandbox.Truncated: upstream.Unusable, sandbox.Closed: upstream.NoResponse, sandbox.Hang: upstream.NoResponse,
	} {
		client, server := bank(t)
		must.Succeed(t, server.SetRules(sandbox.Rule{Vendor: "cbsl", Outcome: outcome}))
		if got, err := client.Fetch(t.Context(), time.Now()); err == nil || len(got) != 0 || upstream.ClassOf(err) != class {
			t.Errorf("%s: %v, %v", outcome, got, err)
		}
		// The page of indicative rates fails.
		must.Succeed(t, server.SetRules(sandbox.Rule{Vendor: "cbsl", To: "EUR~Euro", Outcome: outcome, Times: 1},
			sandbox.Rule{Vendor: "cbsl", To: "EUR~Euro", Outcome: sandbox.Accepted}))
		got, err := client.Fetch(t.Context(), time.Now())
		if err == nil || got["USD"].Buy.Date == "" || got["USD"].Central.Date != "" {
			t.Errorf("%s: %v, %v", outcome, got, err)
		}
	}
}
