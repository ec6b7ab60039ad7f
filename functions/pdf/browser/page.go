package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/go-rod/rod/lib/proto"

	"svcapi/functions/pdf/fetch"
)

// imageError is what the fetcher said, told apart from what the browser says.
type imageError struct{ error }

func (e *imageError) Unwrap() error { return e.error }

// flag is an event that happens once.
type flag struct {
	once sync.Once
	c    chan struct{}
}

func (f *flag) fire() { f.once.Do(func() { close(f.c) }) }

func (f *flag) fired() bool {
	select {
	case <-f.c:
		return true
	default:
		return false
	}
}

// page is one empty page in a browser context of its own, used for one document.
type page struct {
	s       *session
	context proto.BrowserBrowserContextID
	target  proto.TargetTargetID
	id      proto.TargetSessionID
	loaded  flag
	crashed flag

	ctx    context.Context // of the render; set before the page is served
	fail   context.CancelCauseFunc
	images *fetch.Images
}

// blank opens a page where scripts do not run.
func (s *session) blank(ctx context.Context, scripts bool) (*page, error) {
	root := s.in(ctx, "")
	created, err := proto.TargetCreateBrowserContext{DisposeOnDetach: true}.Call(root)
	if err != nil {
		return nil, err
	}
	target, err := proto.TargetCreateTarget{URL: "about:blank", BrowserContextID: created.BrowserContextID}.Call(root)
	if err != nil {
		return nil, err
	}
	attached, err := proto.TargetAttachToTarget{TargetID: target.TargetID, Flatten: true}.Call(root)
	if err != nil {
		return nil, err
	}
	p := &page{s: s, context: created.BrowserContextID, target: target.TargetID, id: attached.SessionID,
		loaded: flag{c: make(chan struct{})}, crashed: flag{c: make(chan struct{})}}
	s.mu.Lock()
	s.pages[string(p.id)] = p
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go p.ifCrashed(ctx, func() { cancel(errGone) })
	own := s.in(ctx, p.id)
	for _, call := range []interface{ Call(proto.Client) error }{
		proto.PageEnable{},
		proto.PageSetBypassCSP{Enabled: true}, // a document's policy must not keep the page rule out
		proto.EmulationSetScriptExecutionDisabled{Value: !scripts},
		proto.BrowserSetDownloadBehavior{Behavior: proto.BrowserSetDownloadBehaviorBehaviorDeny, BrowserContextID: p.context},
	} {
		if err := call.Call(own); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// ifCrashed calls f when the page's renderer ends before ctx does.
func (p *page) ifCrashed(ctx context.Context, f func()) {
	select {
	case <-p.crashed.c:
		f()
	case <-ctx.Done():
	}
}

// dispose closes the page's context with all it holds.
func (p *page) dispose(ctx context.Context) error {
	p.s.mu.Lock()
	delete(p.s.pages, string(p.id))
	p.s.mu.Unlock()
	return proto.TargetDisposeBrowserContext{BrowserContextID: p.context}.Call(p.s.in(ctx, ""))
}

// owns tells whether a frame is the page's own or one within it.
func (p *page) owns(frame proto.PageFrameID) bool {
	if string(frame) == string(p.target) {
		return true
	}
	tree, err := proto.PageGetFrameTree{}.Call(p.s.in(p.ctx, p.id))
	return err == nil && holds(tree.FrameTree, frame)
}

func holds(tree *proto.PageFrameTree, frame proto.PageFrameID) bool {
	if tree.Frame.ID == frame {
		return true
	}
	for _, child := range tree.ChildFrames {
		if holds(child, frame) {
			return true
		}
	}
	return false
}

// render returns the document as a PDF of at most maxPages pages and maxBytes bytes.
func (p *page) render(d Document, maxPages int, maxBytes int64) ([]byte, error) {
	if err := p.load(d.HTML); err != nil {
		return nil, err
	}
	// One page more than allowed: Chromium cuts off what is beyond a range without a word.
	pdf, err := p.print(d.Geometry, maxPages+1, maxBytes)
	if err != nil {
		return nil, err
	}
	pages, err := countPages(pdf)
	if err != nil {
		return nil, err
	}
	if pages > maxPages {
		return nil, tooManyPages(maxPages)
	}
	return pdf, nil
}

// load sets the document and waits until all that it names is there.
func (p *page) load(html string) error {
	own := p.s.in(p.ctx, p.id)
	// The load event is listened to since the page exists: setting the document may already fire it.
	if err := (proto.PageSetDocumentContent{FrameID: proto.PageFrameID(p.target), HTML: html}).Call(own); err != nil {
		return err
	}
	select {
	case <-p.loaded.c:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	case <-p.s.gone:
		return errGone
	}
}

// print returns the document's first pages, at most, as a PDF of at most maxBytes.
func (p *page) print(g Geometry, pages int, maxBytes int64) ([]byte, error) {
	own := p.s.in(p.ctx, p.id)
	styled, err := proto.RuntimeEvaluate{Expression: insertStyle(g.style())}.Call(own)
	if err != nil {
		return nil, err
	}
	if styled.ExceptionDetails != nil {
		return nil, fmt.Errorf("browser: page rule: %s", styled.ExceptionDetails.Text)
	}
	sheet := g.sheet()
	// The generated request cannot say false, and tags make a table of 512 KiB 25 times as large.
	answer, err := own.Call(p.ctx, string(p.id), "Page.printToPDF", map[string]any{
		"paperWidth": sheet.Width / millimetresPerInch, "paperHeight": sheet.Height / millimetresPerInch,
		"marginTop": g.Margins.Top / millimetresPerInch, "marginRight": g.Margins.Right / millimetresPerInch,
		"marginBottom": g.Margins.Bottom / millimetresPerInch, "marginLeft": g.Margins.Left / millimetresPerInch,
		"printBackground": true, "preferCSSPageSize": false, "generateTaggedPDF": false, "generateDocumentOutline": false,
		"pageRanges": fmt.Sprintf("1-%d", pages), "transferMode": "ReturnAsStream",
	})
	if err != nil {
		return nil, err
	}
	var printed proto.PagePrintToPDFResult
	if err := json.Unmarshal(answer, &printed); err != nil {
		return nil, fmt.Errorf("browser: print: %w", err)
	}
	return p.read(printed.Stream, maxBytes)
}

// chunk is how much of a PDF is read at once.
const chunk = 1 << 20

// read returns a stream's bytes. One that is longer than maxBytes is read to its end all the same, as the refusal
// names the size.
func (p *page) read(stream proto.IOStreamHandle, maxBytes int64) ([]byte, error) {
	var pdf []byte
	var size int64
	atOnce := chunk
	for {
		part, err := proto.IORead{Handle: stream, Size: &atOnce}.Call(p.s.in(p.ctx, p.id))
		if err != nil {
			return nil, err
		}
		data := []byte(part.Data)
		if part.Base64Encoded {
			if data, err = base64.StdEncoding.DecodeString(part.Data); err != nil {
				return nil, fmt.Errorf("browser: read: %w", err)
			}
		}
		size += int64(len(data))
		if size <= maxBytes {
			pdf = append(pdf, data...)
		}
		if part.EOF {
			break
		}
	}
	if size > maxBytes {
		return nil, tooLarge(size, maxBytes)
	}
	return pdf, nil
}
