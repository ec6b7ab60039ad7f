package sandbox

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

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
	for _, value := range secretsOf(d.name) {
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
