package admit

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"svcapi/shared/ratelimit"
	"svcapi/shared/telemetry"
)

const (
	// countsAtOnce bounds the concurrent counts of one bulk, as many as a client of DynamoDB keeps connections.
	countsAtOnce = 10
	// countedAhead is the number of messages that Take counts. Begin counts the others.
	countedAhead = 100
)

// Window is one request of the project's window. A request counts, whatever becomes of it.
type Window struct {
	request *Request
	seen    atomic.Pointer[ratelimit.Decision]
}

// Window returns the hold of the request itself.
func (r *Request) Window() *Window { return &Window{request: r} }

// Decision returns the state of the window, or nil where the request was not counted.
func (w *Window) Decision() *ratelimit.Decision { return w.seen.Load() }

// Reached implements Hold.
func (w *Window) Reached() error {
	if d, reached := w.request.Limiter.Exhausted(w.request.Project, string(w.request.Environment)); reached {
		return w.decided(d)
	}
	return nil
}

// Take implements Hold.
func (w *Window) Take(ctx context.Context) error {
	d, err := w.request.Limiter.Count(ctx, w.request.Project, string(w.request.Environment))
	if err != nil {
		return err
	}
	return w.decided(d)
}

func (w *Window) decided(d ratelimit.Decision) error {
	w.seen.Store(&d)
	if d.Allowed {
		return nil
	}
	return d
}

// Return implements Hold.
func (*Window) Return(context.Context) (int64, error) { return 0, nil }

// Message is one message of a send.
type Message struct {
	To    string // in the format of project.NormalNumber
	Units int    // SMS units
}

// Messages are the messages of a send, which count against the project's limits of messages to one number
// (docs/decisions/requests.md#recipient-limit). A message that has not begun, or that is unsent, counts nowhere.
type Messages struct {
	request *Request
	all     []Message
	states  []messageState
}

type messageState struct {
	counted, begun bool
	count          ratelimit.Count
	err            error // why the message must not be sent
	sent           Sent
}

// Sent is what became of a message at a vendor. The JSON form is that of the log line, which may have other numbers.
type Sent struct {
	To        string `json:"to,omitzero"`        // the number; in the log its keyed hash
	Number    string `json:"number,omitzero"`    // of the log, where LOG_PAYLOADS is on
	State     string `json:"state"`              // as in openapi.yaml#SmsRecipientResult
	Vendor    string `json:"vendor,omitzero"`    // the vendor that was asked last; empty: none
	VendorID  string `json:"vendor_id,omitzero"` // the vendor's ID of the message; empty: none
	Reference string `json:"reference,omitzero"` // openapi.yaml#SmsReference; empty: none
}

// NewMessages returns the messages of a send. The request may be nil in a test: such messages have no limit.
func NewMessages(r *Request, all []Message) *Messages {
	return &Messages{request: r, all: all, states: make([]messageState, len(all))}
}

// Units returns the SMS units of all messages.
func (m *Messages) Units() (units int64) {
	for _, message := range m.all {
		units += int64(message.Units)
	}
	return units
}

func (m *Messages) limited() bool {
	return m.request != nil && len(m.request.Project.Limits.Recipients) > 0
}

// Reached implements Hold: the limits of all numbers are reached.
func (m *Messages) Reached() error {
	var last error
	for _, message := range m.all {
		if !m.limited() {
			return nil
		}
		refusal := m.request.Limiter.RecipientReached(m.request.Project, message.To)
		if refusal == nil {
			return nil // this message may be sent, and the count decides about the others
		}
		last = refusal
	}
	return last
}

// Take implements Hold, for the first messages of a send.
func (m *Messages) Take(ctx context.Context) error {
	indexes := make([]int, min(countedAhead, len(m.all)))
	for i := range indexes {
		indexes[i] = i
	}
	m.count(ctx, indexes)
	return m.Err()
}

// Begin counts messages just before their send, unless they are counted. A message with an Err must not be sent, and
// the send of any other message of these begins.
func (m *Messages) Begin(ctx context.Context, indexes []int) {
	m.count(ctx, indexes)
	for _, i := range indexes {
		m.states[i].begun = m.states[i].err == nil
	}
}

// count counts the messages that are not counted, those to one number in order.
func (m *Messages) count(ctx context.Context, indexes []int) {
	if !m.limited() {
		return
	}
	byNumber := map[string][]int{}
	for _, i := range indexes {
		if !m.states[i].counted {
			byNumber[m.all[i].To] = append(byNumber[m.all[i].To], i)
		}
	}
	var group errgroup.Group
	group.SetLimit(countsAtOnce)
	for _, same := range byNumber {
		group.Go(func() error { m.countNumber(ctx, same); return nil })
	}
	_ = group.Wait()
}

// countNumber counts the messages to one number. The error of one message keeps those after it from being sent, too.
func (m *Messages) countNumber(ctx context.Context, indexes []int) {
	var failed error
	for _, i := range indexes {
		state := &m.states[i]
		if state.counted = true; failed == nil {
			var refusal *ratelimit.RecipientRefusal
			state.count, refusal, failed = m.request.Limiter.CountMessage(ctx, m.request.Project, m.all[i].To)
			if refusal != nil {
				failed = refusal
			}
		}
		state.err = failed
	}
}

// MessageErr returns why a message must not be sent: a *ratelimit.RecipientRefusal, or the error of its count.
func (m *Messages) MessageErr(i int) error { return m.states[i].err }

// End notes what became of a message. An unsent message certainly did not leave, or was rejected.
func (m *Messages) End(i int, sent Sent, unsent bool) {
	m.states[i].sent = sent
	m.states[i].begun = m.states[i].begun && !unsent
}

// Sent returns what became of the messages, or nothing for a send that End did not end.
func (m *Messages) Sent() (all []Sent) {
	for _, s := range m.states {
		if s.sent.State != "" {
			all = append(all, s.sent)
		}
	}
	return all
}

// Err returns the error of a send none of whose messages may be sent, and nil for any other send: a failed count, else
// the refusal with the longest rest.
func (m *Messages) Err() (failed error) {
	longest := time.Duration(-1)
	for _, s := range m.states {
		refusal, refused := errors.AsType[*ratelimit.RecipientRefusal](s.err)
		switch {
		case s.err == nil:
			return nil
		case !refused && longest < math.MaxInt64:
			failed, longest = s.err, math.MaxInt64
		case refused && refusal.Reset > longest:
			failed, longest = refusal, refusal.Reset
		}
	}
	return failed
}

// Return implements Hold. The amount is in SMS units.
func (m *Messages) Return(context.Context) (unused int64, err error) {
	for i, s := range m.states {
		if !s.begun {
			unused += int64(m.all[i].Units)
			m.request.unused = append(m.request.unused, s.count)
		}
	}
	return unused, nil
}

// Day is a hold that counts against the daily limit of its unit, too (docs/decisions/requests.md#daily-limit).
type Day struct {
	Hold
	request *Request
	limit   ratelimit.Daily
	amount  int64
	count   ratelimit.Count
}

// Day returns the hold with its count of the day, or the hold itself where the day has no limit, of 0.
func (r *Request) Day(hold Hold, unit ratelimit.Unit, most, amount int64) Hold {
	if most == 0 || amount == 0 {
		return hold
	}
	limit := ratelimit.Daily{Project: r.Project.ID, Unit: unit, Most: most}
	return &Day{Hold: hold, request: r, limit: limit, amount: amount}
}

// Reached implements Hold. The refusal of the inner hold comes first.
func (d *Day) Reached() error {
	if err := d.Hold.Reached(); err != nil {
		return err
	}
	if day, reached := d.request.Limiter.DailyReached(d.limit, d.amount, d.request.at); reached {
		return day
	}
	return nil
}

// Take implements Hold. The refusal of the inner hold comes first.
func (d *Day) Take(ctx context.Context) error {
	counted := Async(func() error { return d.take(ctx) })
	inner, err := d.Hold.Take(ctx), counted()
	if inner != nil {
		return inner
	}
	return err
}

// take counts the amount, and alerts once where the limit is near.
func (d *Day) take(ctx context.Context) (err error) {
	var day ratelimit.Day
	d.count, day, err = d.request.Limiter.CountDaily(ctx, d.limit, d.amount, d.request.at)
	switch {
	case err != nil:
		return err
	case d.count.By == 0:
		return day
	case day.Near():
		d.request.After(ctx, "alert of a daily limit", func(ctx context.Context) error { return d.request.alert(ctx, day) })
	}
	return nil
}

// alert logs that a project has used 80 % of a daily limit, once for each day and limit.
func (r *Request) alert(ctx context.Context, day ratelimit.Day) error {
	mine, err := r.Limiter.FirstAlert(ctx, day)
	if err != nil || !mine {
		return err
	}
	r.Log.Emit(ctx, telemetry.Event{
		Level: slog.LevelWarn, Message: "daily limit is near",
		Dimensions: []telemetry.Dimension{{Name: "operation", Value: "limits"}},
		Metrics:    []telemetry.Metric{{Name: "DailyLimitsNear", Unit: telemetry.Count, Value: 1}},
		Attributes: []slog.Attr{
			slog.String("request_id", r.ID), slog.String("project", day.Limit.Project),
			slog.String("unit", string(day.Limit.Unit)), slog.String("day", day.Start.Format(time.DateOnly)),
			slog.Int64("counted", day.Counted), slog.Int64("limit", day.Limit.Most),
		},
	})
	return nil
}

// Return implements Hold: what the inner hold returns for certain is subtracted from the day, before other counts.
func (d *Day) Return(ctx context.Context) (unused int64, err error) {
	unused, err = d.Hold.Return(ctx)
	d.count.By = min(d.count.By, unused)
	d.request.unused = slices.Insert(d.request.unused, 0, d.count)
	return unused, err
}
