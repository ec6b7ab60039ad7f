package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"svcapi/local/build"
	"svcapi/local/chromium"
	"svcapi/local/lambda"
	"svcapi/local/template"
)

// timeForPDF is the end of an event's time that a first PDF needs: the function keeps five seconds for its response.
const timeForPDF = 10 * time.Second

// pdf is what only PDFs need: a browser, which a first start unpacks, and two functions, which are compiled when the
// other functions run.
type pdf struct {
	environment map[string]string // of the renderer, with its browser
	unpacked    chan struct{}     // closed when the browser is unpacked, or when unpacking has failed
	added       chan struct{}     // closed when PDFs can be rendered, or when they cannot be here
	err         error             // why they cannot be
}

// split returns the functions that only PDFs need, and the others.
func split(functions []template.Function) (pdf, others []template.Function) {
	for _, f := range functions {
		if f.Folder == "pdf" || f.Folder == "pdfrender" {
			pdf = append(pdf, f)
		} else {
			others = append(others, f)
		}
	}
	return pdf, others
}

// unpackBrowser begins to unpack the browser. Close ends that.
func (s *Stack) unpackBrowser(ctx context.Context, options *Options) {
	ctx, cancel := context.WithCancel(ctx)
	p := &pdf{unpacked: make(chan struct{}), added: make(chan struct{})}
	s.pdf = p
	s.onClose(func() error {
		cancel()
		<-p.unpacked
		return nil
	})
	go func() {
		defer close(p.unpacked)
		p.err = options.phase("browser for PDFs", func() (string, error) {
			path, err := chromium.Path(ctx, options.Progress)
			if errors.Is(err, chromium.ErrNone) {
				return err.Error(), nil
			}
			p.environment = map[string]string{chromium.Variable: path}
			return "unpacked", err
		})
	}()
}

// compile compiles functions as a phase, and returns the binaries by logical ID.
func (o *Options) compile(ctx context.Context, phase string,
	functions []template.Function) (binaries map[string]string, err error) {
	err = o.phase(phase, func() (string, error) {
		binaries, err = build.Functions(ctx, functions)
		return fmt.Sprintf("%d compiled", len(binaries)), err
	})
	return binaries, err
}

// addPDF compiles the functions that make PDFs, and adds them to the host when their browser is there. Close ends that.
func (s *Stack) addPDF(ctx context.Context, options *Options, functions []template.Function) {
	ctx, cancel := context.WithCancel(ctx)
	p := s.pdf
	s.onClose(func() error {
		cancel()
		<-p.added
		return nil
	})
	go func() {
		defer close(p.added)
		binaries, err := options.compile(ctx, "functions for PDFs", functions)
		select {
		case <-p.unpacked:
		case <-ctx.Done():
			return // with the stack
		}
		p.err = errors.Join(p.err, err)
		for _, f := range functions {
			f = OnLaptop(f)
			if f.Folder == "pdfrender" {
				maps.Copy(f.Environment, p.environment)
			}
			if p.err == nil {
				p.err = s.Host.Add(f, binaries[f.LogicalID])
			}
		}
		if p.err != nil && ctx.Err() == nil {
			options.Progress("PDFs are refused with 503, everything else works: " + p.err.Error())
		}
	}()
}

// Renderer returns a channel that is closed when PDFs can be rendered, or when they cannot be here.
func (s *Stack) Renderer() <-chan struct{} { return s.pdf.added }

// awaitRenderer waits until PDFs can be rendered. When the time of an event does not suffice, or when PDFs cannot be
// rendered here, the result is an error that asks the client to try again.
func (s *Stack) awaitRenderer(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-timeForPDF))
		defer cancel()
	}
	select {
	case <-s.pdf.added:
	case <-ctx.Done():
		return &lambda.StartingError{After: 10 * time.Second,
			Needs: "The local stack still prepares PDFs. Try again in some seconds."}
	}
	if s.pdf.err != nil {
		return &lambda.StartingError{After: time.Minute,
			Needs: "The local stack cannot make PDFs. The output of make run says why."}
	}
	return nil
}

// phase runs one phase of the start, of which several run at the same time. It reports the phase's beginning, and its
// end with what the phase has made and its seconds.
func (o *Options) phase(name string, run func() (made string, err error)) error {
	began := time.Now()
	o.Progress(name + ": begun")
	made, err := run()
	if err == nil {
		o.Progress(fmt.Sprintf("%s: %s, %.1f s", name, made, time.Since(began).Seconds()))
	}
	return err
}

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
