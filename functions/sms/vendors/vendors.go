// Package vendors sends SMS through vendors, one file each. A new vendor is a file and a row of Table.
package vendors

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/pattern"
	"svcapi/shared/upstream"
)

// Message is one SMS to one recipient or several ones.
type Message struct {
	To      []string // +947XXXXXXXX, at most Batch of the vendor
	Text    string
	Unicode bool   // the text is not GSM 03.38
	Key     string // names the call that sends the message: each repetition of the call has this key, and no other call
}

// Receipt is a vendor's acceptance.
type Receipt struct {
	Status  string // in the vendor's words
	ID      string // empty where the vendor returns none
	Removed Removed
}

// Removed is the number of recipients whom a vendor has removed from an accepted call. The vendor does not name them.
type Removed struct {
	Duplicates int `json:"duplicates_removed"`
	Invalid    int `json:"invalid_numbers"`
	Blocked    int `json:"mask_blocked_numbers"`
}

// Sum returns the number of all removed recipients.
func (r Removed) Sum() int { return r.Duplicates + r.Invalid + r.Blocked }

// Adapter sends through one account of one vendor. Its errors are *upstream.Error. One call sends a message to all its
// recipients or to none of them. The receipt names how many recipients the vendor has removed.
type Adapter interface {
	Send(ctx context.Context, m Message) (Receipt, error)
}

// Balancer is an Adapter whose vendor reports the balance of the account, as text for people.
type Balancer interface {
	Balance(ctx context.Context) (string, error)
}

// DifferentSender is an Adapter whose vendor accepts several messages, with one recipient each, in one call, all of
// them or none.
type DifferentSender interface {
	SendDifferent(ctx context.Context, messages []Message) (Receipt, error)
}

// CostChecker is an Adapter whose vendor estimates the cost of a campaign. CheckCost returns the vendor's values as
// text.
type CostChecker interface {
	CheckCost(ctx context.Context, to []string, text string) (Campaign, error)
}

// Campaign is a cost estimate, the campaign_data of openapi.yaml#sendSms.
type Campaign struct {
	Method  string            `json:"campaign_method"`
	Type    string            `json:"campaign_type"`
	Sender  string            `json:"sender_id"`
	Cost    string            `json:"campaign_total_cost"`
	Numbers string            `json:"campaign_total_numbers"`
	Parts   []CampaignMessage `json:"sms_msg_data"`
}

// CampaignMessage is one message of a Campaign. Unicode is "0" or "1", Size is in SMS units, and the costs are
// decimals.
type CampaignMessage struct {
	Message string `json:"msg"`
	Unicode string `json:"unicode"`
	Size    string `json:"msg_size"`
	PerSMS  string `json:"per_sms_cost"`
	Cost    string `json:"msg_cost"`
}

// Vendor is one row of the table.
type Vendor struct {
	upstream.Spec
	Pace        int // maximum of calls a second; 0: not known
	Concurrency int // maximum of calls at once of one request
	Batch       int // maximum of recipients of one Message; 0 is 1
	New         func(*upstream.Client, upstream.Account) Adapter
}

// unpublished is the concurrency of the vendors that publish no number, half of the largest number that a row sets.
const unpublished = 16

// MaxDifferent is the maximum of messages of one SendDifferent (openapi.yaml#sendSms, msg_list).
const MaxDifferent = 20

// Table is the list of vendors, with the state that they keep between calls.
type Table []Vendor

// NewTable returns the vendors. cfg is the AWS account of the function, which pays for AWS End User Messaging.
func NewTable(cfg aws.Config) Table {
	table := Table{
		quickSend(), notifyLK(), textLK(), ultimateSMS(), smsLenz(), dialog(), dialogV2(), hutch(), twilio(), testVendor(),
		endUserMessaging(cfg),
	}
	for i := range table {
		table[i].Settings = append(table[i].Settings, commonSettings...)
	}
	return table
}

// Find returns the vendor with the name, or nil.
func (t Table) Find(name string) *Vendor {
	for i := range t {
		if t[i].Name == name {
			return &t[i]
		}
	}
	return nil
}

// Spec returns the spec of the vendor with the name, or nil.
func (t Table) Spec(name string) *upstream.Spec {
	if v := t.Find(name); v != nil {
		return &v.Spec
	}
	return nil
}

// Settings with one meaning for all vendors that have them.
const (
	SenderID        = "sender_id"         // the sender of a request that names none
	SenderIDs       = "sender_ids"        // separated by commas: the senders that a request may name
	UnitPrice       = "unit_price"        // plain decimal, for estimates
	NativeCheckCost = "native_check_cost" // "true": cost checks call the vendor
)

// UnitPricePattern is the pattern of a unit price. With at most six decimals all costs are exact.
const UnitPricePattern = `^\d{1,9}(\.\d{1,6})?$`

// commonSettings are settings of every vendor.
var commonSettings = []upstream.Field{
	{
		Name: UnitPrice, Pattern: UnitPricePattern,
		Description: "price of one SMS unit in the account's currency, a plain decimal such as 0.64; cost checks need it",
	},
	{
		Name: SenderIDs, Pattern: `^[^\s,]([^,]{0,62}[^\s,])?(,[^\s,]([^,]{0,62}[^\s,])?)*$`,
		Description: "senders that a request may name in sender_id, separated by commas, such as Acme,AcmeInfo",
	},
}

// senderID is a setting of nearly every vendor.
var senderID = required(SenderID, "sender shown on the handset, as the vendor approved it")

var apiKey = required("api_key", "API key of the account")

func required(name, description string) upstream.Field {
	return upstream.Field{Name: name, Description: description, Required: true}
}

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

// caller is the common part of the adapters: the HTTP client and the account.
type caller struct {
	*upstream.Client
	upstream.Account
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
	e, _ := errors.AsType[*upstream.Error](upstream.Failure(class, c.Integration.Vendor, detail, c.Redact()))
	return e
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

// status returns the state for a vendor's word in any case, by the vendor's table, or the error of the call or of no
// word.
func (c caller) status(states map[string]State, word string, err error) (Status, error) {
	switch state := states[strings.ToLower(word)]; {
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
	case !isNumber(number):
		return "", c.fail(upstream.Unusable, "response without a balance")
	}
	return number, nil
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

// read returns the members of a successful response of a vendor without error codes. The words of the vendor are the
// values, in lower case, by which "success" or "status" shows that the vendor has accepted the call (true) or refused
// it (false); no other value shows either. The reasons of a refusal are in other members.
func (c caller) read(words map[string]bool, response *upstream.Response, err error) (map[string]jsontext.Value, error) {
	if err == nil {
		err = c.byWords(response)
	}
	if err != nil {
		return nil, err
	}
	values, _ := members(response.Body)
	for _, member := range []string{"success", "status"} {
		accepted, known := words[member+" "+strings.ToLower(text(values[member]))]
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
