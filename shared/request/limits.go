package request

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
)

const (
	// countsAtOnce bounds the concurrent counts of one bulk, as many as a client of DynamoDB keeps connections.
	countsAtOnce = 10
	// countedAhead is the number of messages that are counted beside the reservation. Job.Count counts the others.
	countedAhead = 100
)

// Message is one message of a send, for the limits of the project (docs/limits-and-429.md).
type Message struct {
	To    string // in the format of project.NormalNumber
	Units int
	// Refused is set by the count: the limit of messages to the number is reached, and Run must not send the message.
	Refused bool
	// Uncounted is set by a count that failed: Run must not send the message.
	Uncounted error
	// Unsent is set by Job.Run: the message certainly did not leave or was rejected, so that no limit counts it.
	Unsent bool
	// Sent is set by Job.Run, for the log line.
	Sent Sent

	counted bool // the count has ended
	count   ratelimit.Count
}

// Sendable reports whether Job.Run may send the message, once the message is counted.
func (m *Message) Sendable() bool { return !m.Refused && m.Uncounted == nil }

// usage is what a request counts against the limits of its project. The zero usage is of a project without limits.
type usage struct {
	at         time.Time // the time of the reservation's key
	recipients bool      // the project limits messages to one number
	messages   []*Message
	units      int64           // of all messages
	daily      ratelimit.Daily // Most 0: no daily limit
	amount     int64           // of the daily limit
	day        ratelimit.Count

	mu      sync.Mutex                  // guards the field below
	refusal *ratelimit.RecipientRefusal // the one with the longest rest
}

// usageOf returns what the job counts against the limits of its project.
func usageOf(state *requestState, job *Job, at time.Time) *usage {
	limits := state.record.Limits
	u := &usage{at: at, recipients: len(limits.Recipients) > 0, messages: job.Messages}
	for _, m := range job.Messages {
		u.units += int64(m.Units)
	}
	if state.mode == project.Managed {
		u.daily, u.amount = ratelimit.Daily{Project: state.record.ID, Unit: ratelimit.Credits, Most: limits.DailyCredits},
			job.Credits
	} else {
		u.daily, u.amount = ratelimit.Daily{Project: state.record.ID, Unit: ratelimit.Units, Most: limits.DailyUnits}, u.units
	}
	if u.amount == 0 {
		u.daily.Most = 0
	}
	return u
}

// limitsReached refuses the request if this instance has seen its limits reached a moment ago.
func (s *Service) limitsReached(state *requestState, u *usage) error {
	if u.recipients {
		for _, m := range u.messages {
			refusal := s.limiter.RecipientReached(&state.record.Project, m.To)
			if refusal == nil {
				break // this message may be sent, and the count decides about the others
			}
			if m == u.messages[len(u.messages)-1] {
				return errRecipient(refusal)
			}
		}
	}
	if u.daily.Most > 0 {
		if day, reached := s.limiter.DailyReached(u.daily, u.amount, u.at); reached {
			return errDaily(day)
		}
	}
	return nil
}

// countUsage starts the limits' counts, and returns functions that await them (docs/decisions/requests.md#phases).
func (s *Service) countUsage(ctx context.Context, state *requestState, u *usage) (messages, daily func() error) {
	messages, daily = nothing, nothing
	if u.recipients && len(u.messages) > 0 {
		messages = async(func() error {
			s.countMessages(ctx, state, u.messages[:min(countedAhead, len(u.messages))])
			return u.unsendable()
		})
	}
	if u.daily.Most > 0 {
		daily = async(func() error { return s.countDaily(ctx, state, u) })
	}
	return messages, daily
}

// countMessages counts the messages that are not counted, those to one number in order.
func (s *Service) countMessages(ctx context.Context, state *requestState, messages []*Message) {
	byNumber := map[string][]*Message{}
	for _, m := range messages {
		if !m.counted {
			byNumber[m.To] = append(byNumber[m.To], m)
		}
	}
	var group errgroup.Group
	group.SetLimit(countsAtOnce)
	for _, same := range byNumber {
		group.Go(func() error { s.countNumber(ctx, state, same); return nil })
	}
	_ = group.Wait()
}

// countNumber counts the messages to one number. The refusal or the failed count of one message keeps the messages
// after it from being sent, too.
func (s *Service) countNumber(ctx context.Context, state *requestState, messages []*Message) {
	var refusal *ratelimit.RecipientRefusal
	var err error
	for _, m := range messages {
		if refusal == nil && err == nil {
			m.count, refusal, err = s.limiter.CountMessage(ctx, &state.record.Project, m.To)
		}
		m.counted, m.Refused, m.Uncounted = true, refusal != nil, err
	}
	u := state.used
	u.mu.Lock()
	defer u.mu.Unlock()
	if refusal != nil && (u.refusal == nil || refusal.Reset > u.refusal.Reset) {
		u.refusal = refusal
	}
}

// unsendable returns the error of a request none of whose messages may be sent, and nil for any other request.
func (u *usage) unsendable() error {
	if len(u.messages) == 0 || slices.ContainsFunc(u.messages, (*Message).Sendable) {
		return nil
	}
	if i := slices.IndexFunc(u.messages, func(m *Message) bool { return m.Uncounted != nil }); i >= 0 {
		return internal("", u.messages[i].Uncounted)
	}
	return errRecipient(u.refusal)
}

// countDaily counts the request's credits or SMS units of the day, and alerts once where the day's limit is near.
func (s *Service) countDaily(ctx context.Context, state *requestState, u *usage) error {
	count, day, err := s.limiter.CountDaily(ctx, u.daily, u.amount, u.at)
	u.day = count
	if err != nil {
		return internal("", err)
	}
	if count.By == 0 {
		return errDaily(day)
	}
	if day.Near() {
		s.AfterResponse(ctx, "alert of a daily limit", func(ctx context.Context) error { return s.alert(ctx, state, day) })
	}
	return nil
}

// alert logs that a project has used 80 % of a daily limit, once for each day and limit.
func (s *Service) alert(ctx context.Context, state *requestState, day ratelimit.Day) error {
	mine, err := s.limiter.ClaimAlert(ctx, day)
	if err != nil || !mine {
		return err
	}
	s.log.Emit(ctx, telemetry.Event{
		Level: slog.LevelWarn, Message: "daily limit is near",
		Dimensions: []telemetry.Dimension{{Name: "operation", Value: "limits"}},
		Metrics:    []telemetry.Metric{{Name: "DailyLimitsNear", Unit: telemetry.Count, Value: 1}},
		Attributes: []slog.Attr{
			slog.String("request_id", state.id), slog.String("project", day.Limit.Project), slog.String("unit",
				string(day.Limit.Unit)),
			slog.String("day", day.Start.Format(time.DateOnly)), slog.Int64("counted",
				day.Counted), slog.Int64("limit", day.Limit.Most),
		},
	})
	return nil
}

// subtractUsage subtracts after the response what was counted for messages that certainly did not leave, and for
// credits that certainly are not charged. The counts of a request that dies before stay: the limits then let fewer
// through. A queue keeps what the time after the response does not suffice for.
func (s *Service) subtractUsage(ctx context.Context, u *usage, unsent func(*Message) bool, uncharged bool) {
	day, units := u.day, int64(0)
	var counts []ratelimit.Count
	for _, m := range u.messages {
		if m.Refused || unsent(m) {
			units += int64(m.Units)
			counts = append(counts, m.count)
		}
	}
	switch {
	case u.daily.Unit == ratelimit.Units:
		day.By = min(day.By, units)
	case !uncharged:
		day.By = 0
	}
	counts = slices.Insert(counts, 0, day) // first, because many requests share the day
	counts = slices.DeleteFunc(counts, func(c ratelimit.Count) bool { return c.By == 0 })
	if len(counts) == 0 {
		return
	}
	s.AfterResponse(ctx, "subtract counts", func(ctx context.Context) error {
		_, err := s.limiter.SubtractAll(ctx, counts)
		return err
	})
}

func errRecipient(r *ratelimit.RecipientRefusal) *Error {
	const message = "The project's limit of %d messages to one number in %s is reached."
	return errLimited(outcomeRecipient, r.Reset, r.Limit.Messages, r.Limit.Window,
		fmt.Sprintf(message, r.Limit.Messages, inWords(r.Limit.Window)))
}

func errDaily(day ratelimit.Day) *Error {
	what := map[ratelimit.Unit]string{ratelimit.Credits: "credits", ratelimit.Units: "SMS units"}[day.Limit.Unit]
	return &Error{
		Status: http.StatusPaymentRequired, Code: CodeInsufficientFunds, outcome: outcomeDaily,
		Amounts: Amounts{"limit": day.Limit.Most, "window_seconds": int64(day.End().Sub(day.Start) / time.Second)},
		Message: fmt.Sprintf("The request would exceed the project's daily limit of %s %s, which ends at %s.",
			wallet.Grouped(day.Limit.Most), what, day.End().Format(time.RFC3339)),
	}
}

// inWords returns a window in the largest unit of which it is a whole number: 10 minutes, 24 hours.
func inWords(window time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := window / unit.length; window%unit.length == 0 && n > 0 {
			if n == 1 {
				return "one " + unit.name
			}
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return window.String()
}
