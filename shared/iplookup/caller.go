package iplookup

import (
	"context"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// Caller is one vendor account with the ways out.
type Caller struct {
	Client    *upstream.Client
	Databases *Databases
	Account   upstream.Account
}

// Meaning is what a vendor's refusal says.
type Meaning int

// The meanings.
const (
	Unusable    Meaning = iota // no answer that can be used, or an HTTP 5xx
	Rejected                   // the request is not what the vendor wants
	Credentials                // the key, the account or its plan
	Quota                      // the account has used up what it may ask
	Unknown                    // nothing is known of the address
)

// statuses are what HTTP statuses mean where a vendor's own table says nothing.
var statuses = map[int]Meaning{
	http.StatusUnauthorized:    Credentials,
	http.StatusPaymentRequired: Quota,
	http.StatusForbidden:       Credentials,
	http.StatusTooManyRequests: Quota,
}

// Get makes a GET request to the vendor and returns what it answered, whatever the status.
func (c Caller) Get(ctx context.Context, path string, query url.Values, header http.Header) (*upstream.Response, error) {
	target := c.Account.Endpoint + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return c.Client.Do(ctx, c.Account.Integration.Vendor, &upstream.Request{
		Method: http.MethodGet, URL: target, Header: header, Redact: c.Account.Redact(),
	})
}

// Decode reads a JSON answer. Vendors' duplicate names and broken UTF-8 are forgiven.
func (c Caller) Decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return c.Fail(Unusable, "no usable JSON: "+string(body))
	}
	return nil
}

// ByStatus judges an answer by its HTTP status, the vendor's own table first;
// nil: the body decides.
func (c Caller) ByStatus(r *upstream.Response, own map[int]Meaning) error {
	if r.Status == http.StatusOK {
		return nil
	}
	meaning, ok := own[r.Status]
	if !ok {
		meaning, ok = statuses[r.Status]
	}
	if !ok && r.Status >= 400 && r.Status < 500 {
		meaning = Rejected
	}
	return c.Fail(meaning, http.StatusText(r.Status)+": "+string(r.Body))
}

// Fail makes the error of a meaning. The detail is for the operator.
func (c Caller) Fail(meaning Meaning, detail string) error {
	class := upstream.Rejected
	switch meaning {
	case Unknown:
		return ErrUnknown
	case Credentials:
		class = upstream.CredentialsRefused
	case Unusable:
		class = upstream.Unusable
	case Quota:
		detail = "quota used up: " + detail
	}
	return upstream.Failure(class, c.Account.Integration.Vendor, detail, c.Account.Redact())
}
