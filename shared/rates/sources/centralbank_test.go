package sources

import (
	"fmt"
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
	server := must.Get(sandbox.Start()).Or(t)
	t.Cleanup(func() { _ = server.Close() })
	return &CentralBank{upstream.New(upstream.Config{TimeoutSeconds: 1, Local: true}), server.URL + "/cbsl",
		"ops@example.com"}, server
}

// The newest row counts, with its own date: weekends have none.
func TestFetch(t *testing.T) {
	client, server := bank(t)
	colombo := func(day int) time.Time { return time.Date(2026, 11, day, 3, 30, 0, 0, time.UTC) } // 9 in the morning
	for day, want := range map[int]rates.Day{20: "2026-11-20", 21: "2026-11-20", 22: "2026-11-20", 23: "2026-11-23"} {
		got := must.Get(client.Fetch(t.Context(), colombo(day))).Or(t)
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
	must.Get(client.Fetch(t.Context(), colombo(23))).Or(t)
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
			posts = append(posts, must.Get(url.ParseQuery(c.Body)).Or(t))
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

// indicativePage has the structure of a recorded response (V): headings repeat their identifier, cells have white space
// around them, and not all that is opened is closed.
const indicativePage = `<!DOCTYPE html><html><head><title>Exchange Rates</title><body>
<div class="row"><div class="col"><h2 id="LOOKUPS_IEXE0101"> Australian Dollar </h2> <p>
<table class="table table-bordered table-striped table-hover rates sortable series"><thead><tr>
 <th>Date</th><th>1  AUD  -&gt; LKR</th><th>1 LKR -&gt;  AUD </th></tr></thead>
<tbody><tr class="odd"><td> 2025-05-19 </td><td> 191.8850 </td><td> 0.0052 </td></tr>
<tr class="even"><td> 2025-05-16 </td><td> 192.0010 </td><td> 0.0052 </td></tr></tbody></table>
<h2 id="LOOKUPS_IEXE0101"> US Dollar </h2>
<table class="table table-bordered table-striped table-hover rates sortable series"><thead><tr>
 <th>Date</th><th>1  USD  -&gt; LKR</th><th>1 LKR -&gt;  USD </th></tr></thead>
<tbody><tr class="odd"><td> 2025-05-19 </td><td> 299.4413 </td><td> 0.0033 </td></tr></tbody></table>
</body></html>`

// transferPage is made after what clients of the page report (T).
const transferPage = `<html><body><h2 id="LOOKUPS_X"> United States Dollar </h2>
<table class="table rates"><thead><tr><th>Date</th><th>Buy Rate (LKR)</th><th>Sell Rate (LKR)</th></tr></thead>
<tbody><tr><td>2025-11-21</td><td>304.2758</td><td>311.8332</td></tr>
<tr><td>2025-11-20</td><td>304.1100</td><td>311.7001</td></tr></tbody></table></body></html>`

// edited replaces texts of a page, in pairs.
func edited(page string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(page, pairs[i]) {
			panic("the page has no " + pairs[i])
		}
		page = strings.ReplaceAll(page, pairs[i], pairs[i+1])
	}
	return page
}

func TestIndicative(t *testing.T) {
	cutOff, _, _ := strings.Cut(indicativePage, "299.4413")
	const both = "AUD 191.8850 of 2025-05-19, USD 299.4413 of 2025-05-19"
	for name, c := range map[string]struct{ page, want string }{
		"as recorded": {indicativePage, both},
		"newest row last": {edited(indicativePage, "2025-05-16", "2025-05-20"),
			"AUD 192.0010 of 2025-05-20, USD 299.4413 of 2025-05-19"},
		"thousands separators": {edited(indicativePage, "191.8850", "1,299,191.8850"),
			"AUD 1299191.8850 of 2025-05-19, USD 299.4413 of 2025-05-19"},
		"columns added": {edited(indicativePage, "<th>Date</th>", "<th>No.</th><th>Date</th><th>Day</th>", "<td> 2025",
			"<td>1</td><td> 2025", " </td><td> 19", " </td><td>Mon</td><td> 19",
			" </td><td> 29", " </td><td>Mon</td><td> 29"), both},
		"columns swapped": {edited(indicativePage, "<th>1  AUD  -&gt; LKR</th><th>1 LKR -&gt;  AUD </th>",
			"<th>1 LKR -&gt;  AUD </th><th>1  AUD  -&gt; LKR</th>",
			"<td> 191.8850 </td><td> 0.0052 </td>", "<td>0.0052</td><td> 191.8850 </td>", "<td> 192.0010 </td><td> 0.0052 </td>",
			"<td>0.0052</td><td> 192.0010 </td>"), both},
		"zeros are none": {edited(indicativePage, "191.8850", "0.0000"),
			"AUD 192.0010 of 2025-05-16, USD 299.4413 of 2025-05-19"},
		// a number in pieces is not recognised
		"nested markup":       {edited(indicativePage, " 299.4413 ", "<b>299<span>.4413</span></b>"), ""},
		"bold number":         {edited(indicativePage, " 299.4413 ", "<b> 299.4413</b>"), both},
		"non-breaking spaces": {edited(indicativePage, " 299.4413 ", "&nbsp;299.4413&nbsp;"), both},
		"tables not closed":   {edited(indicativePage, "</table>", "", "</tbody>", ""), both},
		"a remark across": {edited(indicativePage, "</tbody>",
			"<tr><td colspan=3>Source: the bank</td></tr></tbody>"), both},
		"another table beside": {edited(indicativePage, "</body>",
			"<table class=menu><tr><td>Home</td></tr></table></body>"), both},
		"no rows": {edited(indicativePage,
			`<tr class="odd"><td> 2025-05-19 </td><td> 299.4413 </td><td> 0.0033 </td></tr>`, "0 results"),
			"AUD 191.8850 of 2025-05-19, USD none"},
		"no rows, nothing said": {edited(indicativePage,
			`<tr class="odd"><td> 2025-05-19 </td><td> 299.4413 </td><td> 0.0033 </td></tr>`, ""), ""},
		"no table":                 {"<html><h2>Rates</h2></html>", ""},
		"empty":                    {"", ""},
		"JSON":                     {`{"rates":{"USD":299.4413}}`, ""},
		"cut off in a row":         {cutOff, ""},
		"a word for a number":      {edited(indicativePage, "299.4413", "n/a"), ""},
		"negative":                 {edited(indicativePage, "299.4413", "-299.4413"), ""},
		"an exponent":              {edited(indicativePage, "299.4413", "2.99e2"), ""},
		"decimal comma":            {edited(indicativePage, "299.4413", "299,4413"), ""},
		"another form of date":     {edited(indicativePage, "2025-05-19", "19/05/2025"), ""},
		"the date twice":           {edited(indicativePage, "2025-05-16", "2025-05-19"), ""},
		"the date twice, the same": {edited(indicativePage, "2025-05-16", "2025-05-19", "192.0010", "191.8850"), both},
		"a cell missing":           {edited(indicativePage, "<td> 0.0033 </td>", ""), ""},
		"headings missing":         {edited(indicativePage, "<thead>", "<!--", "</thead>", "-->"), ""},
		"no currency in a heading": {edited(indicativePage, "1  USD  -&gt; LKR", "Rate"), ""},
		"for 100 units":            {edited(indicativePage, "1  USD  -&gt; LKR", "100 USD -&gt; LKR"), ""},
		"two columns of LKR":       {edited(indicativePage, "1 LKR -&gt;  USD ", "1 EUR -&gt; LKR"), ""},
		"a currency twice":         {edited(indicativePage, "AUD", "USD"), ""},
		"cells that span":          {edited(indicativePage, "<th>1  USD", "<th colspan=2>1  USD"), ""},
	} {
		quotes, err := indicative([]byte(c.page), nil)
		var list []string
		for _, code := range []string{"AUD", "USD"} {
			record, ok := quotes[code]
			quote := record.Central
			switch {
			case ok && quote.Date == "":
				list = append(list, code+" none")
			case ok:
				list = append(list, fmt.Sprintf("%s %s of %s", code, quote.Rate, quote.Date))
			}
		}
		if got := strings.Join(list, ", "); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// euroTable is a second table of the page of telegraphic transfers.
var euroTable = edited(transferPage, "United States Dollar", "Euro", "304.2758", "340.5", "311.8332", "352.25")

// Each table of the page belongs to the heading before it. An error in one table leaves the other currencies.
func TestTransfers(t *testing.T) {
	const usd, eur = "USD 304.2758 311.8332 2025-11-21", "EUR 340.5 352.25 2025-11-21"
	for name, c := range map[string]struct {
		euro              bool // the form has the Euro, too
		page, want, wrong string
	}{
		"as reported": {false, transferPage, usd, ""},
		"rows moved": {false, edited(transferPage, "2025-11-20", "2025-11-24"),
			"USD 304.1100 311.7001 2025-11-24", ""},
		"columns swapped": {false,
			edited(transferPage, "Buy Rate", "X", "Sell Rate", "Buy Rate", "X (LKR)",
				"Sell Rate (LKR)"), "USD 311.8332 304.2758 2025-11-21", ""},
		"columns added": {false,
			edited(transferPage, "<th>Date</th>", "<th>Date</th><th>Middle</th>", "2025-11-21</td>",
				"2025-11-21</td><td>308.0545</td>", "2025-11-20</td>", "2025-11-20</td><td>307.9</td>"), usd, ""},
		"other words": {false,
			edited(transferPage, "Buy Rate (LKR)", "Buying", "Sell Rate (LKR)", "SELLING RATE"), usd, ""},
		"thousands separators": {false, edited(transferPage, "304.2758", "1,304.2758"),
			"USD 1304.2758 311.8332 2025-11-21", ""},
		"zeros are none": {false, edited(transferPage, "304.2758", "0.0000", "311.8332", "0"),
			"USD 304.1100 311.7001 2025-11-20", ""},
		"heading in capitals": {false, edited(transferPage, "United States Dollar", "UNITED  STATES DOLLAR"), usd, ""},
		"no rows": {false,
			"<h2>United States Dollar</h2><table " +
				"class=rates><thead><tr><th>Date</th><th>Buy</th><th>Sell</th></tr></thead><tbody>0 results</tbody></table>", "",
			""},
		"another currency": {false, edited(transferPage, "United States Dollar", "Euro"), "", "Euro"},
		"no heading": {false,
			edited(transferPage, `<h2 id="LOOKUPS_X"> United States Dollar </h2>`, ""), "", "1 tables"},
		"no selling":         {false, edited(transferPage, "Sell Rate (LKR)", "Rate"), "", "headings"},
		"two buyings":        {false, edited(transferPage, "Sell Rate", "Buy Rate"), "", "headings"},
		"one number missing": {false, edited(transferPage, "311.8332", ""), "", "the rate of"},
		"a page of errors": {false, "<html><h1>403 ERROR</h1><h2>The request could not be satisfied.</h2></html>",
			"", "no table of rates"},

		"both":             {true, transferPage + euroTable, eur + ", " + usd, ""},
		"in another order": {true, euroTable + transferPage, eur + ", " + usd, ""},
		"one missing":      {true, transferPage, usd, "no table of EUR"},
		"one without rates": {true,
			transferPage + "<h2>Euro</h2><table " +
				"class=rates><thead><tr><th>Date</th><th>Buy</th><th>Sell</th></tr></thead><tbody>0 results</tbody></table>", usd,
			""},
		"one with a word":         {true, transferPage + edited(euroTable, "340.5", "n/a"), usd, "table of EUR"},
		"one with other headings": {true, transferPage + edited(euroTable, "Sell Rate (LKR)", "Rate"), usd, "table of EUR"},
		"a heading twice":         {true, transferPage + transferPage, "", "2 tables"},
		"an unknown heading":      {true, transferPage + edited(euroTable, "Euro", "Yen"), "", "Yen"},
		"a table without heading": {true,
			transferPage + edited(euroTable, "<h2 id=\"LOOKUPS_X\"> Euro </h2>", ""), "", "2 tables"},
		"the nearest heading": {true, edited(transferPage, "<table", "<h2>Euro</h2><table") + transferPage,
			"EUR 304.2758 311.8332 2025-11-21, " + usd, ""},
	} {
		labels := map[string]string{"USD": "United States Dollar"}
		if c.euro {
			labels["EUR"] = "Euro"
		}
		quotes, err := transfers([]byte(c.page), labels)
		var list []string
		for _, code := range []string{"EUR", "USD"} {
			if q, ok := quotes[code]; ok {
				list = append(list, fmt.Sprint(code, " ", q.Buy.Rate, " ", q.Sell.Rate, " ", q.Sell.Date))
			}
			if quotes[code].Buy.Date != quotes[code].Sell.Date {
				t.Errorf("%s: %+v", name, quotes[code])
			}
		}
		got := strings.Join(list, ", ")
		if got != c.want || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, c.want, c.wrong)
		}
	}
}

// The texts of the form are sent back as they are, double spaces included.
func TestChoices(t *testing.T) {
	got, err := choices([]byte(`<form><input type=checkbox name="chk_cur[]" value="MYR~Malaysia  Ringgit"><input ` +
		`name="chk_cur[]" value="USD~US Dollar"><input name=other value="X~Y"><input name="chk_cur[]" value="none">`))
	if err != nil || len(got) != 2 || got["MYR"] != "MYR~Malaysia  Ringgit" || got["USD"] != "USD~US Dollar" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := choices([]byte("<p>We are back soon")); err == nil {
		t.Error("no error")
	}
}

func FuzzPages(f *testing.F) {
	f.Add([]byte(indicativePage))
	f.Add([]byte(transferPage))
	f.Fuzz(func(t *testing.T, page []byte) {
		quotes, err := indicative(page, nil)
		for code, r := range quotes {
			q := r.Central
			if err != nil || q.Date != "" && (!q.Date.Valid() || q.Rate.Sign() <= 0) {
				t.Errorf("%s: %+v, %v", code, q, err)
			}
		}
		transferred, err := transfers(page, map[string]string{"USD": "United States Dollar"})
		for code, q := range transferred {
			if err != nil || q.Buy.Date != q.Sell.Date || !q.Buy.Date.Valid() {
				t.Errorf("%s: %+v, %v", code, q, err)
			}
		}
	})
}
