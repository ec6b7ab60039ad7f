package vendors

import (
	"context"
	"net/http"
	"net/url"
	"regexp"

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

// meaning is the meaning of a vendor's error: a class, quota or unknown.
type meaning = upstream.Class

// The meanings.
const (
	unusable            = upstream.Unusable           // the response is not valid, or an HTTP 5xx
	rejected            = upstream.Rejected           // the vendor refuses the request
	credentials         = upstream.CredentialsRefused // the vendor refuses the key, the account or its plan
	quota       meaning = "quota"                     // the account has used its quota
	unknown     meaning = "unknown"                   // the vendor does not know the address
)

// statuses are the default meanings of HTTP statuses.
var statuses = map[int]meaning{
	http.StatusUnauthorized:    credentials,
	http.StatusPaymentRequired: quota,
	http.StatusForbidden:       credentials,
	http.StatusTooManyRequests: quota,
}

// get makes a GET request to the vendor and returns the response with any status.
func (c Caller) get(ctx context.Context, path string, query url.Values,
	header http.Header) (*upstream.Response, error) {
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

// decode parses a JSON object, also with duplicate names and invalid UTF-8.
func (c Caller) decode(body []byte) (d document, err error) {
	if err := json.Unmarshal(body, &d, laxJSON); err != nil || d == nil {
		return nil, c.fail(unusable, "invalid JSON: "+string(body))
	}
	return d, nil
}

// byStatus returns the error of a response by its HTTP status, or nil for 200. The vendor's own meanings take
// precedence.
func (c Caller) byStatus(r *upstream.Response, own map[int]meaning) error {
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
		meaning = rejected
	default:
		meaning = unusable
	}
	return c.fail(meaning, http.StatusText(r.Status)+": "+string(r.Body))
}

// getJSON makes a GET request and parses the JSON object of a response with status 200.
func (c Caller) getJSON(ctx context.Context, path string, query url.Values, header http.Header,
	own map[int]meaning) (document, error) {
	r, err := c.get(ctx, path, query, header)
	if err != nil {
		return nil, err
	}
	if err := c.byStatus(r, own); err != nil {
		return nil, err
	}
	return c.decode(r.Body)
}

// fail returns the error of a meaning, with a detail for the operator.
func (c Caller) fail(meaning meaning, detail string) error {
	switch meaning {
	case unknown:
		return ErrUnknown
	case quota:
		meaning, detail = rejected, "quota used up: "+detail
	}
	return upstream.Failure(meaning, c.Account.Integration.Vendor, detail, c.Account.Redact())
}

// phrase is a pattern of a vendor's messages with their meaning.
type phrase struct {
	pattern func() *regexp.Regexp
	meaning meaning
}

// byMessage returns the error of a message by the first phrase that matches, or else a rejection.
func (c Caller) byMessage(message string, phrases []phrase) error {
	for _, p := range phrases {
		if p.pattern().MatchString(message) {
			return c.fail(p.meaning, message)
		}
	}
	return c.fail(rejected, message)
}
