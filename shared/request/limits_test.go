package request

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/admit"
	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
	"svcapi/shared/wallet"
	"svcapi/test/clocktest"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

// limit sets the limits of the fixture's project, and starts another instance.
func (h *fixture) limit(t *testing.T, limits project.Limits, mode project.Mode) {
	t.Helper()
	_, err := h.projects.Update(t.Context(), "acme", func(p *project.Project) { p.Limits = limits })
	if err == nil {
		err = h.projects.PutIntegration(t.Context(), "acme",
			project.Integration{Kind: project.SMS, Environment: project.Development, Vendor: "v", Mode: mode, Active: true})
	}
	must.Succeed(t, err)
	h.restart()
}

// restart replaces the service by an instance that has cached nothing.
func (h *fixture) restart() { h.Service = New(h.cfg, h.db, h.logger()) }

// limitToOneMore lowers the rate limit, so that the window has one request left, and returns the limit.
func (h *fixture) limitToOneMore(t *testing.T) string {
	t.Helper()
	_, _, header := h.call(t, pricedOperation(0, Job{Run: done}), "/test", `{"text":"a"}`, nil)
	remaining, err := strconv.Atoi(sent(header, "X-RateLimit-Remaining"))
	limit := project.RateLimit{Requests: 1000 - remaining + 1, Window: 24 * time.Hour}
	if err == nil {
		_, err = h.projects.Update(t.Context(), "acme", func(p *project.Project) { p.Limit = limit })
	}
	must.Succeed(t, err)
	h.restart()
	return strconv.Itoa(limit.Requests)
}

// sending returns an operation that sends a message of one unit to each number. The work ends the messages.
func sending(run func(*admit.Messages) error, to ...string) Route {
	return &Operation[string]{
		Name: "test", Method: "POST", Path: "/test", Kind: project.SMS, Price: wallet.SMS,
		Decode: func(*Input) (string, error) { return "", nil },
		Sends:  func(string) bool { return true },
		Prepare: func(_ context.Context, call *Call, _ string) (*Job, error) {
			job := &Job{Credits: call.Credits(len(to)), Irrevocable: true, Messages: call.Messages(messagesTo(to))}
			job.Run = func(ctx context.Context) (*Result, error) {
				job.Messages.Begin(ctx, upTo(len(to)))
				if err := run(job.Messages); err != nil {
					return nil, err
				}
				return &Result{}, nil
			}
			return job, nil
		},
	}
}

// messagesTo returns a message of one unit to each number.
func messagesTo(numbers []string) (all []admit.Message) {
	for _, number := range numbers {
		all = append(all, admit.Message{To: number, Units: 1})
	}
	return all
}

// upTo returns the integers from 0 to n-1.
func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func sentAll(*admit.Messages) error { return nil }

// failed is work whose messages certainly did not leave, or of which that is not known.
func failed(uncertain bool) func(*admit.Messages) error {
	return func(messages *admit.Messages) error {
		for i := range messages.Units() {
			if !uncertain {
				messages.End(int(i), admit.Sent{}, true)
			}
		}
		return &Error{Status: 503, Code: CodeHTTPError, Message: "m", Reached: uncertain, Uncertain: uncertain}
	}
}

// counted returns the value of today's counter.
func (h *fixture) counted(t *testing.T, unit ratelimit.Unit) int64 {
	t.Helper()
	n, err := h.Stores.Limiter.Counted(t.Context(), ratelimit.Daily{Project: "acme", Unit: unit}, time.Now())
	must.Succeed(t, err)
	return n
}

// step is a request of a test of limits, with what it leaves.
type step struct {
	name    string
	route   Route
	status  int
	message string // of an error; empty: any
	counted int64  // afterwards, in the day
}

func (h *fixture) steps(t *testing.T, unit ratelimit.Unit, steps []step) {
	t.Helper()
	for _, s := range steps {
		// a request that one instance refuses from memory is refused by other instances, too
		for _, restarted := range []bool{false, s.status == 429 || s.status == 402} {
			if restarted {
				h.restart()
			}
			status, envelope, header := h.call(t, s.route, "/test", `{"text":"a"}`, nil)
			if message := envelopeMessage(envelope); status != s.status || s.message != "" && message != s.message {
				t.Errorf("%s: %d %q, want %d %q", s.name, status, message, s.status, s.message)
			}
			if (header.Get("Retry-After") != "") != (s.status == 429) {
				t.Errorf("%s: %v", s.name, header)
			}
			if n := h.counted(t, unit); n != s.counted {
				t.Errorf("%s: %d counted, want %d", s.name, n, s.counted)
			}
			if s.status != 429 && s.status != 402 {
				break
			}
		}
	}
}

// TestDailyCredits checks the limit of a day's credits: only what is or may be charged counts, and an alert comes once
// (docs/decisions/requests.md#daily-limit).
func TestDailyCredits(t *testing.T) {
	h := build(t) // 1,000 credits, 10 for a unit
	h.limit(t, project.Limits{DailyCredits: 50}, project.Managed)
	full := fmt.Sprintf("The request would exceed the project's daily limit of 50 credits, which ends at %s.",
		time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1).Format(time.RFC3339))
	prefetch := Job{Run: done, Prefetch: func(context.Context) error { return fmt.Errorf("no read") }}
	before := h.balance(t)
	h.steps(t, ratelimit.Credits, []step{
		{"more than a day ever has", pricedOperation(51, Job{Run: done}), 402, full, 0},
		{"success", operation(false, done), 200, "", 10},
		{"free", pricedOperation(0, Job{Run: done}), 200, "", 10},
		{"failed for certain", sending(failed(false), "n"), 503, "", 10},
		{"a success that is free", operation(false,
			func(context.Context) (*Result, error) { return &Result{NotCharged: true}, nil }), 200, "", 10},
		{"a read that fails", pricedOperation(10, prefetch), 500, "", 10},
		{"more than is left", pricedOperation(41, Job{Run: done}), 402, full, 10},
		{"success, after a refusal of more", pricedOperation(29, Job{Run: done}), 200, "", 39},
		{"uncertain", sending(failed(true), "n"), 503, "", 49},
		{"a panic that may have sent",
			pricedOperation(1, Job{Irrevocable: true,
				Run: func(context.Context) (*Result, error) { panic("at work") }}), 500, "", 50},
		{"one more", pricedOperation(1, Job{Run: done}), 402, full, 50},
	})
	if charged := before - h.balance(t); charged != 50 {
		t.Errorf("charged %d, want 50", charged)
	}
	if n := strings.Count(h.log.String(), `"message":"daily limit is near"`); n != 1 ||
		strings.Count(h.log.String(), `"DailyLimitsNear":1`) != 1 {
		t.Errorf("%d alerts in %s", n, h.log.String())
	}
	if n := strings.Count(h.log.String(), `"outcome":"daily_limit"`); n != 6 { // each refusal by two instances
		t.Errorf("%d lines name the limit", n)
	}
	// An empty wallet is named first, and counts nothing.
	h.limit(t, project.Limits{DailyCredits: 100_000}, project.Managed)
	h.steps(t, ratelimit.Credits, []step{{"no credits", pricedOperation(5000, Job{Run: done}), 402,
		errNoCredits.Message, 50}})
	// The rate limit is named first of all.
	h.limitToOneMore(t)
	for range 2 {
		h.restart()
		h.call(t, pricedOperation(1, Job{Run: done}), "/test", `{"text":"a"}`, nil)
	}
	if n := h.counted(t, ratelimit.Credits); n != 51 {
		t.Errorf("%d counted beside the rate limit, want 51", n)
	}
}

// TestDailyUnits checks the limit of a day's SMS units through the project's own accounts: what certainly did not leave
// does not count (docs/decisions/requests.md#daily-limit).
func TestDailyUnits(t *testing.T) {
	h := build(t)
	h.limit(t, project.Limits{DailyUnits: 5, DailyCredits: 1}, project.BYOK)
	half := func(messages *admit.Messages) error {
		messages.End(0, admit.Sent{}, true)
		return nil
	}
	full := fmt.Sprintf("The request would exceed the project's daily limit of 5 SMS units, which ends at %s.",
		time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1).Format(time.RFC3339))
	h.steps(t, ratelimit.Units, []step{
		{"no message", pricedOperation(0, Job{Run: done}), 200, "", 0},
		{"two", sending(sentAll, "a", "b"), 200, "", 2},
		{"one of two leaves", sending(half, "a", "b"), 200, "", 3},
		{"none leaves", sending(failed(false), "a", "b"), 503, "", 3},
		{"too many", sending(sentAll, "a", "b", "c"), 402, full, 3},
		{"as many as are left", sending(failed(true), "a", "b"), 503, "", 5},
		{"one more", sending(sentAll, "a"), 402, full, 5},
	})
	if n := h.counted(t, ratelimit.Credits); n != 0 {
		t.Errorf("%d credits counted", n)
	}
}

// TestRecipientLimit checks that a number gets as many messages as its windows permit, that others of the same request
// are sent, and that a refused or unsent message counts in no window (docs/decisions/requests.md#recipient-limit).
func TestRecipientLimit(t *testing.T) {
	h := build(t)
	limits := project.Limits{Recipients: []project.RecipientLimit{{Messages: 2, Window: 24 * time.Hour}}, DailyUnits: 1000}
	h.limit(t, limits, project.BYOK)
	expect := func(want string) func(*admit.Messages) error {
		return func(messages *admit.Messages) error {
			refused := ""
			for i := range messages.Units() {
				refused += map[bool]string{true: "x", false: "o"}[messages.MessageErr(int(i)) != nil]
			}
			if refused != want {
				t.Errorf("refused %s, want %s", refused, want)
			}
			return nil
		}
	}
	const message = "The project's limit of 2 messages to one number in 24 hours is reached."
	h.steps(t, ratelimit.Units, []step{
		{"one", sending(expect("o"), "a"), 200, "", 1},
		{"failed for certain", sending(failed(false), "a"), 503, "", 1},
		{"uncertain", sending(failed(true), "a"), 503, "", 2},
		{"one more", sending(expect(""), "a"), 429, message, 2},
		{"beside another", sending(expect("xo"), "a", "b"), 200, "", 3},
		{"three to one", sending(expect("ooxo"), "c", "c", "c", "b"), 200, "", 6},
		{"all refused", sending(expect(""), "a", "b", "c"), 429, message, 6},
	})
	if !strings.Contains(h.log.String(), `"outcome":"recipient_limit"`) {
		t.Error("no outcome names the limit")
	}
	// On a Managed integration a refused message is neither charged nor sent, and one without credits is not counted.
	h.limit(t, limits, project.Managed)
	before := h.balance(t)
	h.steps(t, ratelimit.Units, []step{
		{"refused", sending(expect(""), "a"), 429, message, 6},
		{"sent", sending(expect("o"), "d"), 200, "", 6},
	})
	if charged := before - h.balance(t); charged != 10 {
		t.Errorf("charged %d", charged)
	}
	must.Succeed(t, h.operator.Adjust(t.Context(), wallettest.Movement("acme", time.Now(), "all", -h.balance(t))))
	for range 3 {
		h.steps(t, ratelimit.Units, []step{{"no credits", sending(expect(""), "e"), 402, errNoCredits.Message, 6}})
	}
	item, err := dynamo.Get(t.Context(), h.db, h.cfg.TransientTable,
		dynamo.Item{"pk": dynamo.Text(h.counterOf(t, "e"))})
	if n, none := dynamo.NumberOf(item["w86400.0"]); err != nil || none != nil || n != 0 {
		t.Errorf("messages that were not sent are counted: %v, %v", item, err)
	}
}

// TestCountedBeforeTheirSend checks that the first messages of a bulk are counted beside the reservation and the others
// by Job.Count, that a failed count keeps only its own messages from being sent, and that a bulk whose last message is
// refused at its count is 429, too (docs/decisions/requests.md#recipient-limit).
func TestCountedBeforeTheirSend(t *testing.T) {
	h := build(t)
	h.limit(t, project.Limits{Recipients: []project.RecipientLimit{{Messages: 1, Window: 24 * time.Hour}},
		DailyUnits: 1000}, project.BYOK)
	const countedAhead = 100
	numbers := make([]string, countedAhead+60)
	for i := range numbers {
		numbers[i] = fmt.Sprint("n", i)
	}
	var job *Job
	route := func(n int, run func(ctx context.Context)) Route {
		return &Operation[string]{
			Name: "test", Method: "POST", Path: "/test", Kind: project.SMS, Price: wallet.SMS,
			Decode: func(*Input) (string, error) { return "", nil },
			Prepare: func(_ context.Context, call *Call, _ string) (*Job, error) {
				job = &Job{Irrevocable: true, Messages: call.Messages(messagesTo(numbers[:n])),
					Run: func(ctx context.Context) (*Result, error) { run(ctx); return &Result{}, nil }}
				return job, nil
			},
		}
	}
	half := func(ctx context.Context) {
		ahead := h.countedMessages(t)
		all := upTo(len(numbers))
		next, last := all[:countedAhead+40], all[countedAhead+40:]
		job.Messages.Begin(ctx, next)
		if ahead != countedAhead || h.countedMessages(t) != len(next) {
			t.Errorf("%d messages are counted ahead, %d when they begin", ahead, h.countedMessages(t))
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		job.Messages.Begin(ended, last)
		for i := range all {
			err := job.Messages.MessageErr(i)
			if _, refused := errors.AsType[*ratelimit.RecipientRefusal](err); (err == nil) != (i < len(next)) || refused {
				t.Errorf("message %d: %v", i, err)
			}
			if i >= countedAhead+20 {
				job.Messages.End(i, admit.Sent{}, true)
			}
		}
	}
	all := func(ctx context.Context) { job.Messages.Begin(ctx, upTo(int(job.Messages.Units()))) }
	h.steps(t, ratelimit.Units, []step{
		{"a part is counted, and less is sent", route(len(numbers), half), 200, "", countedAhead + 20},
		{"all refused", route(countedAhead+20, all), 429,
			"The project's limit of 1 messages to one number in 24 hours is reached.", countedAhead + 20},
		{"one more", route(countedAhead+21, all), 200, "", countedAhead + 21},
	})
}

// countedMessages returns the number of items that count messages to a number.
func (h *fixture) countedMessages(t *testing.T) int {
	t.Helper()
	out, err := h.db.Scan(t.Context(),
		&dynamodb.ScanInput{TableName: &h.cfg.TransientTable, ConsistentRead: new(true),
			FilterExpression:          new("begins_with(pk, :to)"),
			ExpressionAttributeValues: dynamo.Item{":to": dynamo.Text("to#acme#")}})
	must.Succeed(t, err)
	return int(out.Count)
}

// counterOf returns the key of the item that counts the messages to a number today.
func (h *fixture) counterOf(t *testing.T, number string) string {
	t.Helper()
	rec, err := h.projects.Load(t.Context(), "acme")
	must.Succeed(t, err)
	return "to#acme#" + rec.RecipientID(number) + "#" + time.Now().UTC().Format(time.DateOnly)
}

func TestInWords(t *testing.T) {
	for window, want := range map[time.Duration]string{
		24 * time.Hour: "24 hours", time.Hour: "one hour", 90 * time.Minute: "90 minutes", 10 * time.Minute: "10 minutes",
		90 * time.Second: "90 seconds", time.Second: "one second",
	} {
		if got := inWords(window); got != want {
			t.Errorf("%s: %q, want %q", window, got, want)
		}
	}
}

// TestGuessing checks that wrong secrets of one source for one client ID are refused after a hundred in a minute, also
// where they come at once, and that the right secret never is (docs/decisions/requests.md#guessing).
func TestGuessing(t *testing.T) {
	h := build(t)
	now := clocktest.New()
	h.guesses.clock = cache.ClockOf(now.Now)
	handler := Lambda(h.Handler(operation(false, done)))
	ask := func(source, clientID, secret string) (int, string) {
		t.Helper()
		response, err := handler(t.Context(), events.APIGatewayProxyRequest{
			HTTPMethod: "POST", Path: "/test", Body: `{"text":"a"}`, Headers: map[string]string{"X-API-KEY": clientID,
				"X-API-SECRET": secret},
			RequestContext: events.APIGatewayProxyRequestContext{Identity: events.APIGatewayRequestIdentity{SourceIP: source}},
		})
		must.Succeed(t, err)
		return response.StatusCode, strings.Join(response.MultiValueHeaders["Retry-After"], "")
	}
	var all sync.WaitGroup
	for i := range mostGuesses {
		all.Go(func() {
			if status, _ := ask("192.0.2.1", h.client, fmt.Sprint("guess", i)); status != 401 {
				t.Errorf("guess %d: %d", i, status)
			}
		})
	}
	all.Wait()
	now.Move(20 * time.Second)
	h.log.Reset()
	for _, c := range []struct {
		name, source, client, secret string
		status                       int
	}{
		{"one more", "192.0.2.1", h.client, "x", 429},
		{"right secret", "192.0.2.1", h.client, h.secret, 200},
		{"still wrong", "192.0.2.1", h.client, "x", 429},
		{"no secret", "192.0.2.1", h.client, "", 401},
		{"another source", "192.0.2.2", h.client, "x", 401},
		{"unknown client ID", "192.0.2.1", "svc_acme_aaaaaaaa", "x", 401},
		{"no client ID", "192.0.2.1", "", "x", 401},
	} {
		status, retry := ask(c.source, c.client, c.secret)
		if status != c.status || (retry == "40") != (status == 429) {
			t.Errorf("%s: %d, Retry-After %q; want %d", c.name, status, retry, c.status)
		}
	}
	log := h.log.String()
	if strings.Count(log, `"outcome":"guessed"`) != 2 || strings.Count(log, `"source":"192.0.2.1"`) != 2 ||
		strings.Count(log, `"client_id":"`+h.client) != 2 {
		t.Errorf("log %s", log)
	}
	for range 3 * mostGuesses {
		if status, _ := ask("192.0.2.1", "svc_acme_aaaaaaaa", "x"); status != 401 {
			t.Fatalf("unknown client ID: %d", status)
		}
	}
	now.Move(40 * time.Second)
	if status, _ := ask("192.0.2.1", h.client, "x"); status != 401 {
		t.Errorf("in the next minute: %d", status)
	}
}

func TestSource(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "192.0.2.1:80": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1",
		"2001:db8:1:2:3::4":      "2001:db8:1:2::/64",
		"[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "": "", "unknown": "unknown",
	} {
		if got := source(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// TestEntryUnits checks that the entry of a charge has the units of all messages, and 1 where the work sends none.
func TestEntryUnits(t *testing.T) {
	h := build(t)
	h.call(t, pricedOperation(10, Job{Run: done}), "/test", `{"text":"a"}`, nil)
	h.call(t, sending(sentAll, "+94770000000", "+94770000001"), "/test", `{"text":"a"}`, nil)
	entries, err := h.operator.Entries(t.Context(), "acme", time.Now().Add(-time.Minute), time.Now())
	if err != nil || len(entries) != 3 { // with the grant
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		if e.State == wallet.Captured && e.Units*10 != e.Credits {
			t.Errorf("%d units for %d credits", e.Units, e.Credits)
		}
	}
}

// TestReservedCredits checks the response where leases hold the credits (docs/decisions/money.md#leases).
func TestReservedCredits(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		age         time.Duration // of the oldest lease; 0: no lease has the credits
		retry, body string
	}{
		{0, "", `"details":{"balance":7,"price":9}}`},
		{time.Second, "169", `"details":{"reason":"credits_reserved","balance":7,"price":9}}`},
		{169500 * time.Millisecond, "1", `"reason":"credits_reserved"`},
		{time.Hour, "180", `"reason":"credits_reserved"`},
		{-time.Hour, "180", `"reason":"credits_reserved"`}, // of a clock that is ahead
	} {
		lacking := &wallet.InsufficientError{Balance: 7}
		if c.age != 0 {
			lacking.Oldest = now.Add(-c.age)
		}
		e := errLacking(9, lacking, now)
		if body := string(e.envelope("r")); e.Status != 402 || e.Code != CodeInsufficientFunds ||
			e.Header.Get("Retry-After") != c.retry || !strings.Contains(body, c.body) {
			t.Errorf("%s: %v %s", c.age, e.Header, body)
		}
	}
}
