// Package faultproxy is a proxy between a client and an HTTP service that loses requests, responses and halves of
// responses, and returns DynamoDB's errors. A test can deliver a lost request later.
package faultproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Fault is the network fault of one request. For a loss, the proxy closes the client's connection at once.
type Fault string

// The network faults.
const (
	Deliver      Fault = "delivered"
	DropRequest  Fault = "request dropped"  // the service never sees it, unless it is delivered later
	DropResponse Fault = "response dropped" // it took effect
	CutResponse  Fault = "response cut"     // it took effect, and the client receives half of the response

	Throttle        Fault = "throttled"                 // ProvisionedThroughputExceededException; no effect
	ThrottleKey     Fault = "throttled, a hot key"      // the same, by the rate of requests at one key
	ThrottleTable   Fault = "throttled while it grows"  // ThrottlingException; no effect
	LimitRate       Fault = "rate limited"              // RequestLimitExceeded; no effect
	Conflict        Fault = "in conflict"               // TransactionConflictException; no effect
	CancelThrottled Fault = "canceled, being throttled" // TransactionCanceledException with a ThrottlingError; no effect
	Fail            Fault = "failed"                    // HTTP 500; no effect
	FailApplied     Fault = "failed after it acted"     // HTTP 500, and it took effect
	Refuse          Fault = "refused for good"          // ResourceNotFoundException; no effect, and no client repeats it
)

// Throttles returns the faults with which DynamoDB throttles an operation.
func Throttles(operation string) []Fault {
	all := []Fault{Throttle, ThrottleTable, LimitRate}
	switch operation {
	case "PutItem", "UpdateItem", "DeleteItem":
		return append(all, Conflict)
	case "TransactWriteItems":
		return append(all, CancelThrottled)
	}
	return all
}

// Throttled reports that the response says that the request had no effect and may be repeated.
func (f Fault) Throttled() bool { return refusals[f].status == http.StatusBadRequest }

// Arrives reports whether the service receives the request.
func (f Fault) Arrives() bool {
	return f == Deliver || f == DropResponse || f == CutResponse || f == FailApplied
}

// refusals are DynamoDB's error responses. After a 500 the write may have succeeded.
var refusals = map[Fault]struct {
	status int
	kind   string
}{
	Throttle:        {http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"},
	ThrottleKey:     {http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"},
	ThrottleTable:   {http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#ThrottlingException"},
	LimitRate:       {http.StatusBadRequest, "com.amazon.coral.availability#RequestLimitExceeded"},
	Conflict:        {http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#TransactionConflictException"},
	CancelThrottled: {http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"},
	Refuse:          {http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException"},
	Fail:            {http.StatusInternalServerError, "com.amazonaws.dynamodb.v20120810#InternalServerError"},
	FailApplied:     {http.StatusInternalServerError, "com.amazonaws.dynamodb.v20120810#InternalServerError"},
}

// refuse responds in place of the service: as an AWS service, or with a page as any other service.
func (r *Request) refuse(w http.ResponseWriter, fault Fault) {
	refused := refusals[fault]
	body, media := []byte("<!doctype html><title>Internal Server Error</title>"), "text/html; charset=utf-8"
	if r.header.Get("X-Amz-Target") != "" {
		message := map[string]any{"__type": refused.kind, "message": string(fault)}
		switch fault {
		case CancelThrottled:
			message["CancellationReasons"] = r.reasons()
		case ThrottleKey:
			message["ThrottlingReasons"] = []map[string]string{{"reason": "TableWriteKeyRangeThroughputExceeded"}}
		}
		body, _ = json.Marshal(message) // texts always marshal
		media = "application/x-amz-json-1.0"
		w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(refused.status)
	_, _ = w.Write(body)
}

// Request is one attempt of a client.
type Request struct {
	// Client is the name that the client's URL was made with.
	Client string
	// Operation is the AWS operation (UpdateItem), or the method and path of any other request.
	Operation string
	Body      []byte

	proxy  *Proxy
	method string
	path   string
	header http.Header
	gone   atomic.Bool

	received time.Time
	held     atomic.Int64 // nanoseconds from then to the end of the response
}

// Held returns when the proxy received the request, and how long the proxy, what decides and the service held it.
func (r *Request) Held() (received time.Time, held time.Duration) {
	return r.received, time.Duration(r.held.Load())
}

// GivenUp reports that the client did not wait for the response: the client closed the connection before the response,
// or soon after the response without another request on the connection.
func (r *Request) GivenUp() bool { return r.gone.Load() }

// soon is the time in which a client that has not read the response closes its connection.
const soon = 2 * time.Second

// connection is what the proxy knows of a client's connection.
type connection struct {
	mu          sync.Mutex
	last        *Request // with a response; nil while another one is under way
	respondedAt time.Time
}

type connectionKey struct{}

// responded records the last request with a response on the connection, nil when a new request arrives.
func (c *connection) responded(r *Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.respondedAt = r, time.Now()
}

// closed marks the last request as given up if the client closes the connection soon after the response.
func (c *connection) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && time.Since(c.respondedAt) < soon {
		c.last.gone.Store(true)
	}
}

// reasons are those of a transaction that lacked the capacity for the last of its writes, one for each write.
func (r *Request) reasons() []map[string]string {
	var body struct{ TransactItems []json.RawMessage }
	if json.Unmarshal(r.Body, &body) != nil || len(body.TransactItems) == 0 {
		return nil
	}
	all := slices.Repeat([]map[string]string{{"Code": "None"}}, len(body.TransactItems))
	all[len(all)-1] = map[string]string{
		"Code": "ThrottlingError", "Message": "Throughput exceeds the current capacity of your table or index.",
	}
	return all
}

// Deliver sends the late copy of a dropped request to the service and discards the response.
func (r *Request) Deliver(ctx context.Context) error {
	response, err := r.send(ctx)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func (r *Request) send(ctx context.Context) (*http.Response, error) {
	out, err := http.NewRequestWithContext(ctx, r.method, r.proxy.target+r.path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	out.Header = r.header.Clone()
	return r.proxy.transport.RoundTrip(out)
}

// Proxy is a running proxy on a free port of 127.0.0.1.
type Proxy struct {
	target    string
	url       string
	decide    func(*Request) Fault
	server    *http.Server
	transport *http.Transport
}

// Start serves until Close. The proxy calls decide for each request, concurrently, and waits for its return.
func Start(target string, decide func(*Request) Fault) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	p := &Proxy{
		target: strings.TrimSuffix(target, "/"),
		url:    "http://" + listener.Addr().String(),
		decide: decide,
		transport: &http.Transport{
			MaxIdleConnsPerHost: 256,
			IdleConnTimeout:     5 * time.Second, // before the service's own
			DisableCompression:  true,
		},
	}
	var connections sync.Map // by their net.Conn
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			c := &connection{}
			connections.Store(conn, c)
			return context.WithValue(ctx, connectionKey{}, c)
		},
		ConnState: func(conn net.Conn, state http.ConnState) {
			if state != http.StateClosed {
				return
			}
			if c, known := connections.LoadAndDelete(conn); known {
				c.(*connection).closed()
			}
		},
	}
	go func() { _ = p.server.Serve(listener) }() // ends with Close
	return p, nil
}

// URL returns the endpoint for a client of that name.
func (p *Proxy) URL(client string) string { return p.url + "/" + url.PathEscape(client) }

// Close ends the proxy and every connection.
func (p *Proxy) Close() {
	_ = p.server.Close()
	p.transport.CloseIdleConnections()
}

func (p *Proxy) serve(w http.ResponseWriter, in *http.Request) {
	received, conn := time.Now(), in.Context().Value(connectionKey{}).(*connection)
	conn.responded(nil)
	body, err := io.ReadAll(in.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // closes the connection
	}
	client, path, _ := strings.Cut(strings.TrimPrefix(in.URL.EscapedPath(), "/"), "/")
	if name, err := url.PathUnescape(client); err == nil {
		client = name
	}
	if in.URL.RawQuery != "" {
		path += "?" + in.URL.RawQuery
	}
	r := &Request{Client: client, Body: body, proxy: p, method: in.Method, path: "/" + path, header: in.Header,
		received: received}
	defer func() { r.held.Store(int64(time.Since(received))) }()
	r.Operation = in.Method + " " + r.path
	if _, operation, ok := strings.Cut(in.Header.Get("X-Amz-Target"), "."); ok {
		r.Operation = operation
	}

	fault := p.decide(r)
	if fault == DropRequest {
		panic(http.ErrAbortHandler)
	}
	var response *http.Response
	var content []byte
	if fault.Arrives() {
		// Detached: a request that has arrived takes effect, whether or not its client still waits.
		if response, err = r.send(context.WithoutCancel(in.Context())); err != nil {
			panic(http.ErrAbortHandler)
		}
		defer response.Body.Close()
		if content, err = io.ReadAll(response.Body); err != nil || fault == DropResponse {
			panic(http.ErrAbortHandler)
		}
		if in.Context().Err() != nil {
			r.gone.Store(true)
		}
	}
	if _, refuses := refusals[fault]; refuses {
		r.refuse(w, fault)
		conn.responded(r)
		return
	}
	maps.Copy(w.Header(), response.Header)
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(response.StatusCode)
	if fault == CutResponse {
		_, _ = w.Write(content[:len(content)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(content)
	conn.responded(r)
}
