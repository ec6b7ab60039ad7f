package sources

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/rates"
	"svcapi/shared/upstream"
)

// frankfurter is Frankfurter, version 2: the rates of central banks, the European Central Bank first. The vendor needs
// no key, and an operator can host the software.
func frankfurter() Vendor {
	return Vendor{
		Spec:    upstream.Spec{Name: "frankfurter", Title: "Frankfurter", Endpoint: "https://api.frankfurter.dev"},
		request: func(a upstream.Account) string { return a.Endpoint + "/v2/rates?base=" + base },
		read:    readFrankfurter,
	}
}

// frankfurterDays is how far a currency's date may be behind the newest date, because some central banks do not publish
// daily.
const frankfurterDays = 7

func readFrankfurter(c caller, r *upstream.Response) (*rates.Table, error) {
	var refusal struct {
		Message string `json:"message"`
	}
	if r.Status >= 400 && r.Status < 500 && decode(r.Body, &refusal) {
		return nil, c.refuse(refusal.Message, nil)
	}
	var rows []struct {
		Date  string         `json:"date"`
		Base  string         `json:"base"`
		Quote string         `json:"quote"`
		Rate  jsontext.Value `json:"rate"`
	}
	if r.Status != 200 || !decode(r.Body, &rows) {
		return nil, c.unusable(r, "not a response of the vendor")
	}
	dates, newest := make([]time.Time, len(rows)), time.Time{}
	for i, row := range rows {
		date, err := time.Parse(time.DateOnly, row.Date)
		if err != nil || row.Base != base {
			return nil, c.unusable(r, "no rates for "+base)
		}
		dates[i] = date
		if date.After(newest) {
			newest = date
		}
	}
	numbers := map[string]jsontext.Value{}
	for i, row := range rows {
		if newest.Sub(dates[i]) > frankfurterDays*24*time.Hour {
			continue
		}
		if _, twice := numbers[row.Quote]; twice {
			return nil, c.unusable(r, "duplicate rate of "+row.Quote)
		}
		numbers[row.Quote] = row.Rate
	}
	return c.table(r, newest, numbers)
}
