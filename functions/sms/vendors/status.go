package vendors

import (
	"context"
	"strings"
	"time"

	"svcapi/shared/upstream"
)

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
	account upstream.Account,
	s PastSend) (Status, error) {
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
