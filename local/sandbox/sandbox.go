// Package sandbox simulates the vendors on this machine, which validate credentials and requests and write the vendor's
// responses. The destination of a request (magic numbers) or the rules that a test sets choose the outcome.
//
// A vendor's API has the address <URL>/<vendor>, followed by the vendor's own path. GET /_sandbox/calls returns the
// requests received, oldest first, as a JSON array of Call.
package sandbox

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBody is the most that the sandbox reads of a request, in bytes.
const maxBody = 16 << 20

// Secrets returns the credentials that the sandbox accepts. No log may hold them.
func Secrets() []string {
	var all []string
	for _, v := range vendors() {
		all = append(all, v.accepted...)
	}
	return all
}

// vendor is one row of the table.
type vendor struct {
	name    string
	routes  []route
	unknown response // to a path or method that the vendor does not have
	// secrets names the parameters, JSON fields, headers and path parts that hold credentials.
	secrets []string
	// accepted are the values of the credentials, which are masked in every call.
	accepted []string
	// codes name the responses that a rule can choose, beside the outcomes.
	codes []string
}

// route is one path of a vendor.
type route struct {
	pattern string // method and path, with the wildcards of http.ServeMux; an empty path is the vendor's endpoint itself
	serve   func(*request) result
}

// request is an HTTP request with its whole body.
type request struct {
	*http.Request
	body []byte
}

// result describes a request and holds the vendor's response to each outcome.
type result struct {
	operation string    // send, check_cost, balance, status, lookup, rates or login
	to        []string  // destinations or address, as received
	refusal   *response // of a request that the vendor refuses, whatever the outcome would be
	// respond returns the response to an outcome.
	respond func(Outcome) response
	// accept records an accepted message, or returns the refusal of one that was accepted before; nil: no record.
	accept func() *response
}

// response is an HTTP response.
type response struct {
	status int
	media  string
	body   []byte
	source string // the vendor's document (V), a public client (T), or "made"
}

const plainText = "text/plain; charset=utf-8"

// Server is a running sandbox. Its Close ends its connections, and so the contexts of the requests that hang.
type Server struct {
	*http.Server
	URL string // the base address

	mu    sync.Mutex
	calls []Call
	rules []Rule
	files map[string][]byte // of the vendor lists, by path
	codes []string          // of all vendors
}

// Start listens on a free port of 127.0.0.1.
func Start() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("vendor sandbox: %w", err)
	}
	mux := http.NewServeMux()
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s := &Server{Server: server, URL: "http://" + listener.Addr().String(), files: map[string][]byte{}}
	mux.HandleFunc("GET /_sandbox/calls", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(s.Calls()) })
	for _, v := range append(vendors(), s.lists()) {
		mask := newMask(v)
		s.codes = append(s.codes, v.codes...)
		for _, r := range v.routes {
			method, path, _ := strings.Cut(r.pattern, " ")
			mux.HandleFunc(method+" /"+v.name+path, s.handler(v, mask, r.serve))
		}
		unknown := result{refusal: &v.unknown}
		mux.HandleFunc("/"+v.name+"/", s.handler(v, mask, func(*request) result { return unknown }))
	}
	go func() { _ = s.Serve(listener) }()
	return s, nil
}

// handler reads a vendor's request to its end, records it as a call and responds.
func (s *Server) handler(v vendor, mask *mask, serve func(*request) result) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		res := serve(&request{r, body})
		call, refusal := mask.call(v, res, r, body, at), res.refusal
		var outcome Outcome
		var delay time.Duration
		if refusal == nil {
			outcome, delay = s.decide(v.name, res.operation, res.to)
			call.Accepted = slices.Contains(carriedOut, outcome)
		}
		if call.Accepted && res.accept != nil {
			refusal = res.accept()
			call.Accepted = refusal == nil
		}
		s.record(call)
		if refusal != nil {
			refusal.write(w)
			return
		}
		deliver(w, r, res, outcome, delay)
	}
}

func (r response) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", r.media)
	w.Header().Set("X-Sandbox-Source", r.source)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body)
}

// basic reports whether the request has these Basic credentials.
func (r *request) basic(user, password string) bool {
	u, p, ok := r.BasicAuth()
	return ok && u == user && p == password
}

// mismatch returns the first text that does not match the pattern, or "".
func mismatch(pattern *regexp.Regexp, texts []string) string {
	for _, text := range texts {
		if !pattern.MatchString(text) {
			return cmp.Or(text, "(empty)")
		}
	}
	return ""
}

// tokens holds the tokens that a vendor has issued, with the end of their lives.
type tokens struct{ ends sync.Map }

// issue returns a new token.
func (t *tokens) issue(life time.Duration) string {
	token := "sandbox." + rand.Text()
	t.ends.Store(token, time.Now().Add(life))
	return token
}

// accept reports whether the request has a token in force.
func (t *tokens) accept(r *request) bool {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	end, ok := t.ends.Load(token)
	return ok && time.Now().Before(end.(time.Time))
}
