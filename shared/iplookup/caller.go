package iplookup

import (
	"context"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// Caller makes the calls of one vendor account.
type Caller struct {
	Client    *upstream.Client
	Databases *Databases
	Account   upstream.Account
}

// Meaning is the meaning of a vendor's error: a class, Quota or Unknown.
type Meaning = upstream.Class

// The meanings.
const (
	Unusable            = upstream.Unusable           // the response is not valid, or an HTTP 5xx
	Rejected            = upstream.Rejected           // the vendor refuses the request
	Credentials         = upstream.CredentialsRefused // the vendor refuses the key, the account or its plan
	Quota       Meaning = "quota"                     // the account has used its quota
	Unknown     Meaning = "unknown"                   // the vendor does not know the address
)

// statuses are the default meanings of HTTP statuses.
var statuses = map[int]Meaning{
	http.StatusUnauthorized:    Credentials,
	http.StatusPaymentRequired: Quota,
	http.StatusForbidden:       Credentials,
	http.StatusTooManyRequests: Quota,
}

// Get makes a GET request to the vendor and returns the response with any status.
func (c Caller) Get(ctx context.Context, path string, query url.Values, header http.Header) (*upstream.Response, error) {
	target := c.Account.Endpoint + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return c.Client.Do(ctx, c.Account.Integration.Vendor, &upstream.Request{
		Method: http.MethodGet, URL: target, Header: header, Redact: c.Account.Redact(),
	})
}

// laxJSON accepts duplicate names and invalid UTF-8.
var laxJSON = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Decode parses a JSON response, also with duplicate names and invalid UTF-8.
func (c Caller) Decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into, laxJSON); err != nil {
		return c.Fail(Unusable, "invalid JSON: "+string(body))
	}
	return nil
}

// ByStatus returns the error of a response by its HTTP status, or nil for 200. The vendor's own meanings take precedence.
func (c Caller) ByStatus(r *upstream.Response, own map[int]Meaning) error {
	if r.Status == http.StatusOK {
		return nil
	}
	meaning, ok := own[r.Status]
	if !ok {
		meaning, ok = statuses[r.Status]
	}
	switch {
	case ok:
	case r.Status >= 400 && r.Status < 500:
		meaning = Rejected
	default:
		meaning = Unusable
	}
	return c.Fail(meaning, http.StatusText(r.Status)+": "+string(r.Body))
}

// GetJSON makes a GET request and parses the JSON response of a status 200.
func (c Caller) GetJSON(ctx context.Context, path string, query url.Values, header http.Header, own map[int]Meaning, into any) (*upstream.Response, error) {
	r, err := c.Get(ctx, path, query, header)
	if err != nil {
		return nil, err
	}
	if err := c.ByStatus(r, own); err != nil {
		return nil, err
	}
	return r, c.Decode(r.Body, into)
}

// Fail returns the error of a meaning, with a detail for the operator.
func (c Caller) Fail(meaning Meaning, detail string) error {
	switch meaning {
	case Unknown:
		return ErrUnknown
	case Quota:
		meaning, detail = Rejected, "quota used up: "+detail
	}
	return upstream.Failure(meaning, c.Account.Integration.Vendor, detail, c.Account.Redact())
}
