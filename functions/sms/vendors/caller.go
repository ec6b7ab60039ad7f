package vendors

import (
	"cmp"
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/pattern"
	"svcapi/shared/upstream"
)

// keyWords are the refusals of an account by vendors without error codes, known from third-party clients.
var keyWords = pattern.New(`(?i)\b(unauthori[sz]ed|unauthenticated|not allowed|invalid (api[ ` +
	`_]?key|key|token|user|credentials|login))\b`)

// fundsWords are the refusals of an account without funds, known from third-party clients.
var fundsWords = pattern.New(`(?i)\b(insufficient|not enough|low) (account )?(balance|credits?|funds)\b`)

// ownWords are those keyWords that may also refuse one message.
var ownWords = pattern.New(`(?i)^(unauthori[sz]ed|not allowed)$`)

// senderWords are the refusals of an account's sender. The sender is a setting of the integration.
var senderWords = pattern.New(`(?i)\b(sender|mask)(_?id)?\b`)

// messageWords show that a refusal by ownWords or senderWords is of one message.
var messageWords = pattern.New(`(?i)\b(recipient|number|destination|msisdn|subscriber|phone|mobile|opt(ed)?[ ` +
	`-]?out|unsubscribed|dnd)s?\b`)

// caller is the common part of the adapters: the HTTP client, the account and its vendor.
type caller struct {
	*upstream.Client
	upstream.Account

	vendor *Vendor
}

// call makes a request: a GET without a body, else a POST of a form (url.Values) or of JSON. The header is not nil;
// send says whether the request sends a message (upstream.Request).
func (c caller) call(ctx context.Context, address string, header http.Header, body any,
	send bool) (*upstream.Response, error) {
	r := &upstream.Request{Method: http.MethodPost, URL: address, Header: header, Redact: c.Redact(), Send: send}
	switch body := body.(type) {
	case nil:
		r.Method = http.MethodGet
	case url.Values:
		r.Body = []byte(body.Encode())
		header.Set("Content-Type", "application/x-www-form-urlencoded")
	default:
		content, err := json.Marshal(body, json.Deterministic(true))
		if err != nil {
			return nil, c.fail(upstream.NotSent, err.Error())
		}
		r.Body = content
		header.Set("Content-Type", "application/json")
	}
	return c.Do(ctx, c.Integration.Vendor, r)
}

// bearer returns a header with a token, and an empty header without one.
func bearer(token string) http.Header {
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return header
}

// basic returns a header with a user and a password (RFC 7617).
func basic(user, password string) http.Header {
	return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}}
}

func (c caller) fail(class upstream.Class, detail string) *upstream.Error {
	return upstream.Failure(class, c.Integration.Vendor, detail, c.Redact())
}

// codePattern matches the codes of vendors. No other text of a vendor reaches a client as a code.
var codePattern = pattern.New(`^[A-Za-z0-9._-]{1,64}$`)

// redacting returns the caller with more secrets to remove from its errors, such as a token of the vendor.
func (c caller) redacting(more upstream.SecretValues) caller {
	secrets := maps.Clone(more)
	maps.Copy(secrets, c.Secrets)
	c.Secrets = secrets
	return c
}

// status returns the state for a vendor's word in any case, or the error of the call or of no word.
func (c caller) status(word string, err error) (Status, error) {
	switch state := c.vendor.States[strings.ToLower(word)]; {
	case err != nil:
		return Status{}, err
	case word == "":
		return Status{}, c.fail(upstream.Unusable, "response without a status")
	case state != "":
		return Status{State: state, Word: word}, nil
	}
	return Status{State: StateUnknown, Word: word, Reason: ReasonWordUnknown}, nil
}

// balance returns a number that the vendor reports as the balance, or the error of the call or of another text.
func (c caller) balance(number string, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case !numberPattern().MatchString(number):
		return "", c.fail(upstream.Unusable, "response without a balance")
	}
	return number, nil
}

// accepted returns the receipt of a call, with "success" for no status, or the error of the call.
func accepted(status string, id jsontext.Value, err error) (Receipt, error) {
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Status: cmp.Or(status, "success"), ID: text(id)}, nil
}

// identified returns the receipt of a call whose response without an ID does not show that the vendor has accepted the
// message, or the error of the call.
func (c caller) identified(status string, id jsontext.Value, err error) (Receipt, error) {
	if err == nil && text(id) == "" {
		err = c.fail(upstream.Unusable, "response without an ID")
	}
	return accepted(status, id, err)
}

// refusal returns the error for a documented failure: the class, the vendor's text, and the code, unless the code is
// empty or holds a secret; for a refusal of the pace the seconds of the header Retry-After.
func (c caller) refusal(class upstream.Class, code, text string, header http.Header) error {
	e := c.fail(class, strings.TrimSpace(code+" "+text))
	if codePattern().MatchString(code) && upstream.Redact(code, c.Redact()) == code {
		e.Code = code
	}
	if class == upstream.TooFast {
		seconds, _ := strconv.ParseUint(header.Get("Retry-After"), 10, 16) // 0 for a date
		e.Pause = time.Duration(seconds) * time.Second
	}
	return e
}

// byText returns the error for a refusal whose text alone shows the class.
func (c caller) byText(text string) error {
	class, word, own := upstream.CredentialsRefused, keyWords().FindString(text), messageWords().MatchString(text)
	switch {
	case fundsWords().MatchString(text):
		return c.fail(upstream.AccountRefused, text)
	case !own && senderWords().MatchString(text):
		class = upstream.AccountRefused
	case word == "" || own && ownWords().MatchString(word):
		return c.fail(upstream.Rejected, text)
	}
	e := c.fail(class, text)
	e.ByWords = true
	return e
}

// byWords returns the error of byStatus for a vendor without error codes, where the words of a refusal decide about its
// class.
func (c caller) byWords(r *upstream.Response) error {
	err := c.byStatus(r, "")
	if values, _ := members(r.Body); values != nil && upstream.ClassOf(err) == upstream.Rejected {
		return c.byText(string(r.Body))
	}
	return err
}

// byStatus returns the error for an HTTP status that shows a failure, with the vendor's code, and nil where the body
// decides.
func (c caller) byStatus(r *upstream.Response, code string) error {
	class := upstream.Rejected
	switch {
	case r.Status >= 200 && r.Status < 300:
		return nil
	case r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden:
		class = upstream.CredentialsRefused
	case r.Status == http.StatusPaymentRequired:
		class = upstream.AccountRefused
	case r.Status == http.StatusTooManyRequests:
		class = upstream.TooFast
	case r.Status < 400 || r.Status >= 500:
		class = upstream.Unusable
	}
	return c.refusal(class, code, http.StatusText(r.Status)+": "+string(r.Body), r.Header)
}

// read returns the members of a successful response of a vendor without error codes. Only Words show that the vendor
// has accepted or refused the call. The reasons of a refusal are in other members.
func (c caller) read(response *upstream.Response, err error) (map[string]jsontext.Value, error) {
	if err == nil {
		err = c.byWords(response)
	}
	if err != nil {
		return nil, err
	}
	values, _ := members(response.Body)
	for _, member := range []string{"success", "status"} {
		accepted, known := c.vendor.Words[member+" "+strings.ToLower(text(values[member]))]
		if accepted {
			return values, nil
		}
		if known {
			reasons := []string{text(values["message"]), text(values["data"]), text(values["error"]), string(values["errors"])}
			return nil, c.byText(strings.TrimSpace(strings.Join(reasons, " ")))
		}
	}
	return nil, c.fail(upstream.Unusable, string(response.Body))
}

// data returns the members of the data of a successful response. Not all are documented: each may be missing.
func (c caller) data(response *upstream.Response, err error) (map[string]jsontext.Value, error) {
	values, err := c.read(response, err)
	data, _ := members(values["data"])
	return data, err
}

// text returns a string, number or boolean as text, because vendors change types without notice. Any other value is "".
func text(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		b, _ := jsontext.AppendUnquote(nil, v) // a decoder returned v, so v is well-formed
		return string(b)
	case '0', 't', 'f':
		return string(v)
	}
	return ""
}

// flag returns the text of a boolean in any form of the vendors as "0" or "1".
func flag(text string) string {
	switch strings.ToLower(text) {
	case "", "0", "false", "no":
		return "0"
	}
	return "1"
}

// members decodes a JSON object and returns its members with the text of its status, and none for malformed JSON.
func members(body []byte) (values map[string]jsontext.Value, status string) {
	if json.Unmarshal(body, &values) != nil {
		return nil, ""
	}
	return values, text(values["status"])
}

// each applies a format to several numbers.
func each(numbers []string, format func(string) string) []string {
	formatted := make([]string, len(numbers))
	for i, n := range numbers {
		formatted[i] = format(n)
	}
	return formatted
}

var numberPattern = pattern.New(`^-?\d[\d,]*(\.\d+)?$`)

// Formats of a number +947XXXXXXXX for vendors.

func local(to string) string         { return "0" + strings.TrimPrefix(to, "+94") } // 07XXXXXXXX
func international(to string) string { return strings.TrimPrefix(to, "+") }         // 947XXXXXXXX
func bare(to string) string          { return strings.TrimPrefix(to, "+94") }       // 7XXXXXXXX
