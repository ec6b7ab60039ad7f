// Package centralbank reads the rates of the Central Bank of Sri Lanka from its web pages, because the bank has no API. The
// package submits the forms of the pages, and refuses a page with an unknown structure.
package centralbank

import (
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

// Endpoint is the bank's web site.
const Endpoint = "https://www.cbsl.gov.lk"

const (
	currencyField = "chk_cur[]"
	window        = 10 // days of a request, because weekends and holidays have no rates
)

// pages are the paths of a form and of its results.
type pages struct{ form, results, lookup string }

var (
	indicativePages = pages{"/cbsl_custom/exrates/exrates.php", "/cbsl_custom/exrates/exrates_results.php", "lookup_daily_exchange_rates.php"}
	transferPages   = pages{"/cbsl_custom/exratestt/exratestt.php", "/cbsl_custom/exratestt/exrates_resultstt.php", "lookup_daily_exchange_rates.php"}
)

// Client reads the bank's pages.
type Client struct {
	Upstream *upstream.Client
	Endpoint string // without a trailing slash
	Contact  string // the address in the User-Agent at which the bank can reach the operator; empty for none
}

// product is the name of this service in the User-Agent (RFC 9110, section 10.1.5).
const product = "SVC-API"

func (c *Client) userAgent() string {
	if c.Contact == "" {
		return product
	}
	return product + " (" + c.Contact + ")"
}

// Fetch reads the newest values of rates.BankBases from the last days before now, with at most four requests. Fetch returns
// the values of readable tables also with an error.
func (c *Client) Fetch(ctx context.Context, now time.Time) (rates.Bank, error) {
	bank := rates.Bank{}
	errs := []error{c.indicative(ctx, now, bank), c.transfer(ctx, now, bank)}
	return bank, errors.Join(errs...)
}

// indicative requests all currencies at once, because the tables name their currencies.
func (c *Client) indicative(ctx context.Context, now time.Time, bank rates.Bank) error {
	_, page, absent, err := c.submit(ctx, indicativePages, now)
	if err != nil {
		return errors.Join(absent, err)
	}
	quotes, err := indicative(page)
	if err != nil {
		return errors.Join(absent, c.unusable("indicative rates: %w", err))
	}
	for _, code := range rates.BankBases() {
		if quote := quotes[code]; quote.Date != "" {
			record := bank[code]
			record.Central = quote
			bank[code] = record
		}
	}
	return absent
}

// transfer requests all currencies at once, because a heading before each table has the label of the currency's choice.
func (c *Client) transfer(ctx context.Context, now time.Time, bank rates.Bank) error {
	choice, page, absent, err := c.submit(ctx, transferPages, now)
	if err != nil {
		return errors.Join(absent, err)
	}
	labels := map[string]string{}
	for code, value := range choice {
		_, labels[code], _ = strings.Cut(value, "~")
	}
	quotes, err := transfers(page, labels)
	for code, quote := range quotes {
		record := bank[code]
		record.Buy, record.Sell = quote.buy, quote.sell
		bank[code] = record
	}
	if err != nil {
		return errors.Join(absent, c.unusable("telegraphic transfer: %w", err))
	}
	return absent
}

// submit reads the form and submits it with the choices of rates.BankBases, which submit returns with the page of results.
// absent is the error for currencies that are not on the form.
func (c *Client) submit(ctx context.Context, p pages, now time.Time) (choice map[string]string, page []byte, absent, err error) {
	all, err := c.choices(ctx, p)
	if err != nil {
		return nil, nil, nil, err
	}
	choice = map[string]string{}
	var texts []string
	var errs []error
	for _, code := range rates.BankBases() {
		if all[code] == "" {
			errs = append(errs, c.unusable("%s is not on the form %s", code, p.form))
			continue
		}
		choice[code] = all[code]
		texts = append(texts, all[code])
	}
	if len(texts) > 0 {
		page, err = c.post(ctx, p, now, texts...)
	}
	return choice, page, errors.Join(errs...), err
}

func (c *Client) choices(ctx context.Context, p pages) (map[string]string, error) {
	page, err := c.do(ctx, &upstream.Request{Method: http.MethodGet, URL: c.Endpoint + p.form, Header: http.Header{}})
	if err != nil {
		return nil, err
	}
	choice, err := choices(page)
	if err != nil {
		return nil, c.unusable("%s: %w", p.form, err)
	}
	return choice, nil
}

func (c *Client) post(ctx context.Context, p pages, now time.Time, currencies ...string) ([]byte, error) {
	today := rates.DayOf(now)
	form := url.Values{
		"lookupPage": {p.lookup}, "rangeType": {"dates"}, "txtStart": {string(today.Back(window))}, "txtEnd": {string(today)},
		currencyField: currencies, "submit_button": {"Submit"},
	}
	return c.do(ctx, &upstream.Request{
		Method: http.MethodPost, URL: c.Endpoint + p.results, Body: []byte(form.Encode()),
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
	})
}

func (c *Client) do(ctx context.Context, r *upstream.Request) ([]byte, error) {
	r.Header.Set("Accept", "text/html")
	r.Header.Set("User-Agent", c.userAgent())
	response, err := c.Upstream.Do(ctx, rates.BankSource, r)
	if err != nil {
		return nil, err
	}
	if response.Status != http.StatusOK {
		return nil, c.unusable("HTTP %d", response.Status)
	}
	return response.Body, nil
}

func (c *Client) unusable(format string, args ...any) error {
	return &upstream.Error{Class: upstream.Unusable, Vendor: rates.BankSource, Detail: fmt.Errorf(format, args...).Error()}
}
