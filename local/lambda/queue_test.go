package lambda

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"svcapi/local/template"
)

// Lambda repeats a failed run and a throttled event as its documentation says, and gives up as EventInvokeConfig says.
func TestDeliver(t *testing.T) {
	const hour = time.Hour
	failed, throttled, good, last := "failed", "throttled", "good", "the host ends half a minute after the failed run"
	for _, c := range []struct {
		name    string
		rules   template.Asynchronous
		takes   time.Duration // each run
		runs    []string      // the last outcome goes on
		at      []time.Duration
		dropped bool
	}{
		{"good", template.Asynchronous{Retries: 2, MaxAge: 6 * hour}, time.Second, []string{good}, []time.Duration{0}, false},
		{"Lambda's defaults", template.Asynchronous{Retries: 2, MaxAge: 6 * hour}, 0, []string{failed},
			[]time.Duration{0, time.Minute, 3 * time.Minute}, true},
		{"good at last", template.Asynchronous{Retries: 2, MaxAge: 6 * hour}, 10 * time.Second,
			[]string{failed, failed, good},
			[]time.Duration{0, 70 * time.Second, 200 * time.Second}, false},
		{"never again", template.Asynchronous{Retries: 0, MaxAge: time.Minute}, 0, []string{failed},
			[]time.Duration{0}, true},
		{"too old for a retry", template.Asynchronous{Retries: 2, MaxAge: 2 * time.Minute}, 0, []string{failed},
			[]time.Duration{0, time.Minute}, true},
		{"throttled, then good", template.Asynchronous{Retries: 0, MaxAge: time.Minute}, 0,
			[]string{throttled, throttled, throttled, good},
			[]time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}, false},
		{"throttled for as long as the event lives", template.Asynchronous{Retries: 0, MaxAge: time.Minute},
			0, []string{throttled},
			[]time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second, 31 * time.Second}, true},
		{"throttled is no retry", template.Asynchronous{Retries: 1, MaxAge: hour}, 0,
			[]string{throttled, failed, throttled, failed},
			[]time.Duration{0, time.Second, 61 * time.Second, 63 * time.Second}, true},
		{"the host ends", template.Asynchronous{Retries: 2, MaxAge: hour}, 0, []string{last}, []time.Duration{0}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				began, dropped := time.Now(), error(nil)
				var at []time.Duration
				deliver(ctx, c.rules, func() (Result, error) {
					at = append(at, time.Since(began))
					time.Sleep(c.takes)
					switch c.runs[min(len(at), len(c.runs))-1] {
					case failed:
						return Result{FunctionError: "Unhandled"}, nil
					case last:
						time.AfterFunc(30*time.Second, end)
						return Result{FunctionError: "Unhandled"}, nil
					case throttled:
						return Result{}, ErrThrottled
					}
					return Result{}, nil
				}, func(err error) { dropped = err })
				if !slices.Equal(at, c.at) || errors.Is(dropped, ErrDropped) != c.dropped {
					t.Errorf("runs at %v, %v; want %v, dropped: %v", at, dropped, c.at, c.dropped)
				}
			})
		})
	}
}
