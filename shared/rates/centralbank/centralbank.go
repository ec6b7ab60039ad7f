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
}

// Fetch reads the newest values of rates.BankBases from the last days before now. Fetch returns the values of readable
// pages also with an error.
func (c *Client) Fetch(ctx context.Context, now time.Time) (rates.Bank, error) {
	bank := rates.Bank{}
	errs := []error{c.indicative(ctx, now, bank), c.transfer(ctx, now, bank)}
	return bank, errors.Join(errs...)
}

// indicative requests all currencies at once, because the tables name their currencies.
func (c *Client) indicative(ctx context.Context, now time.Time, bank rates.Bank) error {
	choice, err := c.choices(ctx, indicativePages)
	if err != nil {
		return err
	}
	var texts []string
	var errs []error
	for _, code := range rates.BankBases() {
		if choice[code] == "" {
			errs = append(errs, c.unusable("%s is not on the form for indicative rates", code))
			continue
		}
		texts = append(texts, choice[code])
	}
	page, err := c.post(ctx, indicativePages, now, texts...)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	quotes, err := indicative(page)
	if err != nil {
		return errors.Join(append(errs, c.unusable("indicative rates: %w", err))...)
	}
	for _, code := range rates.BankBases() {
		if quote := quotes[code]; quote.Date != "" {
			record := bank[code]
			record.Central = quote
			bank[code] = record
		}
	}
	return errors.Join(errs...)
}

// transfer requests one currency at a time, because the tables do not name their currencies.
func (c *Client) transfer(ctx context.Context, now time.Time, bank rates.Bank) error {
	choice, err := c.choices(ctx, transferPages)
	if err != nil {
		return err
	}
	var errs []error
	for _, code := range rates.BankBases() {
		if choice[code] == "" {
			errs = append(errs, c.unusable("%s is not on the form for telegraphic transfers", code))
			continue
		}
		page, err := c.post(ctx, transferPages, now, choice[code])
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		_, label, _ := strings.Cut(choice[code], "~")
		buy, sell, err := transfer(page, label)
		if err != nil {
			errs = append(errs, c.unusable("telegraphic transfer of %s: %w", code, err))
			continue
		}
		if buy.Date != "" {
			record := bank[code]
			record.Buy, record.Sell = buy, sell
			bank[code] = record
		}
	}
	return errors.Join(errs...)
}

func (c *Client) choices(ctx context.Context, p pages) (map[string]string, error) {
	page, err := c.do(ctx, &upstream.Request{Method: http.MethodGet, URL: c.Endpoint + p.form, Header: http.Header{"Accept": {"text/html"}}})
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
		Header: http.Header{"Accept": {"text/html"}, "Content-Type": {"application/x-www-form-urlencoded"}},
	})
}

func (c *Client) do(ctx context.Context, r *upstream.Request) ([]byte, error) {
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
