package sandbox

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"svcapi/shared/testvalue"
)

// Outcome is how a vendor handles a request.
type Outcome = testvalue.Outcome

// The outcomes. Each vendor has responses of its own to the first group; the second group is the same for all.
const (
	Accepted           = testvalue.Accepted
	Rejected           = testvalue.Rejected
	CredentialsRefused = testvalue.CredentialsRefused
	// UnknownAddress and QuotaUsed are outcomes of the IP vendors.
	UnknownAddress = testvalue.UnknownAddress
	QuotaUsed      = testvalue.QuotaUsed

	Unparseable         = testvalue.Unparseable
	Hang                = testvalue.Hang
	ServerError         = testvalue.ServerError
	Slow                = testvalue.Slow
	Truncated   Outcome = "truncated" // half of an acceptance's body, then the connection ends
	Closed      Outcome = "closed"    // reads the request, then closes the connection
)

// carriedOut are the outcomes of requests that the vendor carries out, whatever the response is.
var carriedOut = []Outcome{Accepted, Slow, Truncated, Closed, Hang, Unparseable, ServerError}

func page(status int, title string) *response {
	body := []byte("<!doctype html><title>" + title + "</title>")
	return &response{status: status, media: "text/html; charset=utf-8", body: body}
}

// deliver sends the vendor's response to an outcome, or what the outcome makes of the response.
func deliver(w http.ResponseWriter, in *received, outcome Outcome, delay time.Duration) {
	like := outcome
	switch outcome {
	case Slow:
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
	usual := append([]Outcome{"", Rejected, CredentialsRefused, UnknownAddress, QuotaUsed}, carriedOut...)
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
