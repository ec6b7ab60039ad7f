package stack

import (
	"context"
	"errors"
	"maps"
	"time"

	"svcapi/local/chromium"
	"svcapi/local/lambda"
	"svcapi/local/template"
)

// timeForRefusal is the end of an event's time, in which the gateway still responds to the client.
const timeForRefusal = 2 * time.Second

// browser is the browser of the PDF functions, which a first start unpacks while the other functions run already.
type browser struct {
	environment map[string]string // of the renderer
	unpacked    chan struct{}     // closed when the browser is unpacked, or when unpacking has failed
	added       chan struct{}     // closed when the renderer runs, or when it cannot run
	err         error             // why the renderer cannot run
}

// fetchBrowser begins to unpack the browser. Close ends that.
func (s *Stack) fetchBrowser(ctx context.Context, options *Options) {
	ctx, cancel := context.WithCancel(ctx)
	b := &browser{unpacked: make(chan struct{}), added: make(chan struct{})}
	s.browser = b
	s.onClose(func() error {
		cancel()
		<-b.unpacked
		return nil
	})
	go func() {
		defer close(b.unpacked)
		b.err = s.phases.run("browser for PDFs", func() (string, error) {
			path, err := chromium.Path(ctx, options.Progress)
			if errors.Is(err, chromium.ErrNone) {
				return err.Error(), nil
			}
			b.environment = map[string]string{chromium.Variable: path}
			return "unpacked", err
		})
		if b.err != nil && ctx.Err() == nil {
			options.Progress("PDFs are refused with 503, everything else works: " + b.err.Error())
		}
	}()
}

// addRenderer adds the function that renders PDFs to the host as soon as its browser is there.
func (s *Stack) addRenderer(renderer template.Function) {
	b := s.browser
	go func() {
		defer close(b.added)
		if <-b.unpacked; b.err == nil {
			renderer = OnLaptop(renderer)
			maps.Copy(renderer.Environment, b.environment)
			b.err = s.Host.Add(renderer, s.binaries[renderer.LogicalID])
		}
	}()
}

// Renderer returns a channel that is closed when PDFs can be rendered, or when they cannot be here.
func (s *Stack) Renderer() <-chan struct{} { return s.browser.added }

// awaitRenderer waits until the renderer can run. When the time of an event does not suffice, or when there is no
// browser, the result is an error that asks the client to try again.
func (s *Stack) awaitRenderer(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-timeForRefusal))
		defer cancel()
	}
	select {
	case <-s.browser.added:
	case <-ctx.Done():
		return &lambda.StartingError{After: 10 * time.Second,
			Needs: "The local stack still unpacks its browser for PDFs. Try again in some seconds."}
	}
	if s.browser.err != nil {
		return &lambda.StartingError{After: time.Minute,
			Needs: "The local stack has no browser for PDFs. The output of make run says why."}
	}
	return nil
}
