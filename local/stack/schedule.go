package stack

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"svcapi/local/lambda"
	"svcapi/local/template"
)

// schedule runs every scheduled function once, returns when they have answered, and goes on by their schedules until
// the returned function is called. What fails is logged: the next run is the remedy, as in AWS.
func schedule(ctx context.Context, host *lambda.Host, functions []template.Function, log io.Writer) (stop func() error) {
	starting := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	uninterrupted := context.AfterFunc(starting, cancel)
	var first, all sync.WaitGroup
	for _, f := range functions {
		for _, s := range f.Schedules {
			run := func() {
				result, err := host.Invoke(ctx, f.LogicalID, []byte(cmp.Or(s.Input, "{}")))
				if ctx.Err() == nil && (err != nil || result.FunctionError != "") {
					fmt.Fprintf(log, "%s on its schedule: %v %s %s\n", f.LogicalID, err, result.FunctionError, result.Payload)
				}
			}
			first.Add(1)
			all.Go(func() {
				run()
				first.Done()
				ticks := time.NewTicker(s.Every)
				defer ticks.Stop()
				for {
					select {
					case <-ticks.C:
						run()
					case <-ctx.Done():
						return
					}
				}
			})
		}
	}
	first.Wait()
	uninterrupted()
	return func() error {
		cancel()
		all.Wait()
		return nil
	}
}
