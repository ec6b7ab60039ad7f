package gateway

import (
	"net/http"
	"strings"

	"golang.org/x/time/rate"

	"svcapi/local/template"
)

type route struct {
	template.Route
	function string   // logical ID
	segments []string // of the resource path
	stream   bool
	bucket   *rate.Limiter // the stage's throttle: a token bucket, as API Gateway's
}

func newRoute(function string, r template.Route, throttle template.Throttle) route {
	bucket := rate.NewLimiter(rate.Inf, 0)
	if throttle != (template.Throttle{}) {
		bucket = rate.NewLimiter(rate.Limit(throttle.PerSecond), throttle.Burst)
	}
	return route{r, function, strings.Split(r.Path, "/"), r.TransferMode == "RESPONSE_STREAM", bucket}
}

// sentPath returns the path as the client sent the path, from the request line: net/http decodes r.URL.
func sentPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") { // absolute form, or the * of OPTIONS
		return r.URL.EscapedPath()
	}
	return path
}

// match finds the route of a request and takes its path parameters. Segments are compared as they were sent: an escaped
// slash separates nothing. One trailing slash makes no difference here, but stays in the event. A literal segment beats
// a parameter, a method beats ANY.
func (h *Handler) match(state *requestState) bool {
	path := state.path
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	sent := strings.Split(path, "/")
	best := ""
	for i := range h.routes {
		r := &h.routes[i]
		if r.Method != "ANY" && r.Method != state.request.Method {
			continue
		}
		if parameters, rank, ok := r.take(sent); ok && rank > best {
			state.route, state.parameters, best = r, parameters, rank
		}
	}
	return state.route != nil
}

// take compares segments with the route's. The rank orders routes that fit: the greater, the more exact.
func (r *route) take(sent []string) (parameters map[string]string, rank string, ok bool) {
	parameters = map[string]string{}
	for i, segment := range r.segments {
		if i >= len(sent) {
			return nil, "", false
		}
		name, isParameter := strings.CutPrefix(strings.TrimSuffix(segment, "}"), "{")
		greedy, isGreedy := strings.CutSuffix(name, "+")
		switch {
		case isParameter && isGreedy:
			parameters[greedy] = strings.Join(sent[i:], "/")
			return parameters, rank + "1", parameters[greedy] != ""
		case isParameter && sent[i] != "":
			parameters[name] = sent[i]
			rank += "2"
		case segment == sent[i]:
			rank += "3"
		default:
			return nil, "", false
		}
	}
	if r.Method != "ANY" {
		rank += "0"
	}
	return parameters, rank, len(r.segments) == len(sent)
}
