package sandbox

import (
	"net/http"
	"time"
)

// frankfurterCodes are the currencies of the sandbox's table that Frankfurter has.
var frankfurterCodes = []string{
	"AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "IDR", "ILS", "INR", "JPY", "KRW", "LKR", "MXN",
	"MYR", "NOK", "NZD", "PHP", "PLN", "SEK", "SGD", "THB", "TRY", "ZAR",
}

// frankfurter simulates Frankfurter's version 2: no key, one row per currency, the last working day's rates.
func frankfurter() vendor {
	return vendor{
		name:    "frankfurter",
		routes:  []route{{"GET /v2/rates", frankfurterRates}},
		unknown: messageResponse(http.StatusNotFound, "not found"),
	}
}

func frankfurterRates(r *request) result {
	var rows []object
	date := workingDays(time.Now().UTC(), 3)[0]
	for _, code := range frankfurterCodes {
		rows = append(rows, object{"date": date, "base": "USD", "quote": code, "rate": usdRates[code]})
	}
	return result{
		operation: "rates",
		problems:  []problem{{r.URL.Query().Get("base") != "USD", messageResponse(http.StatusUnprocessableEntity, "the sandbox has only the base USD")}},
		responses: responses{Accepted: success(rows), Rejected: messageResponse(http.StatusUnprocessableEntity, "invalid date")},
	}
}
