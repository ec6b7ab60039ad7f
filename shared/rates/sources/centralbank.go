package sources

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"svcapi/shared/pattern"
	"svcapi/shared/rates"
	"svcapi/shared/upstream"
)

// CentralBankEndpoint is the bank's web site.
const CentralBankEndpoint = "https://www.cbsl.gov.lk"

const (
	currencyField = "chk_cur[]"
	window        = 10 // days of a request, because weekends and holidays have no rates
)

// pages are the paths of a form and of its results, and the reader of the results. labels are those of the currencies.
type pages struct {
	title, form, results string
	read                 func(page []byte, labels map[string]string) (rates.Bank, error)
}

// allPages request all currencies at once, because the tables name their currencies: in a heading of a column, or in a
// heading before the table.
var allPages = []pages{
	{"indicative rates", "/cbsl_custom/exrates/exrates.php", "/cbsl_custom/exrates/exrates_results.php", indicative},
	{"telegraphic transfer", "/cbsl_custom/exratestt/exratestt.php", "/cbsl_custom/exratestt/exrates_resultstt.php",
		transfers},
}

// CentralBank reads the rates of the Central Bank of Sri Lanka from its web pages, because the bank has no API.
// CentralBank submits the forms of the pages, and refuses a page with an unknown structure.
type CentralBank struct {
	Upstream *upstream.Client
	Endpoint string // without a trailing slash
	Contact  string // the address in the User-Agent at which the bank can reach the operator; empty for none
}

// product is the name of this service in the User-Agent (RFC 9110, section 10.1.5).
const product = "SVC-API"

// Fetch reads the newest values of rates.BankBases from the last days before now, with at most four requests. Fetch
// returns the values of readable tables also with an error.
func (c *CentralBank) Fetch(ctx context.Context, now time.Time) (rates.Bank, error) {
	bank := rates.Bank{}
	var errs []error
	for _, p := range allPages {
		errs = append(errs, c.submit(ctx, p, now, bank))
	}
	return bank, errors.Join(errs...)
}

// submit reads the form, submits it with the choices of rates.BankBases, and reads the results into the bank. The error
// also names the currencies that are not on the form.
func (c *CentralBank) submit(ctx context.Context, p pages, now time.Time, bank rates.Bank) error {
	page, err := c.do(ctx, &upstream.Request{Method: http.MethodGet, URL: c.Endpoint + p.form, Header: http.Header{}})
	if err != nil {
		return err
	}
	all, err := choices(page)
	if err != nil {
		return c.unusable("%s: %w", p.form, err)
	}
	today := rates.DayOf(now)
	form := url.Values{
		"lookupPage": {"lookup_daily_exchange_rates.php"}, "rangeType": {"dates"},
		"txtStart": {string(today.Back(window))}, "txtEnd": {string(today)}, "submit_button": {"Submit"},
	}
	labels := map[string]string{}
	var errs []error
	for _, code := range rates.BankBases() {
		if all[code] == "" {
			errs = append(errs, c.unusable("%s is not on the form %s", code, p.form))
			continue
		}
		_, labels[code], _ = strings.Cut(all[code], "~")
		form.Add(currencyField, all[code])
	}
	var results []byte
	if len(labels) > 0 {
		results, err = c.do(ctx, &upstream.Request{
			Method: http.MethodPost, URL: c.Endpoint + p.results, Body: []byte(form.Encode()),
			Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		})
	}
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	found, err := p.read(results, labels)
	for _, code := range rates.BankBases() {
		if r, old := found[code], bank[code]; r != (rates.Record{}) {
			bank[code] = rates.Record{Buy: cmp.Or(r.Buy, old.Buy), Sell: cmp.Or(r.Sell, old.Sell),
				Central: cmp.Or(r.Central, old.Central)}
		}
	}
	if err != nil {
		errs = append(errs, c.unusable("%s: %w", p.title, err))
	}
	return errors.Join(errs...)
}

func (c *CentralBank) do(ctx context.Context, r *upstream.Request) ([]byte, error) {
	r.Header.Set("Accept", "text/html")
	r.Header.Set("User-Agent", product)
	if c.Contact != "" {
		r.Header.Set("User-Agent", product+" ("+c.Contact+")")
	}
	response, err := c.Upstream.Do(ctx, rates.BankSource, r)
	if err != nil {
		return nil, err
	}
	if response.Status != http.StatusOK {
		return nil, c.unusable("HTTP %d", response.Status)
	}
	return response.Body, nil
}

func (c *CentralBank) unusable(format string, args ...any) error {
	return &upstream.Error{Class: upstream.Unusable, Vendor: rates.BankSource, Detail: fmt.Errorf(format, args...).Error()}
}

// block is a table of the page with the preceding heading.
type block struct {
	title  string
	header []string
	rows   [][]string
}

// noResults is the page's text in place of rows.
var noResults = []byte("0 results")

// blocks returns the page's tables of rates in the order of the page. The page is not well-formed, so that a table may
// be at any place in the tree. A page without a table, or without rows and the text noResults, is an error.
func blocks(page []byte) ([]block, error) {
	document, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return nil, err
	}
	var found []block
	title := ""
	for n := range document.Descendants() {
		switch {
		case n.DataAtom == atom.H2:
			title = textOf(n)
		case n.DataAtom == atom.Table && slices.Contains(strings.Fields(attribute(n, "class")), "rates"):
			b, err := readTable(n)
			if err != nil {
				return nil, err
			}
			if len(b.rows) == 0 && !bytes.Contains(page, noResults) {
				return nil, fmt.Errorf("the table %q has no rows", title)
			}
			b.title, title = title, ""
			found = append(found, b)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no table of rates on the page")
	}
	return found, nil
}

func readTable(table *html.Node) (block, error) {
	var b block
	for _, row := range rowsOf(table) {
		var cells []string
		header := false
		for c := row.FirstChild; c != nil; c = c.NextSibling {
			if c.DataAtom != atom.Th && c.DataAtom != atom.Td {
				continue
			}
			if attribute(c, "rowspan") != "" || attribute(c, "colspan") != "" && b.header == nil {
				return b, errors.New("a table cell spans rows or columns")
			}
			header = header || c.DataAtom == atom.Th
			cells = append(cells, textOf(c))
		}
		switch {
		case header && b.header == nil:
			b.header = cells
		case b.header == nil:
			return b, errors.New("a table without a header")
		case len(cells) > 0:
			b.rows = append(b.rows, cells)
		}
	}
	return b, nil
}

// rowsOf returns the rows of a table without those of nested tables.
func rowsOf(n *html.Node) []*html.Node {
	var rows []*html.Node
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.DataAtom {
		case atom.Tr:
			rows = append(rows, c)
		case atom.Table:
		default:
			rows = append(rows, rowsOf(c)...)
		}
	}
	return rows
}

// textOf returns the text below a node with single spaces.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
			b.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// column returns the only column with a matching heading, or -1 where none or several match.
func (b *block) column(headings *regexp.Regexp) int {
	at := -1
	for i, heading := range b.header {
		if headings.MatchString(heading) {
			if at >= 0 {
				return -1
			}
			at = i
		}
	}
	return at
}

var (
	dateHeading = pattern.New(`(?i)^date$`)
	buyHeading  = pattern.New(`(?i)\bbuy(ing)?\b`)
	sellHeading = pattern.New(`(?i)\bsell(ing)?\b`)
	// The heading of a column names the currency: 1 USD -> LKR.
	lkrHeading    = pattern.New(`^1\s*([A-Z]{3})\s*-\s*>\s*LKR$`)
	amountPattern = pattern.New(`^(\d+|\d{1,3}(,\d{3})+)(\.\d+)?$`)
)

// newest returns the value of the newest date in each of the columns. newest ignores rows of zeros, and returns nil
// where no row is left.
func (b *block) newest(columns ...int) ([]rates.Quote, error) {
	date := b.column(dateHeading())
	if date < 0 || slices.Contains(columns, -1) {
		return nil, fmt.Errorf("the headings are %q", b.header)
	}
	seen := map[rates.Day]string{}
	var newest []rates.Quote
	for _, row := range b.rows {
		if len(row) == 1 && len(b.header) > 1 {
			continue // a remark over all columns
		}
		if len(row) != len(b.header) {
			return nil, fmt.Errorf("a row has %d cells under %d headings", len(row), len(b.header))
		}
		day := rates.Day(row[date])
		if !day.Valid() {
			return nil, fmt.Errorf("the date is %q", row[date])
		}
		quotes, all := make([]rates.Quote, len(columns)), ""
		none := true
		for i, c := range columns {
			rate, err := rates.Parse(strings.ReplaceAll(row[c], ",", ""))
			if err != nil || !amountPattern().MatchString(row[c]) {
				return nil, fmt.Errorf("the rate of %s is %q", day, row[c])
			}
			quotes[i], all = rates.Quote{Rate: rate, Date: day}, all+" "+rate.String()
			none = none && rate.Sign() == 0
		}
		if other, twice := seen[day]; twice && other != all {
			return nil, fmt.Errorf("two rows for %s, with%s and%s", day, other, all)
		}
		seen[day] = all
		if !none && (newest == nil || day > newest[0].Date) {
			newest = quotes
		}
	}
	return newest, nil
}

// indicative parses the page of indicative rates: LKR for one unit, by currency. One unknown table makes the page
// invalid.
func indicative(page []byte, _ map[string]string) (rates.Bank, error) {
	found, err := blocks(page)
	if err != nil {
		return nil, err
	}
	bank := rates.Bank{}
	for _, b := range found {
		at := b.column(lkrHeading())
		values, err := b.newest(at)
		if err != nil {
			return nil, fmt.Errorf("table %q: %w", b.title, err)
		}
		code := lkrHeading().FindStringSubmatch(b.header[at])[1]
		if _, twice := bank[code]; twice {
			return nil, fmt.Errorf("%s has two tables", code)
		}
		bank[code] = rates.Record{}
		if values != nil {
			bank[code] = rates.Record{Central: values[0]}
		}
	}
	return bank, nil
}

// transfers parses the page of telegraphic transfer rates: each table follows a heading with the label of its currency.
// A heading that is no label, or one with two tables, makes the page invalid. The error for a table alone leaves the
// other currencies. transfers returns no quotes for a currency without rates.
func transfers(page []byte, labels map[string]string) (rates.Bank, error) {
	found, err := blocks(page)
	if err != nil {
		return nil, err
	}
	tables := map[string]block{}
	for _, b := range found {
		code := ""
		for c, label := range labels {
			if strings.EqualFold(b.title, strings.Join(strings.Fields(label), " ")) {
				code = c
			}
		}
		if _, twice := tables[code]; code == "" || twice {
			return nil, fmt.Errorf("%d tables, one of them %q", len(found), b.title)
		}
		tables[code] = b
	}
	quotes := rates.Bank{}
	var errs []error
	for _, code := range slices.Sorted(maps.Keys(labels)) {
		b, ok := tables[code]
		if !ok {
			errs = append(errs, fmt.Errorf("no table of %s", code))
			continue
		}
		values, err := b.newest(b.column(buyHeading()), b.column(sellHeading()))
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("table of %s: %w", code, err))
		case values != nil:
			quotes[code] = rates.Record{Buy: values[0], Sell: values[1]}
		}
	}
	return quotes, errors.Join(errs...)
}

// choices returns the value of the form field for each currency. The values change and contain significant white space.
func choices(page []byte) (map[string]string, error) {
	document, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for n := range document.Descendants() {
		if n.DataAtom != atom.Input || attribute(n, "name") != currencyField {
			continue
		}
		value := attribute(n, "value")
		if code, _, ok := strings.Cut(value, "~"); ok {
			texts[code] = value
		}
	}
	if len(texts) == 0 {
		return nil, errors.New("no currencies on the form page")
	}
	return texts, nil
}
