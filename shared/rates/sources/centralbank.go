package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

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
