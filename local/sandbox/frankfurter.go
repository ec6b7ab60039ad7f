package sandbox

import (
	"net/http"
	"slices"
	"time"
)

// frankfurterCodes are those that Frankfurter has of the sandbox's table.
var frankfurterCodes = []string{
	"AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "IDR", "ILS", "INR", "JPY", "KRW", "LKR", "MXN",
	"MYR", "NOK", "NZD", "PHP", "PLN", "SEK", "SGD", "THB", "TRY", "ZAR",
}

// frankfurter speaks Frankfurter's version 2: no key, one row per currency, the last working day's rates.
func frankfurter() vendor {
	return vendor{
		name:    "frankfurter",
		routes:  []route{{"GET /v2/rates", frankfurterRates}},
		unknown: jsonReply(http.StatusNotFound, object{"message": "not found"}),
	}
}

func frankfurterRates(r *request) exchange {
	ex := exchange{operation: "rates"}
	if base := r.URL.Query().Get("base"); base != "USD" {
		return ex.refuse(jsonReply(http.StatusUnprocessableEntity, object{"message": "the sandbox has the base USD alone"}))
	}
	table := someRates(func(code string) bool { return slices.Contains(frankfurterCodes, code) }, nil)
	rows, date := []object{}, workingDays(time.Now().UTC(), 3)[0]
	for _, code := range quoted(table) {
		rows = append(rows, object{"date": date, "base": "USD", "quote": code, "rate": table[code]})
	}
	ex.replies = map[Outcome]reply{
		Accepted: jsonReply(http.StatusOK, rows),
		Rejected: jsonReply(http.StatusUnprocessableEntity, object{"message": "invalid date"}),
	}
	return ex
}
