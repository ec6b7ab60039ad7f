package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"svcapi/shared/project"
)

const (
	// room is how many events the account has at once, and how many processes a function. Few: the clients need this
	// machine, too. Each of the calm clients needs four: a PDF takes two functions, and the next request may begin
	// while both still end.
	room    = 8
	clients = 2
	times   = 10              // requests of a flood, in multiples of the rate that the stack can serve
	routes  = 13              // about how many routes the mix uses: the gateway's throttle counts each apart
	window  = 2 * time.Second // of the projects' limits: the next begins soon after the flood

	busySeconds  = 10 // to measure the capacity
	floodSeconds = 15 // of each flood
)

// wall is a limit that refuses requests first when there are too many.
type wall struct {
	name    string
	status  int // of most refusals
	carries int // requests a second that are not too many
	with    settings
	pause   float64 // seconds that the one client rests between two requests, to stay below the wall
}

// walls returns the three walls for a stack of a capacity in requests a second.
func walls(capacity int) []wall {
	perRoute := max(capacity/2/routes, 5)
	// The functions refuse here: ten times what passes the limits must not be more than the stack can do, and some may
	// wait for a process.
	limited := max(capacity/times, 2*len(spenders))
	each := limited / len(spenders)
	return []wall{
		{"Lambda's concurrency", 500, capacity, settings{account: room, limit: wide}, 0.1},
		{"the gateway's throttle", 429, capacity, settings{account: room, limit: wide, parameters: map[string]string{
			"ApiRequestsPerSecond": strconv.Itoa(perRoute), "ApiBurst": strconv.Itoa(max(perRoute, 10)),
		}}, 0.1},
		{"the projects' limits", 429, limited, settings{
			account: 4 * room, limit: project.RateLimit{Requests: each * int(window.Seconds()), Window: window},
		}, 2 / float64(each)},
	}
}

// overload measures what the stack can do, and offers ten times as much, once for each wall.
func overload(ctx context.Context, out io.Writer) error {
	var calm map[string]float64
	err := within(ctx, out, settings{processes: room, account: room, limit: wide}, func(s *system) (err error) {
		calm, err = s.k6(ctx, "overload.js", map[string]any{"PHASE": "calm", "SECONDS": busySeconds, "VUS": clients})
		return err
	})
	if err != nil {
		return fmt.Errorf("before any overload: %w", err)
	}
	var errs []error
	for _, w := range walls(int(calm["capacity"])) {
		w.with.processes = room
		errs = append(errs, within(ctx, out, w.with, func(s *system) error {
			_, err := s.k6(ctx, "overload.js", map[string]any{
				"PHASE": "flood", "OVERLOAD": 1, "SECONDS": floodSeconds, "WALL": w.name, "STATUS": w.status,
				"CARRIES": w.carries, "TIMES": times, "SLOW_MS": calm["slow_ms"], "PAUSE": w.pause,
			})
			if err == nil { // else the causes are printed for the failure
				err = s.causes(ctx)
			}
			return err
		}))
	}
	return errors.Join(errs...)
}
