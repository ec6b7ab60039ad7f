package sources

import (
	"cmp"
	"net/url"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/rates"
	"svcapi/shared/upstream"
)

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
