package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"svcapi/local/build"
	"svcapi/local/chromium"
	"svcapi/local/lambda"
	"svcapi/local/template"
	"svcapi/local/workdir"
)

const (
	pdfStarts = 9   // of each kind, in turn
	initCPUs  = 2.0 // the most that Lambda gives to the init phase
	cpuMB     = 1769.0
)

// pdfTimes are those of one process of the function pdfrender.
type pdfTimes struct{ start, first, next time.Duration }

// pdf prints how long a process of the function pdfrender takes until it asks for its first event, and for two
// documents then: as fast as this machine is, and with the processor time that Lambda gives, which is up to two CPUs
// until the first event and a share for the function's memory then.
func (b *bench) pdf(ctx context.Context, out io.Writer) error {
	f, ok := b.stack.Template.Function("pdfrender")
	if !ok {
		return errors.New("the template has no function pdfrender")
	}
	environment, err := chromium.Environment(ctx, func(step string) { fmt.Fprintln(os.Stderr, step) })
	if err != nil || environment == nil {
		return err // nil: this machine has no browser, which was said
	}
	environment["SVC_LOCAL"] = "1"
	paths, err := build.Functions(ctx, []template.Function{f})
	if err != nil {
		return err
	}
	b.paths[f.LogicalID] = paths[f.LogicalID]
	root, err := workdir.Root()
	if err != nil {
		return err
	}
	event, err := os.ReadFile(filepath.Join(root, "events", "pdf-render.json"))
	if err != nil {
		return err
	}
	share := float64(f.MemoryMB) / cpuMB
	q := newQuota()
	defer q.close()
	kinds := []struct {
		name        string
		init, later float64 // CPUs; 0: all
	}{{"unlimited", 0, 0}, {fmt.Sprintf("%.0f CPUs, then %.2f", initCPUs, share), initCPUs, share}}
	times := map[string][]pdfTimes{}
	for range pdfStarts {
		for _, kind := range kinds {
			limit := func(cpus float64, pids []int) error {
				if cpus == 0 {
					return nil
				}
				return q.set(cpus, pids)
			}
			got, err := b.startPDF(ctx, f, environment, event, func(pids []int) error { return limit(kind.init, pids) },
				func(pids []int) error { return limit(kind.later, pids) })
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			times[kind.name] = append(times[kind.name], got)
		}
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "pdfrender, %d MB\tto first /next, median\tfirst document\tnext document\t\n", f.MemoryMB)
	for _, kind := range kinds {
		var start, first, next []time.Duration
		for _, one := range times[kind.name] {
			start, first, next = append(start, one.start), append(first, one.first), append(next, one.next)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", kind.name, ms(quantile(start, 0.5)), ms(quantile(first, 0.5)),
			ms(quantile(next, 0.5)))
	}
	fmt.Fprintf(t, "(%s)\n\n", q.note)
	return t.Flush()
}

// startPDF starts a process of the function pdfrender. It calls started when the process is there, and ready when it
// has asked for an event.
func (b *bench) startPDF(ctx context.Context, f template.Function, environment map[string]string, event []byte, started,
	ready func([]int) error) (t pdfTimes, err error) {
	options := lambda.Options{LogDir: b.dir, Jail: b.stack.Jail, Concurrency: 1, Environment: environment}
	host, err := lambda.HostOf(options, f, b.paths[f.LogicalID])
	if err != nil {
		return t, err
	}
	defer host.Close()
	render := func() (time.Duration, error) {
		began := time.Now()
		result, err := host.Invoke(ctx, f.LogicalID, event)
		if err == nil && result.FunctionError != "" {
			err = fmt.Errorf("%s: %s", f.LogicalID, result.Payload)
		}
		return time.Since(began), err
	}
	limited := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if pids := host.Processes(f.LogicalID); len(pids) > 0 {
				limited <- started(pids)
				return
			}
			<-time.After(time.Millisecond / 2)
		}
		limited <- ctx.Err()
	}()
	result, err := host.Invoke(ctx, f.LogicalID, []byte("{}")) // the renderer refuses this event
	if err = errors.Join(err, <-limited); err != nil {
		return t, err
	}
	t.start = result.Init
	if err := ready(host.Processes(f.LogicalID)); err != nil {
		return t, err
	}
	if t.first, err = render(); err != nil {
		return t, err
	}
	t.next, err = render()
	return t, err
}
