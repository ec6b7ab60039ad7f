// Package sources fetches rates: the tables of the vendors, and the values of the central bank. Each vendor has one
// function in tables.go and one row of Table.
package sources

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/rates"
	"svcapi/shared/upstream"
)

// Vendor is one row of the table.
type Vendor struct {
	upstream.Spec
	request func(upstream.Account) string // the URL of the table
	read    func(caller, *upstream.Response) (*rates.Table, error)
}

// Table returns the vendors in the order in which the service asks them.
func Table() []Vendor {
	return []Vendor{openExchangeRates(), exchangeRateAPI(), frankfurter()}
}

// Names returns the names of the vendors in the order of Table.
func Names() (names []string) {
	for _, v := range Table() {
		names = append(names, v.Name)
	}
	return names
}

// Find returns the vendor with that name, or nil.
func Find(name string) *Vendor {
	for _, v := range Table() {
		if v.Name == name {
			return &v
		}
	}
	return nil
}

// Spec returns the specification of the vendor with that name, or nil.
func Spec(name string) *upstream.Spec {
	if v := Find(name); v != nil {
		return &v.Spec
	}
	return nil
}

// base is the base currency of all requests, because every plan of a vendor supports it.
const base = "USD"

// Fetch fetches the newest table of the account's vendor. An error is an *upstream.Error. The caller sets the time of
// the fetch and validates the table with rates.Validate.
func (v *Vendor) Fetch(ctx context.Context, client *upstream.Client, account upstream.Account) (*rates.Table, error) {
	c := caller{v.Name, account.Redact()}
	response, err := client.Do(ctx, v.Name, &upstream.Request{
		Method: http.MethodGet, URL: v.request(account), Header: http.Header{"Accept": {"application/json"}},
		Redact: c.secrets,
		Send:   true, // vendors count requests, so that no library may repeat this request
	})
	if err != nil {
		return nil, err
	}
	return v.read(c, response)
}

// caller creates a vendor's errors.
type caller struct {
	name    string
	secrets []string
}

// unusable returns the error of a response that does not have the vendor's format.
func (c caller) unusable(r *upstream.Response, why string) error {
	return upstream.Failure(upstream.Unusable, c.name, fmt.Sprintf("%s: HTTP %d: %s", why, r.Status, r.Body), c.secrets)
}

// refuse returns the error for a vendor's error message, which refuses the account or else the request.
func (c caller) refuse(message string, accountMessages []string) error {
	class := upstream.Rejected
	if slices.Contains(accountMessages, message) {
		class = upstream.CredentialsRefused
	}
	return upstream.Failure(class, c.name, message, c.secrets)
}

// decode parses a JSON response strictly, and reports false for another structure or a duplicate name.
func decode(body []byte, into any) bool {
	return json.Unmarshal(bytes.TrimSpace(body), into) == nil
}

// table returns the table of a JSON object of numbers. A name that is no code of ISO 4217 is dropped before its number
// is read, so that a number such as 0 of a former currency does not make the table invalid.
func (c caller) table(r *upstream.Response, date time.Time, numbers map[string]jsontext.Value) (*rates.Table, error) {
	t := &rates.Table{Source: c.name, Base: base, Date: date.UTC(), Rates: map[string]rates.Decimal{}}
	for code, value := range numbers {
		if _, named := rates.Name(code); !named {
			continue
		}
		rate, err := rates.Parse(string(value))
		if err != nil {
			return nil, c.unusable(r, "rate of "+code+": "+err.Error())
		}
		t.Rates[code] = rate
	}
	if len(t.Rates) == 0 {
		return nil, c.unusable(r, "no rates")
	}
	if _, ok := t.Rates[base]; !ok {
		t.Rates[base] = rates.One()
	}
	return t, nil
}
