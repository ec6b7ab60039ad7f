package sandbox

import (
	"encoding/json"
	"net/http"
	"time"
)

// ExchangeRateAPIKey is the key that the sandbox's ExchangeRate-API accepts in the path.
const ExchangeRateAPIKey = "exchangerateapi-sandbox-key"

// exchangeRateAPI simulates ExchangeRate-API's version 6: the key in the path, daily data.
func exchangeRateAPI() vendor {
	return vendor{
		name:     "exchangerateapi",
		secrets:  []string{"key"},
		accepted: []string{ExchangeRateAPIKey},
		routes:   []route{{"GET /v6/{key}/latest/{base}", exchangeRateAPILatest}},
		unknown:  exchangeRateAPIError(http.StatusNotFound, "malformed-request"),
	}
}

func exchangeRateAPIError(status int, kind string) response {
	return jsonResponse(status, object{
		"result": "error", "documentation": "https://www.exchangerate-api.com/docs", "terms-of-use": "https://www.exchangerate-api.com/terms", "error-type": kind,
	})
}

func exchangeRateAPILatest(r *request) result {
	day := time.Now().UTC().Truncate(24 * time.Hour)
	next := day.AddDate(0, 0, 1)
	return result{
		operation: "rates",
		problems: []problem{
			{r.PathValue("key") != ExchangeRateAPIKey, exchangeRateAPIError(http.StatusForbidden, "invalid-key")},
			{r.PathValue("base") != "USD", exchangeRateAPIError(http.StatusNotFound, "unsupported-code")},
		},
		responses: responses{
			Accepted: success(object{
				"result": "success", "documentation": "https://www.exchangerate-api.com/docs", "terms_of_use": "https://www.exchangerate-api.com/terms",
				"time_last_update_unix": day.Unix(), "time_last_update_utc": day.Format(time.RFC1123Z),
				"time_next_update_unix": next.Unix(), "time_next_update_utc": next.Format(time.RFC1123Z),
				"base_code": "USD", "conversion_rates": ratesWith(map[string]json.Number{"FOK": "6.4542", "KID": "1.5273"}),
			}),
			Rejected:           exchangeRateAPIError(http.StatusOK, "quota-reached"),
			CredentialsRefused: exchangeRateAPIError(http.StatusForbidden, "inactive-account"),
		},
	}
}
