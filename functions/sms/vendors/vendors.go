// Package vendors speaks to SMS vendors, one file each. Adding one is a file
// and a row of Table.
package vendors

import (
	"context"
	"net/http"
	"strings"

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

// Vendor is one row of the table.
type Vendor struct {
	upstream.Spec
	New func(*upstream.Client, upstream.Account) Adapter
}

// Table lists the vendors.
func Table() []Vendor {
	return []Vendor{quickSend(), twilio()}
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

// senderID is the setting that nearly every vendor takes.
var senderID = upstream.Field{Name: "sender_id", Description: "sender shown on the handset, as the vendor approved it", Required: true}

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
	const most = 500 // of the vendor's words
	detail = upstream.Redact(detail, c.account.Redact())
	if len(detail) > most {
		detail = strings.ToValidUTF8(detail[:most], "")
	}
	return &upstream.Error{Class: class, Vendor: c.name, Detail: detail}
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
