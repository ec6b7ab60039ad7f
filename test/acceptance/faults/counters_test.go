package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

// tally is what a counter may hold after a schedule: the least, where the request certainly counted, and the most.
type tally struct{ least, most int64 }

// add adds what one request counts. A request counts once or not at all, however often its writes were lost and
// repeated. It certainly counted where the work went on, and what it counted certainly is subtracted where the
// subtraction got a response.
func (t *tally) add(r *request, s step, pk string, amount int64, stays, refused bool) {
	switch {
	case stays:
		t.least, t.most = t.least+amount, t.most+amount
	case !r.mayAct(s), !r.did(s).tooLate() && (refused || r.subtracted(pk)):
	default:
		t.most += amount
	}
}

// subtracted reports that the request got a response to its last write of a subtraction from a kind of counter. A write
// before it may have been refused because of the slot of another writer (docs/decisions/requests.md#counters).
func (r *request) subtracted(pk string) bool {
	done := false
	for _, e := range r.did(subtract).exchanges {
		if strings.Contains(e.body, `"`+pk+`#`) {
			done = !e.open()
		}
	}
	return done
}

// judgeCounters checks each counter of the project: docs/decisions/requests.md#rate-limit,
// docs/decisions/requests.md#recipient-limit, docs/decisions/requests.md#daily-limit.
func (sched *schedule) judgeCounters() {
	var requests, day tally
	numbers := map[string]*tally{}
	for _, r := range sched.requests {
		a := r.response
		rate := a.status == http.StatusTooManyRequests && !strings.Contains(a.message, "to one number")
		requests.add(r, count, "rl", 1, a.status == http.StatusOK, rate)
		sent := a.status == http.StatusOK && !a.replayed && !r.rejected
		stays := sent && !r.unknown && (sched.byok || r.charged) || r.charged && !r.odd
		day.add(r, daily, "day", sched.amount(r), stays, a.status == http.StatusPaymentRequired &&
			strings.Contains(a.message, "daily limit"))
		if r.to != "" {
			if numbers[r.to] == nil {
				numbers[r.to] = &tally{}
			}
			numbers[r.to].add(r, recipient, "to", 1, sent, a.status == http.StatusTooManyRequests && !rate)
		}
	}
	unit := map[bool]string{false: "credits", true: "units"}[sched.byok]
	days, hours := map[string]bool{}, map[int64]bool{}
	for _, at := range []time.Time{sched.began, time.Now()} {
		days[at.UTC().Format(time.DateOnly)], hours[at.Unix()-at.Unix()%3600] = true, true
	}
	var rates, spent []string
	for hour := range hours {
		rates = append(rates, fmt.Sprintf("rl#%s#development#%d", sched.project, hour))
		for quota := 1; quota < 16; quota++ { // of a large limit
			rates = append(rates, fmt.Sprintf("rl#%s#development#%d#%d", sched.project, hour, quota))
		}
	}
	for day := range days {
		spent = append(spent, "day#"+sched.project+"#"+unit+"#"+day)
	}
	sched.judgeCounter("requests", requests, "n", rates)
	if sched.daily > 0 {
		sched.judgeCounter(unit, day, "n", spent)
	}
	if sched.perNumber == 0 {
		return
	}
	record, err := sched.stage.projects.Load(context.Background(), sched.project)
	if err != nil {
		sched.fail("%v", err)
		return
	}
	for number, t := range numbers {
		var keys []string
		normal, _ := project.NormalNumber(number)
		for day := range days {
			keys = append(keys, "to#"+sched.project+"#"+record.RecipientID(normal)+"#"+day)
		}
		sched.judgeCounter("messages to "+number, *t, "w86400.0", keys)
	}
}

// judgeCounter compares the sum of a counter's items with what the requests counted.
func (sched *schedule) judgeCounter(what string, t tally, name string, keys []string) {
	sum := int64(0)
	for _, pk := range keys {
		item, err := sched.stage.transient(pk)
		if err != nil {
			sched.fail("%v", err)
			return
		}
		n, _ := dynamo.NumberOf(item[name]) // absent: 0
		sum += n
	}
	if sum < t.least || sum > t.most {
		sched.fail("%d %s are counted, want %d to %d", sum, what, t.least, t.most)
	}
}
