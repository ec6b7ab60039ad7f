// Package uncertain asks vendors about Managed sends with an uncertain outcome, and resolves those that a vendor is
// certain about (docs/decisions/extensions.md#resolver).
package uncertain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// Open is the result for a send about which no vendor was certain, or which somebody else has resolved first.
const Open books.Verdict = "open"

// Absent is the age from which a vendor that does not know a send will never send it.
const Absent = 10 * time.Minute

// Asker asks the vendors of projects.
type Asker struct {
	Credits  *books.Store
	Projects *project.Store
	Client   *upstream.Client
	Secrets  *upstream.SecretCache
	Vendors  vendors.Table
	Absent   time.Duration
	Now      func() time.Time
	Actor    string // the author of the resolutions
}

// Reply is what a vendor says of a send. Without a vendor that was asked it is empty.
type Reply struct {
	Vendor string
	vendors.Status
}

var (
	errNoProject = errors.New("the project does not exist")
	// ErrNotAsked reports that the vendor has failed before.
	ErrNotAsked = errors.New("the vendor was not asked")
)

// Past returns the send of an uncertain charge, and its vendor where the charge has a reference: a request that died
// before it could name one may have sent through each Managed account.
func Past(p *project.Project, env project.Environment, e books.Entry) (vendor string, past vendors.PastSend,
	known bool) {
	sealer := vendors.NewSealer(p, env)
	if vendor, past, known = sealer.Open(e.Reference); known {
		return vendor, past, known
	}
	return "", vendors.PastSend{
		Key: vendors.SendKey(sealer.Scope+string(e.Key), 0), Ended: e.At,
		IsTo: func(string, string) bool { return false }, IsBy: func(upstream.Account) bool { return false },
		IsOf: func(upstream.Account) bool { return true }, // each account is Managed
	}, false
}

// Resolve asks about one send: the vendor of its reference, or each vendor where the request died before it could name
// one. failing has the vendors' endpoints that have failed, and gets those that fail. A panic of an adapter is an
// error of this send.
func (a *Asker) Resolve(ctx context.Context, id string, e books.Entry, failing map[string]bool) (
	verdict books.Verdict, reply Reply, err error) {
	var account upstream.Account
	defer func() {
		if p := recover(); p != nil {
			verdict = Open
			err = fmt.Errorf("panicked: %s\n%s", upstream.Redact(fmt.Sprint(p), account.Redact()), debug.Stack())
		}
	}()
	record, err := a.Projects.Load(ctx, id)
	if err != nil {
		return Open, reply, err
	}
	if record == nil {
		return Open, reply, errNoProject
	}
	env := project.Environment(e.Environment)
	vendor, past, known := Past(&record.Project, env, e)
	for _, in := range record.Integrations {
		spec := a.Vendors.Spec(in.Vendor)
		if in.Kind != project.SMS || in.Environment != env || in.Mode != project.Managed || known && in.Vendor != vendor ||
			spec == nil {
			continue
		}
		var accountErr error
		account, accountErr = a.Client.Resolve(ctx, id, in, spec, a.Secrets)
		if at := in.Vendor + " " + account.Endpoint; accountErr != nil || failing[at] {
			err = cmp.Or(err, accountErr, ErrNotAsked)
			continue
		}
		found, askErr := a.Vendors.CheckStatus(ctx, a.Client, a.Secrets, account, past)
		failing[in.Vendor+" "+account.Endpoint], err = askErr != nil, cmp.Or(err, askErr)
		if askErr == nil {
			reply = Reply{in.Vendor, found}
		}
		if verdict = a.verdict(e, past, found.State); verdict != Open {
			_, err = a.Credits.Resolve(ctx, id, e.Key, books.Resolution{
				Verdict: verdict, Reason: fmt.Sprintf("%s: %s (%s)", in.Vendor, found.Word, found.State), Actor: a.Actor,
			})
			if errors.Is(err, books.ErrResolved) || errors.Is(err, books.ErrNotUncertain) { // by somebody else
				return Open, reply, nil
			}
			return verdict, reply, err
		}
	}
	return Open, reply, err
}

// verdict returns what the state at the vendor proves.
func (a *Asker) verdict(e books.Entry, past vendors.PastSend, state vendors.State) books.Verdict {
	switch state {
	case vendors.StateAccepted, vendors.StateSent, vendors.StateDelivered, vendors.StateFailed:
		return books.VerdictConfirmed
	case vendors.StateNotFound:
		if past.ID == "" && a.Now().Sub(e.At) >= a.Absent {
			return books.VerdictRefunded
		}
	}
	return Open
}
