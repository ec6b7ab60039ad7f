package request

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"svcapi/shared/admit"
	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
	"svcapi/shared/wallet"
)

// holds returns what the job takes beside the request itself, in the order in which a response names refusals.
func (job *Job) holds(state *requestState) []admit.Hold {
	var holds []admit.Hold
	limits := state.record.Limits
	if job.Messages != nil {
		messages := admit.Hold(job.Messages)
		if state.mode == project.BYOK {
			messages = state.holds.Day(messages, ratelimit.Units, limits.DailyUnits, job.Messages.Units())
		}
		holds = append(holds, messages)
	}
	if credits := job.Credits.Amount(); credits > 0 {
		holds = append(holds, state.holds.Day(job.Credits, ratelimit.Credits, limits.DailyCredits, credits))
	}
	if job.Prefetch != nil {
		holds = append(holds, admit.Read(job.Prefetch))
	}
	return holds
}

// refusal returns the response to a request that an error of a hold refuses, and nil for no error.
func (state *requestState) refusal(err error) error {
	if d, ok := errors.AsType[ratelimit.Decision](err); ok {
		return errLimited("", d.Reset, d.Limit, state.record.Limit.Window, "The project's request limit is reached.")
	}
	if r, ok := errors.AsType[*ratelimit.RecipientRefusal](err); ok {
		const message = "The project's limit of %d messages to one number in %s is reached."
		return errLimited(outcomeRecipient, r.Reset, r.Limit.Messages, r.Limit.Window,
			fmt.Sprintf(message, r.Limit.Messages, inWords(r.Limit.Window)))
	}
	if day, ok := errors.AsType[ratelimit.Day](err); ok {
		return errDaily(day)
	}
	if lacking, ok := errors.AsType[*wallet.InsufficientError](err); ok {
		return errLacking(state.job.Credits.Amount(), lacking, state.holds.Now())
	}
	return internal("", err)
}

// The settling function closes a lease this long after its begin: SettleAfterSeconds of template.yaml and one of its
// runs. A lease that is older waits for a function that is late.
const (
	leaseClosed = 150 * time.Second
	longestWait = 180 * time.Second
)

// errLacking is the response to a request for which a wallet lacks credits. Where leases hold them, the response says
// when to try again (docs/decisions/money.md#leases).
func errLacking(price int64, lacking *wallet.InsufficientError, now time.Time) *Error {
	e := *errNoCredits
	e.Amounts = Amounts{"price": price, "balance": lacking.Balance}
	if !lacking.Oldest.IsZero() {
		wait := lacking.Oldest.Add(leaseClosed).Sub(now)
		if wait <= 0 || wait > longestWait {
			wait = longestWait
		}
		e.Reason = ReasonCreditsReserved
		e.Message = "Requests that have not ended hold the project's credits."
		e.Header = http.Header{"Retry-After": {strconv.Itoa(max(1, seconds(wait)))}}
	}
	return &e
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
