package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-rod/rod/lib/cdp"
	"github.com/go-rod/rod/lib/proto"

	"svcapi/functions/pdf/render/event"
	"svcapi/functions/pdf/render/fetch"
)

// session is a running browser and the DevTools connection to that browser. A session renders on one page at a time.
type session struct {
	*process
	client *cdp.Client
	ended  signal // the browser sends no more messages

	page atomic.Pointer[page] // whose requests are fulfilled; nil between two documents

	mu    sync.Mutex
	pages map[string]*page // all open pages, by session ID
}

// open starts a browser and intercepts all its requests before the first page exists.
//
// The interception is on the browser and not on a page: the interception of a page misses the requests of a document
// that was set into the page, and those of frames, popups and workers.
func open(ctx context.Context, path, dir string) (*session, error) {
	p, err := launch(path, dir)
	if err != nil {
		return nil, err
	}
	s := &session{process: p, client: cdp.New().Start(p.transport), ended: newSignal(), pages: map[string]*page{}}
	go s.listen()
	everything := []*proto.FetchRequestPattern{{URLPattern: "*"}}
	if err := (proto.FetchEnable{Patterns: everything}).Call(s.in(ctx, "")); err != nil {
		err = s.explain(fmt.Errorf("browser: intercept: %w", err))
		s.end()
		return nil, err
	}
	return s, nil
}

// scope is one session of the protocol within one deadline. The generated calls take a scope.
type scope struct {
	ctx context.Context
	s   *session
	id  proto.TargetSessionID
}

// in returns the scope of the target with the given session ID; the empty ID is the browser itself.
func (s *session) in(ctx context.Context, id proto.TargetSessionID) scope { return scope{ctx, s, id} }

// GetContext implements proto.Contextable.
func (c scope) GetContext() context.Context { return c.ctx }

// GetSessionID implements proto.Sessionable.
func (c scope) GetSessionID() proto.TargetSessionID { return c.id }

// Call implements proto.Client. Call also returns when the browser ends.
func (c scope) Call(ctx context.Context, id, method string, params any) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.s.ended, func() { cancel(errEnded) })()
	response, err := c.s.client.Call(ctx, id, method, params)
	if err == nil {
		return response, nil
	}
	if _, refused := errors.AsType[*cdp.Error](err); !refused && ctx.Err() == nil {
		return nil, errEnded // the pipe broke
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, fmt.Errorf("browser: %s: %w", method, err)
}

// listen handles the events of the browser until the browser has ended.
func (s *session) listen() {
	defer s.ended.fire()
	for event := range s.client.Event() {
		var paused proto.FetchRequestPaused
		if event.Method == paused.ProtoEvent() && json.Unmarshal(event.Params, &paused) == nil {
			go s.respond(&paused)
		}
		s.mu.Lock()
		if p := s.pages[event.SessionID]; p != nil {
			switch event.Method {
			case "Audits.issueAdded":
				p.refused(event.Params)
			case "Page.loadEventFired":
				p.loaded.fire()
			case "Inspector.targetCrashed": // also while the page waits for a document
				p.crashed.fire()
			}
		}
		s.mu.Unlock()
	}
}

var (
	// ofFiles are the kinds of resources that files may be.
	ofFiles = []proto.NetworkResourceType{
		proto.NetworkResourceTypeImage, proto.NetworkResourceTypeStylesheet, proto.NetworkResourceTypeFont,
	}
	// counted are the kinds of resources that a document shows.
	counted = append(ofFiles, proto.NetworkResourceTypeMedia, proto.NetworkResourceTypeDocument)
)

// respond decides about one request of the browser. A file of the document and a permitted image are fulfilled from
// this process, a data URL is continued, and every other request fails.
func (s *session) respond(r *proto.FetchRequestPaused) {
	p, ctx := s.page.Load(), context.Background()
	if p != nil {
		ctx = p.ctx
	}
	browser := s.in(ctx, "")
	fail := func(reason proto.NetworkErrorReason) {
		if p != nil && slices.Contains(counted, r.ResourceType) {
			p.block(r.Request.URL)
		}
		_ = proto.FetchFailRequest{RequestID: r.RequestID, ErrorReason: reason}.Call(browser)
	}
	fulfil := func(mediaType string, body []byte) {
		_ = proto.FetchFulfillRequest{RequestID: r.RequestID, ResponseCode: 200, Body: body,
			ResponseHeaders: []*proto.FetchHeaderEntry{
				{Name: "Content-Type", Value: mediaType},
				{Name: "X-Content-Type-Options", Value: "nosniff"},
				{Name: "Access-Control-Allow-Origin", Value: "*"}, // for crossorigin="anonymous"
			}}.Call(browser)
	}
	image := r.ResourceType == proto.NetworkResourceTypeImage && r.Request.Method == http.MethodGet
	switch {
	case p == nil && r.Request.URL == event.Base: // of a new page
		fulfil("text/html", []byte("<html>"))
	case strings.HasPrefix(r.Request.URL,
		"data:"): // the browser writes schemes in lower case; a data URL reaches no network
		_ = proto.FetchContinueRequest{RequestID: r.RequestID}.Call(browser)
	case p != nil && slices.Contains(ofFiles, r.ResourceType) && p.file(r.Request.URL) != "" && p.owns(r.FrameID):
		name := p.use(r.Request.URL)
		if image {
			p.note(p.fetched, r.Request.URL)
		}
		fulfil(event.MediaType(name), p.document.Files[name])
	case image && p != nil && p.owns(r.FrameID):
		mediaType, body, err := p.document.Images.Get(ctx, r.Request.URL)
		switch {
		case errors.Is(err, fetch.ErrNotPermitted):
			fail(proto.NetworkErrorReasonBlockedByClient)
		case err != nil:
			p.fail(err)
		default:
			p.note(p.fetched, r.Request.URL)
			fulfil(mediaType, body)
		}
	case r.ResourceType == proto.NetworkResourceTypeDocument:
		fail(proto.NetworkErrorReasonAborted) // leaves a frame as it is; another reason would show an error page in the frame
	default:
		fail(proto.NetworkErrorReasonBlockedByClient)
	}
}

// reasonPages is the reason of a document with too many pages, reasonHeight that of one with too high a page,
// reasonRanges that of a page range without a page, and reasonWarnings that of a strict document with a warning.
const (
	reasonPages    = "pages"
	reasonHeight   = "height"
	reasonRanges   = "ranges"
	reasonWarnings = "warnings"
)

func tooSlow(limit time.Duration) error {
	return event.Exceeded("time", "rendering took longer than %s", limit)
}

var (
	errUnprintable = &event.RejectionError{Reason: "unprintable", Message: "the document could not be rendered"}
	errProgram     = errors.New("browser: a program has failed in the page")
	errNoPage      = &event.RejectionError{Reason: reasonRanges,
		Message: "the document has no page in one of the page_ranges"}
	errEnded = errors.New("browser: the browser has ended") // by itself, or by another process
)
