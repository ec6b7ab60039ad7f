// Package upstream is the way out to vendors: one HTTP client with deadlines,
// limits and redaction, and one classification of what went wrong.
package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Config is read once from the environment.
type Config struct {
	// TimeoutSeconds bounds one call to a vendor; the request's own remaining time bounds it too.
	TimeoutSeconds int `env:"VENDOR_TIMEOUT_SECONDS" envDefault:"10"`
	// Local permits http endpoints. Set by the local stack only.
	Local bool `env:"SVC_LOCAL"`
}

// Validate says what is wrong with the configuration.
func (c Config) Validate() error {
	if c.TimeoutSeconds < 1 || c.TimeoutSeconds > 25 {
		return fmt.Errorf("VENDOR_TIMEOUT_SECONDS is %d, wants 1 to 25", c.TimeoutSeconds)
	}
	return nil
}

// Timeout is TimeoutSeconds as a duration.
func (c Config) Timeout() time.Duration { return time.Duration(c.TimeoutSeconds) * time.Second }

// maxAnswer is the most that is read of a vendor's answer, in bytes.
const maxAnswer = 1 << 20

// Class says what is known of a call that did not succeed.
type Class string

const (
	// NotSent: no byte of the request left (refused connection, DNS, TLS). Certain.
	NotSent Class = "not_sent"
	// NoAnswer: the request left, no answer came. The outcome is uncertain.
	NoAnswer Class = "no_answer"
	// Unusable: the answer cannot be understood, is cut off, or is an HTTP 5xx. The outcome is uncertain.
	Unusable Class = "unusable_answer"
	// Rejected: the vendor said no to the request. Certain.
	Rejected Class = "rejected"
	// CredentialsRefused: the vendor said no to the account or its key. Certain.
	CredentialsRefused Class = "credentials_refused"
)

// Uncertain reports whether the vendor may have done what was asked.
func (c Class) Uncertain() bool { return c == NoAnswer || c == Unusable }

// Error is a call that did not succeed. Its text is for the operator: secrets
// are taken out, vendor text may stand in it.
type Error struct {
	Class  Class
	Vendor string
	Detail string // transport error or the vendor's words
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %s", e.Vendor, e.Class, e.Detail) }

// maxDetail is the most that a Failure keeps of its detail, in bytes.
const maxDetail = 500

// Failure returns the *Error of a vendor's call. Failure takes the secrets out of the detail, then shortens the detail.
func Failure(class Class, vendor, detail string, secrets []string) error {
	detail = Redact(detail, secrets)
	if len(detail) > maxDetail {
		detail = strings.ToValidUTF8(detail[:maxDetail], "")
	}
	return &Error{Class: class, Vendor: vendor, Detail: detail}
}

// ClassOf returns the class of an error that this package or an adapter made,
// and Unusable for any other: the cautious reading.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Unusable
}

// Request is one call to a vendor.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
	Redact []string // secret values, kept out of every error
	// Send marks a call whose effect cannot be taken back: it gets a connection
	// of its own, so that nothing below repeats it.
	Send bool
}

// Response is a vendor's answer, read whole.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Client calls vendors. It is safe for concurrent use.
type Client struct {
	cfg    Config
	pooled *http.Client // lookups: kept-alive connections
	single *http.Client // sends: one connection each
}

// New returns a client.
func New(cfg Config) *Client {
	client := func(keepAlive bool) *http.Client {
		return &http.Client{
			Transport:     transport(keepAlive),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &Client{cfg: cfg, pooled: client(true), single: client(false)}
}

// Do makes the call. Every error is an *Error of class NotSent, NoAnswer or
// Unusable (an answer that is too large). Any HTTP status is a Response.
func (c *Client) Do(ctx context.Context, vendor string, r *Request) (*Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, Failure(NotSent, vendor, plain(err), r.Redact)
	}
	maps.Copy(request.Header, r.Header)
	return c.exchange(request, vendor, r.Redact, r.Send)
}

// Sender returns an HTTP client for one call of a vendor's own library: every request is a send, and its errors are
// those of Do.
func (c *Client) Sender(vendor string, redact []string) *Sender {
	return &Sender{client: c, vendor: vendor, redact: redact}
}

// Sender sends the requests of one call of a vendor's own library. The library may run it in another goroutine.
type Sender struct {
	client *Client
	vendor string
	redact []string
	last   atomic.Pointer[sent]
}

// sent is a request that a Sender has ended, with an answer where the error is nil.
type sent struct{ err error }

// Do makes one call; the body of its answer has been read.
func (s *Sender) Do(r *http.Request) (*http.Response, error) {
	response, err := s.client.exchange(r, s.vendor, s.redact, true)
	s.last.Store(&sent{err})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(response.Status), StatusCode: response.Status, Header: response.Header, Request: r,
		Body: io.NopCloser(bytes.NewReader(response.Body)), ContentLength: int64(len(response.Body)),
	}, nil
}

// Last reports whether the library made a request, and the error of its last one. A library may replace that error with
// one of its own when the context has ended; only the Sender's error says whether a byte left.
func (s *Sender) Last() (made bool, err error) {
	if last := s.last.Load(); last != nil {
		return true, last.err
	}
	return false, nil
}

func (c *Client) exchange(r *http.Request, vendor string, redact []string, send bool) (*Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), c.cfg.Timeout())
	defer cancel()
	fail := func(class Class, cause error) (*Response, error) {
		return nil, Failure(class, vendor, plain(cause), redact)
	}
	client, first := c.pooled, (*gate)(nil)
	if send {
		client, first = c.single, new(gate)
		ctx = context.WithValue(ctx, gateKey{}, first)
	}
	response, err := client.Do(r.WithContext(ctx))
	if err != nil {
		if isDial(err) || first != nil && first.shut() {
			return fail(NotSent, err)
		}
		return fail(NoAnswer, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil && ctx.Err() != nil: // time ran out
		return fail(NoAnswer, err)
	case err != nil: // cut off
		return fail(Unusable, err)
	case len(body) > maxAnswer:
		return fail(Unusable, fmt.Errorf("answer is over %d bytes", maxAnswer))
	}
	return &Response{response.StatusCode, response.Header, body}, nil
}

// gate stands before the first byte of a send. Either the byte passes or the
// gate is shut, never both: a failure is certain only once it is shut.
type gate struct{ state atomic.Int32 }

const (
	waiting int32 = iota
	passed
	barred
)

func (g *gate) pass() bool {
	return g.state.CompareAndSwap(waiting, passed) || g.state.Load() == passed
}

func (g *gate) shut() bool {
	return g.state.CompareAndSwap(waiting, barred) || g.state.Load() == barred
}

type gateKey struct{}

var errBarred = errors.New("request was given up before its first byte")

// gated is a connection of one send; TLS handshakes are done before and do not count.
type gated struct {
	net.Conn
	gate *gate
}

func (c *gated) Write(p []byte) (int, error) {
	if !c.gate.pass() {
		return 0, errBarred
	}
	return c.Conn.Write(p)
}

func behindGate(ctx context.Context, conn net.Conn) net.Conn {
	if g, ok := ctx.Value(gateKey{}).(*gate); ok {
		return &gated{conn, g}
	}
	return conn
}

func transport(keepAlive bool) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, dialError{err}
		}
		return behindGate(ctx, conn), nil
	}
	dialTLS := func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, dialError{err}
		}
		raw, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, dialError{err}
		}
		conn := tls.Client(raw, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12})
		if err := conn.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, dialError{err}
		}
		return behindGate(ctx, conn), nil
	}
	return &http.Transport{
		Proxy:               nil, // keys travel in URLs: no proxy from the environment
		DialContext:         dial,
		DialTLSContext:      dialTLS,
		DisableKeepAlives:   !keepAlive,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     60 * time.Second,
	}
}

// dialError marks a failure before a connection stood.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

func isDial(err error) bool {
	var d dialError
	return errors.As(err, &d)
}

// plain is the text of an error without the URL that net/http puts into it.
func plain(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err.Error()
	}
	return err.Error()
}
