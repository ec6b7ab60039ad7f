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

// schedule invokes every scheduled function, asynchronously as EventBridge Scheduler does, returns when each has run
// once, and goes on by their schedules until the returned function is called. What fails is logged.
func schedule(ctx context.Context, host *lambda.Host, functions []template.Function,
	log io.Writer) (stop func() error) {
	starting := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	uninterrupted := context.AfterFunc(starting, cancel)
	var first, all sync.WaitGroup
	for _, f := range functions {
		for _, s := range f.Schedules {
			first.Add(1)
			ran := sync.OnceFunc(first.Done)
			report := func(result lambda.Result, err error) {
				if ctx.Err() == nil && (err != nil || result.FunctionError != "") {
					fmt.Fprintf(log, "%s on its schedule: %v %s %s\n", f.LogicalID, err, result.FunctionError, result.Payload)
				}
				ran()
			}
			run := func() {
				if err := host.Enqueue(f.LogicalID, []byte(cmp.Or(s.Input, "{}")), report); err != nil {
					report(lambda.Result{}, err)
				}
			}
			context.AfterFunc(ctx, ran)
			run()
			all.Go(func() {
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
