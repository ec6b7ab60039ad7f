// Package fetch loads the images that a document names, on behalf of a browser that has no network of its own.
//
// The documents are written by strangers, and this process stands inside a cloud: what can be reached is the public
// network, over https, and nothing else. Every address is checked at the moment it is dialled, so a name that resolves
// differently the second time, or a redirect, gets no further than a literal address does.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limits bound the images of one document.
type Limits struct {
	Images      int           // distinct addresses
	Bytes       int64         // of one image
	TotalBytes  int64         // of all images
	Pixels      int64         // of one image
	TotalPixels int64         // of all images
	Redirects   int           // of one image
	Time        time.Duration // for all images, from the first one
}

// Options configure a Client.
type Options struct {
	Limits Limits
	// Hosts are the only hosts that images are loaded from; nil: any. Make it by ParseHosts.
	Hosts []string
	// Public are networks that count as public besides those that are, and Roots the authorities to trust besides the
	// system's: for tests.
	Public []netip.Prefix
	Roots  *x509.CertPool
}

// ParseHosts reads a comma-separated list of host names. An empty text is no restriction; a text that holds commas and
// spaces alone is an error, not one: a list that lost its entries must not turn into "all".
func ParseHosts(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var hosts []string
	for host := range strings.SplitSeq(text, ",") {
		host = strings.ToLower(strings.TrimSpace(host))
		if host == "" || strings.ContainsAny(host, "/:*@ ") {
			return nil, fmt.Errorf("fetch: %q is no host name in the list of hosts", host)
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

// ErrNotPermitted says that an address is not one to load from: nothing was asked, and the document is rendered without.
var ErrNotPermitted = errors.New("fetch: not permitted")

// Error is a permitted image that cannot be had. It is the document's fault.
type Error struct {
	URL   string
	cause error // for the client: without addresses or words of others
}

// Error implements error.
func (e *Error) Error() string { return "fetch: " + e.ClientMessage() }

// Refusal returns the words for the client.
func (e *Error) ClientMessage() string {
	address := e.URL
	if len(address) > 200 {
		address = strings.ToValidUTF8(address[:200], "") + "…"
	}
	return fmt.Sprintf("the image %s %s", address, e.cause)
}

// What can be wrong with an image, in words that follow its address.
var (
	errPrivate   = errors.New("does not resolve to public addresses alone")
	errName      = errors.New("has a host name that does not resolve")
	errConnect   = errors.New("could not be loaded: no connection")
	errAnswer    = errors.New("could not be loaded: its server did not answer as an https server should")
	errTime      = errors.New("took too long to load")
	errRedirect  = errors.New("redirects to an address that is not permitted")
	errRedirects = errors.New("redirects too often")
)

// Client loads images. It holds no cookies and no cache.
type Client struct {
	options Options
	http    *http.Client
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	decode  sync.Mutex // one image at a time is unpacked in memory
}

// New returns a Client.
func New(o Options) *Client {
	c := &Client{options: o, lookup: net.DefaultResolver.LookupNetIP}
	c.http = &http.Client{
		CheckRedirect: c.redirect,
		Transport: &http.Transport{
			Proxy:                  nil, // not even the environment's
			DialContext:            c.dial,
			TLSClientConfig:        &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    5 * time.Second,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 16 << 10,
			MaxConnsPerHost:        6,
			MaxIdleConns:           12,
			IdleConnTimeout:        5 * time.Second,
		},
	}
	return c
}

// permitted tells whether an address may be asked for at all: https, a listed host if there is a list, no address
// literal outside the public network, no credentials.
func (c *Client) permitted(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	if u.Scheme != "https" || u.User != nil || u.Opaque != "" || host == "" {
		return false
	}
	if c.options.Hosts != nil && !slices.Contains(c.options.Hosts, host) {
		return false
	}
	if literal, err := netip.ParseAddr(host); err == nil {
		return public(literal, c.options.Public)
	}
	return !looksNumeric(host)
}

// looksNumeric tells the other spellings of IPv4 addresses (2852039166, 0xA9FEA9FE, 127.1): a name whose last label is
// a number is one (WHATWG URL, "ends in a number"). A browser has turned them into plain ones before; a redirect's target
// has not been through a browser. Names outside ASCII go with them: a browser sends those in their ASCII form.
func looksNumeric(host string) bool {
	if strings.ContainsFunc(host, func(r rune) bool { return r > 0x7f }) {
		return true
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	last := labels[len(labels)-1]
	hex, isHex := strings.CutPrefix(last, "0x")
	return strings.Trim(last, "0123456789") == "" || isHex && strings.Trim(hex, "0123456789abcdef") == ""
}

// dial resolves, checks every address, and connects to one of those that were checked.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errConnect
	}
	addresses, err := c.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Control: c.check}
	for _, a := range addresses {
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, errors.Join(errConnect, err)
}

func (c *Client) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	addresses := []netip.Addr{}
	if literal, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, literal)
	} else if addresses, err = c.lookup(ctx, "ip", host); err != nil || len(addresses) == 0 {
		return nil, errors.Join(errName, err)
	}
	for i, a := range addresses {
		if !public(a, c.options.Public) {
			return nil, errPrivate
		}
		addresses[i] = a.Unmap()
	}
	return addresses, nil
}

// check looks once more at the address that the system is about to connect to.
func (c *Client) check(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !public(to.Addr(), c.options.Public) {
		return errPrivate
	}
	return nil
}

func (c *Client) redirect(r *http.Request, via []*http.Request) error {
	if len(via) > c.options.Limits.Redirects {
		return errRedirects
	}
	if !c.permitted(r.URL) {
		return errRedirect
	}
	r.Header.Del("Referer") // net/http adds it
	return nil
}

// Images loads the images of one document, within one set of limits.
type Images struct {
	client *Client

	mu      sync.Mutex
	loads   map[string]*load
	bytes   int64
	pixels  int64
	started time.Time
}

// load is one image: what asks for it again waits for the first.
type load struct {
	done      chan struct{}
	mediaType string
	body      []byte
	err       error
}

// Document begins a new set.
func (c *Client) Document() *Images { return &Images{client: c, loads: map[string]*load{}} }

// Get returns the image at an address: its media type, as its bytes tell it, and its bytes. The error is
// ErrNotPermitted or an *Error.
func (i *Images) Get(ctx context.Context, address string) (mediaType string, body []byte, err error) {
	u, err := url.Parse(address)
	if err != nil || !i.client.permitted(u) {
		return "", nil, ErrNotPermitted
	}
	u.Fragment, u.RawFragment = "", ""
	key := u.String()

	i.mu.Lock()
	l, known := i.loads[key]
	if !known {
		if i.started.IsZero() {
			i.started = time.Now()
		}
		l = &load{done: make(chan struct{})}
		i.loads[key] = l
	}
	count := len(i.loads)
	i.mu.Unlock()
	if known {
		select {
		case <-l.done:
			return l.mediaType, l.body, l.err
		case <-ctx.Done():
			return "", nil, &Error{address, errTime}
		}
	}
	defer close(l.done)
	if limit := i.client.options.Limits.Images; count > limit {
		l.err = &Error{address, fmt.Errorf("is one too many: at most %d images are allowed", limit)}
		return "", nil, l.err
	}
	ctx, cancel := context.WithDeadline(ctx, i.started.Add(i.client.options.Limits.Time))
	defer cancel()
	if l.mediaType, l.body, err = i.get(ctx, key); err != nil {
		if ctx.Err() != nil {
			err = errTime
		}
		l.err = &Error{address, words(err)}
	}
	return l.mediaType, l.body, l.err
}

// words keeps of an error only what this package says: a resolver's or a peer's words are not for the client.
func words(err error) error {
	for _, known := range []error{errPrivate, errName, errConnect, errTime, errRedirect, errRedirects, errNoImage, errBroken} {
		if errors.Is(err, known) {
			return known
		}
	}
	if own, ok := errors.AsType[limitError](err); ok {
		return own
	}
	return errAnswer
}

// limitError is a limit or a status, in words for the client.
type limitError string

func (e limitError) Error() string { return string(e) }

func (i *Images) get(ctx context.Context, address string) (string, []byte, error) {
	limits := i.client.options.Limits
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", nil, err
	}
	request.Header.Set("User-Agent", "svc-pdf")
	request.Header.Set("Accept", "image/png,image/jpeg,image/gif,image/webp")
	request.Header.Set("Accept-Encoding", "identity")
	response, err := i.client.http.Do(request)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", nil, limitError(fmt.Sprintf("could not be loaded: status %d", response.StatusCode))
	}
	if response.Header.Get("Content-Encoding") != "" && !strings.EqualFold(response.Header.Get("Content-Encoding"), "identity") {
		return "", nil, errNoImage
	}
	body, err := i.read(response.Body)
	if err != nil {
		return "", nil, err
	}
	f, size, err := measure(body)
	if err != nil {
		return "", nil, err
	}
	pixels := int64(size.Width) * int64(size.Height)
	if pixels > limits.Pixels {
		return "", nil, limitError(fmt.Sprintf("has %d pixels; at most %d are allowed", pixels, limits.Pixels))
	}
	i.mu.Lock()
	i.pixels += pixels
	all := i.pixels
	i.mu.Unlock()
	if all > limits.TotalPixels {
		return "", nil, limitError(fmt.Sprintf("is too much: all images together have more than %d pixels", limits.TotalPixels))
	}
	i.client.decode.Lock()
	defer i.client.decode.Unlock()
	if ctx.Err() != nil {
		return "", nil, errTime
	}
	if err := f.intact(body); err != nil {
		return "", nil, err
	}
	return f.mediaType, body, nil
}

// read takes a body within the limits of one image and of all.
func (i *Images) read(r io.Reader) ([]byte, error) {
	limits := i.client.options.Limits
	body, err := io.ReadAll(io.LimitReader(r, limits.Bytes+1))
	if int64(len(body)) > limits.Bytes {
		return nil, limitError(fmt.Sprintf("is larger than %d bytes", limits.Bytes))
	}
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bytes += int64(len(body)); i.bytes > limits.TotalBytes {
		return nil, limitError(fmt.Sprintf("is too much: all images together are larger than %d bytes", limits.TotalBytes))
	}
	return body, nil
}
