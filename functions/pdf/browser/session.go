package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/go-rod/rod/lib/cdp"
	"github.com/go-rod/rod/lib/proto"

	"svcapi/functions/pdf/fetch"
)

// errGone says that the browser ended by itself, or was ended from outside.
var errGone = errors.New("browser: it is gone")

// session is a running browser and what is said to it. It serves one page at a time.
type session struct {
	*process
	client *cdp.Client
	gone   chan struct{} // closed when the browser says no more

	mu    sync.Mutex
	page  *page            // the one whose requests are answered; nil between two documents
	pages map[string]*page // all that are open, by session ID
}

// open starts a browser whose every request is intercepted before the first page exists.
//
// The interception is the browser's, not a page's: a page's does not see what a document asks for that was set into
// it, nor frames, popups and workers.
func open(ctx context.Context, path, dir string) (*session, error) {
	p, err := launch(path, dir)
	if err != nil {
		return nil, err
	}
	s := &session{process: p, client: cdp.New().Start(p.transport), gone: make(chan struct{}), pages: map[string]*page{}}
	go s.listen()
	everything := []*proto.FetchRequestPattern{{URLPattern: "*"}}
	if err := (proto.FetchEnable{Patterns: everything}).Call(s.in(ctx, "")); err != nil {
		err = s.explain(fmt.Errorf("browser: intercept: %w", err))
		s.end()
		return nil, err
	}
	return s, nil
}

// isGone tells whether the browser has ended.
func (s *session) isGone() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// scope is one session of the protocol within one deadline; the generated calls take it.
type scope struct {
	ctx context.Context
	s   *session
	id  proto.TargetSessionID
}

// in is the scope of the target with the given session ID, the browser's own where it is empty.
func (s *session) in(ctx context.Context, id proto.TargetSessionID) scope { return scope{ctx, s, id} }

// GetContext is read by the generated calls.
func (c scope) GetContext() context.Context { return c.ctx }

// GetSessionID is read by the generated calls.
func (c scope) GetSessionID() proto.TargetSessionID { return c.id }

// Call implements proto.Client. It also ends when the browser does.
func (c scope) Call(ctx context.Context, id, method string, params any) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.s.gone:
			cancel(errGone)
		case <-ctx.Done():
		}
	}()
	answer, err := c.s.client.Call(ctx, id, method, params)
	if err == nil {
		return answer, nil
	}
	var said *cdp.Error
	if !errors.As(err, &said) && ctx.Err() == nil {
		return nil, errGone // the pipe broke
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, fmt.Errorf("browser: %s: %w", method, err)
}

// listen handles what the browser says by itself, until it is gone.
func (s *session) listen() {
	defer close(s.gone)
	for event := range s.client.Event() {
		switch event.Method {
		case "Fetch.requestPaused":
			var paused proto.FetchRequestPaused
			if json.Unmarshal(event.Params, &paused) == nil {
				go s.answer(&paused)
			}
		case "Page.loadEventFired":
			s.current(event.SessionID, func(p *page) { p.loaded.fire() })
		case "Inspector.targetCrashed":
			s.crashed(event.SessionID)
		}
	}
}

// current runs f on the page at work if the event is its own.
func (s *session) current(sessionID string, f func(*page)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.page != nil && string(s.page.id) == sessionID {
		f(s.page)
	}
}

// crashed notes the end of a page's renderer. It may end while the page waits for a document, or is not ready yet.
func (s *session) crashed(sessionID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pages[sessionID]; p != nil {
		p.crashed.fire()
	}
}

// serve makes p the page whose requests are answered; nil ends it.
func (s *session) serve(p *page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = p
}

// answer decides about one request of the browser: it gets what this process holds for it, or nothing.
func (s *session) answer(r *proto.FetchRequestPaused) {
	s.mu.Lock()
	p := s.page
	s.mu.Unlock()
	ctx := context.Background()
	if p != nil {
		ctx = p.ctx
	}
	here := s.in(ctx, "")

	switch {
	case strings.HasPrefix(r.Request.URL, "data:"): // the browser writes schemes in lower case; it reaches nothing
		_ = proto.FetchContinueRequest{RequestID: r.RequestID}.Call(here)
	case p != nil && p.images != nil && r.ResourceType == proto.NetworkResourceTypeImage && r.Request.Method == http.MethodGet && p.owns(r.FrameID):
		typ, body, err := p.images.Get(ctx, r.Request.URL)
		switch {
		case errors.Is(err, fetch.ErrNotPermitted):
			_ = proto.FetchFailRequest{RequestID: r.RequestID, ErrorReason: proto.NetworkErrorReasonBlockedByClient}.Call(here)
		case err != nil:
			p.fail(&imageError{err})
		default:
			_ = proto.FetchFulfillRequest{RequestID: r.RequestID, ResponseCode: 200, Body: body, ResponseHeaders: []*proto.FetchHeaderEntry{
				{Name: "Content-Type", Value: typ},
				{Name: "X-Content-Type-Options", Value: "nosniff"},
				{Name: "Access-Control-Allow-Origin", Value: "*"}, // for crossorigin="anonymous"
			}}.Call(here)
		}
	default:
		// Aborted leaves a frame as it is; any other reason would put an error page in its place.
		reason := proto.NetworkErrorReasonBlockedByClient
		if r.ResourceType == proto.NetworkResourceTypeDocument {
			reason = proto.NetworkErrorReasonAborted
		}
		_ = proto.FetchFailRequest{RequestID: r.RequestID, ErrorReason: reason}.Call(here)
	}
}
