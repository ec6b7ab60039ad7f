// Package sandbox simulates the vendors on this machine, which validate credentials and requests and write the vendor's
// responses. The destination of a request (magic numbers) or the rules that a test sets choose the outcome.
//
// A vendor's API has the address <URL>/<vendor>, followed by the vendor's own path. GET /_sandbox/calls returns the
// requests received, oldest first, as a JSON array of Call.
package sandbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"svcapi/shared/testvalue"
)

// maxBody is the most that the sandbox reads of a request, in bytes.
const maxBody = 16 << 20

// Secrets returns the credentials that the sandbox accepts. No log may hold them.
func Secrets() []string {
	var all []string
	for _, d := range documents() {
		all = append(all, d.credentials()...)
	}
	return all
}

// accounts holds the accounts of the documents by vendor.
var accounts = sync.OnceValue(func() map[string]map[string]string {
	all := map[string]map[string]string{}
	for vendor, d := range documents() {
		all[vendor] = d.Account
	}
	return all
})

// Account returns the secret fields of the account that a vendor accepts.
func Account(vendor string) map[string]string { return accounts()[vendor] }

// credentials returns the values of the vendor's account, but not a few digits, which any text may contain.
func (d *document) credentials() (values []string) {
	for field, value := range d.Account {
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

// maxCalls is how many calls the sandbox keeps; at that number it drops the older half.
const maxCalls = 50_000

// masked replaces a credential.
const masked = "***"

// Call is one request as a vendor received it, with masked credentials.
type Call struct {
	Vendor    string            `json:"vendor"`
	Operation string            `json:"operation"` // send, check_cost, balance, status, lookup, rates, list or login
	At        time.Time         `json:"at"`
	To        []string          `json:"to"` // destinations or address, as received
	Method    string            `json:"method"`
	Path      string            `json:"path"` // below the vendor's name, with the query
	Headers   map[string]string `json:"headers"`
	Body      string            `json:"body"`
	Accepted  bool              `json:"accepted"` // the vendor has carried the request out, whatever it responded
}

// Calls returns the requests received so far, oldest first.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call{}, s.calls...)
}

// Forget empties the list of calls.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

func (s *Server) record(c Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) >= maxCalls {
		s.calls = slices.Clone(s.calls[maxCalls/2:])
	}
	s.calls = append(s.calls, c)
}

// secretHeaders hold credentials at every vendor.
var secretHeaders = []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Apikey",
	"X-Amz-Security-Token"}

// mask hides a vendor's credentials, by the names of their fields and by the accepted values.
type mask struct {
	names  []string
	query  *regexp.Regexp
	json   *regexp.Regexp
	values *strings.Replacer
}

func newMask(d *document) *mask {
	m := &mask{names: d.Secrets}
	if len(d.Secrets) > 0 {
		names := strings.Join(d.Secrets, "|")
		m.query = regexp.MustCompile(`(?i)((?:^|[?&])(?:` + names + `)=)[^&]*`)
		m.json = regexp.MustCompile(`(?i)("(?:` + names + `)"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|[^\s,}\]]+)`)
	}
	var pairs []string
	for _, value := range d.credentials() {
		pairs = append(pairs, value, masked, url.QueryEscape(value), masked)
	}
	m.values = strings.NewReplacer(pairs...)
	return m
}

func (m *mask) text(s string) string {
	if m.query != nil {
		s = m.query.ReplaceAllString(s, "${1}"+masked)
		s = m.json.ReplaceAllString(s, `${1}"`+masked+`"`)
	}
	return m.values.Replace(s)
}

func (m *mask) header(name, value string) string {
	hidden := func(secret string) bool { return strings.EqualFold(secret, name) }
	if !slices.ContainsFunc(secretHeaders, hidden) && !slices.ContainsFunc(m.names, hidden) {
		return m.values.Replace(value)
	}
	if scheme, _, ok := strings.Cut(value, " "); ok {
		return scheme + " " + masked
	}
	return masked
}

func (m *mask) call(in *received, at time.Time) Call {
	path := strings.TrimPrefix(in.URL.EscapedPath(), "/"+in.document.name)
	for _, name := range m.names {
		if part := in.PathValue(name); part != "" {
			path = strings.ReplaceAll(path, url.PathEscape(part), masked)
		}
	}
	if in.URL.RawQuery != "" {
		path += "?" + in.URL.RawQuery
	}
	headers := map[string]string{}
	for name, values := range in.Header {
		headers[name] = m.header(name, strings.Join(values, ", "))
	}
	return Call{
		Vendor: in.document.name, Operation: in.Operation, At: at, To: append([]string{}, in.To...),
		Method: in.Method, Path: m.text(path), Headers: headers, Body: m.text(string(in.body)),
	}
}

// Outcome is how a vendor handles a request.
type Outcome = testvalue.Outcome

// The outcomes. Each vendor has responses of its own to the first group; the second group is the same for all.
const (
	Accepted           = testvalue.Accepted
	Rejected           = testvalue.Rejected
	CredentialsRefused = testvalue.CredentialsRefused

	Unparseable         = testvalue.Unparseable
	Hang                = testvalue.Hang
	ServerError         = testvalue.ServerError
	Truncated   Outcome = "truncated" // half of an acceptance's body, then the connection ends
	Closed      Outcome = "closed"    // reads the request, then closes the connection
)

// carriedOut are the outcomes of requests that the vendor carries out, whatever the response is.
var carriedOut = []Outcome{Accepted, testvalue.Slow, Truncated, Closed, Hang, Unparseable, ServerError}

func page(status int, title string) *response {
	body := []byte("<!doctype html><title>" + title + "</title>")
	return &response{status: status, media: "text/html; charset=utf-8", body: body}
}

// deliver sends the vendor's response to an outcome, or what the outcome makes of the response.
func deliver(w http.ResponseWriter, in *received, outcome Outcome, delay time.Duration) {
	like := outcome
	switch outcome {
	case testvalue.Slow:
		like, delay = Accepted, delay+2*time.Second
	case Truncated:
		like = Accepted
	}
	response := in.respond(cmp.Or(in.Responses[like], string(like)), "")
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-in.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	switch outcome {
	case Unparseable:
		response = page(http.StatusOK, "We are back soon")
	case ServerError:
		response = page(http.StatusInternalServerError, "Internal Server Error")
	case Closed:
		panic(http.ErrAbortHandler)
	case Hang: // until the client closes the connection or the sandbox stops
		<-in.Context().Done()
		panic(http.ErrAbortHandler)
	case Truncated: // the length of the whole body, half of the body and the end of the connection
		w.Header().Set("Content-Length", strconv.Itoa(len(response.body)))
		response.body = response.body[:len(response.body)/2]
		response.write(w)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	response.write(w)
}

// Rule sets the outcome of the requests that match the rule. The first matching rule comes before the magic numbers.
type Rule struct {
	// Vendor, Operation and To restrict the rule; an empty field matches everything. To matches all forms of a number.
	Vendor, Operation, To string

	Outcome Outcome // empty: the outcome without the rule, after the delay
	DelayMS int     // the delay before the response, in milliseconds
	Times   int     // how often the rule is used at most; 0: no limit

	used int
}

// Rules returns the rules in force.
func (s *Server) Rules() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Rule{}, s.rules...)
}

// SetRules replaces the rules. Without rules, only the magic numbers choose outcomes.
func (s *Server) SetRules(rules ...Rule) error {
	usual := append([]Outcome{"", Rejected, CredentialsRefused, testvalue.UnknownAddress, testvalue.QuotaUsed},
		carriedOut...)
	for _, rule := range rules {
		if !slices.Contains(usual, rule.Outcome) && !slices.Contains(s.codes, string(rule.Outcome)) {
			return fmt.Errorf("no such outcome: %q", rule.Outcome)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = slices.Clone(rules)
	return nil
}

// decide returns a request's outcome. Of several destinations, the first one that chooses an outcome counts.
func (s *Server) decide(vendor, operation string, to []string) (Outcome, time.Duration) {
	var delay time.Duration
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.rules, func(r Rule) bool { return r.matches(vendor, operation, to) }); i >= 0 {
		rule := &s.rules[i]
		rule.used++
		delay = time.Duration(rule.DelayMS) * time.Millisecond
		if rule.Outcome != "" {
			return rule.Outcome, delay
		}
	}
	for _, t := range to {
		if value := testvalue.Of(canonical(t)); value.Outcome != Accepted {
			return value.Outcome, delay
		}
	}
	return Accepted, delay
}

func (r Rule) matches(vendor, operation string, to []string) bool {
	return (r.Vendor == "" || r.Vendor == vendor) &&
		(r.Operation == "" || r.Operation == operation) &&
		(r.Times == 0 || r.used < r.Times) &&
		(r.To == "" || slices.ContainsFunc(to, func(t string) bool { return canonical(t) == canonical(r.To) }))
}

var numberPattern = regexp.MustCompile(`^(?:0|\+?94)?(7\d{8})$`)

// canonical returns a phone number as 07XXXXXXXX, whichever form the vendor uses, and any other text unchanged.
func canonical(to string) string {
	if m := numberPattern.FindStringSubmatch(to); m != nil {
		return "0" + m[1]
	}
	return to
}
