package sandbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Outcome is what a request meets.
type Outcome string

// The outcomes. A vendor has words of its own for the first group; the second is the same for all.
const (
	Accepted           Outcome = "accepted"
	Rejected           Outcome = "rejected"
	CredentialsRefused Outcome = "credentials_refused"
	// WithoutID is an acceptance that names no message (QuickSend).
	WithoutID Outcome = "without_id"
	// TokenRefused refuses a login's token before its time (Dialog v2).
	TokenRefused Outcome = "token_refused"
	// UnknownAddress and QuotaUsed are the IP vendors'.
	UnknownAddress Outcome = "unknown_address"
	QuotaUsed      Outcome = "quota_used"

	Unparseable Outcome = "unparseable" // 200 with a page instead of an answer
	Hang        Outcome = "hang"        // reads the request, never answers
	ServerError Outcome = "server_error"
	Slow        Outcome = "slow"         // accepted after 2 s
	ErrorIn200  Outcome = "error_in_200" // the words of a rejection with status 200
	Truncated   Outcome = "truncated"    // half of an acceptance's body, then the connection ends
	Closed      Outcome = "closed"       // reads the request, then closes the connection
)

// magic are the numbers and addresses that choose an outcome by themselves, in the form of canonical. Any other is accepted.
var magic = map[string]Outcome{
	"770000001": Rejected,
	"770000002": CredentialsRefused,
	"770000003": Unparseable,
	"770000004": Hang,
	"770000005": ServerError,
	"770000006": Slow,

	"45.83.0.7":  UnknownAddress,
	"45.83.0.8":  QuotaUsed,
	"45.83.0.9":  Hang,
	"45.83.0.10": Unparseable,
	"45.83.0.11": ServerError,
}

// delivery is how an outcome differs from answering with the vendor's own words for it.
type delivery struct {
	words  Outcome // whose words are used; empty: the outcome's own
	delay  time.Duration
	change func(reply) reply
	send   func(s *Server, w http.ResponseWriter, r *http.Request, a reply)
}

var deliveries = map[Outcome]delivery{
	Slow:        {words: Accepted, delay: 2 * time.Second},
	ErrorIn200:  {words: Rejected, change: func(a reply) reply { a.status = http.StatusOK; return a }},
	Unparseable: {change: page(http.StatusOK, "We are back soon")},
	ServerError: {change: page(http.StatusInternalServerError, "Internal Server Error")},
	Truncated:   {words: Accepted, send: truncate},
	Closed:      {send: func(*Server, http.ResponseWriter, *http.Request, reply) { panic(http.ErrAbortHandler) }},
	Hang:        {send: hang},
}

func page(status int, title string) func(reply) reply {
	return func(reply) reply {
		return reply{status, "text/html; charset=utf-8", []byte("<!doctype html><title>" + title + "</title>")}
	}
}

// truncate announces the whole body, sends half of it and ends the connection.
func truncate(_ *Server, w http.ResponseWriter, _ *http.Request, a reply) {
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	a.body = a.body[:len(a.body)/2]
	a.write(w)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// hang lasts until the client goes or the sandbox stops.
func hang(s *Server, _ http.ResponseWriter, r *http.Request, _ reply) {
	select {
	case <-r.Context().Done():
	case <-s.done:
	}
	panic(http.ErrAbortHandler)
}

func (s *Server) deliver(w http.ResponseWriter, r *http.Request, ex exchange, outcome Outcome, delay time.Duration) {
	how := deliveries[outcome]
	answer, ok := ex.replies[cmp.Or(how.words, outcome)]
	if !ok {
		answer = ex.replies[Accepted]
	}
	if how.change != nil {
		answer = how.change(answer)
	}
	if delay += how.delay; delay > 0 {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-s.done:
			panic(http.ErrAbortHandler)
		}
	}
	if how.send != nil {
		how.send(s, w, r, answer)
		return
	}
	answer.write(w)
}

// Rule sets what the requests that it matches meet. The first rule that matches is used, before the magic numbers.
type Rule struct {
	// Vendor, Operation and To restrict the rule; empty ones match everything. To matches a number in whatever form the
	// vendor has it.
	Vendor    string `json:"vendor,omitempty"`
	Operation string `json:"operation,omitempty"`
	To        string `json:"to,omitempty"`
	// Outcome is what the requests meet; empty: what they would meet without the rule, after the delay.
	Outcome Outcome `json:"outcome,omitempty"`
	// DelayMS is waited before the answer, in milliseconds.
	DelayMS int `json:"delay_ms,omitempty"`
	// Times is how often the rule is used; 0: always.
	Times int `json:"times,omitempty"`

	used int
}

// Rules are the rules in force.
func (s *Server) Rules() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Rule{}, s.rules...)
}

// SetRules replaces the rules; without any, the magic numbers alone decide.
func (s *Server) SetRules(rules ...Rule) error {
	known := []Outcome{"", Accepted, Rejected, CredentialsRefused, WithoutID, TokenRefused, UnknownAddress, QuotaUsed}
	for _, rule := range rules {
		if _, ok := deliveries[rule.Outcome]; !ok && !slices.Contains(known, rule.Outcome) {
			return fmt.Errorf("no such outcome: %q", rule.Outcome)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = slices.Clone(rules)
	return nil
}

func (s *Server) putMode(w http.ResponseWriter, r *http.Request) {
	var rules []Rule
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	err := in.Decode(&rules)
	if err == nil {
		err = s.SetRules(rules...)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// decide gives a request's outcome. Of several destinations the first that chooses one counts.
func (s *Server) decide(vendor, operation string, to []string) (Outcome, time.Duration) {
	var delay time.Duration
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.rules {
		rule := &s.rules[i]
		if !rule.matches(vendor, operation, to) {
			continue
		}
		rule.used++
		delay = time.Duration(rule.DelayMS) * time.Millisecond
		if rule.Outcome != "" {
			return rule.Outcome, delay
		}
		break
	}
	for _, t := range to {
		if outcome, ok := magic[canonical(t)]; ok {
			return outcome, delay
		}
	}
	return Accepted, delay
}

func (r *Rule) matches(vendor, operation string, to []string) bool {
	return (r.Vendor == "" || r.Vendor == vendor) &&
		(r.Operation == "" || r.Operation == operation) &&
		(r.Times == 0 || r.used < r.Times) &&
		(r.To == "" || slices.ContainsFunc(to, func(t string) bool { return canonical(t) == canonical(r.To) }))
}

var numberPattern = regexp.MustCompile(`^(?:0|\+?94)?(7\d{8})$`)

// canonical brings the forms in which vendors take a phone number to one, 7XXXXXXXX; other texts stay.
func canonical(to string) string {
	if m := numberPattern.FindStringSubmatch(to); m != nil {
		return m[1]
	}
	return to
}
