package sandbox

import (
	"encoding/json"
	"net/http"
	"time"
)

// OpenExchangeRatesAppID is the app_id that the sandbox's Open Exchange Rates accepts.
const OpenExchangeRatesAppID = "openexchangerates-sandbox-app-id"

// openExchangeRates simulates latest.json of Open Exchange Rates' free plan: only base USD, hourly data.
func openExchangeRates() vendor {
	return vendor{
		name:     "openexchangerates",
		secrets:  []string{"app_id"},
		accepted: []string{OpenExchangeRatesAppID},
		routes:   []route{{"GET /api/latest.json", openExchangeRatesLatest}},
		unknown:  openExchangeRatesError(http.StatusNotFound, "not_found", "Client requested a non-existent resource/route."),
	}
}

func openExchangeRatesError(status int, message, description string) response {
	return jsonResponse(status, object{"error": true, "status": status, "message": message, "description": description})
}

func openExchangeRatesLatest(r *request) result {
	in := r.URL.Query()
	id, base := in.Get("app_id"), in.Get("base")
	refusal := openExchangeRatesError(http.StatusUnauthorized, "invalid_app_id", "Invalid App ID provided. Please sign up.")
	return result{
		operation: "rates",
		problems: []problem{
			{id == "", openExchangeRatesError(http.StatusUnauthorized, "missing_app_id", "No App ID provided.")},
			{id != OpenExchangeRatesAppID, refusal},
			{base != "" && base != "USD", openExchangeRatesError(http.StatusForbidden, "not_allowed", "Changing the API `base` currency is not available for your plan.")},
		},
		responses: responses{
			Accepted: success(object{
				"disclaimer": "Usage subject to terms", "license": "Sandbox", "base": "USD",
				"timestamp": time.Now().Truncate(time.Hour).Unix(),
				"rates":     ratesWith(map[string]json.Number{"BTC": "0.000010563217", "CNH": "7.10935"}),
			}),
			Rejected:           openExchangeRatesError(http.StatusTooManyRequests, "too_many_requests", "Your plan's requests are used up."),
			CredentialsRefused: refusal,
		},
	}
}
