// Package sandbox simulates the vendors on this machine, which validate credentials and requests and write the vendor's
// responses. The destination of a request (magic numbers) or the rules that a test sets choose the outcome.
//
// A vendor's API has the address <URL>/<vendor>, followed by the vendor's own path. GET /_sandbox/calls returns the
// requests received, oldest first, as a JSON array of Call.
package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
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
	for vendor := range Accounts {
		all = append(all, secretsOf(vendor)...)
	}
	return all
}

// secretsOf returns the values of a vendor's credentials, but not a few digits, which any text may contain.
func secretsOf(vendor string) (values []string) {
	for field, value := range Accounts[vendor] {
		if field != "user_id" && field != "account_id" {
			values = append(values, value)
		}
	}
	return values
}

// response is an HTTP response.
type response struct {
	status int
	media  string
	body   []byte
	source string // the vendor's document (V), a public client (T), or "made"
}

// Server is a running sandbox. Its Close ends its connections, and so the contexts of the requests that hang.
type Server struct {
	*http.Server
	URL string // the base address

	files sync.Map // of the vendor lists, by path
	codes []string // the names of the responses that a rule can choose, beside the outcomes

	mu    sync.Mutex
	calls []Call
	rules []Rule
}

// Start listens on a free port of 127.0.0.1.
func Start() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("vendor sandbox: %w", err)
	}
	mux := http.NewServeMux()
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s := &Server{Server: server, URL: "http://" + listener.Addr().String()}
	mux.HandleFunc("GET /_sandbox/calls",
		func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(s.Calls()) })
	for _, d := range documents() {
		s.codes = slices.AppendSeq(s.codes, maps.Keys(d.Responses))
		routes := map[string]bool{}
		for _, c := range d.Calls {
			for _, route := range c.Routes {
				routes[route] = true
			}
		}
		for route := range routes {
			method, path, _ := strings.Cut(route, " ")
			mux.HandleFunc(method+" /"+d.name+path, s.handler(d, route))
		}
		mux.HandleFunc("/"+d.name+"/", s.handler(d, "")) // no route of the vendor
	}
	go func() { _ = s.Serve(listener) }()
	return s, nil
}

// handler reads a vendor's request to its end, records it as a call and responds.
func (s *Server) handler(d *document, route string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		in := d.receive(s, route, r, body)
		call, refusal := d.mask.call(in, at), in.refusal()
		var outcome Outcome
		var delay time.Duration
		if refusal == nil {
			outcome, delay = s.decide(d.name, in.Operation, in.To)
			call.Accepted = slices.Contains(carriedOut, outcome)
		}
		if call.Accepted {
			refusal = in.accept()
			call.Accepted = refusal == nil
		}
		s.record(call)
		if refusal != nil {
			refusal.write(w)
			return
		}
		deliver(w, in, outcome, delay)
	}
}

// SetFile sets the content of a file of the vendor lists, by the path of its address.
func (s *Server) SetFile(path string, content []byte) { s.files.Store("/lists"+path, string(content)) }

func (r *response) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", r.media)
	w.Header().Set("X-Sandbox-Source", r.source)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body)
}
