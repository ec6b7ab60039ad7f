// Package sources fetches rates: the tables of the vendors, and the values of the central bank. Each vendor has one
// function and one row of Table.
package sources

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/rates"
	"svcapi/shared/upstream"
)

// Vendor is one row of the table.
type Vendor struct {
	upstream.Spec
	path func(upstream.Account) string // of the table, below the endpoint
	read func(caller, *upstream.Response) (*rates.Table, error)
}

// Table returns the vendors in the order in which the service asks them.
func Table() []Vendor {
	key := func(name, description string) []upstream.Field {
		return []upstream.Field{{Name: name, Description: description, Required: true}}
	}
	return []Vendor{
		// latest.json; the free plan has 1,000 requests a month and only the base USD
		{
			upstream.Spec{Name: "openexchangerates", Title: "Open Exchange Rates", Endpoint: "https://openexchangerates.org",
				Secrets: key("app_id", "App ID of the account")},
			func(a upstream.Account) string {
				return "/api/latest.json?app_id=" + url.QueryEscape(a.Secrets["app_id"])
			},
			readOpenExchangeRates,
		},
		// version 6, with the key in the path; the free plan has 1,500 requests a month and daily updates
		{
			upstream.Spec{Name: "exchangerateapi", Title: "ExchangeRate-API", Endpoint: "https://v6.exchangerate-api.com",
				Secrets: key("api_key", "API key of the account")},
			func(a upstream.Account) string {
				return "/v6/" + url.PathEscape(a.Secrets["api_key"]) + "/latest/" + base
			},
			readExchangeRateAPI,
		},
		// version 2: the rates of central banks, the European one first; no key, and an operator can host the software
		{
			upstream.Spec{Name: "frankfurter", Title: "Frankfurter", Endpoint: "https://api.frankfurter.dev"},
			func(upstream.Account) string { return "/v2/rates?base=" + base },
			readFrankfurter,
		},
	}
}

// Names returns the names of the vendors in the order of Table.
func Names() (names []string) {
	for _, v := range Table() {
		names = append(names, v.Name)
	}
	return names
}

// Find returns the vendor with that name, or nil.
func Find(name string) *Vendor { return upstream.Find(Table(), name) }

// Spec returns the specification of the vendor with that name, or nil.
func Spec(name string) *upstream.Spec {
	if v := Find(name); v != nil {
		return &v.Spec
	}
	return nil
}

// base is the base currency of all requests, because every plan of a vendor supports it.
const base = "USD"

// Fetch fetches the newest table of the account's vendor. An error is an *upstream.Error. The caller sets the time of
// the fetch and validates the table with rates.Validate.
func (v *Vendor) Fetch(ctx context.Context, client *upstream.Client, account upstream.Account) (*rates.Table, error) {
	c := caller{v.Name, account.Redact()}
	response, err := client.Do(ctx, v.Name, &upstream.Request{
		Method: http.MethodGet, URL: account.Endpoint + v.path(account), Redact: c.secrets,
		Header: http.Header{"Accept": {"application/json"}},
		Send:   true, // vendors count requests, so that no library may repeat this request
	})
	if err != nil {
		return nil, err
	}
	return v.read(c, response)
}

// caller creates a vendor's errors.
type caller struct {
	name    string
	secrets []string
}

// unusable returns the error of a response that does not have the vendor's format.
func (c caller) unusable(r *upstream.Response, why string) error {
	return upstream.Failure(upstream.Unusable, c.name, fmt.Sprintf("%s: HTTP %d: %s", why, r.Status, r.Body), c.secrets)
}

// refuse returns the error for a vendor's error message, which refuses the account or else the request.
func (c caller) refuse(message string, accountMessages []string) error {
	class := upstream.Rejected
	if slices.Contains(accountMessages, message) {
		class = upstream.CredentialsRefused
	}
	return upstream.Failure(class, c.name, message, c.secrets)
}

// decode parses a JSON response strictly, and reports false for another structure or a duplicate name.
func decode(body []byte, into any) bool {
	return json.Unmarshal(bytes.TrimSpace(body), into) == nil
}

// table returns the table of a JSON object of numbers. A name that is no code of ISO 4217 is dropped before its number
// is read, so that a number such as 0 of a former currency does not make the table invalid.
func (c caller) table(r *upstream.Response, date time.Time, numbers map[string]jsontext.Value) (*rates.Table, error) {
	t := &rates.Table{Source: c.name, Base: base, Date: date.UTC(), Rates: map[string]rates.Decimal{}}
	for code, value := range numbers {
		if _, named := rates.Name(code); !named {
			continue
		}
		rate, err := rates.Parse(string(value))
		if err != nil {
			return nil, c.unusable(r, "rate of "+code+": "+err.Error())
		}
		t.Rates[code] = rate
	}
	if len(t.Rates) == 0 {
		return nil, c.unusable(r, "no rates")
	}
	if _, ok := t.Rates[base]; !ok {
		t.Rates[base] = rates.One()
	}
	return t, nil
}

// openExchangeRatesAccount are the messages that refuse the account. Their HTTP statuses vary.
var openExchangeRatesAccount = []string{"missing_app_id", "invalid_app_id", "not_allowed", "access_restricted"}

func readOpenExchangeRates(c caller, r *upstream.Response) (*rates.Table, error) {
	var response struct {
		Error     bool                      `json:"error"`
		Message   string                    `json:"message"`
		Timestamp int64                     `json:"timestamp"`
		Base      string                    `json:"base"`
		Rates     map[string]jsontext.Value `json:"rates"`
	}
	switch {
	case !decode(r.Body, &response):
		return nil, c.unusable(r, "not a response of the vendor")
	case response.Error:
		return nil, c.refuse(response.Message, openExchangeRatesAccount)
	case r.Status != 200 || response.Base != base || response.Timestamp <= 0:
		return nil, c.unusable(r, "no rates for "+base)
	}
	return c.table(r, time.Unix(response.Timestamp, 0), response.Rates)
}

// exchangeRateAPIAccount are the error types that refuse the account. The vendor does not document HTTP statuses.
var exchangeRateAPIAccount = []string{"invalid-key", "inactive-account", "plan-upgrade-required"}

func readExchangeRateAPI(c caller, r *upstream.Response) (*rates.Table, error) {
	var response struct {
		Result    string                    `json:"result"`
		ErrorType string                    `json:"error-type"`
		ErrorOld  string                    `json:"error_type"` // another spelling of some responses
		Updated   int64                     `json:"time_last_update_unix"`
		Base      string                    `json:"base_code"`
		Rates     map[string]jsontext.Value `json:"conversion_rates"`
	}
	switch {
	case !decode(r.Body, &response):
		return nil, c.unusable(r, "not a response of the vendor")
	case response.Result == "error":
		return nil, c.refuse(cmp.Or(response.ErrorType, response.ErrorOld), exchangeRateAPIAccount)
	case response.Result != "success" || r.Status != 200 || response.Base != base || response.Updated <= 0:
		return nil, c.unusable(r, "no rates for "+base)
	}
	return c.table(r, time.Unix(response.Updated, 0), response.Rates)
}

// frankfurterDays is how far a currency's date may be behind the newest date, because some central banks do not publish
// daily.
const frankfurterDays = 7

func readFrankfurter(c caller, r *upstream.Response) (*rates.Table, error) {
	var refusal struct {
		Message string `json:"message"`
	}
	if r.Status >= 400 && r.Status < 500 && decode(r.Body, &refusal) {
		return nil, c.refuse(refusal.Message, nil)
	}
	var rows []struct {
		Date  string         `json:"date"`
		Base  string         `json:"base"`
		Quote string         `json:"quote"`
		Rate  jsontext.Value `json:"rate"`
	}
	if r.Status != 200 || !decode(r.Body, &rows) {
		return nil, c.unusable(r, "not a response of the vendor")
	}
	dates, newest := make([]time.Time, len(rows)), time.Time{}
	for i, row := range rows {
		date, err := time.Parse(time.DateOnly, row.Date)
		if err != nil || row.Base != base {
			return nil, c.unusable(r, "no rates for "+base)
		}
		dates[i] = date
		if date.After(newest) {
			newest = date
		}
	}
	numbers := map[string]jsontext.Value{}
	for i, row := range rows {
		if newest.Sub(dates[i]) > frankfurterDays*24*time.Hour {
			continue
		}
		if _, twice := numbers[row.Quote]; twice {
			return nil, c.unusable(r, "duplicate rate of "+row.Quote)
		}
		numbers[row.Quote] = row.Rate
	}
	return c.table(r, newest, numbers)
}
