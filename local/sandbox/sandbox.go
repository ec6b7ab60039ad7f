// Package sandbox plays the vendors of the internet on a laptop. Each vendor has a file of its own that speaks the
// vendor's wire format: it checks the credentials and the form of what it is sent, and answers in the vendor's words.
// What a request meets is chosen by its destination (magic numbers) or by rules that a test sets.
//
// A vendor's API is found at <URL>/<vendor>, followed by the vendor's own path. The sandbox's own paths:
//
//	GET    /_sandbox/calls  what was received, oldest first, a JSON array of Call
//	DELETE /_sandbox/calls  forgets it
//	PUT    /_sandbox/mode   sets the rules, a JSON array of Rule; GET shows them, DELETE removes them
package sandbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// maxBody is the most that the sandbox reads of a request, in bytes.
const maxBody = 16 << 20

// vendors is the table of what the sandbox plays. A further vendor is one file and one row.
func vendors() []vendor {
	return []vendor{
		quicksend(),
		notifylk(),
		textlk(),
		dialog(),
		dialogv2(),
		twilio(),
		endUserMessaging(),
		ipGeolocation(),
		ipInfo(),
		proxyCheck(),
		vpnAPI(),
		maxMind(),
		ipAPI(),
		openExchangeRates(),
		exchangeRateAPI(),
		frankfurter(),
		cbsl(),
	}
}

// Secrets are the credentials that the sandbox accepts. They are to stand in no log.
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
	unknown reply // the answer to a path or method that the vendor does not have
	// secrets names the parameters, JSON fields, headers and path parts that hold credentials.
	secrets []string
	// accepted are the credentials' values, masked wherever they stand.
	accepted []string
}

// route is one path of a vendor.
type route struct {
	pattern string // method and path, with wildcards as http.ServeMux has them
	serve   func(*request) exchange
}

// request is what a vendor receives, its body read to the end.
type request struct {
	*http.Request
	body []byte
}

// exchange is what a vendor makes of a request: what it was, and its words for each outcome.
type exchange struct {
	operation string   // send, check_cost, balance, lookup, rates or login
	to        []string // destinations or address, as received
	refusal   *reply   // the answer to wrong credentials or a malformed request, whatever the outcome would be
	// replies hold Accepted at least; an outcome that is missing is answered as Accepted is.
	replies map[Outcome]reply
}

func (e exchange) refuse(r reply) exchange {
	e.refusal = &r
	return e
}

// reply is an HTTP answer.
type reply struct {
	status int
	media  string
	body   []byte
}

func jsonReply(status int, value any) reply {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // the vendors answer with plain values only
	}
	return reply{status, "application/json", body}
}

func textReply(status int, text string) reply {
	return reply{status, "text/plain; charset=utf-8", []byte(text)}
}

// object is a JSON object.
type object = map[string]any

// Server is a running sandbox.
type Server struct {
	// URL is its base address.
	URL string

	http *http.Server
	done chan struct{} // closed when the sandbox stops, which ends what hangs
	stop sync.Once

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
	s := &Server{URL: "http://" + listener.Addr().String(), done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_sandbox/calls", func(w http.ResponseWriter, _ *http.Request) { show(w, s.Calls()) })
	mux.HandleFunc("DELETE /_sandbox/calls", func(http.ResponseWriter, *http.Request) { s.Forget() })
	mux.HandleFunc("GET /_sandbox/mode", func(w http.ResponseWriter, _ *http.Request) { show(w, s.Rules()) })
	mux.HandleFunc("PUT /_sandbox/mode", s.putMode)
	mux.HandleFunc("DELETE /_sandbox/mode", func(http.ResponseWriter, *http.Request) { _ = s.SetRules() })
	for _, v := range vendors() {
		mask := newMask(v)
		for _, r := range v.routes {
			method, path, _ := strings.Cut(r.pattern, " ")
			mux.HandleFunc(method+" /"+v.name+path, s.handler(v, mask, r.serve))
		}
		mux.HandleFunc("/"+v.name+"/", s.handler(v, mask, func(*request) exchange { return exchange{}.refuse(v.unknown) }))
	}
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// Close ends the server, its connections and what hangs.
func (s *Server) Close() error {
	s.stop.Do(func() { close(s.done) })
	return s.http.Close()
}

// handler reads a vendor's request to its end, notes it and answers it.
func (s *Server) handler(v vendor, mask *mask, serve func(*request) exchange) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		ex := serve(&request{r, body})
		s.note(mask.call(v, ex, r, body, at))
		if ex.refusal != nil {
			ex.refusal.write(w)
			return
		}
		outcome, delay := s.decide(v.name, ex.operation, ex.to)
		s.deliver(w, r, ex, outcome, delay)
	}
}

func (r reply) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", r.media)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body)
}

func show(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(value)
}

// json decodes the body; false: it is no JSON of that shape.
func (r *request) json(into any) bool { return json.Unmarshal(r.body, into) == nil }

// parameters are those of the query, and of a form or a flat JSON object in the body.
func (r *request) parameters() url.Values {
	values := r.URL.Query()
	var fields object
	if r.json(&fields) {
		for name, value := range fields {
			values.Set(name, fmt.Sprint(value))
		}
		return values
	}
	form, _ := url.ParseQuery(string(r.body))
	for name, value := range form {
		values[name] = append(values[name], value...)
	}
	return values
}

// basic tells whether the request brings these Basic credentials.
func (r *request) basic(user, password string) bool {
	u, p, ok := r.BasicAuth()
	return ok && u == user && p == password
}

// missing gives the first of the named parameters that is absent or empty, "" when all are there.
func missing(values url.Values, names ...string) string {
	for _, name := range names {
		if values.Get(name) == "" {
			return name
		}
	}
	return ""
}

// mismatch gives the first text that has not the form, "" when all have it.
func mismatch(form *regexp.Regexp, texts []string) string {
	for _, text := range texts {
		if !form.MatchString(text) {
			return cmp.Or(text, "(empty)")
		}
	}
	return ""
}
