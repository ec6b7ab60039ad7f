// Package vendors sends SMS through vendors: the mobile operators of Sri Lanka (operators.go: Dialog, Hutch), its
// gateways (gateways.go: Notify.lk, SMSlenz, Ultimate SMS, Text.lk, QuickSend), international ones (international.go:
// Twilio, AWS). A new vendor is a file, an entry of vendors.json and an adapter of NewTable.
package vendors

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // vendors.json
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/go-json-experiment/json"
	"golang.org/x/time/rate"

	"svcapi/shared/project"
	"svcapi/shared/testvalue"
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

	Pace        int `json:"pace"`        // maximum of calls a second; 0: not known
	Concurrency int `json:"concurrency"` // maximum of calls at once of one request
	Batch       int `json:"batch"`       // maximum of recipients of one Message; 0 is 1
	// Codes are the codes by which the vendor refuses a call, and States the states of a message in lower case.
	Codes  map[string]Refusal `json:"codes"`
	States map[string]State   `json:"states"`
	// Words are those of a vendor without codes: the member success or status, a blank and the value in lower case by
	// which the member shows that the vendor has accepted the call (true) or refused it (false).
	Words map[string]bool                                  `json:"words"`
	New   func(*upstream.Client, upstream.Account) Adapter `json:"-"`
}

// Refusal is what a code of a vendor means.
type Refusal struct {
	Class   upstream.Class `json:"class"`
	Meaning string         `json:"meaning"` // for operators
}

// unpublished is the concurrency of the vendors that publish no number, half of the largest number that a row sets.
const unpublished = 16

// MaxDifferent is the maximum of messages of one SendDifferent (openapi.yaml#sendSms, msg_list).
const MaxDifferent = 20

// Table is the list of vendors, with the state that they keep between calls.
type Table []Vendor

// vendorsJSON has the vendors with the documents that their rows and their adapters come from.
//
//go:embed vendors.json
var vendorsJSON []byte

// NewTable returns the vendors. cfg is the AWS account of the function, which pays for AWS End User Messaging.
func NewTable(cfg aws.Config) Table {
	hutchTokens, dialogTokens, dialogChecks := newTokens(), newTokens(), rate.NewLimiter(checksASecond, 1)
	adapters := map[string]func(caller) Adapter{
		"quicksend":        func(c caller) Adapter { return &quickSendAdapter{c} },
		"notifylk":         func(c caller) Adapter { return &notifyAdapter{c} },
		"textlk":           func(c caller) Adapter { return &ultimateAdapter{c, "/api/v3"} },
		"ultimatesms":      func(c caller) Adapter { return &ultimateAdapter{c, ""} },
		"smslenz":          func(c caller) Adapter { return &smsLenzAdapter{c} },
		"dialog":           func(c caller) Adapter { return &dialogAdapter{c} },
		"dialogv2":         func(c caller) Adapter { return &dialogV2Adapter{session{c, dialogTokens}, dialogChecks} },
		"hutch":            func(c caller) Adapter { return &hutchAdapter{session{c, hutchTokens}} },
		"twilio":           func(c caller) Adapter { return &twilioAdapter{c} },
		project.TestVendor: func(caller) Adapter { return testAdapter{} },
		"aws":              func(c caller) Adapter { return &awsAdapter{c, cfg} },
	}
	var table Table
	if err := json.Unmarshal(vendorsJSON, &table); err != nil {
		panic(fmt.Errorf("vendors.json: %w", err)) // each test reads the file
	}
	for i, v := range table {
		v.Settings = append(v.Settings, commonSettings...)
		v.Concurrency = cmp.Or(v.Concurrency, unpublished)
		v.New = func(c *upstream.Client, a upstream.Account) Adapter { return adapters[v.Name](caller{c, a, &v}) }
		table[i] = v
	}
	return table
}

// Find returns the vendor with the name, or nil.
func (t Table) Find(name string) *Vendor { return upstream.Find(t, name) }

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

// StatusChecker is an Adapter whose vendor reports the state of an earlier send.
type StatusChecker interface {
	CheckStatus(ctx context.Context, s PastSend) (Status, error)
}

// PastSend is a send that has ended, accepted or uncertain.
type PastSend struct {
	Key   string    // of the Message
	ID    string    // of the Receipt; empty: not known
	Ended time.Time // to the second
	// IsTo reports, for a send without an ID, whether +947XXXXXXXX is the number of the only recipient, and body the text.
	IsTo func(number, body string) bool
	// IsOf reports whether the owner of the account is the one of the send: the project, or the operator.
	IsOf func(upstream.Account) bool
	// IsBy reports whether the account, at its endpoint, has sent, and for a send without an ID that no secret has
	// changed.
	IsBy func(upstream.Account) bool
}

// State is the state of a send at its vendor (openapi.yaml#SmsStatusResult).
type State string

// The states.
const (
	StateAccepted  State = "accepted" // and not sent yet
	StateSent      State = "sent"
	StateDelivered State = "delivered"
	StateFailed    State = "failed"
	StateNotFound  State = "not_found" // for a send without an ID only where the vendor has accepted no such send
	StateUnknown   State = "unknown"
)

// The reasons of StateUnknown.
const (
	ReasonNoStatus     = "vendor_has_no_status"  // no vendor is asked
	ReasonIDUnknown    = "vendor_id_unknown"     // the vendor finds a message only by its ID
	ReasonWordUnknown  = "vendor_status_unknown" // the word is not documented
	ReasonInconclusive = "search_inconclusive"   // no message, or several ones, can be the one
	ReasonOtherAccount = "account_changed"       // an account that has not sent does not know the send
)

// Status is the state that a vendor reports.
type Status struct {
	State  State
	Word   string // of the vendor, or its code; empty: the vendor has none
	Reason string // of StateUnknown

	searched bool // a search in the account has found the send, without its ID or its key
}

// CheckStatus asks the vendor of an account for the state of a send, where the vendor has a call for that.
func (t Table) CheckStatus(ctx context.Context, c *upstream.Client, secrets *upstream.SecretCache,
	account upstream.Account, s PastSend) (Status, error) {
	vendor := t.Find(account.Integration.Vendor)
	if _, ok := vendor.New(c, account).(StatusChecker); !ok {
		return Status{State: StateUnknown, Reason: ReasonNoStatus}, nil
	}
	if !s.IsOf(account) {
		return Status{State: StateUnknown, Reason: ReasonOtherAccount}, nil
	}
	return upstream.Call(ctx, nil, secrets, account, func(a upstream.Account) (Status, error) {
		found, err := vendor.New(c, a).(StatusChecker).CheckStatus(ctx, s)
		if (found.State == StateNotFound || found.searched) && !s.IsBy(a) {
			word := found.Word
			if found.searched { // the word is of another message
				word = ""
			}
			found = Status{State: StateUnknown, Word: word, Reason: ReasonOtherAccount}
		}
		found.Word = ForClient(found.Word, a)
		return found, err
	})
}

// Reporting returns the names of the vendors that report the state of a send.
func (t Table) Reporting(c *upstream.Client) (names []string) {
	for _, v := range t {
		if _, ok := v.New(c, upstream.Account{}).(StatusChecker); ok {
			names = append(names, v.Name)
		}
	}
	return names
}

// ForClient returns a vendor's own word as a client gets it: without the account's secrets, and of at most 64 bytes.
func ForClient(word string, a upstream.Account) string {
	const longest = 64
	word = upstream.Redact(word, a.Redact())
	return strings.ToValidUTF8(word[:min(len(word), longest)], "")
}

// testAdapter is the vendor "test".
type testAdapter struct{}

// Send implements Adapter.
func (testAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	value := testvalue.Of("0" + strings.TrimPrefix(m.To[0], "+94"))
	if value.Outcome == testvalue.Slow {
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
			value.Outcome = testvalue.Hang
		}
	}
	if err := upstream.TestFailure(value); err != nil {
		return Receipt{}, err
	}
	return Receipt{Status: "success", ID: "test-" + strings.ToLower(rand.Text()[:12])}, nil
}

// Balance implements Balancer.
func (testAdapter) Balance(context.Context) (string, error) { return "0", nil }

// CheckStatus implements StatusChecker. An accepted message is delivered at once.
func (testAdapter) CheckStatus(_ context.Context, s PastSend) (Status, error) {
	if s.ID == "" {
		return Status{State: StateUnknown, Reason: ReasonIDUnknown}, nil
	}
	return Status{State: StateDelivered, Word: "delivered"}, nil
}
