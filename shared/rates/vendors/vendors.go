// Package vendors fetches tables of rates, one file per vendor. Adding one is a
// file and a row of Table.
package vendors

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
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
	// request is the URL to get with an account, read makes a table of the answer.
	request func(upstream.Account) string
	read    func(caller, *upstream.Response) (*rates.Table, error)
}

// Table lists the vendors, in the order in which the service asks them.
func Table() []Vendor {
	return []Vendor{openExchangeRates(), exchangeRateAPI(), frankfurter()}
}

// Find returns the vendor of a name, or nil.
func Find(name string) *Vendor {
	for _, v := range Table() {
		if v.Name == name {
			return &v
		}
	}
	return nil
}

// Spec returns what the vendor of a name needs, or nil.
func Spec(name string) *upstream.Spec {
	if v := Find(name); v != nil {
		return &v.Spec
	}
	return nil
}

// base is the currency that every vendor is asked for: the only one that all plans have.
const base = "USD"

// Fetch asks the account's vendor for its newest table. Its errors are
// *upstream.Error. When it was fetched is the caller's to note; whether the
// numbers are believable is rates.Validate's to say.
func (v *Vendor) Fetch(ctx context.Context, client *upstream.Client, account upstream.Account) (*rates.Table, error) {
	c := caller{v.Name, account.Redact()}
	response, err := client.Do(ctx, v.Name, &upstream.Request{
		Method: http.MethodGet, URL: v.request(account), Header: http.Header{"Accept": {"application/json"}}, Redact: c.secrets,
		Send: true, // plans count requests: nothing below may repeat this one
	})
	if err != nil {
		return nil, err
	}
	table, err := v.read(c, response)
	if err != nil {
		return nil, err
	}
	table.Source = v.Name
	return table, nil
}

// caller makes a vendor's errors.
type caller struct {
	name    string
	secrets []string
}

func (c caller) fail(class upstream.Class, detail string) error {
	return upstream.Failure(class, c.name, detail, c.secrets)
}

// unusable is an answer that is not the vendor's format.
func (c caller) unusable(r *upstream.Response, why string) error {
	return c.fail(upstream.Unusable, fmt.Sprintf("%s: HTTP %d: %s", why, r.Status, r.Body))
}

// refuse makes a refusal of the vendor's words: of the account where they are among these, else of the request.
func (c caller) refuse(words string, account []string) error {
	if slices.Contains(account, words) {
		return c.fail(upstream.CredentialsRefused, words)
	}
	return c.fail(upstream.Rejected, words)
}

// decode reads a JSON answer. It refuses what is no JSON of that shape, a name
// that stands twice included.
func decode(body []byte, into any) bool {
	return json.Unmarshal(bytes.TrimSpace(body), into) == nil
}

var codeForm = regexp.MustCompile(`^[A-Z]{3}$`)

// table makes a table of a JSON object of numbers. Names that are no
// three-letter codes are left out.
func (c caller) table(r *upstream.Response, date time.Time, numbers map[string]jsontext.Value) (*rates.Table, error) {
	t := &rates.Table{Base: base, Date: date.UTC(), Rates: map[string]rates.Decimal{}}
	for code, value := range numbers {
		if !codeForm.MatchString(code) {
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
