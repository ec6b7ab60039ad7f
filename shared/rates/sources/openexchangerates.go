package sources

import (
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
