package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/credit"
)

// The known anomalies are the only ways in which a request's response and its charge may disagree
// (docs/decisions.md#what-is-charged). Each names the fault that alone can cause it. No throttle is such a fault.
const (
	neverCalled   = "charged, provider never called: died at the mark"
	notCharged    = "served, not charged: every response of the capture lost"
	servedInDoubt = "served, charged as uncertain: every response of the capture lost"
	failedPaid    = "charged though failed: every response of the forbid capture lost"
	erredPaid     = "charged though 500: every response of the forbid capture lost"
)

// entries are a project's ledger since a time.
func (s *stage) entries(project string, since time.Time) (all []credit.Entry, err error) {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for day := since.UTC().Truncate(24 * time.Hour); err == nil && !day.After(today); day = day.AddDate(0, 0, 1) {
		var entries []credit.Entry
		entries, err = s.credits.Entries(context.Background(), project, day.Format(time.DateOnly))
		all = append(all, entries...)
	}
	return all, err
}

// nameOf is the label of the request that an entry belongs to.
func (w *world) nameOf(e credit.Entry) string {
	for _, r := range w.requests {
		if digest(credit.NewKey(e.At, r.answer.id)) == digest(e.Key) {
			return r.label()
		}
	}
	return "nobody"
}

// received counts what a vendor received, by token, and whether it took it.
func received(calls []sandbox.Call) map[string]int {
	counts := map[string]int{}
	for _, c := range calls {
		if c.Operation == "send" {
			counts[tokenOf(c.Path+" "+c.Body)]++
		}
	}
	return counts
}

// judge compares every answer with its charge, once all is settled.
func (w *world) judge(sent map[string]int) {
	ctx := context.Background()
	entries, err := w.stage.entries(w.project, w.began)
	if err != nil {
		w.fail("%v", err)
		return
	}
	wallet, err := w.stage.credits.Wallet(ctx, w.project)
	if err != nil || wallet == nil {
		w.fail("wallet: %v", err)
		return
	}
	if wallet.Balance < 0 || wallet.Reserved != 0 || !wallet.Oldest.IsZero() {
		w.fail("after the last settler the wallet is %+v", *wallet)
	}
	var balance int64
	of := map[string][]credit.Entry{}
	for _, e := range entries {
		switch e.State {
		case credit.Granted, credit.Refunded, credit.Adjustment:
			balance += e.Credits
			continue
		case credit.Captured:
			balance -= e.Credits
		case credit.Sending:
			w.fail("the entry %s is left as sending", e.Key)
		}
		of[digest(e.Key)] = append(of[digest(e.Key)], e)
	}
	if balance != wallet.Balance {
		w.fail("the balance is %d, the ledger says %d", wallet.Balance, balance)
	}
	for _, r := range w.requests {
		named := digest(credit.NewKey(time.Now(), r.answer.id))
		own := of[named]
		delete(of, named)
		if len(own) > 1 {
			w.fail("%s has %d entries", r.label(), len(own))
		}
		var e credit.Entry
		if len(own) > 0 {
			e = own[0]
			if bySettler := e.State == credit.Released && e.Actor == "settle"; e.RequestID != r.answer.id && (e.RequestID != "" || !bySettler) {
				w.fail("the entry of %s names the request %q", r.label(), e.RequestID)
			}
		}
		w.tally[fmt.Sprintf("%s %s", r.op.name, outcomeOf(r))]++
		w.judgeRequest(r, e, sent[r.token])
	}
	for _, entries := range of {
		w.fail("entries of a request that nobody made: %+v", entries)
	}
	w.judgeKeys(sent)
	w.judgeCommands(entries)
}

// digest returns the part of a key that the request ID decides.
func digest(key credit.Key) string {
	_, digest, _ := strings.Cut(string(key), "-")
	return digest
}

func outcomeOf(r *request) string {
	switch {
	case r.answer.killed:
		return "crash"
	case r.answer.replayed:
		return fmt.Sprintf("%d replayed", r.answer.status)
	}
	return fmt.Sprint(r.answer.status)
}

// did is what became of a request's calls of one step.
func (r *request) did(s step) *calls {
	if c := r.actor.calls[s]; c != nil {
		return c
	}
	return &calls{}
}

// lost reports that the request lost every response of a write of one of the steps.
func (r *request) lost(steps ...step) bool {
	return slices.ContainsFunc(steps, func(s step) bool { return r.did(s).lost() })
}

// mayFail reports that the request got no answer to a call that it needs. A read has a function's few attempts; a write
// outlasts every burst of throttles.
func (r *request) mayFail() bool {
	died := r.after && r.did(reserve).attempts == 0 && r.did(vendor).attempts == 0 && r.lost(keep) // writes a dead request's outcome
	return died || r.lost(count, claim, reserve, rebalance, mark) ||
		slices.ContainsFunc([]step{record, domains, look}, func(s step) bool { return r.did(s).unanswered() })
}

// mayAct reports that a write of the step may take effect at some time, or has.
func (r *request) mayAct(s step) bool { return r.did(s).arrived > 0 || r.did(s).tooLate() }

// blamesVendor reports that an answer of a vendor was kept from the request.
func (r *request) blamesVendor() bool { return r.did(vendor).some(attempt.faulty) }

func (w *world) judgeRequest(r *request, e credit.Entry, sent int) {
	a, charged, sms := r.answer, e.State == credit.Captured, r.op.name == credit.SMS
	wrong := func(format string, args ...any) {
		w.fail("%s (%s) is answered %s %s, its entry is %q (uncertain %t), the vendor received %d: %s",
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
	if w.byok && (e.State != "" || r.did(reserve).attempts > 0) {
		wrong("Manual (BYOK), and it touched credits")
	}
	if a.id == "" {
		wrong("no request ID")
		return
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
		case !charged && took && r.price > 0 && r.did(vendor).attempts > 0:
			wrong("the message went out and is not charged")
		case charged && sms && r.did(vendor).attempts == 0:
			w.anomaly(neverCalled)
			r.odd = true
		}
	case a.replayed || a.status == 409 || a.status == 422 && w.twoBodies(r) || strings.Contains(a.message, "was cut off"):
		if r.key == "" || e.State != "" || r.did(reserve).attempts > 0 {
			wrong("a repeat that touched money")
		}
		switch {
		case a.status == 409 && !w.keyHeld(r):
			wrong("nobody holds the key")
		case strings.Contains(a.message, "was cut off") && (!r.after || !w.keyLeft(r)):
			wrong("no request with the key was cut off")
		}
	case a.status == 200 && r.unknown:
		if charged {
			wrong("an address that nobody knows is charged")
		}
	case a.status == 200:
		switch {
		case r.price > 0 && r.did(reserve).arrived == 0:
			wrong("served without a reservation")
		case sms && sent != 1:
			wrong("accepted and not sent")
		case r.price == 0:
		case !charged && !sms && r.lost(capture):
			w.anomaly(notCharged)
		case !charged:
			wrong("served and not charged")
		case !e.Uncertain && e.Resolution.Verdict == "":
		case r.lost(capture):
			w.anomaly(servedInDoubt)
		default:
			wrong("a success charged as uncertain")
		}
	case a.status == 402:
		if charged || sent > 0 && r.key == "" {
			wrong("refused for lack of credits")
		}
		if w.rich {
			wrong("the wallet was full")
		}
	case a.status == 429:
		if charged || sent > 0 && r.key == "" {
			wrong("refused by the limit")
		}
		if w.limit == unlimited {
			wrong("the limit was not reached")
		}
	case sms && uncertain:
		if r.price > 0 && (!charged || !e.Uncertain && e.Resolution.Verdict == "") {
			wrong("uncertain, and not charged as uncertain")
		}
		if !r.blamesVendor() {
			wrong("uncertain, and the vendor answered")
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
			w.anomaly(name)
			r.odd = true
		case a.status == 500 && !r.mayFail() && (r.op.name != credit.Location || !r.blamesVendor()):
			wrong("500, and no call of it was lost")
		case a.status != 500 && !r.blamesVendor() && (!r.rejected || a.status != 502):
			wrong("failed, and the vendor answered")
		}
	default:
		wrong("not expected")
	}
}

// keyHeld reports that another request with the key was alive beside this one, or has left the key behind.
func (w *world) keyHeld(r *request) bool {
	return w.keyLeft(r) || slices.ContainsFunc(w.requests, func(o *request) bool {
		return o != r && o.first == r.first && o.actor.first.Before(r.actor.first.Add(r.answer.took)) &&
			r.actor.first.Before(o.actor.first.Add(o.answer.took))
	})
}

// keyLeft reports that another request with the key has left its claim behind: it was killed, lost every answer of a write
// to the key, or a copy of its claim may have come after the key was given back.
func (w *world) keyLeft(r *request) bool {
	return slices.ContainsFunc(w.requests, func(o *request) bool {
		return o != r && o.first == r.first && (o.answer.killed || o.lost(claim, keep, free) || o.did(claim).tooLate())
	})
}

// twoBodies tells whether a request's key is used with another body, too.
func (w *world) twoBodies(r *request) bool {
	return slices.ContainsFunc(w.requests, func(o *request) bool { return o.first == r.first && o.changed != r.changed })
}

// judgeKeys: what has one Idempotency-Key happens once.
func (w *world) judgeKeys(sent map[string]int) {
	groups := map[*request][]*request{}
	for _, r := range w.requests {
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
			if r.answer.status != 200 {
				continue
			}
			if !r.answer.replayed {
				own++
			}
			if r.changed && slices.ContainsFunc(group, func(o *request) bool { return !o.changed && o.answer.status == 200 }) {
				w.fail("%s and one with another body both succeed", r.label())
			}
			data = append(data, r.answer.data)
		}
		if own > 1 || charges > 1 || len(slices.Compact(data)) > 1 || sent[first.token] > 1 {
			w.fail("the key of %s: %d successes of their own, %d charges, answers %q, %d sends", first.label(), own, charges, data, sent[first.token])
		}
	}
}

// judgeCommands: each movement counts once, and one that was answered is there.
func (w *world) judgeCommands(entries []credit.Entry) {
	for _, c := range w.commands {
		var found []credit.Entry
		for _, e := range entries {
			if c.id != "" && e.Key == c.id || c.id == "" && c.state == credit.Refunded && e.State == credit.Refunded && slices.Contains(c.args, string(e.Refunds)) {
				found = append(found, e)
			}
		}
		want := 1
		if c.refused && len(found) == 0 || c.state == "" {
			want = 0
		}
		if len(found) != want || want == 1 && (found[0].Credits != c.credits || found[0].State != c.state) {
			w.fail("%s of %d credits is in the ledger as %+v", c.name, c.credits, found)
		}
		w.tally["svc "+string(c.state)]++
	}
}

func (w *world) anomaly(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.odd = append(w.odd, name)
}

// verify recomputes every wallet of the batch from its ledger, as svc ledger verify does.
func (b *batch) verify() error {
	found, err := b.stage.credits.Verify(context.Background(), nil)
	if err != nil {
		return err
	}
	if found.Wallets < len(b.worlds) {
		return fmt.Errorf("%d wallets of %d", found.Wallets, len(b.worlds))
	}
	for _, f := range found.Findings {
		w := b.of[owner(f.Project)]
		if w == nil {
			return fmt.Errorf("a wallet of nobody: %+v", f)
		}
		w.fail("verify: %s %s %s", f.Damage, f.Key, f.Detail)
	}
	return nil
}

// settledAlive finds requests whose functions say that their reservation was settled while they lived.
func (b *batch) settledAlive() error {
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
			if !strings.Contains(line, credit.ErrSettled.Error()) {
				continue
			}
			for _, w := range b.worlds {
				for _, r := range w.requests {
					if r.answer.id != "" && strings.Contains(line, r.answer.id) {
						w.fail("%s: %s", r.label(), line)
					}
				}
			}
		}
	}
	return nil
}
