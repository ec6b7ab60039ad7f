package sources

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"svcapi/shared/pattern"
	"svcapi/shared/rates"
)

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
