package vendors

import (
	"cmp"
	"net/url"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/rates"
	"svcapi/shared/upstream"
)

// exchangeRateAPI is ExchangeRate-API's version 6. The key stands in the path.
// The free plan has 1,500 requests a month and is updated daily.
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

// exchangeRateAPIAccount are the error types that refuse the account. HTTP statuses are not documented.
var exchangeRateAPIAccount = []string{"invalid-key", "inactive-account", "plan-upgrade-required"}

func readExchangeRateAPI(c caller, r *upstream.Response) (*rates.Table, error) {
	var answer struct {
		Result    string                    `json:"result"`
		ErrorType string                    `json:"error-type"`
		ErrorOld  string                    `json:"error_type"` // some answers write it so
		Updated   int64                     `json:"time_last_update_unix"`
		Base      string                    `json:"base_code"`
		Rates     map[string]jsontext.Value `json:"conversion_rates"`
	}
	switch {
	case !decode(r.Body, &answer):
		return nil, c.unusable(r, "no answer of the vendor's")
	case answer.Result == "error":
		return nil, c.refuse(cmp.Or(answer.ErrorType, answer.ErrorOld), exchangeRateAPIAccount)
	case answer.Result != "success" || r.Status != 200 || answer.Base != base || answer.Updated <= 0:
		return nil, c.unusable(r, "no rates for "+base)
	}
	return c.table(r, time.Unix(answer.Updated, 0), answer.Rates)
}
