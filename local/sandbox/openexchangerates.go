package sandbox

import (
	"encoding/json"
	"net/http"
	"time"
)

// OpenExchangeRatesAppID is what the sandbox's Open Exchange Rates accepts as app_id.
const OpenExchangeRatesAppID = "openexchangerates-sandbox-app-id"

// openExchangeRates speaks Open Exchange Rates' latest.json as the free plan does: base USD alone, hourly data.
func openExchangeRates() vendor {
	return vendor{
		name:     "openexchangerates",
		secrets:  []string{"app_id"},
		accepted: []string{OpenExchangeRatesAppID},
		routes:   []route{{"GET /api/latest.json", openExchangeRatesLatest}},
		unknown:  openExchangeRatesError(http.StatusNotFound, "not_found", "Client requested a non-existent resource/route."),
	}
}

func openExchangeRatesError(status int, message, description string) reply {
	return jsonReply(status, object{"error": true, "status": status, "message": message, "description": description})
}

func openExchangeRatesLatest(r *request) exchange {
	in := r.URL.Query()
	ex := exchange{operation: "rates"}
	refusal := openExchangeRatesError(http.StatusUnauthorized, "invalid_app_id", "Invalid App ID provided. Please sign up.")
	switch {
	case in.Get("app_id") == "":
		return ex.refuse(openExchangeRatesError(http.StatusUnauthorized, "missing_app_id", "No App ID provided."))
	case in.Get("app_id") != OpenExchangeRatesAppID:
		return ex.refuse(refusal)
	case in.Get("base") != "" && in.Get("base") != "USD":
		return ex.refuse(openExchangeRatesError(http.StatusForbidden, "not_allowed", "Changing the API `base` currency is not available for your plan."))
	}
	ex.replies = map[Outcome]reply{
		Accepted: jsonReply(http.StatusOK, object{
			"disclaimer": "Usage subject to terms", "license": "Sandbox", "base": "USD",
			"timestamp": time.Now().Truncate(time.Hour).Unix(),
			"rates":     someRates(all, map[string]json.Number{"BTC": "0.000010563217", "CNH": "7.10935"}),
		}),
		Rejected:           openExchangeRatesError(http.StatusTooManyRequests, "too_many_requests", "Your plan's requests are used up."),
		CredentialsRefused: refusal,
	}
	return ex
}
