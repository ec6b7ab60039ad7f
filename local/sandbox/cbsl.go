package sandbox

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// cbslCurrency is a currency of the central bank's pages: its names in the two forms, and its rates in LKR, which are
// near the other sources' rates but not the same.
type cbslCurrency struct {
	code, indicative, transfer string // transfer is empty for a currency that the form lacks
	central, buy, sell         string
}

var cbslCurrencies = []cbslCurrency{
	{"AUD", "Australian Dollar", "Australian Dollar", "199.4406", "195.3911", "203.9082"},
	{"BHD", "Bahrain Dinar", "", "808.3340", "", ""},
	{"CAD", "Canadian Dollar", "Canadian Dollar", "217.1190", "213.6417", "221.0338"},
	{"CNY", "Chinese Yuan (Renminbi)", "Renminbi", "42.8293", "41.9650", "43.8127"},
	{"EUR", "Euro", "Euro", "352.6013", "346.9204", "358.7335"},
	{"INR", "Indian Rupee", "", "3.4349", "", ""},
	{"JPY", "Japanese Yen", "Yen", "1.9682", "1.9318", "2.0071"},
	{"MYR", "Malaysia  Ringgit", "", "73.4503", "", ""},
	{"SGD", "Singapore Dollar", "Singapore Dollar", "233.8612", "230.0915", "237.7240"},
	{"GBP", "Sterling Pound", "British Pound", "399.8911", "394.0172", "406.3318"},
	{"CHF", "Swiss Franc", "Swiss Franc", "378.3100", "371.0226", "386.1904"},
	{"AED", "UAE  Dirham", "", "82.9711", "", ""},
	{"USD", "US Dollar", "United States Dollar", "304.6531", "301.2175", "308.7702"},
}

const cbslField = "chk_cur[]"

// cbsl simulates the Central Bank of Sri Lanka's web forms: malformed pages for people, with rows for working days.
func cbsl() vendor {
	const at = "/cbsl_custom"
	return vendor{
		name: "cbsl",
		routes: []route{
			{"GET " + at + "/exrates/exrates.php", cbslForm(false)},
			{"POST " + at + "/exrates/exrates_results.php", cbslResults(false)},
			{"GET " + at + "/exratestt/exratestt.php", cbslForm(true)},
			{"POST " + at + "/exratestt/exrates_resultstt.php", cbslResults(true)},
		},
		unknown: cbslPage(http.StatusNotFound, "<h1>Not Found</h1>"),
	}
}

func cbslPage(status int, content string) response {
	return response{status: status, media: "text/html; charset=UTF-8", body: []byte("<!DOCTYPE html>\n<html><head><title>Exchange Rates</title>\n<body>\n" + content + "\n</body></html>\n")}
}

// choice returns the value of a currency's box in a form, or "" for a form without the currency.
func (c cbslCurrency) choice(transfer bool) string {
	switch {
	case !transfer:
		return c.code + "~" + c.indicative
	case c.transfer != "":
		return c.code + "~" + c.transfer
	}
	return ""
}

func cbslForm(transfer bool) func(*request) result {
	return func(*request) result {
		var boxes strings.Builder
		for _, c := range cbslCurrencies {
			if choice := c.choice(transfer); choice != "" {
				fmt.Fprintf(&boxes, "<input type=\"checkbox\" name=\"%s\" value=\"%s\"> %s<br>\n", cbslField, html.EscapeString(choice), c.code)
			}
		}
		return result{operation: "rates", responses: responses{
			Accepted: cbslPage(http.StatusOK, "<form method=\"post\">\n"+boxes.String()+"<input type=\"submit\" name=\"submit_button\" value=\"Submit\"></form>"),
		}}
	}
}

func cbslResults(transfer bool) func(*request) result {
	return func(r *request) result {
		in, _ := url.ParseQuery(string(r.body))
		from, err1 := time.Parse(time.DateOnly, in.Get("txtStart"))
		to, err2 := time.Parse(time.DateOnly, in.Get("txtEnd"))
		incomplete := err1 != nil || err2 != nil || in.Get("submit_button") != "Submit" || in.Get("rangeType") != "dates" || in.Get("lookupPage") == ""
		days := workingDays(to, int(to.Sub(from).Hours()/24))
		var blocks strings.Builder
		for _, c := range cbslCurrencies {
			if choice := c.choice(transfer); choice != "" && slices.Contains(in[cbslField], choice) {
				c.block(&blocks, transfer, days)
			}
		}
		return result{
			operation: "rates", to: in[cbslField],
			problems: []problem{{incomplete, cbslPage(http.StatusOK, "<p></p>")}},
			responses: responses{
				Accepted: cbslPage(http.StatusOK, blocks.String()),
				Rejected: cbslPage(http.StatusForbidden, "<h1>403 ERROR</h1><h2>The request could not be satisfied.</h2>"),
			},
		}
	}
}

// block writes a currency's table with the bank's errors: identifiers repeat, and not every element is closed.
func (c cbslCurrency) block(out *strings.Builder, transfer bool, days []string) {
	title, header := c.indicative, fmt.Sprintf("<th>Date</th><th>1  %s  -&gt; LKR</th><th>1 LKR -&gt;  %s </th>", c.code, c.code)
	first, second := c.central, "0.0033"
	if transfer {
		title, header = c.transfer, "<th>Date</th><th>Buy Rate (LKR)</th><th>Sell Rate (LKR)</th>"
		first, second = c.buy, c.sell
	}
	fmt.Fprintf(out, "<div class=\"row\"><div class=\"col\"><h2 id=\"LOOKUPS_IEXE0101\"> %s </h2>\n", html.EscapeString(title))
	fmt.Fprintf(out, "<table class=\"table table-bordered table-striped table-hover rates sortable series\"><thead><tr>\n %s</tr></thead>\n<tbody>", header)
	for _, day := range days {
		fmt.Fprintf(out, "<tr class=\"odd\"><td> %s </td><td> %s </td><td> %s </td></tr>\n", day, first, second)
	}
	if len(days) == 0 {
		out.WriteString("0 results")
	}
	out.WriteString("</tbody></table>\n")
}
