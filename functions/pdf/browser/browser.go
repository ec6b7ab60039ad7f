// Package browser renders hostile HTML to PDF with a headless Chromium that it keeps warm.
//
// What a document can reach is nothing: scripts do not run, every request of the browser is intercepted, its own
// network is closed, and its environment is empty. What a document can use up is bounded: time, the memory of the
// whole process tree, pages, the size of the PDF. A browser that a document hurt is killed with its group, and a new
// one started.
package browser

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-rod/rod/lib/cdp"

	"svcapi/functions/pdf/fetch"
)

// Options configure a Renderer. All fields but Protections and Log are required.
type Options struct {
	Path          string        // the Chromium to start
	Dir           string        // where profile folders are made
	Time          time.Duration // for one render
	Memory        int64         // bytes, of the browser's processes and this one
	Pages         int           // of one PDF
	Bytes         int64         // of one PDF
	RecycleAfter  int           // renders
	RecycleMemory int64         // bytes that the browser may hold between two renders
	Protections   []Protection  // what Seclude returned; optional
	Log           *slog.Logger  // starts and ends of browsers; nil: nothing is logged
}

// startTime bounds the start of a browser with its self-test.
const startTime = 10 * time.Second

// watchEvery is how often memory is looked at. The fastest known document takes 2 GB a second.
const watchEvery = 20 * time.Millisecond

// Document is what is rendered.
type Document struct {
	HTML     string // valid UTF-8
	Geometry Geometry
	Images   *fetch.Images // nil: none are loaded
}

// Renderer renders one document at a time.
type Renderer struct {
	options Options
	scripts bool // tests only: the containment must hold with scripts, too

	// ready holds the page for the next document, or why there is none. Who takes it works alone, and must see to it that
	// another one comes.
	ready   chan prepared
	closing sync.Once
	closed  chan struct{}
}

// prepared is a running browser with an empty page.
type prepared struct {
	session *session
	page    *page
	renders int // of this browser, so far
	err     error
}

// New starts a browser in the background. One that does not start is tried again by each Render.
func New(o Options) *Renderer { return start(o, false) }

func start(o Options, scripts bool) *Renderer {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Renderer{options: o, scripts: scripts, ready: make(chan prepared, 1), closed: make(chan struct{})}
	go r.replace(context.Background(), prepared{})
	return r
}

// Ready waits until the browser has started and shown that it prints text, and tells what is wrong if it has not.
func (r *Renderer) Ready(ctx context.Context) error {
	p, err := r.take(ctx)
	if err != nil {
		return err
	}
	r.ready <- p
	return p.err
}

// Close ends the browser. Render fails from then on.
func (r *Renderer) Close() {
	r.closing.Do(func() {
		p := <-r.ready
		close(r.closed)
		r.ready <- prepared{err: errGone}
		if p.session != nil {
			p.session.end()
		}
	})
}

func (r *Renderer) take(ctx context.Context) (prepared, error) {
	select {
	case p := <-r.ready:
		return p, nil
	case <-ctx.Done():
		return prepared{}, context.Cause(ctx)
	}
}

// Render returns the document as a PDF. A *RefusedError, or a *fetch.Error, is the document's doing.
//
// A browser that ends in the middle, without a limit reached, is replaced once: it may have been ended from
// outside.
func (r *Renderer) Render(ctx context.Context, d Document) ([]byte, error) {
	pdf, err := r.try(ctx, d)
	if errors.Is(err, errGone) {
		pdf, err = r.try(ctx, d)
	}
	if errors.Is(err, errGone) {
		select {
		case <-r.closed:
		default:
			err = errUnprintable
		}
	}
	return pdf, err
}

func (r *Renderer) try(ctx context.Context, d Document) ([]byte, error) {
	p, err := r.take(ctx)
	if err != nil {
		return nil, fmt.Errorf("browser: not ready: %w", err)
	}
	select {
	case <-r.closed:
		r.ready <- p
		return nil, errGone
	default:
	}
	if p.err == nil && (p.session.isGone() || p.page.crashed.fired()) { // while no document was there to blame
		p.session.end()
		p = prepared{err: errGone}
	}
	if p.err != nil {
		if p = r.start(ctx); p.err != nil {
			go r.replace(ctx, prepared{})
			return nil, p.err
		}
	}
	pdf, err := r.render(ctx, p, d)
	p.renders++
	if !healthy(err) {
		r.options.Log.Warn("browser ended", "cause", err.Error(), "renders", p.renders)
		p.session.end()
		p = prepared{}
	}
	go r.replace(ctx, p)
	return pdf, err
}

// healthy tells whether the browser is sound after a render that ended with err.
func healthy(err error) bool {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused.Reason == "size" || refused.Reason == "pages"
	}
	_, image := errors.AsType[*imageError](err)
	return err == nil || image
}

// render runs one document within the limits of time and memory. The browser must be ended unless the outcome is
// healthy.
func (r *Renderer) render(ctx context.Context, p prepared, d Document) ([]byte, error) {
	began := time.Now()
	ctx, cancel := withRunningTime(ctx, r.options.Time, tooSlow(r.options.Time))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	page := p.page
	page.ctx, page.fail, page.images = ctx, fail, d.Images
	p.session.serve(page)
	defer p.session.serve(nil)
	go r.watch(ctx, p.session, fail)
	go page.ifCrashed(ctx, func() { fail(errUnprintable) })

	pdf, err := page.render(d, r.options.Pages, r.options.Bytes)
	if cause := context.Cause(ctx); cause != nil {
		err = cause // whatever broke first
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = tooSlow(time.Since(began).Round(time.Second)) // the request's own deadline came first
	}
	if _, said := errors.AsType[*cdp.Error](err); said {
		err = fmt.Errorf("%w: %w", errUnprintable, err) // the browser is well and will not print this
	}
	if err != nil {
		return nil, err
	}
	return pdf, nil
}

// watch ends the browser when its memory passes the limit. Memory is the way to hurt a renderer: 64 KB of HTML can ask
// for gigabytes within a second, so the look is taken often, and the kill comes before the answer.
func (r *Renderer) watch(ctx context.Context, s *session, fail context.CancelCauseFunc) {
	var pids []int
	for look := 0; ; look++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchEvery):
		}
		if look%5 == 0 { // a browser's processes change more slowly than their memory
			pids = append(members(s.group), os.Getpid())
		}
		if memory(pids) > r.options.Memory {
			fail(tooMuchMemory(r.options.Memory))
			s.end()
			return
		}
	}
}

// replace puts the page for the next document in place: another one in the same browser, or in a new one. replace runs on
// after the response, and where Ready is not awaited for long enough, through the freeze that follows.
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

// renew swaps the page, or ends the browser and returns nothing.
func (r *Renderer) renew(ctx context.Context, p prepared) prepared {
	err := p.page.dispose(ctx)
	if held := memory(members(p.session.group)); err == nil && (p.renders >= r.options.RecycleAfter || held > r.options.RecycleMemory) {
		err = fmt.Errorf("recycled: %d MiB held", held>>20)
	}
	if err == nil {
		p.page, err = p.session.blank(ctx, r.scripts)
	}
	if err != nil {
		r.options.Log.Info("browser ended", "cause", err.Error(), "renders", p.renders)
		p.session.end()
		return prepared{}
	}
	return p
}

// start starts a browser, tests it, and opens an empty page.
func (r *Renderer) start(ctx context.Context) prepared {
	ctx, cancel := withRunningTime(ctx, startTime, errSlowStart)
	defer cancel()
	began := time.Now()
	s, err := open(ctx, r.options.Path, r.options.Dir)
	if err != nil {
		return prepared{err: r.unstarted(err)}
	}
	p := prepared{session: s}
	if err = r.test(ctx, p); err == nil {
		p.page, err = s.blank(ctx, r.scripts)
	}
	if err != nil {
		err = s.explain(err)
		s.end()
		return prepared{err: r.unstarted(err)}
	}
	s.said.close()
	r.options.Log.Info("browser started", "milliseconds", time.Since(began).Milliseconds())
	return p
}

// unstarted keeps what went wrong at a start apart from what documents do, and names what the system denies: on a
// platform that denies more than before, that is the first thing to know.
func (r *Renderer) unstarted(err error) error {
	text := []string{"browser: does not start: " + err.Error()}
	for _, p := range r.options.Protections {
		if p.Denied != nil {
			text = append(text, p.Name+": "+p.Denied.Error())
		}
	}
	if calls := denied(r.options.Dir); len(calls) > 0 {
		text = append(text, "denied here: "+strings.Join(calls, ", "))
	}
	return startError(strings.Join(text, "; "))
}

type startError string

func (e startError) Error() string { return string(e) }

var errSlowStart = fmt.Errorf("browser: not ready after %s", startTime)

var errNoText = errors.New("browser: self-test: no text in the PDF; are fonts and their configuration beside the browser?")

// test renders a line and looks for its text: with fonts amiss Chromium prints a valid, empty PDF without an error.
func (r *Renderer) test(ctx context.Context, p prepared) error {
	var err error
	if p.page, err = p.session.blank(ctx, false); err != nil {
		return err
	}
	pdf, err := r.render(ctx, p, Document{HTML: "<!DOCTYPE html><p>self-test", Geometry: Geometry{Size: Sizes["A4"]}})
	if err != nil {
		return err
	}
	if !showsText(pdf) {
		return errNoText
	}
	return p.page.dispose(ctx)
}

// showsText tells whether a PDF maps glyphs to characters (ISO 32000-1, 9.10.3): only text in a real font does.
func showsText(pdf []byte) bool {
	for {
		_, rest, found := bytes.Cut(pdf, []byte("stream\n"))
		if !found {
			return false
		}
		pdf = rest
		stream, err := zlib.NewReader(bytes.NewReader(rest))
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(io.LimitReader(stream, 1<<20))
		if bytes.Contains(text, []byte("endbfchar")) || bytes.Contains(text, []byte("endbfrange")) {
			return true
		}
	}
}
