// Package upstream calls vendors: one HTTP client with deadlines, limits and redaction, one classification of failures,
// and the secrets of the accounts, which AWS Secrets Manager keeps: one secret for each stage, kind of integration and
// owner (docs/decisions/operating.md#vendor-secrets).
package upstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"svcapi/shared/project"
	"svcapi/shared/settings"
	"svcapi/shared/testvalue"
)

// Config is read once from the environment.
type Config struct {
	// TimeoutSeconds bounds one call to a vendor; the request's own remaining time bounds it too.
	TimeoutSeconds int `env:"VENDOR_TIMEOUT_SECONDS" envDefault:"10"`
	// Local permits http endpoints. Only the local stack sets it.
	Local bool `env:"SVC_LOCAL"`
}

// Validate returns the reason why the configuration is not valid.
func (c Config) Validate() error {
	return settings.InRange("VENDOR_TIMEOUT_SECONDS", c.TimeoutSeconds, 1, 25)
}

// Timeout returns TimeoutSeconds as a duration.
func (c Config) Timeout() time.Duration { return time.Duration(c.TimeoutSeconds) * time.Second }

// maxResponse bounds a vendor's response, in bytes.
const maxResponse = 1 << 20

// Class classifies a failed call (docs/decisions/sms.md#vendor-outcomes).
type Class string

const (
	// NotSent means that no byte of the request was sent, because of a refused connection, DNS or TLS.
	NotSent Class = "not_sent"
	// NoResponse means that the request was sent and no response came. The outcome is uncertain.
	NoResponse Class = "no_response"
	// Unusable means that the response is not valid, truncated or an HTTP 5xx. The outcome is uncertain.
	Unusable Class = "unusable_response"
	// Rejected means that the vendor refused the request.
	Rejected Class = "rejected"
	// AccountRefused means that the vendor certainly refused to send for the account: funds, time of day, sender. The
	// request may be accepted by another account.
	AccountRefused Class = "account_refused"
	// TooFast means that the vendor certainly refused the request because of the account's pace.
	TooFast Class = "too_fast"
	// CredentialsRefused means that the vendor refused the account or its key.
	CredentialsRefused Class = "credentials_refused"
)

// Uncertain reports whether the vendor may have carried out the request.
func (c Class) Uncertain() bool { return c == NoResponse || c == Unusable }

// Error is a failed call. The text is for the operator: it contains no secrets, and may contain text of the vendor.
type Error struct {
	Class  Class
	Vendor string
	Code   string        // the vendor's own code of the failure; empty: the vendor has none
	Detail string        // transport error or the vendor's message
	Pause  time.Duration // that the vendor names with TooFast; 0: none
	// ByWords marks a refusal of the account that only words of the vendor show. The words can be about one message.
	ByWords bool
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %s", e.Vendor, e.Class, e.Detail) }

// maxDetail bounds the detail of a Failure, in bytes.
const maxDetail = 500

// Failure returns the error of a vendor's call with a redacted and truncated detail.
func Failure(class Class, vendor, detail string, secrets []string) *Error {
	detail = Redact(detail, secrets)
	if len(detail) > maxDetail {
		detail = strings.ToValidUTF8(detail[:maxDetail], "")
	}
	return &Error{Class: class, Vendor: vendor, Detail: detail}
}

// ClassOf returns the class of an *Error, and Unusable for any other error, because its outcome is uncertain.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Unusable
}

// CodeOf returns the vendor's own code of an *Error, and "" for any other error.
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Request is one call to a vendor.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
	Redact []string // secret values, which no error may contain
	// Send marks a call with an irreversible effect. Such a call uses a new connection, so that net/http never repeats it.
	Send bool
	// MaxBytes bounds the response; 0 is maxResponse.
	MaxBytes int64
}

// Response is a vendor's complete response.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Client calls vendors. A Client is safe for concurrent use.
type Client struct {
	cfg    Config
	pooled *http.Client // for look-ups, with kept-alive connections
	single *http.Client // for sends, with one connection each
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

// Do makes the call and accepts every HTTP status. Every error is an *Error of class NotSent, NoResponse or Unusable.
func (c *Client) Do(ctx context.Context, vendor string, r *Request) (*Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, Failure(NotSent, vendor, plain(err), r.Redact)
	}
	maps.Copy(request.Header, r.Header)
	return c.call(request, vendor, r.Redact, r.Send, cmp.Or(r.MaxBytes, maxResponse))
}

func (c *Client) call(r *http.Request, vendor string, redact []string, send bool, most int64) (*Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), c.cfg.Timeout())
	defer cancel()
	fail := func(class Class, cause error) (*Response, error) {
		return nil, Failure(class, vendor, plain(cause), redact)
	}
	client, guard := c.pooled, (*firstByteGuard)(nil)
	if send {
		client, guard = c.single, new(firstByteGuard)
		ctx = context.WithValue(ctx, guardKey{}, guard)
	}
	response, err := client.Do(r.WithContext(ctx))
	if err != nil {
		if _, dial := errors.AsType[dialError](err); dial || guard != nil && guard.decide(blocked) {
			return fail(NotSent, err)
		}
		return fail(NoResponse, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil && ctx.Err() != nil: // time ran out
		return fail(NoResponse, err)
	case err != nil: // the response is truncated
		return fail(Unusable, err)
	case int64(len(body)) > most:
		return fail(Unusable, fmt.Errorf("response is over %d bytes", most))
	}
	return &Response{response.StatusCode, response.Header, body}, nil
}

// firstByteGuard decides once whether the first byte of a send may leave. Only a blocked byte makes a failure certain.
type firstByteGuard struct{ decision atomic.Int32 }

const (
	undecided int32 = iota
	allowed
	blocked
)

// decide makes the decision where none is made, and reports whether the decision is this one.
func (g *firstByteGuard) decide(decision int32) bool {
	return g.decision.CompareAndSwap(undecided, decision) || g.decision.Load() == decision
}

type guardKey struct{}

var errBlocked = errors.New("request was given up before its first byte")

// guardedConn is the connection of one send after the TLS handshake.
type guardedConn struct {
	net.Conn
	guard *firstByteGuard
}

func (c *guardedConn) Write(p []byte) (int, error) {
	if !c.guard.decide(allowed) {
		return 0, errBlocked
	}
	return c.Conn.Write(p)
}

func transport(keepAlive bool) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	dial := func(secure bool) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err == nil && secure {
				host, _, _ := net.SplitHostPort(address) // the dialer has read the address
				raw, client := conn, tls.Client(conn, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12})
				if conn, err = client, client.HandshakeContext(ctx); err != nil {
					raw.Close()
				}
			}
			if err != nil {
				return nil, dialError{err}
			}
			if guard, ok := ctx.Value(guardKey{}).(*firstByteGuard); ok {
				conn = &guardedConn{conn, guard}
			}
			return conn, nil
		}
	}
	return &http.Transport{
		Proxy:               nil, // URLs contain keys, which a proxy of the environment must not see
		DialContext:         dial(false),
		DialTLSContext:      dial(true),
		DisableKeepAlives:   !keepAlive,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     60 * time.Second,
	}
}

// dialError marks a failure before the connection was established.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// plain returns the text of an error without the URL of net/http.
func plain(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err.Error()
	}
	return err.Error()
}

// testClasses are those of the outcomes of test values with which a call fails.
var testClasses = map[testvalue.Outcome]Class{
	testvalue.Rejected: Rejected, testvalue.QuotaUsed: Rejected, testvalue.CredentialsRefused: CredentialsRefused,
	testvalue.Hang: NoResponse, testvalue.Unparseable: Unusable, testvalue.ServerError: Unusable,
}

// TestFailure returns the *Error of the vendor "test" for a value, and nil where the vendor accepts the request.
func TestFailure(v testvalue.Value) error {
	if class := testClasses[v.Outcome]; class != "" {
		return Failure(class, project.TestVendor, v.Meaning, nil)
	}
	return nil
}

// Field is one setting or one secret field of a vendor.
type Field struct {
	Name        string `json:"name"`        // as in the integration's settings or in the secret
	Description string `json:"description"` // for operators
	Required    bool   `json:"required"`
	Pattern     string `json:"pattern,omitzero"` // regular expression of the complete value; empty for any text
}

// Spec describes a vendor and its fields, as one row of a function's vendor table.
type Spec struct {
	Name     string  `json:"name"`     // in integrations: lower case, no spaces
	Title    string  `json:"title"`    // as the vendor writes the name
	Endpoint string  `json:"endpoint"` // base URL for integrations without the setting "endpoint"
	Settings []Field `json:"settings"`
	Secrets  []Field `json:"secrets"`
	// ManagedAction is the IAM action with which the function's role sends for a Managed integration, which then has no
	// secret fields. Empty: a Managed integration needs the secret fields, too.
	ManagedAction string `json:"managed_action"`
}

func (s Spec) is(name string) bool { return s.Name == name }

// Find returns the row of the vendor with the name in a table whose rows embed a Spec, or nil.
func Find[Row interface{ is(name string) bool }](table []Row, name string) *Row {
	for i := range table {
		if table[i].is(name) {
			return &table[i]
		}
	}
	return nil
}

// EndpointSetting is a setting of every vendor: the base URL of its API.
const EndpointSetting = "endpoint"

// Account is a project's integration with a vendor, with its secret fields.
type Account struct {
	Project     string // the project's ID
	Integration project.Integration
	Endpoint    string            // without a trailing slash
	Settings    map[string]string // of the integration
	Secrets     SecretValues
	Owner       string // of the secret: the project's ID, or ManagedOwner
}

// Redact returns the account's secret values, which no text may contain.
func (a Account) Redact() []string { return slices.Collect(maps.Values(a.Secrets)) }

// ErrIncomplete reports an integration with an unknown vendor, or with a missing or invalid setting or secret field.
var ErrIncomplete = errors.New("incomplete integration")

// Secrets reads the secret fields of a vendor. The functions use a cache, and svc uses the writer.
type Secrets interface {
	Fields(ctx context.Context, kind project.Kind, owner string, env project.Environment,
		vendor string) (SecretValues, error)
}

// Resolve returns the account of an integration. The error for an incomplete integration wraps ErrIncomplete.
func (c *Client) Resolve(ctx context.Context, projectID string, in project.Integration, spec *Spec,
	secrets Secrets) (Account, error) {
	account := Account{Project: projectID, Integration: in, Settings: in.Settings, Owner: Owner(in.Mode, projectID)}
	account.Endpoint = strings.TrimRight(cmp.Or(in.Settings[EndpointSetting], spec.Endpoint), "/")
	if account.Endpoint != "" {
		if err := ValidateEndpoint(account.Endpoint, c.cfg.Local); err != nil {
			return Account{}, fmt.Errorf("%w: %s: %w", ErrIncomplete, in.Vendor, err)
		}
	}
	needsSecret := len(spec.Secrets) > 0 && (in.Mode != project.Managed || spec.ManagedAction == "")
	if needsSecret {
		fields, err := secrets.Fields(ctx, in.Kind, account.Owner, in.Environment, in.Vendor)
		if err != nil {
			return Account{}, fmt.Errorf("read secret of %s: %w", in.Vendor, err)
		}
		account.Secrets = fields
	}
	if missing := Missing(spec.Settings, account.Settings); len(missing) > 0 {
		return Account{}, fmt.Errorf("%w: %s lacks settings %v", ErrIncomplete, in.Vendor, missing)
	}
	if missing := Missing(spec.Secrets, account.Secrets); needsSecret && len(missing) > 0 {
		return Account{}, fmt.Errorf("%w: %s lacks secret fields %v", ErrIncomplete, in.Vendor, missing)
	}
	return account, nil
}

// Missing returns the sorted names of the required fields without a value.
func Missing(fields []Field, values map[string]string) []string {
	var missing []string
	for _, f := range fields {
		if f.Required && values[f.Name] == "" {
			missing = append(missing, f.Name)
		}
	}
	slices.Sort(missing)
	return missing
}

// ValidateEndpoint returns the reason why an integration cannot have the endpoint
// (docs/decisions/operating.md#vendor-endpoints). The local stack also takes http.
func ValidateEndpoint(endpoint string, local bool) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("endpoint is not a plain URL")
	case u.Scheme == "https", u.Scheme == "http" && local:
		return nil
	}
	return errors.New("endpoint is not https")
}

// Accounts returns the accounts of the complete integrations in their order, and ErrIncomplete where there is none.
func (c *Client) Accounts(ctx context.Context, projectID string, integrations []project.Integration,
	find func(vendor string) *Spec, secrets Secrets) ([]Account, error) {
	var accounts []Account
	var incomplete []error
	for _, in := range integrations {
		spec := find(in.Vendor)
		if spec == nil {
			incomplete = append(incomplete, fmt.Errorf("%w: vendor %s is unknown", ErrIncomplete, in.Vendor))
			continue
		}
		account, err := c.Resolve(ctx, projectID, in, spec, secrets)
		switch {
		case errors.Is(err, ErrIncomplete):
			incomplete = append(incomplete, err)
		case err != nil:
			return nil, err
		default:
			accounts = append(accounts, account)
		}
	}
	if len(accounts) == 0 {
		return nil, cmp.Or(errors.Join(incomplete...), ErrIncomplete)
	}
	return accounts, nil
}
