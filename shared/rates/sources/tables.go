package sources

import (
	"cmp"
	"net/url"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/rates"
	"svcapi/shared/upstream"
)

// openExchangeRates is latest.json of Open Exchange Rates. The free plan has 1,000 requests a month and only the base
// USD.
func openExchangeRates() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "openexchangerates", Title: "Open Exchange Rates", Endpoint: "https://openexchangerates.org",
			Secrets: []upstream.Field{{Name: "app_id", Description: "App ID of the account", Required: true}},
		},
		request: func(a upstream.Account) string {
			return a.Endpoint + "/api/latest.json?app_id=" + url.QueryEscape(a.Secrets["app_id"])
		},
		read: readOpenExchangeRates,
	}
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

// exchangeRateAPI is ExchangeRate-API, version 6, with the key in the path. The free plan has 1,500 requests a month
// and daily updates.
func exchangeRateAPI() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "exchangerateapi", Title: "ExchangeRate-API", Endpoint: "https://v6.exchangerate-api.com",
			Secrets: []upstream.Field{{Name: "api_key", Description: "API key of the account", Required: true}},
		},
		request: func(a upstream.Account) string {
			return a.Endpoint + "/v6/" + url.PathEscape(a.Secrets["api_key"]) + "/latest/" + base
		},
		read: readExchangeRateAPI,
	}
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

// frankfurter is Frankfurter, version 2: the rates of central banks, the European Central Bank first. The vendor needs
// no key, and an operator can host the software.
func frankfurter() Vendor {
	return Vendor{
		Spec:    upstream.Spec{Name: "frankfurter", Title: "Frankfurter", Endpoint: "https://api.frankfurter.dev"},
		request: func(a upstream.Account) string { return a.Endpoint + "/v2/rates?base=" + base },
		read:    readFrankfurter,
	}
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
