// Package fetch loads the images that a document names, for a browser that has no network of its own.
//
// The documents are hostile, and this process runs inside a cloud, so only the public network can be reached, and only
// over https. Every address is checked at the moment of the connection: neither a name that resolves differently the
// second time nor a redirect reaches more than an address literal does.
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
	"sync/atomic"
	"syscall"
	"time"

	"svcapi/functions/pdf/render/event"
	"svcapi/shared/ipaddr"
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
	// Hosts are the only hosts that images are loaded from; nil: any. ParseHosts returns such a list.
	Hosts []string
	// Tests only: Public are networks that count as public, on any port, and Roots the authorities to trust besides the
	// system's.
	Public []netip.Prefix
	Roots  *x509.CertPool
}

// ParseHosts parses a comma-separated list of host names. An empty text means every host. A text without a name, such
// as a comma, is an error: a list that lost its entries must not permit every host.
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

// ErrNotPermitted is the error for an address that must not be requested. The document is rendered without the image.
var ErrNotPermitted = errors.New("fetch: not permitted")

// Each of these is the cause why a permitted image was not loaded. The text follows the address of the image, and
// contains no address and no text of a resolver or a server.
var (
	errPrivate   = failed("does not resolve to public addresses alone")
	errName      = failed("has a host name that does not resolve")
	errConnect   = failed("could not be loaded: no connection")
	errResponse  = failed("could not be loaded: its server did not answer as an https server should")
	errTime      = failed("took too long to load")
	errRedirect  = failed("redirects to an address that is not permitted")
	errRedirects = failed("redirects too often")
	errNoImage   = failed("is no PNG, JPEG, GIF or WebP image")
	errBroken    = failed("cannot be decoded")
)

func failed(text string) *event.RejectionError {
	return &event.RejectionError{Reason: Reason, Message: text}
}

// of returns the rejection of a document with an image that was not loaded for a cause.
func of(address string, cause *event.RejectionError) *event.RejectionError {
	if len(address) > 200 {
		address = strings.ToValidUTF8(address[:200], "") + "…"
	}
	rejection := *cause
	rejection.Message, rejection.Address = "the image "+address+" "+cause.Message, address
	return &rejection
}

// Reason is the reason of a document with an image that was not loaded.
const Reason = "image"

// Broken returns the rejection of a document with a loaded image that the browser cannot draw.
func Broken(address string) error { return of(address, errBroken) }

// Client loads images. A Client has no cookies and no cache.
type Client struct {
	options Options
	http    *http.Client
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// New returns a Client.
func New(o Options) *Client {
	c := &Client{options: o, lookup: net.DefaultResolver.LookupNetIP}
	c.http = &http.Client{
		CheckRedirect: c.redirect,
		Transport: &http.Transport{
			Proxy:                  nil, // also not that of the environment
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

// Permitted reports whether an address may be requested: https on port 443, a listed host if there is a list, no
// address literal outside the public network, no credentials. With another port a document would scan the hosts of the
// public network from the address of this function.
func (c *Client) Permitted(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	if u.Scheme != "https" || u.User != nil || u.Opaque != "" || host == "" {
		return false
	}
	if c.options.Hosts != nil && !slices.Contains(c.options.Hosts, host) {
		return false
	}
	standard := u.Port() == "" || u.Port() == "443"
	if literal, err := netip.ParseAddr(host); err == nil {
		return c.public(literal) && (standard || c.ofTests(literal))
	}
	return standard && !looksNumeric(host)
}

// public reports whether an address is a host's on the public network, or within the networks that count as public. A
// v4-mapped address counts as the address that it maps.
func (c *Client) public(a netip.Addr) bool {
	return ipaddr.Public(a) || a.Zone() == "" && c.ofTests(a)
}

// ofTests reports whether an address is within the networks that tests count as public.
func (c *Client) ofTests(a netip.Addr) bool {
	return slices.ContainsFunc(c.options.Public, func(network netip.Prefix) bool { return network.Contains(a.Unmap()) })
}

// looksNumeric reports whether a host is another spelling of an IPv4 address (2852039166, 0xA9FEA9FE, 127.1): a name
// whose last label is a number (WHATWG URL, "ends in a number"). A browser normalises such names, but the target of a
// redirect has not been through a browser. Names outside ASCII count as numeric, because a browser sends names as
// ASCII.
func looksNumeric(host string) bool {
	if strings.ContainsFunc(host, func(r rune) bool { return r > 0x7f }) {
		return true
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	last := labels[len(labels)-1]
	hex, isHex := strings.CutPrefix(last, "0x")
	return strings.Trim(last, "0123456789") == "" || isHex && strings.Trim(hex, "0123456789abcdef") == ""
}

// dial resolves the host, checks every address, and connects to one of the checked addresses.
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
	return nil, errors.Join(err, errConnect)
}

func (c *Client) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	addresses := []netip.Addr{}
	if literal, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, literal)
	} else if addresses, err = c.lookup(ctx, "ip", host); err != nil || len(addresses) == 0 {
		return nil, errors.Join(errName, err)
	}
	for i, a := range addresses {
		if !c.public(a) {
			return nil, errPrivate
		}
		addresses[i] = a.Unmap()
	}
	return addresses, nil
}

// check validates the address to which the system is about to connect.
func (c *Client) check(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !c.public(to.Addr()) {
		return errPrivate
	}
	return nil
}

func (c *Client) redirect(r *http.Request, via []*http.Request) error {
	if len(via) > c.options.Limits.Redirects {
		return errRedirects
	}
	if !c.Permitted(r.URL) {
		return errRedirect
	}
	r.Header.Del("Referer") // net/http adds it
	return nil
}

// Images loads the images of one document, within one set of limits.
type Images struct {
	client *Client
	bytes  atomic.Int64
	pixels atomic.Int64

	mu      sync.Mutex
	loads   map[string]*load
	started time.Time
}

// load is the result of one image. Several requests for an image share one load.
type load struct {
	once      sync.Once
	mediaType string
	body      []byte
	err       error
}

// Document returns an empty set of images for a new document.
func (c *Client) Document() *Images { return &Images{client: c, loads: map[string]*load{}} }

// Get returns the image at an address with the media type of its bytes. The error is ErrNotPermitted or an
// *event.RejectionError. Without a set no image is permitted.
func (i *Images) Get(ctx context.Context, address string) (mediaType string, body []byte, err error) {
	u, err := url.Parse(address)
	if err != nil || i == nil || !i.client.Permitted(u) {
		return "", nil, ErrNotPermitted
	}
	u.Fragment, u.RawFragment = "", ""
	l, number := i.load(u.String())
	l.once.Do(func() {
		limits := i.client.options.Limits
		if number > limits.Images {
			l.err = of(address, event.Exceeded(Reason, "is one too many: at most %d images are allowed", limits.Images))
			return
		}
		ctx, cancel := context.WithDeadline(ctx, i.started.Add(limits.Time))
		defer cancel()
		var err error
		if l.mediaType, l.body, err = i.get(ctx, u.String()); err != nil {
			cause, known := errors.AsType[*event.RejectionError](err)
			if !known {
				cause = errResponse
			}
			if ctx.Err() != nil {
				cause = errTime
			}
			l.err = of(address, cause)
		}
	})
	return l.mediaType, l.body, l.err
}

// load returns the load of an address, and the number of addresses so far.
func (i *Images) load(address string) (*load, int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started.IsZero() {
		i.started = time.Now()
	}
	if i.loads[address] == nil {
		i.loads[address] = &load{}
	}
	return i.loads[address], len(i.loads)
}

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
		return "", nil, failed(fmt.Sprintf("could not be loaded: status %d", response.StatusCode))
	}
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return "", nil, errNoImage
	}
	body, err := i.read(response.Body)
	if err != nil {
		return "", nil, err
	}
	mediaType, pixels, err := Measure(body)
	if err != nil {
		return "", nil, err
	}
	if pixels > limits.Pixels {
		return "", nil, event.Exceeded(Reason, "has %d pixels; at most %d are allowed", pixels, limits.Pixels)
	}
	if i.pixels.Add(pixels) > limits.TotalPixels {
		return "", nil, event.Exceeded(Reason, "is too much: all images together have more than %d pixels",
			limits.TotalPixels)
	}
	return mediaType, body, nil
}

// read returns a body within the limits of one image and of all images.
func (i *Images) read(r io.Reader) ([]byte, error) {
	limits := i.client.options.Limits
	body, err := io.ReadAll(io.LimitReader(r, limits.Bytes+1))
	if int64(len(body)) > limits.Bytes {
		return nil, event.Exceeded(Reason, "is larger than %d bytes", limits.Bytes)
	}
	if err != nil {
		return nil, err
	}
	if i.bytes.Add(int64(len(body))) > limits.TotalBytes {
		return nil, event.Exceeded(Reason, "is too much: all images together are larger than %d bytes", limits.TotalBytes)
	}
	return body, nil
}
