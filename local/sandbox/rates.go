package sandbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// usdRates is the table that the sources of rates share: the units for 1 USD, with the digits that a source sends.
var usdRates = map[string]json.Number{
	"AED": "3.6725", "AUD": "1.527319", "BDT": "121.745", "BHD": "0.376958", "BRL": "5.34127", "CAD": "1.403155",
	"CHF": "0.805432", "CNY": "7.11385", "CZK": "20.9642", "DKK": "6.45417", "EGP": "47.5135", "EUR": "0.864128",
	"GBP": "0.761934", "HKD": "7.7789", "HUF": "331.745", "IDR": "16698", "ILS": "3.26105", "INR": "88.7254",
	"JPY": "154.8315", "KES": "129.25", "KRW": "1463.91", "KWD": "0.306905", "LKR": "304.718462", "MUR": "45.92",
	"MVR": "15.405", "MXN": "18.3716", "MYR": "4.1485", "NOK": "10.1153", "NPR": "141.96064", "NZD": "1.774235",
	"OMR": "0.384503", "PHP": "58.845", "PKR": "281.117325", "PLN": "3.66104", "QAR": "3.640838", "RUB": "80.9515",
	"SAR": "3.7502", "SEK": "9.48305", "SGD": "1.302985", "THB": "32.4125", "TRY": "42.3011", "TWD": "31.074",
	"USD": "1", "VND": "26345.75", "XAU": "0.000247935401", "ZAR": "17.1285",
}

// Rates returns the table that the sources of rates share.
func Rates() map[string]json.Number { return maps.Clone(usdRates) }

// frankfurterCodes are the currencies of usdRates that Frankfurter has.
var frankfurterCodes = []string{
	"AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "IDR", "ILS", "INR", "JPY", "KRW", "LKR", "MXN",
	"MYR", "NOK", "NZD", "PHP", "PLN", "SEK", "SGD", "THB", "TRY", "ZAR",
}

// ratesWith returns the table with a source's additional rates.
func ratesWith(additional map[string]json.Number) map[string]json.Number {
	rates := maps.Clone(usdRates)
	maps.Copy(rates, additional)
	return rates
}

// workingDays returns the working days among a day and the calendar days before it, the newest first.
func workingDays(until time.Time, before int) []string {
	var days []string
	for n := range before + 1 {
		day := until.AddDate(0, 0, -n)
		if w := day.Weekday(); w != time.Saturday && w != time.Sunday {
			days = append(days, day.Format(time.DateOnly))
		}
	}
	return days
}

// openExchangeRates simulates latest.json of Open Exchange Rates' free plan: only base USD, hourly data.
func openExchangeRates() vendor {
	fail := func(status int, message, description string) response {
		return reply(fmt.Sprintf(`%d {"error":true,"status":%[1]d,"message":%q,"description":%q}`, status, message, description))
	}
	refusal := fail(http.StatusUnauthorized, "invalid_app_id", "Invalid App ID provided. Please sign up.")
	latest := func(r *request) result {
		in := r.URL.Query()
		id, base := in.Get("app_id"), in.Get("base")
		return result{
			operation: "rates",
			problems: []problem{
				{id == "", fail(http.StatusUnauthorized, "missing_app_id", "No App ID provided.")},
				{id != OpenExchangeRatesAppID, refusal},
				{base != "" && base != "USD", fail(http.StatusForbidden, "not_allowed", "Changing the API `base` currency is not available for your plan.")},
			},
			responses: responses{
				Accepted: success(object{
					"disclaimer": "Usage subject to terms", "license": "Sandbox", "base": "USD",
					"timestamp": time.Now().Truncate(time.Hour).Unix(),
					"rates":     ratesWith(map[string]json.Number{"BTC": "0.000010563217", "CNH": "7.10935"}),
				}),
				Rejected:           fail(http.StatusTooManyRequests, "too_many_requests", "Your plan's requests are used up."),
				CredentialsRefused: refusal,
			},
		}
	}
	return vendor{
		name: "openexchangerates", secrets: []string{"app_id"}, accepted: []string{OpenExchangeRatesAppID},
		routes:  []route{{"GET /api/latest.json", latest}},
		unknown: fail(http.StatusNotFound, "not_found", "Client requested a non-existent resource/route."),
	}
}

// exchangeRateAPI simulates ExchangeRate-API's version 6: the key in the path, daily data.
func exchangeRateAPI() vendor {
	fail := func(status int, kind string) response {
		return jsonResponse(status, object{
			"result": "error", "documentation": "https://www.exchangerate-api.com/docs",
			"terms-of-use": "https://www.exchangerate-api.com/terms", "error-type": kind,
		})
	}
	latest := func(r *request) result {
		day := time.Now().UTC().Truncate(24 * time.Hour)
		next := day.AddDate(0, 0, 1)
		return result{
			operation: "rates",
			problems: []problem{
				{r.PathValue("key") != ExchangeRateAPIKey, fail(http.StatusForbidden, "invalid-key")},
				{r.PathValue("base") != "USD", fail(http.StatusNotFound, "unsupported-code")},
			},
			responses: responses{
				Accepted: success(object{
					"result": "success", "documentation": "https://www.exchangerate-api.com/docs",
					"terms_of_use":          "https://www.exchangerate-api.com/terms",
					"time_last_update_unix": day.Unix(), "time_last_update_utc": day.Format(time.RFC1123Z),
					"time_next_update_unix": next.Unix(), "time_next_update_utc": next.Format(time.RFC1123Z),
					"base_code": "USD", "conversion_rates": ratesWith(map[string]json.Number{"FOK": "6.4542", "KID": "1.5273"}),
				}),
				Rejected:           fail(http.StatusOK, "quota-reached"),
				CredentialsRefused: fail(http.StatusForbidden, "inactive-account"),
			},
		}
	}
	return vendor{
		name: "exchangerateapi", secrets: []string{"key"}, accepted: []string{ExchangeRateAPIKey},
		routes: []route{{"GET /v6/{key}/latest/{base}", latest}}, unknown: fail(http.StatusNotFound, "malformed-request"),
	}
}

// frankfurter simulates Frankfurter's version 2: no key, one row per currency, the last working day's rates.
func frankfurter() vendor {
	return vendor{
		name: "frankfurter", unknown: reply(`404 {"message":"not found"}`),
		routes: []route{{"GET /v2/rates", func(r *request) result {
			var rows []object
			date := workingDays(time.Now().UTC(), 3)[0]
			for _, code := range frankfurterCodes {
				rows = append(rows, object{"date": date, "base": "USD", "quote": code, "rate": usdRates[code]})
			}
			return result{
				operation: "rates",
				problems:  []problem{{r.URL.Query().Get("base") != "USD", reply(`422 {"message":"the sandbox has only the base USD"}`)}},
				responses: responses{Accepted: success(rows), Rejected: reply(`422 {"message":"invalid date"}`)},
			}
		}}},
	}
}
