package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"svcapi/functions/sms/reference"
	"svcapi/functions/sms/vendors"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
)

// actor is the author of the resolutions.
const actor = "sms/resolve"

// due reports whether a question is due about a send of that age.
func (a Ages) due(age time.Duration) bool {
	since := func(at time.Duration) bool { return at <= age && age-a.Period < at }
	hour := min(age.Truncate(time.Hour), 24*time.Hour)
	return since(a.First) || since(a.Absent) || hour > 0 && since(hour)
}

// Resolver asks vendors about uncertain sends and resolves those (docs/decisions/extensions.md#resolver).
type Resolver struct {
	Credits  *books.Store
	Projects *project.Store
	Client   *upstream.Client
	Secrets  *secret.Cache
	Vendors  vendors.Table
	Ages     Ages
	Now      func() time.Time
	Log      *telemetry.Logger
}

// The results for a send besides the verdicts.
const (
	open   books.Verdict = "open"   // no vendor was certain, or an operator was first
	failed books.Verdict = "failed" // no vendor responded, or the resolution was not stored
)

// Handle runs once and logs one line. A send that fails waits for its next question and is no error of the function.
func (r *Resolver) Handle(ctx context.Context) error {
	run, cancel := telemetry.BeforeLogging(ctx)
	defer cancel()
	results, err := r.Run(run)
	event := telemetry.Event{Level: slog.LevelInfo, Message: "uncertain sends resolved",
		Attributes: []slog.Attr{slog.Any("sends", results)}}
	if err != nil {
		event.Level, event.Message = slog.LevelError, "uncertain sends not read"
		event.Attributes = append(event.Attributes, slog.String("error", err.Error()))
	}
	r.Log.Emit(ctx, event)
	return err
}

// send is an uncertain send.
type send struct {
	project string
	books.Entry
}

// Run asks about every send that is due and returns the number of sends by their results. The order is random,
// so that a run without time for all sends does not leave out the same ones each time. After a vendor's failure Run
// sends no further question to that endpoint.
func (r *Resolver) Run(ctx context.Context) (map[books.Verdict]int, error) {
	var due []send
	results := map[books.Verdict]int{}
	err := r.Credits.VisitUncertain(ctx, func(project string, e books.Entry, err error) {
		if s := (send{project, e}); err != nil {
			r.fail(ctx, s, err)
			results[failed]++
		} else if r.Ages.due(r.Now().Sub(e.At)) {
			due = append(due, s)
		}
	})
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	failing := map[string]bool{} // vendors' endpoints
	for i, s := range due {
		if ctx.Err() != nil {
			results[failed] += len(due) - i
			break
		}
		result, err := r.resolve(ctx, s, failing)
		if err != nil {
			r.fail(ctx, s, err)
			result = failed
		}
		results[result]++
	}
	return results, err
}

// errNoProject reports that the send's project does not exist any more.
var errNoProject = errors.New("the project does not exist")

// resolve asks about one send: the vendor of its reference, or each vendor where the request died before it could name
// one. A panic of an adapter is an error of this send alone.
func (r *Resolver) resolve(ctx context.Context, s send, failing map[string]bool) (verdict books.Verdict, err error) {
	var account upstream.Account
	defer func() {
		if p := recover(); p != nil {
			verdict = open
			err = fmt.Errorf("panicked: %s\n%s", upstream.Redact(fmt.Sprint(p), account.Redact()), debug.Stack())
		}
	}()
	record, err := r.Projects.Load(ctx, s.project)
	if err != nil {
		return open, err
	}
	if record == nil {
		return open, errNoProject
	}
	env := project.Environment(s.Environment)
	sealer := reference.New(&record.Project, env)
	vendor, past, known := sealer.Open(s.Reference)
	if !known {
		past = vendors.PastSend{
			Key: reference.Key(sealer.Scope+string(s.Key), 0), Ended: s.At,
			IsTo: func(string, string) bool { return false }, IsBy: func(upstream.Account) bool { return false },
			IsOf: func(upstream.Account) bool { return true }, // each account is Managed
		}
	}
	for _, in := range record.Integrations {
		spec := r.Vendors.Spec(in.Vendor)
		if in.Kind != project.SMS || in.Environment != env || in.Mode != project.Managed || known && in.Vendor != vendor ||
			spec == nil {
			continue
		}
		var accountErr error
		account, accountErr = r.Client.Resolve(ctx, s.project, in, spec, r.Secrets)
		if at := in.Vendor + " " + account.Endpoint; accountErr != nil || failing[at] {
			err = cmp.Or(err, accountErr, errNotAsked)
			continue
		}
		found, askErr := r.Vendors.CheckStatus(ctx, r.Client, r.Secrets, account, past)
		failing[in.Vendor+" "+account.Endpoint], err = askErr != nil, cmp.Or(err, askErr)
		if verdict = r.verdict(s, past, found.State); verdict != open {
			_, err = r.Credits.Resolve(ctx, s.project, s.Key, books.Resolution{
				Verdict: verdict, Reason: fmt.Sprintf("%s: %s (%s)", in.Vendor, found.Word, found.State), Actor: actor,
			})
			if errors.Is(err, books.ErrResolved) || errors.Is(err, books.ErrNotUncertain) { // by an operator
				return open, nil
			}
			return verdict, err
		}
	}
	return open, err
}

// verdict returns what the state at the vendor proves.
func (r *Resolver) verdict(s send, past vendors.PastSend, state vendors.State) books.Verdict {
	switch state {
	case vendors.StateAccepted, vendors.StateSent, vendors.StateDelivered, vendors.StateFailed:
		return books.VerdictConfirmed
	case vendors.StateNotFound:
		if past.ID == "" && r.Now().Sub(s.At) >= r.Ages.Absent {
			return books.VerdictRefunded
		}
	}
	return open
}

// errNotAsked reports that the vendor has failed in this run before.
var errNotAsked = errors.New("the vendor was not asked")

// fail logs a send for an operator, unless its vendor was not asked: the log has the send at which the vendor failed.
func (r *Resolver) fail(ctx context.Context, s send, err error) {
	if errors.Is(err, errNotAsked) {
		return
	}
	r.Log.Emit(ctx, telemetry.Event{Level: slog.LevelWarn, Message: "uncertain send not resolved", Attributes: []slog.Attr{
		slog.String("project", s.project), slog.String("key", string(s.Key)), slog.String("error", err.Error()),
	}})
}
