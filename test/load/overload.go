package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"svcapi/shared/project"
)

const (
	// room is how many events the account has at once, and how many processes a function. Few: the clients need this
	// machine, too.
	room   = 4
	times  = 10              // requests of a flood, in multiples of what is not too much
	routes = 13              // about how many routes the mix uses: the gateway's throttle counts each apart
	window = 2 * time.Second // of the projects' limits: the next begins soon after the flood

	busySeconds  = 10 // to measure the capacity
	floodSeconds = 15 // of each flood

	slowTimes, slowLeast = 3, 250 // a slow response takes so many times the p95 of before, and so many milliseconds
)

// wall is a limit that refuses requests first when there are too many.
type wall struct {
	name   string
	status int // of most refusals
	// carries returns how many requests a second are not too many, from the stack's capacity.
	carries func(capacity int) int
	// with returns the settings of a stack on which this wall is the first.
	with func(carries int) settings
	// pause returns how many seconds the one client rests between two requests, to stay below the wall.
	pause func(carries int) float64
}

func all(capacity int) int { return capacity }

func short(int) float64 { return 0.1 }

var walls = []wall{
	{"Lambda's concurrency", 500, all, func(int) settings {
		return settings{account: room, limit: wide} // as in Lambda: an event has a process or is refused
	}, short},
	{"the gateway's throttle", 429, all, func(carries int) settings {
		most := max(carries/2/routes, 5)
		return settings{account: room, limit: wide, parameters: map[string]string{
			"ApiRequestsPerSecond": strconv.Itoa(most), "ApiBurst": strconv.Itoa(max(most, 10)),
		}}
	}, short},
	// The functions refuse here: ten times what passes the limits must not be more than the stack can do, and some may
	// wait for a process.
	{"the projects' limits", 429, func(capacity int) int { return max(capacity/times, 2*len(spenders)) }, func(carries int) settings {
		each := carries / len(spenders)
		return settings{account: 4 * room, limit: project.RateLimit{Requests: each * int(window.Seconds()), Window: window}}
	}, func(carries int) float64 { return 2 / float64(carries/len(spenders)) }},
}

// overload offers ten times what the stack can do, once for each wall.
func overload(ctx context.Context, out io.Writer) error {
	calm := &report{}
	carries := func(w wall) int { return w.carries(calm.count("busy") / busySeconds) }
	var errs []error
	for _, w := range walls {
		with := w.with(carries(w))
		with.processes = room
		errs = append(errs, within(ctx, out, with, func(s *system) ([]string, error) {
			var reports []*report
			if calm.Values == nil {
				r, err := s.k6(ctx, "overload.js", map[string]string{
					"PHASE": "calm", "SECONDS": strconv.Itoa(busySeconds), "VUS": strconv.Itoa(room - 1), // the schedules run beside the clients
				})
				if err == nil && len(r.Failed) > 0 {
					err = fmt.Errorf("before any overload: %s", strings.Join(r.Failed, ", "))
				}
				if err != nil {
					return nil, err
				}
				calm, reports = r, append(reports, r)
			}
			r, err := s.k6(ctx, "overload.js", map[string]string{
				"PHASE": "flood", "OVERLOAD": "1", "SECONDS": strconv.Itoa(floodSeconds),
				"WALL": w.name, "STATUS": strconv.Itoa(w.status), "CARRIES": strconv.Itoa(carries(w)), "TIMES": strconv.Itoa(times),
				"SLOW_MS": fmt.Sprint(max(slowTimes*calm.Values["took_calm"]["p(95)"], slowLeast)), "PAUSE": fmt.Sprint(w.pause(carries(w))),
			})
			if err != nil {
				return nil, err
			}
			if err := s.causes(); err != nil {
				return nil, err
			}
			wrong, err := s.money(ctx, append(reports, r)...)
			return append(r.Failed, wrong...), err
		}))
		if calm.Values == nil || ctx.Err() != nil {
			break // the capacity is unknown
		}
	}
	return errors.Join(errs...)
}
