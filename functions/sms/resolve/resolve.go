package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"svcapi/functions/sms/reference"
	"svcapi/functions/sms/vendors"
	"svcapi/shared/credit"
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

// Resolver asks the vendors about uncertain sends, and resolves those about which a vendor is certain (docs/decisions.md#resolver).
type Resolver struct {
	Credits  *credit.Store
	Projects *project.Store
	Client   *upstream.Client
	Secrets  *secret.Cache
	Vendors  vendors.Table
	Ages     Ages
	Now      func() time.Time
	Log      *telemetry.Logger
}

// Report counts the results of one run.
type Report struct {
	Resolved map[credit.Verdict]int // "": sends that stay uncertain
	Failed   int                    // sends about which no vendor was asked, or whose resolution failed
}

// Handle runs once and logs one line. A send that fails waits for its next question and is no error of the function.
func (r *Resolver) Handle(ctx context.Context) error {
	run, cancel := telemetry.BeforeLogging(ctx)
	defer cancel()
	report, err := r.Run(run)
	event := telemetry.Event{
		Level: slog.LevelInfo, Message: "uncertain sends resolved",
		Attributes: []slog.Attr{slog.Any("verdicts", report.Resolved), slog.Int("failed", report.Failed)},
	}
	if err != nil {
		event.Level, event.Message = slog.LevelError, "uncertain sends not resolved"
		event.Attributes = append(event.Attributes, slog.String("error", err.Error()))
	}
	r.Log.Emit(ctx, event)
	return err
}

// send is an uncertain send about which a question is due.
type send struct {
	project string
	credit.Entry
}

// Run asks about every send that is due, in random order: where a run ends before all are asked, the next question finds others.
// After a vendor's failure at an endpoint Run asks no more questions there. Run returns an error where it could not read the
// uncertain sends.
func (r *Resolver) Run(ctx context.Context) (Report, error) {
	report := Report{Resolved: map[credit.Verdict]int{}}
	var due []send
	err := r.Credits.VisitUncertain(ctx, func(project string, e credit.Entry, err error) {
		switch {
		case err != nil:
			report.Failed++
			r.failed(ctx, send{project, e}, err)
		case r.Ages.due(r.Now().Sub(e.At)):
			due = append(due, send{project, e})
		}
	})
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	failing := map[string]bool{} // vendors' endpoints
	for i, s := range due {
		if ctx.Err() != nil {
			report.Failed += len(due) - i
			break
		}
		switch verdict, failed := r.resolve(ctx, s, failing); {
		case failed == nil:
			report.Resolved[verdict]++
		case !errors.Is(failed, errNotAsked):
			r.failed(ctx, s, failed)
			fallthrough
		default:
			report.Failed++
		}
	}
	return report, err
}

// errNotAsked reports that the vendor has failed before.
var errNotAsked = errors.New("the vendor was not asked")

// resolve asks about one send, and returns the verdict that resolve has given; "": none.
func (r *Resolver) resolve(ctx context.Context, s send, failing map[string]bool) (credit.Verdict, error) {
	record, err := r.Projects.Load(ctx, s.project)
	if err != nil {
		return "", err
	}
	env := project.Environment(s.Environment)
	sealer := reference.New(&record.Project, env)
	vendor, past, known := sealer.Open(s.Reference)
	if !known { // of a request that died before it could name one vendor
		past = vendors.PastSend{
			Key: reference.Key(sealer.Scope+string(s.Key), 0), Ended: s.At,
			IsTo: func(string) bool { return false }, IsBy: func(upstream.Account) bool { return false },
		}
	}
	for _, in := range record.Integrations {
		if in.Kind != project.SMS || in.Environment != env || in.Mode != project.Managed || known && in.Vendor != vendor || r.Vendors.Find(in.Vendor) == nil {
			continue
		}
		found, askErr := r.ask(ctx, s.project, in, past, failing)
		err = cmp.Or(err, askErr)
		verdict := credit.VerdictConfirmed
		switch found.State {
		case vendors.StateAccepted, vendors.StateSent, vendors.StateDelivered, vendors.StateFailed:
		case vendors.StateNotFound:
			verdict = credit.VerdictRefunded
			if past.ID != "" || r.Now().Sub(s.At) < r.Ages.Absent {
				continue
			}
		default:
			continue
		}
		_, err = r.Credits.Resolve(ctx, s.project, s.Key, credit.Resolution{
			Verdict: verdict, Reason: fmt.Sprintf("%s: %s (%s)", in.Vendor, found.Word, found.State), Actor: actor,
		})
		if errors.Is(err, credit.ErrResolved) || errors.Is(err, credit.ErrNotUncertain) { // an operator was first
			return "", nil
		}
		return verdict, err
	}
	return "", err
}

// ask asks the vendor of an integration about a send.
func (r *Resolver) ask(ctx context.Context, projectID string, in project.Integration, past vendors.PastSend, failing map[string]bool) (vendors.Status, error) {
	account, err := r.Client.Resolve(ctx, projectID, in, r.Vendors.Spec(in.Vendor), r.Secrets)
	if err != nil {
		return vendors.Status{}, err
	}
	at := in.Vendor + " " + account.Endpoint
	if failing[at] {
		return vendors.Status{}, errNotAsked
	}
	found, err := r.Vendors.CheckStatus(ctx, r.Client, r.Secrets, account, past)
	failing[at] = err != nil
	return found, err
}

// failed logs a send for an operator.
func (r *Resolver) failed(ctx context.Context, s send, err error) {
	r.Log.Emit(ctx, telemetry.Event{Level: slog.LevelWarn, Message: "uncertain send not resolved", Attributes: []slog.Attr{
		slog.String("project", s.project), slog.String("key", string(s.Key)), slog.String("error", err.Error()),
	}})
}
