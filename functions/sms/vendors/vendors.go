// Package vendors speaks to SMS vendors, one file each. Adding one is a file
// and a row of Table.
package vendors

import (
	"context"
	"maps"
	"net/http"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// Message is one SMS to one recipient.
type Message struct {
	To      string // +947XXXXXXXX
	Text    string
	Unicode bool // the text is not GSM 03.38
}

// Receipt is a vendor's acceptance.
type Receipt struct {
	Status string // the vendor's word
	ID     string // empty where the vendor gives none
}

// Adapter sends through one account of one vendor. Its errors are *upstream.Error.
type Adapter interface {
	Send(ctx context.Context, m Message) (Receipt, error)
}

// Balancer is an Adapter whose vendor tells the account's balance, as text for people.
type Balancer interface {
	Balance(ctx context.Context) (string, error)
}

// SameSender is an Adapter whose vendor takes one text for many recipients in
// one call. They are accepted together or not at all.
type SameSender interface {
	SendSame(ctx context.Context, to []string, text string, unicode bool) (Receipt, error)
}

// DifferentSender is an Adapter whose vendor takes several messages in one
// call. They are accepted together or not at all.
type DifferentSender interface {
	SendDifferent(ctx context.Context, messages []Message) (Receipt, error)
}

// CostChecker is an Adapter whose vendor estimates a campaign. The answer is
// the vendor's own, its values as text.
type CostChecker interface {
	CheckCost(ctx context.Context, to []string, text string) (Campaign, error)
}

// Campaign is a cost estimate in the contract's shape (campaign_data).
type Campaign struct {
	Method  string            `json:"campaign_method"`
	Type    string            `json:"campaign_type"`
	Sender  string            `json:"sender_id"`
	Cost    string            `json:"campaign_total_cost"`
	Numbers string            `json:"campaign_total_numbers"`
	Parts   []CampaignMessage `json:"sms_msg_data"`
}

// CampaignMessage is one message of a Campaign. Unicode is "0" or "1", MsgSize
// the message's units, and the costs are plain decimals.
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
	Pace  int // most calls a second that the vendor takes; 0: not known
	Batch int // most recipients of one SendSame
	New   func(*upstream.Client, upstream.Account) Adapter
}

// MaxDifferent is the most messages of one SendDifferent (contract: msg_list).
const MaxDifferent = 20

// Table is the vendors, with what they keep between calls.
type Table []Vendor

// NewTable lists the vendors. cfg is the function's own AWS account, for
// vendors that it pays there.
func NewTable(cfg aws.Config) Table {
	return Table{quickSend(), notifyLK(), textLK(), dialog(), dialogV2(), twilio(), endUserMessaging(cfg)}
}

// Find returns the vendor of a name, or nil.
func (t Table) Find(name string) *Vendor {
	for i := range t {
		if t[i].Name == name {
			return &t[i]
		}
	}
	return nil
}

// Spec returns what the vendor of a name needs, or nil.
func (t Table) Spec(name string) *upstream.Spec {
	if v := t.Find(name); v != nil {
		return &v.Spec
	}
	return nil
}

// Settings that mean the same for every vendor that takes them.
const (
	UnitPrice       = "unit_price"        // plain decimal, for estimates
	NativeCheckCost = "native_check_cost" // "true": the vendor is asked for estimates
)

// UnitPricePattern is what a unit price looks like, so that costs are exact.
const UnitPricePattern = `^\d{1,9}(\.\d{1,6})?$`

// unitPrice is a setting of every vendor.
var unitPrice = upstream.Field{
	Name: UnitPrice, Pattern: UnitPricePattern,
	Description: "price of one SMS unit in the account's currency, a plain decimal such as 0.64; cost checks need it",
}

// senderID is the setting that nearly every vendor takes.
var senderID = upstream.Field{Name: "sender_id", Description: "sender shown on the handset, as the vendor approved it", Required: true}

// keyWords are the words with which a gateway that documents no error codes
// refuses an account or its key, as third-party clients know them.
var keyWords = regexp.MustCompile(`(?i)\b(unauthori[sz]ed|unauthenticated|not allowed|invalid (api[ _]?key|key|token|user|credentials|login))\b`)

// caller is what adapters share: the account and the way out.
type caller struct {
	name    string
	client  *upstream.Client
	account upstream.Account
}

func (c caller) do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	r.Redact = c.account.Redact()
	return c.client.Do(ctx, c.name, r)
}

func (c caller) fail(class upstream.Class, detail string) error {
	return upstream.Failure(class, c.name, detail, c.account.Redact())
}

// hiding returns the caller with more secrets to keep out of its errors, such as a token that the vendor issued.
func (c caller) hiding(more secret.Values) caller {
	secrets := maps.Clone(more)
	maps.Copy(secrets, c.account.Secrets)
	c.account.Secrets = secrets
	return c
}

// byWords judges a refusal by its words alone.
func (c caller) byWords(words string) error {
	if keyWords.MatchString(words) {
		return c.fail(upstream.CredentialsRefused, words)
	}
	return c.fail(upstream.Rejected, words)
}

// byStatus judges an answer by its HTTP status alone; nil: the body decides.
func (c caller) byStatus(r *upstream.Response) error {
	class := upstream.Rejected
	switch {
	case r.Status >= 200 && r.Status < 300:
		return nil
	case r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden:
		class = upstream.CredentialsRefused
	case r.Status < 400 || r.Status >= 500:
		class = upstream.Unusable
	}
	return c.fail(class, http.StatusText(r.Status)+": "+string(r.Body))
}
