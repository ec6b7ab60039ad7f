package gateway

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"svcapi/local/lambda"
	"svcapi/local/template"
)

// Server serves an API. Its Close ends the server and its connections.
type Server struct {
	*http.Server
	URL string // the server's root, without a slash at the end
}

// Start serves the API of New on an address of this machine, 127.0.0.1:0 for example, until Close.
func Start(address string, t *template.Template, host *lambda.Host, accessLog io.Writer) (*Server, error) {
	h, err := New(t, host, accessLog)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: h, MaxHeaderBytes: 10 << 10, ReadHeaderTimeout: 30 * time.Second,
		// OPTIONS * is a request like any other: without this option the server responds by itself.
		DisableGeneralOptionsHandler: true,
	}
	go func() { _ = server.Serve(shapedListener{listener, h}) }() // ends by Close
	return &Server{server, "http://" + listener.Addr().String()}, nil
}

// shapedListener writes the gateway's response to requests that net/http refuses before a handler: malformed escapes in
// the path, no Host, too many headers, an unknown Expect.
type shapedListener struct {
	net.Listener
	handler *Handler
}

// Accept implements net.Listener.
func (l shapedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return shapedConn{conn, l.handler}, nil
}

type shapedConn struct {
	net.Conn
	handler *Handler
}

// refusal follows the status line in net/http's own refusals. A handler's responses have a Date.
var refusal = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// linger bounds the time in which a client may send the rest of a refused request. A connection that closes before its
// input is read is reset, and a client that still sends loses the response.
const linger = 10 * time.Second

// unexpected begins net/http's refusal of an Expect, which has a Date. No function receives such a request.
var unexpected = []byte("HTTP/1.1 417 ")

// Write implements net.Conn.
func (c shapedConn) Write(b []byte) (int, error) {
	head, _, refused := bytes.Cut(b, refusal)
	if bytes.HasPrefix(b, unexpected) {
		head, _, refused = bytes.Cut(b, []byte("\r\n"))
	}
	if !refused || !bytes.HasPrefix(head, []byte("HTTP/1.1 ")) || bytes.Contains(head, []byte("\r\n")) {
		return c.Conn.Write(b)
	}
	reason := strings.TrimPrefix(string(head), "HTTP/1.1 ")
	state := c.handler.newState(&http.Request{RemoteAddr: c.RemoteAddr().String(), RequestURI: "/"})
	out := c.handler.gatewayResponse(state, "DEFAULT_4XX", "not a valid request: "+reason)
	if code, err := strconv.Atoi(strings.Fields(reason + " 0")[0]); err == nil && code >= 400 && code < 500 {
		out.status = code
	}
	out.headers.Set("X-Amzn-Requestid", state.id)
	out.size = int64(len(out.body))
	c.handler.log(state, out)
	err := (&http.Response{
		StatusCode: out.status, ProtoMajor: 1, ProtoMinor: 1, Header: out.headers, Close: true,
		Body: io.NopCloser(bytes.NewReader(out.body)), ContentLength: out.size,
	}).Write(c.Conn)
	if half, ok := c.Conn.(*net.TCPConn); ok && half.CloseWrite() == nil &&
		half.SetReadDeadline(time.Now().Add(linger)) == nil {
		_, _ = io.Copy(io.Discard, half)
	}
	return len(b), err
}

type route struct {
	template.Route
	function string   // logical ID
	segments []string // of the resource path
	stream   bool
	bucket   *rate.Limiter // the stage's throttle: a token bucket, as API Gateway's
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
