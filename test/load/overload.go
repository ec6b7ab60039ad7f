package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"svcapi/shared/project"
)

const (
	// room is how many events the account has at once, and how many processes a function. Few: the clients need this
	// machine, too.
	room        = 4
	times       = 10               // what is offered, in multiples of what is not too much
	leastTimes  = 8                // of what the clients really sent
	busySeconds = 10               // to find out what it can do
	floodLength = 15 * time.Second // of each flood
	within95    = 2 * time.Second  // 95 of 100 answers under overload
	withinAll   = 15 * time.Second // every answer
	back        = 5 * time.Second  // until all is as before: nothing refused, and nothing slower than
	slowTimes   = 3                // times the p95 of before, or
	slowLeast   = 250 * time.Millisecond
)

// wall is what turns requests away first when there are too many.
type wall struct {
	name   string
	status int // of most refusals
	// carries is how many requests a second are not too many, from what the stack can do.
	carries func(capacity int) int
	// with says what a stack needs so that this wall is the first.
	with func(carries int) settings
	// pause is how many seconds the one client rests between two requests, that it does not meet the wall by itself.
	pause func(carries int) float64
}

// routes is more or less how many routes the mix asks: the gateway's throttle counts each apart.
const routes = 13

// window of the projects' limits. A short one: the next begins soon after the flood.
const window = 2 * time.Second

func all(capacity int) int { return capacity }

func short(int) float64 { return 0.1 }

var walls = []wall{
	{"Lambda's concurrency", 500, all, func(int) settings {
		return settings{account: room, limit: wide} // as in Lambda: an event has a process or is refused
	}, short},
	{"the gateway's throttle", 429, all, func(carries int) settings {
		most := max(carries/2/routes, 5)
		return settings{account: room, limit: wide, parameters: map[string]string{
			"ApiRequestsPerSecond": decimal(most), "ApiBurst": decimal(max(most, 10)),
		}}
	}, short},
	// The functions refuse here: ten times what passes the limits must not be more than the stack can do, and some may
	// wait for a process.
	{"the projects' limits", 429, func(capacity int) int { return max(capacity/times, 2*len(spenders)) }, func(carries int) settings {
		each := carries / len(spenders)
		return settings{account: 4 * room, limit: project.RateLimit{Requests: each * int(window.Seconds()), Window: window}}
	}, func(carries int) float64 { return 2 / float64(carries/len(spenders)) }},
}

// calm is what a stack does when nobody asks too much.
type calm struct {
	capacity int     // requests a second
	slow     float64 // what counts as slow for one client, in ms
}

// overload offers ten times what the stack can do, once for each wall that stands in the way.
func overload(ctx context.Context, out io.Writer) error {
	var before calm
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\nfirst in the way\tsent a second\t× what it carries\t200\t429\t500\t503\trefused: median\tp95\tserved: median\tp95\tslowest\tback after\t\n")
	var errs []error
	for _, w := range walls {
		with := w.with(w.carries(before.capacity))
		with.processes = room
		err := within(ctx, out, with, func(s *system) ([]string, error) {
			var reports []*report
			if before.capacity == 0 {
				r, err := s.calm(ctx, &before)
				if err != nil {
					return nil, err
				}
				reports = append(reports, r)
			}
			r, wrong, err := s.flood(ctx, w, before, t)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(out, "\nFirst in the way: %s. Why requests were refused, by the logs:\n", w.name)
			if err := s.causes(); err != nil {
				return nil, err
			}
			more, err := s.money(ctx, append(reports, r)...)
			return append(wrong, more...), err
		})
		errs = append(errs, err)
		if before.capacity == 0 || ctx.Err() != nil {
			break // there is nothing to multiply
		}
	}
	return errors.Join(append(errs, t.Flush())...)
}

// calm measures what the stack can do.
func (s *system) calm(ctx context.Context, c *calm) (*report, error) {
	clients := room - 1 // the schedules run beside them
	r, err := s.run(ctx, "overload.js", map[string]string{
		"PHASE": "calm", "SECONDS": decimal(busySeconds), "VUS": decimal(clients), "WARM": decimal(clients),
	})
	if err != nil {
		return nil, err
	}
	if failed := r.failures(); len(failed) > 0 || r.count("refused") > 0 {
		return nil, fmt.Errorf("before any overload: %d refused, %s", r.count("refused"), strings.Join(failed, ", "))
	}
	c.capacity = r.count("busy") / busySeconds
	alone := r.value("took_calm", "p(95)")
	c.slow = max(slowTimes*alone, ms(slowLeast))
	fmt.Fprintf(s.out, "\nOne client: p95 %.0f ms. %d clients: %d answers a second, median %.0f ms, p95 %.0f ms.\n",
		alone, clients, c.capacity, r.value("took_full", "med"), r.value("took_full", "p(95)"))
	return r, nil
}

// flood offers ten times that, and says what is wrong with how it ends.
func (s *system) flood(ctx context.Context, w wall, before calm, t io.Writer) (r *report, wrong []string, err error) {
	carries := w.carries(before.capacity)
	r, err = s.run(ctx, "overload.js", map[string]string{
		"PHASE": "flood", "OVERLOAD": "1", "RATE": decimal(times * carries), "SECONDS": fmt.Sprint(floodLength.Seconds()),
		"SLOW_MS": fmt.Sprintf("%.0f", before.slow), "PAUSE": fmt.Sprintf("%.2f", w.pause(carries)), "WARM": "0",
	})
	if err != nil {
		return nil, nil, err
	}
	sent := float64(r.count("took_flood")) / floodLength.Seconds()
	ratio := sent / float64(carries)
	fmt.Fprintf(t, "%s\t%.0f\t%.1f\t", w.name, sent, ratio)
	refusals, most := 0, 0
	for _, status := range []int{200, 429, 500, 503} {
		n := r.count(fmt.Sprintf("answers_%d", status))
		fmt.Fprintf(t, "%d\t", n)
		if status != 200 {
			refusals += n
		}
		if status == w.status {
			most = n
		}
	}
	recovered := time.Duration(r.value("late", "max")) * time.Millisecond
	fmt.Fprintf(t, "%.0f ms\t%.0f ms\t%.0f ms\t%.0f ms\t%.0f ms\t%.1f s\t\n", r.value("took_turned_away", "med"), r.value("took_turned_away", "p(95)"),
		r.value("took_served", "med"), r.value("took_served", "p(95)"), r.value("took_flood", "max"), recovered.Seconds())
	wrong = r.failures()
	for _, check := range []struct {
		good bool
		says string
	}{
		{ratio >= leastTimes, fmt.Sprintf("the clients sent %.1f times what it carries, want %d", ratio, leastTimes)},
		{2*most > refusals && refusals > 0, fmt.Sprintf("%d of %d refusals are %d, want most", most, refusals, w.status)},
		{r.count("answers_200") > 0, "nothing was served under overload"},
		{r.value("took_flood", "p(95)") <= ms(within95), fmt.Sprintf("p95 of the answers is %.0f ms, want at most %s", r.value("took_flood", "p(95)"), within95)},
		{r.value("took_flood", "max") <= ms(withinAll), fmt.Sprintf("the slowest answer took %.0f ms, want at most %s", r.value("took_flood", "max"), withinAll)},
		{r.count("took_after") > 0 && recovered <= back, fmt.Sprintf("it was not as before until %s after the flood, want %s", recovered, back)},
	} {
		if !check.good {
			wrong = append(wrong, w.name+": "+check.says)
		}
	}
	return r, wrong, nil
}

func ms(d time.Duration) float64 { return float64(d.Milliseconds()) }
