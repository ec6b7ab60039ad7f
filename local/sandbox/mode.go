package sandbox

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Outcome is how a vendor handles a request.
type Outcome string

// The outcomes. Each vendor has responses of its own to the first group; the second group is the same for all.
const (
	Accepted           Outcome = "accepted"
	Rejected           Outcome = "rejected"
	CredentialsRefused Outcome = "credentials_refused"
	// UnknownAddress and QuotaUsed are outcomes of the IP vendors.
	UnknownAddress Outcome = "unknown_address"
	QuotaUsed      Outcome = "quota_used"

	Unparseable Outcome = "unparseable" // status 200 with a page
	Hang        Outcome = "hang"        // reads the request and never responds
	ServerError Outcome = "server_error"
	Slow        Outcome = "slow"      // accepted after 2 s
	Truncated   Outcome = "truncated" // half of an acceptance's body, then the connection ends
	Closed      Outcome = "closed"    // reads the request, then closes the connection
)

// magic are the canonical numbers and addresses that choose an outcome. Any other is accepted.
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

// delivery is how the sandbox delivers an outcome, where that is not just the vendor's response to the outcome.
type delivery struct {
	like   Outcome // the outcome whose response is used; empty: the outcome itself
	delay  time.Duration
	change func(*response)
	send   func(w http.ResponseWriter, r *http.Request, a *response)
}

var deliveries = map[Outcome]delivery{
	Slow:        {like: Accepted, delay: 2 * time.Second},
	Unparseable: {change: page(http.StatusOK, "We are back soon")},
	ServerError: {change: page(http.StatusInternalServerError, "Internal Server Error")},
	Truncated:   {like: Accepted, send: truncate},
	Closed:      {send: func(http.ResponseWriter, *http.Request, *response) { panic(http.ErrAbortHandler) }},
	Hang:        {send: hang},
}

// carriedOut are the outcomes of requests that the vendor carries out, whatever the response is.
var carriedOut = []Outcome{Accepted, Slow, Truncated, Closed, Hang, Unparseable, ServerError}

func page(status int, title string) func(*response) {
	return func(a *response) {
		*a = response{status: status, media: "text/html; charset=utf-8", body: []byte("<!doctype html><title>" + title + "</title>")}
	}
}

// truncate announces the whole body, sends half of it and ends the connection.
func truncate(w http.ResponseWriter, _ *http.Request, a *response) {
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	a.body = a.body[:len(a.body)/2]
	a.write(w)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// hang waits until the client closes the connection or the sandbox stops.
func hang(_ http.ResponseWriter, r *http.Request, _ *response) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

func deliver(w http.ResponseWriter, in *received, outcome Outcome, delay time.Duration) {
	how := deliveries[outcome]
	outcome = cmp.Or(how.like, outcome)
	response := in.respond(cmp.Or(in.Responses[outcome], string(outcome)), "")
	if how.change != nil {
		how.change(response)
	}
	if delay += how.delay; delay > 0 {
		select {
		case <-time.After(delay):
		case <-in.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	if how.send != nil {
		how.send(w, in.Request, response)
		return
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
	usual := []Outcome{"", Accepted, Rejected, CredentialsRefused, UnknownAddress, QuotaUsed}
	for _, rule := range rules {
		_, ok := deliveries[rule.Outcome]
		if !ok && !slices.Contains(usual, rule.Outcome) && !slices.Contains(s.codes, string(rule.Outcome)) {
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

// canonical returns a phone number as 7XXXXXXXX, whichever form the vendor uses, and any other text unchanged.
func canonical(to string) string {
	if m := numberPattern.FindStringSubmatch(to); m != nil {
		return m[1]
	}
	return to
}
