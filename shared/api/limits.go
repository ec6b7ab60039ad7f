package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
	"svcapi/shared/telemetry"
)

// countsAtOnce bounds the concurrent counts of one bulk, as many as a client of DynamoDB keeps connections.
const countsAtOnce = 10

// Message is one message of a send, for the limits of the project (docs/abuse.md).
type Message struct {
	To    string // in the format of project.NormalNumber
	Units int
	// Refused is set before Job.Run: the limit of messages to the number is reached, and Run must not send the message.
	Refused bool
	// Unsent is set by Job.Run: the message certainly did not leave or was rejected, so that no limit counts it.
	Unsent bool

	count ratelimit.Count
}

// usage is what a request counts against the limits of its project. The zero usage is of a project without limits.
type usage struct {
	at         time.Time // the time of the reservation's key
	recipients bool      // the project limits messages to one number
	messages   []*Message
	daily      ratelimit.Daily // Most 0: no daily limit
	amount     int64           // of the daily limit
	day        ratelimit.Count
}

// usageOf returns what the job counts against the limits of its project.
func usageOf(state *requestState, job *Job, at time.Time) *usage {
	limits := state.record.Limits
	u := &usage{at: at, recipients: len(limits.Recipients) > 0, messages: job.Messages}
	if state.mode == project.Managed {
		u.daily, u.amount = ratelimit.Daily{Project: state.record.ID, Unit: ratelimit.Credits, Most: limits.DailyCredits}, job.Credits
	} else {
		u.daily = ratelimit.Daily{Project: state.record.ID, Unit: ratelimit.Units, Most: limits.DailyUnits}
		for _, m := range job.Messages {
			u.amount += int64(m.Units)
		}
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

// countUsage starts the counts of the limits, and returns functions that await them (docs/decisions.md#phases).
func (s *Service) countUsage(ctx context.Context, state *requestState, u *usage) (messages, daily func() error) {
	messages, daily = nothing, nothing
	if u.recipients && len(u.messages) > 0 {
		messages = async(func() error { return s.countMessages(ctx, state, u.messages) })
	}
	if u.daily.Most > 0 {
		daily = async(func() error { return s.countDaily(ctx, state, u) })
	}
	return messages, daily
}

// countMessages counts messages, those to one number in order, and refuses a request whose messages are all refused.
func (s *Service) countMessages(ctx context.Context, state *requestState, messages []*Message) error {
	var order []string
	byNumber := map[string][]*Message{}
	for _, m := range messages {
		if byNumber[m.To] == nil {
			order = append(order, m.To)
		}
		byNumber[m.To] = append(byNumber[m.To], m)
	}
	var mu sync.Mutex
	var longest *ratelimit.RecipientRefusal
	failed := each(order, func(to string) error {
		refusal, err := s.countNumber(ctx, state, byNumber[to])
		mu.Lock()
		defer mu.Unlock()
		if refusal != nil && (longest == nil || refusal.Reset > longest.Reset) {
			longest = refusal
		}
		return err
	})
	switch {
	case failed != nil:
		return internal("", failed)
	case !slices.ContainsFunc(messages, func(m *Message) bool { return !m.Refused }):
		return errRecipient(longest)
	}
	return nil
}

// countNumber counts the messages to one number. The refusal of one message refuses the messages after it, too.
func (s *Service) countNumber(ctx context.Context, state *requestState, messages []*Message) (*ratelimit.RecipientRefusal, error) {
	for i, m := range messages {
		count, refusal, err := s.limiter.CountMessage(ctx, &state.record.Project, m.To)
		if err != nil {
			return nil, err
		}
		if refusal != nil {
			for _, m := range messages[i:] {
				m.Refused = true
			}
			return refusal, nil
		}
		m.count = count
	}
	return nil, nil
}

// countDaily counts the request's credits or SMS units of the day, and alerts once where the day's limit is near.
func (s *Service) countDaily(ctx context.Context, state *requestState, u *usage) error {
	count, day, err := s.limiter.CountDaily(ctx, u.daily, u.amount, u.at)
	if err != nil {
		return internal("", err)
	}
	if u.day = count; count.By == 0 {
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
			slog.String("request_id", state.id), slog.String("project", day.Limit.Project), slog.String("unit", string(day.Limit.Unit)),
			slog.String("day", day.Start.Format(time.DateOnly)), slog.Int64("counted", day.Counted), slog.Int64("limit", day.Limit.Most),
		},
	})
	return nil
}

// subtractUsage subtracts after the response what was counted for messages that certainly did not leave, and for credits
// that certainly are not charged. The counts of a request that dies before stay: the limits then let fewer through.
func (s *Service) subtractUsage(ctx context.Context, u *usage, unsent func(*Message) bool, uncharged bool) {
	type part struct {
		count  ratelimit.Count
		amount int64
	}
	var parts []part
	units := int64(0)
	for _, m := range u.messages {
		if m.Refused || unsent(m) {
			units += int64(m.Units)
			parts = append(parts, part{m.count, 1})
		}
	}
	switch {
	case u.daily.Unit == ratelimit.Units:
		parts = append(parts, part{u.day, units})
	case uncharged:
		parts = append(parts, part{u.day, u.amount})
	}
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.count.By == 0 || p.amount == 0 })
	if len(parts) == 0 {
		return
	}
	s.AfterResponse(ctx, "subtract counts", func(ctx context.Context) error {
		return each(parts, func(p part) error { return s.limiter.Subtract(ctx, p.count, p.amount) })
	})
}

// each calls do for all items, with at most countsAtOnce calls at a time, and returns one of the errors.
func each[T any](items []T, do func(T) error) error {
	var group errgroup.Group
	group.SetLimit(countsAtOnce)
	for _, item := range items {
		group.Go(func() error { return do(item) })
	}
	return group.Wait()
}

// errRecipient returns the response to a request whose messages all exceed the limit of messages to one number.
func errRecipient(r *ratelimit.RecipientRefusal) *Error {
	const message = "The project's limit of %d messages to one number in %s is reached."
	return errLimited(outcomeRecipient, r.Reset, fmt.Sprintf(message, r.Limit.Messages, inWords(r.Limit.Window)))
}

// errDaily returns the response to a request that would exceed a daily limit.
func errDaily(day ratelimit.Day) *Error {
	what := map[ratelimit.Unit]string{ratelimit.Credits: "credits", ratelimit.Units: "SMS units"}[day.Limit.Unit]
	return &Error{
		Status: http.StatusPaymentRequired, Code: CodeInsufficientFunds, outcome: outcomeDaily,
		Message: fmt.Sprintf("The request would exceed the project's daily limit of %s %s, which ends at %s.",
			credit.Grouped(day.Limit.Most), what, day.End().Format(time.RFC3339)),
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
