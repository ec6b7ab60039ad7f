package sandbox

import (
	"encoding/json"
	"maps"
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
