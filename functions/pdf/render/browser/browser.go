// Package browser renders hostile HTML to PDF with a headless Chromium that it keeps warm.
//
// A document reaches nothing: scripts do not run, every request of the browser is intercepted, the network of the
// browser is closed, and its environment is empty. A document's use of resources is bounded: time, memory of all
// processes, pages, size of the PDF. A browser that a document damaged is killed with its process group and replaced.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-rod/rod/lib/cdp"
	"github.com/go-rod/rod/lib/proto"

	"svcapi/functions/pdf/render/event"
	"svcapi/functions/pdf/render/fetch"
)

// Options configure a Renderer. All fields but Protections are required.
type Options struct {
	Path          string        // of the Chromium to start
	Dir           string        // parent of the profile folders
	Time          time.Duration // for one render
	Memory        int64         // bytes, of the browser's processes and this one
	Pages         int           // of one PDF
	RecycleAfter  int           // renders
	RecycleMemory int64         // bytes that the browser may hold between two renders
	Protections   []slog.Attr   // returned by Isolate; optional
	Log           *slog.Logger  // receives starts and ends of browsers
	scripts       bool          // tests only: the containment must hold with scripts, too
}

// startTime bounds the start of a browser with its self-test.
const startTime = 10 * time.Second

// watchInterval is the time between two looks at the memory. The fastest known document takes 2 GB a second.
const watchInterval = 20 * time.Millisecond

// Document is the input of one render: a valid event, whose geometry overrides the page rules of the HTML.
type Document struct {
	event.Event
	Images *fetch.Images // nil: none are loaded
	// Finish returns the final PDF of a printed one, within the same limits. A Finish without an end outlives its render.
	Finish func(pdf []byte) ([]byte, error)
}

// Renderer renders one document at a time.
type Renderer struct {
	options Options

	// ready holds the page for the next document, or the error of the start. The goroutine that takes the page has the
	// browser for itself, and must put the next page into ready.
	ready chan prepared
}

// prepared is a running browser with an empty page.
type prepared struct {
	session *session
	page    *page
	renders int // of this browser, so far
	err     error
}

// New starts a browser in the background. After a failed start each Render tries again.
func New(o Options) *Renderer {
	r := &Renderer{options: o, ready: make(chan prepared, 1)}
	go r.replace(context.Background(), prepared{})
	return r
}

// Ready waits until the browser has started and passed its self-test, and returns the error of a failed start.
func (r *Renderer) Ready(ctx context.Context) error {
	p, err := r.take(ctx)
	if err != nil {
		return err
	}
	r.ready <- p
	return p.err
}

// Close ends the browser. The next Render starts another one.
func (r *Renderer) Close() {
	p := <-r.ready
	if p.session != nil {
		p.session.end()
	}
	r.ready <- prepared{err: errEnded}
}

func (r *Renderer) take(ctx context.Context) (prepared, error) {
	select {
	case p := <-r.ready:
		return p, nil
	case <-ctx.Done():
		return prepared{}, context.Cause(ctx)
	}
}

// Render returns the document as a PDF, with the warnings about it. An *event.RejectionError means that the document is
// at fault. If the browser ends although no limit was reached, Render renders the document once more: another process
// may have ended the browser.
func (r *Renderer) Render(ctx context.Context, d Document) (pdf []byte, warnings string, err error) {
	pdf, warnings, err = r.renderOnce(ctx, d)
	if errors.Is(err, errEnded) {
		pdf, warnings, err = r.renderOnce(ctx, d)
	}
	if errors.Is(err, errEnded) {
		err = errUnprintable
	}
	return pdf, warnings, err
}

func (r *Renderer) renderOnce(ctx context.Context, d Document) (pdf []byte, warnings string, err error) {
	p, err := r.take(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("browser: not ready: %w", err)
	}
	if p.err == nil && (p.session.ended.Err() != nil || p.page.crashed.Err() != nil) { // without a document to blame
		p.session.end()
		p = prepared{err: errEnded}
	}
	if p.err != nil {
		if p = r.start(ctx); p.err != nil {
			go r.replace(ctx, prepared{})
			return nil, "", p.err
		}
	}
	pdf, warnings, err = r.render(ctx, p, d)
	p.renders++
	if !healthy(err) {
		r.options.Log.Warn("browser ended", "cause", err.Error(), "renders", p.renders)
		p.session.end()
		p = prepared{}
	}
	go r.replace(ctx, p)
	return pdf, warnings, err
}

// healthy reports whether the browser can be used again after a render that returned err.
func healthy(err error) bool {
	e, _ := errors.AsType[*event.RejectionError](err)
	return err == nil || e != nil &&
		slices.Contains([]string{event.ReasonSize, reasonPages, reasonHeight, reasonRanges, reasonWarnings, fetch.Reason},
			e.Reason)
}

// render renders one document within the limits. After an error that is not healthy the caller ends the browser.
func (r *Renderer) render(ctx context.Context, p prepared, d Document) (pdf []byte, warnings string, err error) {
	began := time.Now()
	ctx, cancel := withRunningTime(ctx, r.options.Time, tooSlow(r.options.Time))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	page := p.page
	page.ctx, page.fail, page.document = ctx, fail, d
	p.session.page.Store(page)
	defer p.session.page.Store(nil)
	go r.watch(ctx, p.session, fail)
	defer context.AfterFunc(page.crashed, func() { fail(errUnprintable) })()

	if pdf, warnings, err = page.render(d, r.options.Pages); err == nil {
		pdf, err = finish(ctx, pdf, d.Finish)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause // the first failure, not one of its effects
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = tooSlow(time.Since(began).Round(time.Second)) // the deadline of the request came first
	}
	if _, ok := errors.AsType[*cdp.Error](err); ok || errors.Is(err, errProgram) {
		err = fmt.Errorf("%w: %w", errUnprintable, err) // the browser works and refuses to print or to measure this document
	}
	if err != nil {
		return nil, "", err
	}
	return pdf, warnings, nil
}

// finish returns the final PDF, or an error as soon as a limit is exceeded.
func finish(ctx context.Context, pdf []byte, with func([]byte) ([]byte, error)) ([]byte, error) {
	if with == nil {
		return pdf, nil
	}
	done := make(chan error, 1)
	go func() {
		var err error
		pdf, err = with(pdf)
		done <- err
	}()
	select {
	case err := <-done:
		return pdf, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// watch ends the browser when its memory passes the limit. 64 KB of HTML can ask for gigabytes within a second, so
// watch looks often and kills the browser before the render returns.
func (r *Renderer) watch(ctx context.Context, s *session, fail context.CancelCauseFunc) {
	var pids []int
	for look := 0; ; look++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchInterval):
		}
		if look%5 == 0 { // a browser's processes change more slowly than their memory
			pids = append(groupMembers(s.group), os.Getpid())
		}
		if memory(pids) > r.options.Memory {
			fail(event.Exceeded("memory", "rendering needs more than %d MiB of memory", r.options.Memory>>20))
			s.end()
			return
		}
	}
}

// replace prepares the page for the next document, in the same browser or in a new one. replace goes on after the
// response, and through the freeze that follows where Ready is not awaited for long enough.
func (r *Renderer) replace(ctx context.Context, p prepared) {
	ctx, cancel := withRunningTime(context.WithoutCancel(ctx), startTime, errSlowStart)
	defer cancel()
	if p.session != nil {
		p = r.renew(ctx, p)
	}
	if p.session == nil {
		p = r.start(ctx)
	}
	r.ready <- p
}

// renew opens a new page in the same browser, or ends the browser and returns nothing.
func (r *Renderer) renew(ctx context.Context, p prepared) prepared {
	err := p.page.dispose(ctx)
	held := memory(groupMembers(p.session.group))
	if err == nil && (p.renders >= r.options.RecycleAfter || held > r.options.RecycleMemory) {
		err = fmt.Errorf("recycled: %d MiB held", held>>20)
	}
	if err == nil {
		p.page, err = p.session.newPage(ctx, r.options.scripts)
	}
	if err != nil {
		r.options.Log.Info("browser ended", "cause", err.Error(), "renders", p.renders)
		p.session.end()
		return prepared{}
	}
	return p
}

// start starts a browser and opens a page.
func (r *Renderer) start(ctx context.Context) prepared {
	ctx, cancel := withRunningTime(ctx, startTime, errSlowStart)
	defer cancel()
	began := time.Now()
	s, err := open(ctx, r.options.Path, r.options.Dir)
	if err != nil {
		return prepared{err: r.startFailure(err)}
	}
	p, version := prepared{session: s}, &proto.BrowserGetVersionResult{}
	if p.page, err = s.newPage(ctx, r.options.scripts); err == nil {
		version, err = proto.BrowserGetVersion{}.Call(s.in(ctx, ""))
	}
	if err != nil {
		err = s.explain(err)
		s.end()
		return prepared{err: r.startFailure(err)}
	}
	s.stderr.close()
	r.options.Log.Info("browser started", "milliseconds", time.Since(began).Milliseconds(),
		"browser", version.Product, "released", released(r.options.Path))
	return p
}

// released returns the date of the browser's release, which browser.json of the layer has beside the browser, and ""
// for a browser without that file.
func released(path string) string {
	var pinned struct{ Released string }
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "browser.json"))
	if err != nil || json.Unmarshal(text, &pinned) != nil {
		return ""
	}
	return pinned.Released
}

// startFailure returns the error of a failed start. The error wraps nothing, so that no document is blamed for a failed
// start, and names the state of the protections and the system calls that the platform denies.
func (r *Renderer) startFailure(err error) error {
	text := []string{"browser: does not start: " + err.Error()}
	for _, p := range r.options.Protections {
		text = append(text, p.Key+": "+p.Value.String())
	}
	if calls := denied(); len(calls) > 0 {
		text = append(text, "denied here: "+strings.Join(calls, ", "))
	}
	return errors.New(strings.Join(text, "; "))
}

var (
	errSlowStart = fmt.Errorf("browser: not ready after %s", startTime)
	errNoText    = errors.New("browser: self-test: no text in the PDF; are fonts and their configuration beside the " +
		"browser?")
)
