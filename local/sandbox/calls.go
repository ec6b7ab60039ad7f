package sandbox

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxCalls is how many calls are kept; then the older half is forgotten.
const maxCalls = 50_000

// masked stands for what is not shown.
const masked = "***"

// Call is one request as a vendor received it, credentials masked.
type Call struct {
	Vendor    string            `json:"vendor"`
	Operation string            `json:"operation"` // send, check_cost, balance, lookup, rates or login
	At        time.Time         `json:"at"`
	To        []string          `json:"to"` // destinations or address, as received
	Method    string            `json:"method"`
	Path      string            `json:"path"` // the vendor's own, with its query
	Headers   map[string]string `json:"headers"`
	Body      string            `json:"body"`
}

// Calls are the requests received so far, oldest first.
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

func (s *Server) note(c Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) >= maxCalls {
		s.calls = slices.Clone(s.calls[maxCalls/2:])
	}
	s.calls = append(s.calls, c)
}

// secretHeaders hold credentials whoever the vendor is.
var secretHeaders = []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Apikey", "X-Amz-Security-Token"}

// mask hides a vendor's credentials: by the names of the fields that hold them, and by the accepted values wherever
// they stand.
type mask struct {
	names  []string
	form   *regexp.Regexp
	json   *regexp.Regexp
	values *strings.Replacer
}

func newMask(v vendor) *mask {
	m := &mask{names: v.secrets}
	if len(v.secrets) > 0 {
		names := strings.Join(v.secrets, "|")
		m.form = regexp.MustCompile(`(?i)((?:^|[?&])(?:` + names + `)=)[^&]*`)
		m.json = regexp.MustCompile(`(?i)("(?:` + names + `)"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|[^\s,}\]]+)`)
	}
	var pairs []string
	for _, value := range v.accepted {
		pairs = append(pairs, value, masked, url.QueryEscape(value), masked)
	}
	m.values = strings.NewReplacer(pairs...)
	return m
}

func (m *mask) text(s string) string {
	if m.form != nil {
		s = m.form.ReplaceAllString(s, "${1}"+masked)
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

func (m *mask) call(v vendor, ex exchange, r *http.Request, body []byte, at time.Time) Call {
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/"+v.name)
	for _, name := range m.names {
		if part := r.PathValue(name); part != "" {
			path = strings.ReplaceAll(path, url.PathEscape(part), masked)
		}
	}
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	headers := map[string]string{}
	for name, values := range r.Header {
		headers[name] = m.header(name, strings.Join(values, ", "))
	}
	return Call{
		Vendor: v.name, Operation: ex.operation, At: at, To: append([]string{}, ex.to...),
		Method: r.Method, Path: m.text(path), Headers: headers, Body: m.text(string(body)),
	}
}
