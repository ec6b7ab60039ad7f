package browser

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-rod/rod/lib/cdp"
	"github.com/go-rod/rod/lib/proto"

	"svcapi/functions/pdf/render/event"
	"svcapi/functions/pdf/render/fetch"
	"svcapi/functions/pdf/render/limits"
)

// signal happens at most once: fire ends the context.
type signal struct {
	context.Context
	fire context.CancelFunc
}

func newSignal() signal {
	ctx, fire := context.WithCancel(context.Background())
	return signal{ctx, fire}
}

// page is one empty page in a browser context of its own, used for one document.
type page struct {
	s       *session
	context proto.BrowserBrowserContextID
	target  proto.TargetTargetID
	id      proto.TargetSessionID
	loaded  signal
	crashed signal // the renderer process of the page has ended

	ctx      context.Context // of the render; set before the page is that of the session
	fail     context.CancelCauseFunc
	document Document
	maxPages int // of the document

	mu      sync.Mutex
	fetched set  // addresses of the images that the page received from this process
	blocked set  // addresses that the page did not load
	used    set  // names of the files that the page received
	scripts bool // a header or footer lost a script
}

// set is a set of texts that the page notes while it loads. The mutex of the page guards the set.
type set map[string]struct{}

// note adds a text to a set of the page.
func (p *page) note(in set, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in[text] = struct{}{}
}

// noted returns the texts of a set of the page in alphabetical order.
func (p *page) noted(of set) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(of))
}

// newPage opens a page and warms it up. Scripts run there only if scripts is true.
func (s *session) newPage(ctx context.Context, scripts bool) (*page, error) {
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
	p := &page{
		s: s, context: created.BrowserContextID, target: target.TargetID, id: attached.SessionID, loaded: newSignal(),
		crashed: newSignal(), fetched: set{}, blocked: set{}, used: set{},
	}
	s.mu.Lock()
	s.pages[string(p.id)] = p
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.crashed, func() { cancel(errEnded) })()
	own := s.in(ctx, p.id)
	// The empty document at this address is that of every document: the browser resolves relative addresses against it.
	if _, err := (proto.PageNavigate{URL: event.Base}).Call(own); err != nil {
		return nil, err
	}
	policy := event.Base
	if scripts { // these tests try the interception alone
		policy = ""
	}
	p.ctx = ctx
	if err := p.call("page", policy, nil); err != nil {
		return nil, err
	}
	for _, call := range []interface{ Call(proto.Client) error }{
		proto.PageEnable{},
		proto.AuditsEnable{},
		proto.PageSetBypassCSP{Enabled: true},           // so that a document's policy does not keep out the page rule
		proto.EmulationSetEmulatedMedia{Media: "print"}, // from the start: the page loads nothing for the screen
		proto.EmulationSetScriptExecutionDisabled{Value: !scripts},
		proto.BrowserSetDownloadBehavior{Behavior: proto.BrowserSetDownloadBehaviorBehaviorDeny, BrowserContextID: p.context},
	} {
		if err := call.Call(own); err != nil {
			return nil, err
		}
	}
	return p, p.warmUp()
}

// warmUpHTML has what most documents have: both kinds of font, bold text, a table, and the scripts of Sri Lanka.
const warmUpHTML = `<!DOCTYPE html><p>self-test<p style="font-family:sans-serif">self-test <b>self-test</b> ස ` +
	`த<table><tr><td>1</table>`

// warmUp prints a document of this package, so that the renderer process has loaded printer and fonts before a client's
// document comes, and looks for its text: without fonts Chromium prints an empty PDF without an error. The client's
// document replaces this one in the page.
func (p *page) warmUp() error {
	pdf, _, err := p.render(Document{Event: event.Event{HTML: []byte(warmUpHTML), PageSize: "A4", MaxBytes: 1 << 20}}, 1)
	if err != nil {
		return err
	}
	if !bytes.Contains(pdf, []byte("/Type /FontDescriptor")) { // of the fonts with text
		return errNoText
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.loaded = newSignal()
	return nil
}

// dispose closes the browser context of the page with all that the context holds.
func (p *page) dispose(ctx context.Context) error {
	p.s.mu.Lock()
	delete(p.s.pages, string(p.id))
	p.s.mu.Unlock()
	return proto.TargetDisposeBrowserContext{BrowserContextID: p.context}.Call(p.s.in(ctx, ""))
}

// owns reports whether a frame is the page's main frame or within that frame.
func (p *page) owns(frame proto.PageFrameID) bool {
	if string(frame) == string(p.target) {
		return true
	}
	tree, err := proto.PageGetFrameTree{}.Call(p.s.in(p.ctx, p.id))
	return err == nil && containsFrame(tree.FrameTree, frame)
}

func containsFrame(tree *proto.PageFrameTree, frame proto.PageFrameID) bool {
	return tree.Frame.ID == frame ||
		slices.ContainsFunc(tree.ChildFrames, func(child *proto.PageFrameTree) bool { return containsFrame(child, frame) })
}

// render returns the document as a PDF of at most maxPages pages, with the warnings about it.
func (p *page) render(d Document, maxPages int) (pdf []byte, warnings string, err error) {
	p.maxPages = maxPages
	if err := p.load(string(d.HTML)); err != nil {
		return nil, "", err
	}
	// One page more than allowed: Chromium drops the pages beyond a range without an error.
	wanted := firstPages(d.PageRanges, maxPages+1)
	if err := p.insertRules(d); err != nil {
		return nil, "", err
	}
	pdf, dropped, err := p.printReferences(d, wanted)
	if err != nil {
		return nil, "", err
	}
	// Print also loads images: those of print style sheets, and lazy ones.
	if err := p.checkImages(); err != nil {
		return nil, "", err
	}
	o, err := readObjects(pdf)
	if err != nil {
		return nil, "", err
	}
	if o.pages > maxPages {
		return nil, "", event.Exceeded(reasonPages, "the document has more than %d pages", maxPages)
	}
	_, lastStart, _ := event.Pages(d.PageRanges)
	if before, _ := slices.BinarySearch(wanted, lastStart); lastStart > 0 && o.pages <= before {
		return nil, "", errNoPage
	}
	if d.CSSSize {
		if err := checkSize(pdf); err != nil {
			return nil, "", err
		}
	}
	if warnings, err = p.warnings(d, o, wanted, dropped); err != nil {
		return nil, "", err
	}
	if err := o.removeLinks(); err != nil {
		return nil, "", err
	}
	pdf, err = p.describe(d, o, warnings)
	return pdf, warnings, err
}

// load sets the document and waits until its images, styles and frames are loaded.
func (p *page) load(html string) error {
	own := p.s.in(p.ctx, p.id)
	layout, fonts := limits.NeedsLayout(html)
	if layout {
		if _, err := (proto.RuntimeEvaluate{Expression: showOnScreen}).Call(own); err != nil {
			return err
		}
	}
	// The event is created with the page, because the load may end before this call returns.
	if err := (proto.PageSetDocumentContent{FrameID: proto.PageFrameID(p.target), HTML: html}).Call(own); err != nil {
		return err
	}
	select {
	case <-p.loaded.Done():
		return p.waitForFonts(fonts)
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	case <-p.s.ended.Done():
		return errEnded
	}
}

// checkImages returns an *event.RejectionError for the first received image that the browser cannot draw.
func (p *page) checkImages() error {
	addresses := p.noted(p.fetched)
	if len(addresses) == 0 {
		return nil
	}
	var broken string
	err := p.call("images", addresses, &broken)
	if err == nil && broken != "" {
		err = fetch.Broken(strings.TrimPrefix(broken, event.Base))
	}
	return err
}

// insertRules gives the document the page rule and the title of the request.
func (p *page) insertRules(d Document) error {
	return p.call("style", map[string]string{"rule": d.style(), "title": d.Metadata.Title}, nil)
}

// print returns the wanted pages as a PDF of at most d.MaxBytes.
func (p *page) print(d Document, wanted []int) ([]byte, error) {
	if d.ContentHeight {
		return p.printContent(d, wanted)
	}
	return p.printSheets(d, wanted)
}

// printSheets prints on sheets of a given size.
func (p *page) printSheets(d Document, wanted []int) ([]byte, error) {
	sheet := d.sheet()
	// The type proto.PagePrintToPDF omits false values, and tags make a table of 512 KiB 25 times as large.
	parameters := map[string]any{
		"paperWidth": sheet.width / millimetresPerInch, "paperHeight": sheet.height / millimetresPerInch,
		"marginTop": d.Margins.Top / millimetresPerInch, "marginRight": d.Margins.Right / millimetresPerInch,
		"marginBottom": d.Margins.Bottom / millimetresPerInch, "marginLeft": d.Margins.Left / millimetresPerInch,
		"printBackground": true, "preferCSSPageSize": d.CSSSize, "generateTaggedPDF": d.Tagged ||
			d.Outline, "generateDocumentOutline": d.Outline,
		"pageRanges": pageRanges(wanted), "transferMode": "ReturnAsStream",
	}
	if d.Scale != 0 {
		parameters["scale"] = d.Scale
	}
	if len(d.Header)+len(d.Footer) > 0 {
		parameters["displayHeaderFooter"] = true
		names := []string{"headerTemplate", "footerTemplate"}
		for i, html := range [][]byte{d.Header, d.Footer} {
			template, err := p.template(string(html))
			if err != nil {
				return nil, err
			}
			parameters[names[i]] = template
		}
	}
	response, err := p.s.in(p.ctx, p.id).Call(p.ctx, string(p.id), "Page.printToPDF", parameters)
	if refused, ok := errors.AsType[*cdp.Error](err); ok && d.PageRanges != "" &&
		strings.Contains(strings.ToLower(refused.Message), "range") {
		return nil, errNoPage
	}
	if err != nil {
		return nil, err
	}
	var printed proto.PagePrintToPDFResult
	if err := json.Unmarshal(response, &printed); err != nil {
		return nil, fmt.Errorf("browser: print: %w", err)
	}
	return p.read(printed.Stream, d.MaxBytes)
}

// chunkSize is the number of bytes of a PDF that one protocol message carries.
const chunkSize = 1 << 20

// read returns the whole stream. After maxBytes read still counts the bytes, because the error names the size.
func (p *page) read(stream proto.IOStreamHandle, maxBytes int64) ([]byte, error) {
	var pdf []byte
	var size int64
	atOnce := chunkSize
	for {
		part, err := proto.IORead{Handle: stream, Size: &atOnce}.Call(p.s.in(p.ctx, p.id))
		if err != nil {
			return nil, err
		}
		data, err := base64.StdEncoding.DecodeString(part.Data) // a stream is binary
		if err != nil {
			return nil, fmt.Errorf("browser: read: %w", err)
		}
		if size += int64(len(data)); size <= maxBytes {
			pdf = append(pdf, data...)
		}
		if !part.EOF {
			continue
		}
		if size > maxBytes {
			return nil, event.TooLarge(size, maxBytes)
		}
		return pdf, nil
	}
}
