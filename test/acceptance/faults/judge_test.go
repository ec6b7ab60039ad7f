package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/books"
	"svcapi/shared/wallet"
)

// The known anomalies are the only ways in which a request's response and its charge may disagree
// (docs/decisions/money.md#what-is-charged). Each names the fault that alone can cause it. No throttle is such a fault.
const (
	neverCalled   = "charged, provider never called: died at the mark"
	notCharged    = "served, not charged: every response of the capture lost"
	servedInDoubt = "served, charged as uncertain: every response of the capture lost"
	failedPaid    = "charged though failed: every response of the forbid capture lost"
	erredPaid     = "charged though 500: every response of the forbid capture lost"
	stoppedPaid   = "charged as uncertain though alive: the clock of its instance had stopped"
	stoppedFree   = "not charged though alive: the clock of its instance had stopped, and the credits were gone"
	timeEnded     = "500 or 503 after a time limit: the queue of the schedule, the proxy or the machine took the time"
)

// shortestLimit is the shortest time limit of a call after which a request fails: that of a vendor's call in a stage of
// the schedules. A function whose limit is shorter is found.
const shortestLimit = 2 * time.Second

// entries returns a project's ledger since a time.
func (s *stage) entries(project string, since time.Time) ([]books.Entry, error) {
	return s.credits.Entries(context.Background(), project, since, time.Now())
}

// nameOf returns the label of the request that an entry belongs to.
func (sched *schedule) nameOf(e books.Entry) string {
	for _, r := range sched.requests {
		if r.response.id == e.RequestID {
			return r.label()
		}
	}
	return "no request"
}

// received counts the sends that the vendors received, by token.
func received(calls []sandbox.Call) map[string]int {
	counts := map[string]int{}
	for _, c := range calls {
		// The vendor dialogv2 refuses calls that come too fast, and a transaction ID that it has seen.
		if c.Operation == "send" && (c.Accepted || c.Vendor != "dialogv2") {
			counts[tokenOf(c.Path+" "+c.Body)]++
		}
	}
	return counts
}

// judge compares every response with its charge, after all reservations are settled.
func (sched *schedule) judge(sent map[string]int) {
	ctx := context.Background()
	entries, err := sched.stage.entries(sched.project, sched.began)
	if err != nil {
		sched.fail("%v", err)
		return
	}
	held, err := sched.stage.credits.Wallet(ctx, sched.project)
	if err != nil || held == nil {
		sched.fail("wallet: %v", err)
		return
	}
	if held.Balance < 0 || held.Reserved != 0 || !held.Oldest.IsZero() {
		sched.fail("after the last settler the wallet is %+v", *held)
	}
	var balance int64
	of := map[string][]books.Entry{}
	for _, e := range entries {
		switch e.State {
		case wallet.Granted, wallet.Refunded, wallet.Adjustment:
			balance += e.Credits
			continue
		case wallet.Captured:
			balance -= e.Credits
		case wallet.Sending:
			sched.fail("the entry %s is left as sending", e.Key)
		}
		if e.RequestID != "" || e.State != wallet.Released { // the settler forbids the captures of slots that no request used
			of[e.RequestID] = append(of[e.RequestID], e)
		}
	}
	if balance != held.Balance {
		sched.fail("the balance is %d, the ledger adds up to %d", held.Balance, balance)
	}
	for _, r := range sched.requests {
		own := of[r.response.id]
		delete(of, r.response.id)
		if len(own) > 1 {
			sched.fail("%s has %d entries", r.label(), len(own))
		}
		var e books.Entry
		if len(own) > 0 {
			e = own[0]
		}
		if strings.Contains(string(e.Key), ".") {
			sched.tally["in a lease of several slots"]++
		}
		sched.tally[fmt.Sprintf("%s%s %s", map[bool]string{true: "in virtual time: "}[sched.virtual], r.op.name,
			outcomeOf(r))]++
		n := sent[r.token]
		if r.sent {
			n = 1
		}
		sched.judgeRequest(r, e, n)
	}
	for _, entries := range of {
		sched.fail("entries without a request: %+v", entries)
	}
	sched.judgeCommands(entries)
	if sched.virtual { // no limits, no keys
		return
	}
	sched.judgeLimits(entries, sent)
	sched.judgeCounters()
	sched.judgeKeys(sent)
}

func outcomeOf(r *request) string {
	switch {
	case r.response.killed:
		return "crash"
	case r.response.replayed:
		return fmt.Sprintf("%d replayed", r.response.status)
	}
	return fmt.Sprint(r.response.status)
}

// did returns the outcome of a request's calls of one step.
func (r *request) did(s step) *calls {
	if c := r.actor.calls[s]; c != nil {
		return c
	}
	return &calls{}
}

// lost reports that the request lost every response of a write of one of the steps, or that a time limit ended.
func (r *request) lost(steps ...step) bool { return r.timedOut || r.lostCall(steps...) }

func (r *request) lostCall(steps ...step) bool {
	return slices.ContainsFunc(steps, func(s step) bool { return r.did(s).lost() })
}

// mayFail reports that a call that the request needs got no response. A read has a function's few attempts; a write
// outlasts every burst of throttles.
func (r *request) mayFail() bool {
	// writes a dead request's outcome
	died := r.after && r.did(reserve).attempts == 0 && r.did(vendor).attempts == 0 && r.lostCall(keep)
	return died || r.lostCall(count, recipient, daily, claim, reserve, mark) ||
		slices.ContainsFunc([]step{record, domains, look}, func(s step) bool { return r.did(s).exhausted() })
}

// mayAct reports that a write of the step has taken effect or may still take effect.
func (r *request) mayAct(s step) bool { return r.did(s).arrived > 0 || r.did(s).tooLate() }

// blamesVendor reports that a vendor's response did not reach the request.
func (r *request) blamesVendor() bool {
	return r.doubtful || r.did(vendor).some(attempt.faulty)
}

// calledVendor reports that the request may have called its vendor.
func (r *request) calledVendor() bool { return r.sent || r.did(vendor).attempts > 0 }

// longest names the call for which the request waited longest, and how long the harness itself held it.
func (r *request) longest() string {
	var text string
	var most time.Duration
	for _, c := range r.actor.calls {
		for _, e := range c.whole() {
			if whole, held := e.waited(); whole >= most {
				most = whole
				text = fmt.Sprintf("it waited longest for %s: %s in %d attempts, of which the harness held it %s", e.name,
					whole.Round(time.Millisecond), len(e.attempts), held.Round(time.Millisecond))
			}
		}
	}
	return text
}

func (sched *schedule) judgeRequest(r *request, e books.Entry, sent int) {
	a, charged, sms := r.response, e.State == wallet.Captured, r.op.name == wallet.SMS
	wrong := func(format string, args ...any) {
		sched.fail("%s (%s) returned %s %s, its entry is %q (uncertain %t), the vendor received %d: %s",
			r.label(), r.op.name, outcomeOf(r), a.message, e.State, e.Uncertain, sent, fmt.Sprintf(format, args...))
	}
	r.charged = charged
	if sent > 1 {
		wrong("more than one send")
	}
	if charged && e.Credits != r.price {
		wrong("charged %d, the price is %d", e.Credits, r.price)
	}
	if charged && !sms && e.Uncertain || charged && e.Actor != "" && !e.Uncertain && e.Resolution.Verdict == "" {
		wrong("charged by %q", e.Actor)
	}
	if sched.byok && (e.State != "" || r.did(reserve).attempts > 0) {
		wrong("Manual (BYOK), and the request touched credits")
	}
	if a.id == "" {
		wrong("no request ID")
		return
	}
	switch by := e.Resolution; {
	case by.Actor == "sms/resolve" && (by.Verdict == books.VerdictRefunded) != (sent == 0):
		wrong("%s: %s", by.Verdict, by.Reason)
	case e.Uncertain && sched.dialog:
		wrong("not resolved by the vendor's response")
	case by.Actor == "sms/resolve":
		sched.tally["resolver: "+string(by.Verdict)]++
	}
	uncertain := strings.Contains(a.message, "may have been sent")
	took := sms && sent == 1 && !r.rejected
	switch {
	case a.killed:
		switch {
		case charged && sms && !r.mayAct(mark):
			wrong("charged without a mark")
		case charged && !sms && !r.mayAct(capture):
			wrong("charged without a capture")
		case !charged && took && r.price > 0 && r.calledVendor():
			wrong("the message went out and is not charged")
		case charged && sms && !r.calledVendor():
			sched.anomaly(neverCalled)
			r.odd = true
		}
	case r.stopped && sms && e.Actor == "settle":
		sched.anomaly(stoppedPaid)
		r.odd = true
	case r.stopped && r.settled && !charged:
		sched.anomaly(stoppedFree)
	case r.settled:
		wrong("settled while alive")
	case a.replayed || a.status == 409 || a.status == 422 && sched.twoBodies(r) ||
		strings.Contains(a.message, "was cut off"):
		if r.key == "" || e.State != "" || r.did(reserve).attempts > 0 {
			wrong("a repeat that touched money")
		}
		switch {
		case a.status == 409 && !sched.keyHeld(r):
			wrong("no request holds the key")
		case strings.Contains(a.message, "was cut off") && (!r.after || !sched.keyLeft(r)):
			wrong("no request with the key was cut off")
		}
	case a.status == 200 && r.unknown:
		if charged {
			wrong("an address that no vendor knows is charged")
		}
	case a.status == 200:
		switch {
		case sms && sent != 1:
			wrong("accepted and not sent")
		case r.price == 0:
		case !charged && !sms && r.lost(capture):
			sched.anomaly(notCharged)
		case !charged:
			wrong("served and not charged")
		case !e.Uncertain && e.Resolution.Verdict == "":
		case r.lost(capture):
			sched.anomaly(servedInDoubt)
		default:
			wrong("a success charged as uncertain")
		}
	case a.status == 402:
		if charged || sent > 0 && r.key == "" {
			wrong("refused for lack of credits")
		}
		if full := strings.Contains(a.message, "daily limit"); full && !sched.dayMayBeFull(r) {
			wrong("the day had room")
		} else if !full && sched.rich {
			wrong("the wallet was full")
		}
	case a.status == 429:
		if charged || sent > 0 && r.key == "" {
			wrong("refused by the limit")
		}
		if full := strings.Contains(a.message, "to one number"); full && !sched.numberMayBeFull(r) {
			wrong("the number had room")
		} else if !full && sched.limit == unlimited {
			wrong("the limit was not reached")
		}
	case sms && uncertain:
		if r.price > 0 && (!charged || !e.Uncertain && e.Resolution.Verdict == "") {
			wrong("uncertain, and not charged as uncertain")
		}
		if !r.timedOut && !r.blamesVendor() {
			wrong("uncertain, and the vendor responded")
		}
	case a.status == 500 || a.status == 502 || a.status == 503:
		name := failedPaid
		if a.status == 500 {
			name = erredPaid
		}
		switch {
		case took && r.key == "":
			wrong("the message went out")
		case charged && (!sms || !r.lost(forbidCapture)):
			wrong("failed and charged, and the forbid capture got a response")
		case charged:
			sched.anomaly(name)
			r.odd = true
		case a.status == 500 && (r.mayFail() || r.op.name == wallet.Location && r.blamesVendor()),
			a.status != 500 && (r.blamesVendor() || r.rejected && a.status == 502):
		case r.timedOut:
			sched.anomaly(timeEnded)
			sched.note("%s: a time limit ended; %s", r.label(), r.longest())
		case a.status == 500:
			wrong("500, and no call of the request was lost; %s", r.longest())
		default:
			wrong("failed, and the vendor responded; %s", r.longest())
		}
	default:
		wrong("not expected")
	}
}

// dayMayBeFull reports that the counts of the day, one of each request, left no room for a request. An
// instance may refuse from memory, and the request then has no count of its own.
func (sched *schedule) dayMayBeFull(r *request) bool {
	total := int64(0)
	for _, o := range sched.requests {
		if o.mayAct(daily) {
			total += sched.amount(o)
		}
	}
	if r.did(daily).attempts == 0 {
		total += sched.amount(r)
	}
	return sched.daily > 0 && total > sched.daily
}

// numberMayBeFull reports the same of the messages to the number of a request.
func (sched *schedule) numberMayBeFull(r *request) bool {
	total := int64(0)
	for _, o := range sched.requests {
		if o.to == r.to && o.mayAct(recipient) {
			total++
		}
	}
	if r.did(recipient).attempts == 0 {
		total++
	}
	return sched.perNumber > 0 && r.to != "" && total > int64(sched.perNumber)
}

// judgeLimits checks that no limit let more through, whatever was lost. A schedule over midnight has two days.
func (sched *schedule) judgeLimits(entries []books.Entry, sent map[string]int) {
	charged := map[string]int64{}
	for _, e := range entries {
		if e.State == wallet.Captured {
			charged[e.Key.Day()] += e.Credits
		}
	}
	for day, credits := range charged {
		if sched.daily > 0 && credits > sched.daily {
			sched.fail("%d credits are charged on %s, the limit is %d", credits, day, sched.daily)
		}
	}
	days := 1 + int64(time.Now().UTC().Truncate(24*time.Hour).Sub(sched.began.UTC().Truncate(24*time.Hour))/(24*time.Hour))
	messages, units := map[string]int64{}, int64(0)
	for _, r := range sched.requests {
		if r.first == r && !r.rejected {
			messages[r.to] += int64(sent[r.token])
			units += int64(sent[r.token]) * r.units
		}
	}
	for to, n := range messages {
		if to != "" && sched.perNumber > 0 && n > days*int64(sched.perNumber) {
			sched.fail("%d messages were sent to %s, the limit is %d", n, to, sched.perNumber)
		}
	}
	if sched.byok && sched.daily > 0 && units > days*sched.daily {
		sched.fail("%d units were sent, the limit is %d", units, sched.daily)
	}
}

// keyHeld reports that another request with the key was alive at the same time, or has left its claim behind.
func (sched *schedule) keyHeld(r *request) bool {
	return sched.keyLeft(r) || slices.ContainsFunc(sched.requests, func(o *request) bool {
		return o != r && o.first == r.first && o.actor.first.Before(r.actor.first.Add(r.response.took)) &&
			r.actor.first.Before(o.actor.first.Add(o.response.took))
	})
}

// keyLeft reports that another request with the key has left its claim behind: it was killed, or lost every response to
// a write of the key.
func (sched *schedule) keyLeft(r *request) bool {
	return slices.ContainsFunc(sched.requests, func(o *request) bool {
		return o != r && o.first == r.first && (o.response.killed || o.lost(claim, keep, free))
	})
}

// twoBodies reports whether a request's key is used with another body, too.
func (sched *schedule) twoBodies(r *request) bool {
	return slices.ContainsFunc(sched.requests,
		func(o *request) bool { return o.first == r.first && o.changed != r.changed })
}

// judgeKeys checks that the requests of one Idempotency-Key succeed, send and charge once.
func (sched *schedule) judgeKeys(sent map[string]int) {
	groups := map[*request][]*request{}
	for _, r := range sched.requests {
		if r.key != "" {
			groups[r.first] = append(groups[r.first], r)
		}
	}
	for first, group := range groups {
		own, charges := 0, 0
		var data []string
		for _, r := range group {
			if r.charged && !r.odd {
				charges++
			}
			if r.response.status != 200 {
				continue
			}
			if !r.response.replayed {
				own++
			}
			if r.changed && slices.ContainsFunc(group, func(o *request) bool { return !o.changed && o.response.status == 200 }) {
				sched.fail("%s and a request with another body both succeed", r.label())
			}
			data = append(data, r.response.data)
		}
		if own > 1 || charges > 1 || len(slices.Compact(data)) > 1 || sent[first.token] > 1 {
			sched.fail("the key of %s: %d successes of their own, %d charges, responses %q, %d sends", first.label(), own,
				charges, data, sent[first.token])
		}
	}
}

// judgeCommands checks that each movement counts once, and that a movement with a response is in the ledger.
func (sched *schedule) judgeCommands(entries []books.Entry) {
	for _, c := range sched.commands {
		var found []books.Entry
		for _, e := range entries {
			if c.id != "" && e.Key == c.id ||
				c.id == "" && c.state == wallet.Refunded && e.State == wallet.Refunded &&
					slices.Contains(c.args, string(e.Refunds)) {
				found = append(found, e)
			}
		}
		want := 1
		if c.refused && len(found) == 0 || c.state == "" {
			want = 0
		}
		if len(found) != want || want == 1 && (found[0].Credits != c.credits || found[0].State != c.state) {
			sched.fail("%s of %d credits is in the ledger as %+v", c.name, c.credits, found)
		}
		sched.tally["svc "+strings.Fields(c.name)[0]+" "+string(c.state)]++ // a verdict without a state confirms
	}
}

func (sched *schedule) anomaly(name string) {
	sched.mu.Lock()
	defer sched.mu.Unlock()
	sched.odd = append(sched.odd, name)
}

// verify recomputes every wallet of the batch from its ledger, as svc ledger verify does.
func (b *batch) verify() error {
	found, err := b.stage.credits.Verify(context.Background(), nil)
	if err != nil {
		return err
	}
	if found.Wallets < len(b.schedules) {
		return fmt.Errorf("%d wallets of %d", found.Wallets, len(b.schedules))
	}
	for _, f := range found.Findings {
		sched := b.of[owner(f.Project)]
		if sched == nil {
			return fmt.Errorf("a wallet without a schedule: %+v", f)
		}
		sched.fail("verify: %s %s %s", f.Damage, f.Key, f.Detail)
	}
	return nil
}

// readLogs finds in the logs of the functions the requests whose reservation was settled while the request was alive,
// and those of which a time limit has ended.
func (b *batch) readLogs() error {
	requests := map[string]*request{}
	for _, sched := range b.schedules {
		for _, r := range sched.requests {
			requests[r.response.id] = r
		}
	}
	logs, err := filepath.Glob(filepath.Join(b.stage.logs, "*.log"))
	if err != nil {
		return err
	}
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			var of struct {
				ID string `json:"request_id"`
			}
			if _, object, _ := strings.Cut(line, "{"); json.Unmarshal([]byte("{"+object), &of) != nil || requests[of.ID] == nil {
				continue
			}
			r := requests[of.ID]
			r.settled = r.settled || strings.Contains(line, wallet.ErrSettled.Error())
			r.timedOut = r.timedOut ||
				strings.Contains(line, context.DeadlineExceeded.Error()) && r.response.took >= shortestLimit
		}
	}
	return nil
}
