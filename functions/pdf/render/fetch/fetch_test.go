package fetch

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/image/webp"

	"svcapi/functions/pdf/render/event"
	"svcapi/test/clocktest"
	"svcapi/test/must"
	"svcapi/test/pdftest"
)

var testLimits = Limits{Images: 4, Bytes: 64 << 10, TotalBytes: 100 << 10, Pixels: 10_000, TotalPixels: 25_000,
	Redirects: 2, Time: 2 * time.Second}

// loopback counts as public network, because the servers of these tests listen there.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// serve starts a server, and returns the server with a client that trusts its certificate and the loopback.
func serve(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *Client) {
	t.Helper()
	server := pdftest.Serve(t, handler)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server, New(Options{Limits: testLimits, Public: loopback, Roots: roots})
}

func messageOf(err error) string {
	var e *event.RejectionError
	switch {
	case err == nil:
		return "loaded"
	case errors.Is(err, ErrNotPermitted):
		return "not permitted"
	case errors.As(err, &e):
		return e.Message
	}
	return "unexpected: " + err.Error()
}

// Only a host of the public network is reached: shared/ipaddr has the classes of addresses, and tests them. No address
// of a protocol, of a cloud's metadata or of this machine is public, in any form. The address of the socket is checked
// after the name resolution, too.
func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "104.16.0.1": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true,
		"0.0.0.0": false, "10.0.0.1": false, "127.0.0.1": false, "169.254.169.254": false, "192.0.0.1": false,
		"192.88.99.1": false,
		"::1":         false, "::8.8.8.8": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false,
		"64:ff9b::8.8.8.8": false,
		"2001::1":          false, "2001:10::1": false, "2001:20::1": false, "2002:7f00:1::": false, "fd00:ec2::254": false,
		"fe80::1%eth0": false, "2606:4700::1%eth0": false,
	} {
		client, addr := New(Options{}), netip.MustParseAddr(address)
		if err := client.check("tcp", netip.AddrPortFrom(addr, 443).String(), nil); client.public(addr) != want ||
			(err == nil) != want {
			t.Errorf("public(%s) is not %v, or %v", address, want, err)
		}
	}
	if client := New(Options{}); client.public(netip.Addr{}) || client.check("tcp", "x", nil) == nil {
		t.Error("the zero address is public")
	}
}

// An address that is not permitted is not requested in any spelling.
func TestNotPermitted(t *testing.T) {
	client := New(Options{Limits: testLimits})
	client.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		t.Error("a name was looked up")
		return nil, errors.New("no")
	}
	for _, address := range []string{
		"", "x.png", "//example.com/x.png", "http://example.com/x.png", "HTTP://example.com/", "ftp://example.com/x.png",
		"file:///etc/passwd", "FILE:///etc/passwd",
		`\\localhost/etc/passwd`, "file://localhost/etc/passwd", "https:example.com", "https:///x.png", "https://",
		"https://user@example.com/", "https://user:pw@example.com/",
		"https://127.0.0.1/", "https://127.0.0.1:9001/2018-06-01/runtime/invocation/next",
		"https://169.254.169.254/latest/meta-data/", "https://[::1]/", "https://[::ffff:169.254.169.254]/",
		"https://[fd00:ec2::254]/", "https://[fe80::1%25eth0]/", "https://10.0.0.1/", "https://0/", "https://127.1/",
		"https://2852039166/", "https://0xA9FEA9FE/", "https://0xa9.0xfe.0xa9.0xfe/",
		"https://0251.0376.0251.0376/", "https://169.254.43518/", "https://1２7.0.0.1/", "https://ⓛocalhost/",
		"https://127.0.0.1./", "https://0x/", "https://example.0x7f/", "https://1.2.3.4.5/",
		"javascript:alert(1)", "blob:https://example.com/1", "ws://example.com/", "wss://example.com/", "chrome://version",
		"view-source:https://example.com/", "about:blank", "https://[::1/", "https://ex ample.com/",
		"https://example.com:80/x.png", "https://example.com:8443/x.png", "https://example.com:0443/", "https://8.8.8.8:22/",
		"https://[2606:4700::1111]:25/",
	} {
		if _, _, err := client.Document().Get(t.Context(), address); !errors.Is(err, ErrNotPermitted) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Only the hosts of the parameter are permitted, and a list without names is an error instead of "all hosts".
func TestHosts(t *testing.T) {
	for _, test := range []struct {
		text string
		want int // -1: an error
	}{{"", 0}, {"a.example", 1}, {"A.example, b.example", 2}, {",", -1}, {" ", -1}, {"a.example,",
		-1}, {"https://a.example", -1}, {"*.example", -1}, {"a@b.example", -1}, {"a b", -1}, {"a.example:443", -1}} {
		hosts, err := ParseHosts(test.text)
		if (err != nil) != (test.want < 0) || err == nil && len(hosts) != test.want || (hosts == nil) != (test.want <= 0) {
			t.Errorf("%q: %v, %v", test.text, hosts, err)
		}
	}
	hosts, _ := ParseHosts("cdn.example,Images.example")
	client := New(Options{Limits: testLimits, Hosts: hosts})
	client.lookup = func(context.Context, string, string) ([]netip.Addr, error) { return nil, errors.New("no such name") }
	for address, want := range map[string]string{
		"https://cdn.example/x": "resolve", "https://CDN.example/x": "resolve", "https://images.example:443/x": "resolve",
		"https://images.example:8443/x": "not permitted",
		"https://other.example/x":       "not permitted", "https://evil.cdn.example/x": "not permitted",
		"https://cdn.example.evil.example/x": "not permitted",
		"https://cdn.example@evil.example/x": "not permitted", "https://8.8.8.8/x": "not permitted",
		"https://cdn.example./x": "not permitted",
	} {
		if _, _, err := client.Document().Get(t.Context(), address); !strings.Contains(messageOf(err), want) {
			t.Errorf("%s: %s", address, messageOf(err))
		}
	}
}

// A permitted image is an error with its reason where the image cannot be loaded or decoded, resolves to an address
// that is not public, redirects to an address that is not permitted, or is no PNG, JPEG, GIF or WebP
// (docs/decisions/pdf.md#pdf-loads). The message has only the address of the request, up to 200 bytes, and texts of
// this package.
func TestGet(t *testing.T) {
	var origin string
	var seen atomic.Int64
	secrets := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer secrets.Close()
	send := func(body []byte, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			_, _ = w.Write(body)
		}
	}
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", strings.ReplaceAll(to, "ORIGIN", origin))
			w.WriteHeader(http.StatusFound)
		}
	}
	intact := map[string][]byte{}
	for _, i := range pdftest.Images() {
		intact[i.Name] = i.Body
	}
	tests := map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"png":         {send(pdftest.Chequered(9, 9)), "loaded image/png"},
		"jpeg":        {send(intact["JPEG"]), "loaded image/jpeg"},
		"gif":         {send(intact["GIF"]), "loaded image/gif"},
		"webp":        {send(intact["WebP, lossless"]), "loaded image/webp"},
		"mislabelled": {send(pdftest.Chequered(9, 9), "Content-Type", "text/html"), "loaded image/png"},
		"svg": {send([]byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), "Content-Type", "image/svg+xml"),
			"is no PNG"},
		"html":          {send([]byte("<html>")), "is no PNG"},
		"labelled":      {send([]byte("GIF, it says"), "Content-Type", "image/gif"), "is no PNG"},
		"nothing":       {send(nil), "is no PNG"},
		"compressed":    {send(pdftest.Chequered(9, 9), "Content-Encoding", "br"), "is no PNG"},
		"half a header": {send(pdftest.Chequered(40, 40)[:20]), "cannot be decoded"},
		"pixels":        {send(pdftest.Chequered(101, 100)), "has 10100 pixels; at most 10000"},
		"as many":       {send(pdftest.Chequered(100, 100)), "loaded image/png"},
		"bytes":         {send(bytes.Repeat([]byte{'x'}, 64<<10+1)), "is larger than 65536 bytes"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) { drip(w, bytes.Repeat([]byte{'x'}, 4096), 0) },
			"is larger than 65536 bytes"},
		"404":      {http.NotFound, "status 404"},
		"500":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "status 500"},
		"204":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "status 204"},
		"hangs up": {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, "did not answer"},
		"short":    {send([]byte("x"), "Content-Length", "100"), "did not answer"},
		"headers":  {send(nil, "X", strings.Repeat("x", 20<<10)), "did not answer"},
		"redirect": {redirect("ORIGIN/png"), "loaded image/png"},
		"twice":    {redirect("ORIGIN/redirect"), "loaded image/png"},
		"thrice":   {redirect("ORIGIN/twice"), "redirects too often"},
		"loop":     {redirect("/loop"), "redirects too often"},
		"to http":  {redirect(secrets.URL), "redirects to an address that is not permitted"},
		"to metadata": {redirect("https://169.254.169.254/latest/meta-data/"),
			"redirects to an address that is not permitted"},
		"to a number":               {redirect("https://2852039166/"), "redirects to an address that is not permitted"},
		"to a mapped":               {redirect("https://[::ffff:a9fe:a9fe]/"), "redirects to an address that is not permitted"},
		"to a file":                 {redirect("file:///etc/passwd"), "redirects to an address that is not permitted"},
		"to a user":                 {redirect("https://user@example.com/"), "redirects to an address that is not permitted"},
		"to a port":                 {redirect("https://none.example:8443/"), "redirects to an address that is not permitted"},
		"to private":                {redirect("https://private.example/"), "does not resolve to public addresses alone"},
		"to a bad name":             {redirect("https://none.example/"), "has a host name that does not resolve"},
		strings.Repeat("long ", 60): {http.NotFound, "long%20long%20l… could not be loaded: status 404"},
	}
	server, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Referer() != "" || len(r.Cookies()) > 0 || r.Header.Get("Authorization") != "" {
			t.Errorf("%s: asked with %v", r.URL, r.Header)
		}
		tests[strings.TrimPrefix(r.URL.Path, "/")].handler(w, r)
	})
	origin = server.URL
	client.lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if host == "private.example" {
			return []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.1")}, nil
		}
		return nil, errors.New("lookup on 10.0.0.2:53: secret")
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			typ, body, err := client.Document().Get(t.Context(), origin+"/"+strings.ReplaceAll(name, " ", "%20"))
			got := messageOf(err)
			if err == nil {
				got += " " + typ
			}
			if !strings.Contains(got, test.want) || (err == nil) != (len(body) > 0) || strings.Contains(got, "secret") {
				t.Errorf("got %q", got)
			}
			limited := slices.Contains([]string{"pixels", "bytes", "endless"}, name)
			if e, failed := errors.AsType[*event.RejectionError](err); failed && e.ExceedsLimit != limited {
				t.Errorf("%v exceeds a limit: %v", err, !limited)
			}
		})
	}
	if seen.Load() != 0 {
		t.Error("a redirect to http was followed")
	}
}

// drip writes until the client disconnects.
func drip(w http.ResponseWriter, part []byte, pause time.Duration) {
	for {
		if _, err := w.Write(part); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		time.Sleep(pause)
	}
}

// A name may resolve differently after the check, so the client connects to the checked address.
func TestRebinding(t *testing.T) {
	server, client := serve(t, nil)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	var asked atomic.Int64
	resolved := []string{"127.0.0.1", "169.254.169.254", "::1", "10.1.2.3", "127.0.0.1,169.254.169.254", "127.0.0.1"}
	client.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		var addresses []netip.Addr
		for text := range strings.SplitSeq(resolved[asked.Add(1)-1], ",") {
			addresses = append(addresses, netip.MustParseAddr(text))
		}
		return addresses, nil
	}
	for i, want := range []string{"loaded", "public addresses alone", "public addresses alone", "public addresses alone",
		"public addresses alone", "loaded"} {
		got := "loaded"
		if conn, err := client.dial(t.Context(), "tcp", "example.com:"+port); err == nil {
			conn.Close()
		} else {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("resolved to %s: %s", resolved[i], got)
		}
	}
	if got := asked.Load(); got != int64(len(resolved)) {
		t.Errorf("looked up %d times", got)
	}
}

// An image from a server with an untrusted certificate is an error.
func TestCertificate(t *testing.T) {
	server, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pdftest.Chequered(3, 3)) })
	client := New(Options{Limits: testLimits, Public: loopback})
	if _, _, err := client.Document().Get(t.Context(), server.URL); !strings.Contains(messageOf(err),
		"did not answer as an https server should") {
		t.Error(messageOf(err))
	}
}

// All images of a document share one set of limits, and an address counts once.
func TestLimitsOfDocument(t *testing.T) {
	var asked atomic.Int64
	server, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		n, _ := strconv.Atoi(r.URL.Query().Get("pad"))
		_, _ = w.Write(append(pdftest.Chequered(100, 80), make([]byte, n)...))
	})
	get := func(images *Images, query string) string {
		_, _, err := images.Get(t.Context(), server.URL+"/?"+query)
		return messageOf(err)
	}
	images := client.Document()
	for i, want := range []string{"loaded", "loaded", "loaded", "all images together have more than 25000 pixels",
		"one too many: at most 4"} {
		if got := get(images, strconv.Itoa(i)); !strings.Contains(got, want) {
			t.Errorf("image %d: %s", i, got)
		}
	}
	asked.Store(0)
	images = client.Document()
	for range 10 {
		if got := get(images, "same#"+strconv.Itoa(1)); got != "loaded" {
			t.Error(got)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
	images = client.Document()
	if first, second := get(images, "pad=60000"), get(images, "pad=60001"); first != "loaded" ||
		!strings.Contains(second, "all images together are larger than 102400 bytes") {
		t.Error(first, second)
	}
}

// A server that is slow at any step takes at most the time for all images.
func TestSlow(t *testing.T) {
	server, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/drip" {
			drip(w, []byte{0}, 20*time.Millisecond)
		}
		<-r.Context().Done()
	})
	client.options.Limits.Time = 300 * time.Millisecond
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer silent.Close()
	for _, address := range []string{server.URL + "/drip", server.URL + "/head",
		"https://" + silent.Addr().String() + "/tls"} {
		began := time.Now()
		_, _, err := client.Document().Get(t.Context(), address)
		took := time.Since(began)
		if !strings.Contains(messageOf(err), "took too long") || took > 6*clocktest.Beside(client.options.Limits.Time)() {
			t.Errorf("%s: %s after %v", address, messageOf(err), took)
		}
	}
	images, began := client.Document(), time.Now()
	_, _, _ = images.Get(t.Context(), server.URL+"/1")
	first := time.Since(began)
	_, _, err = images.Get(t.Context(), server.URL+"/2")
	if both := time.Since(began); !strings.Contains(messageOf(err), "took too long") || both > first*3/2 {
		t.Errorf("the second image has time of its own: %s after %v, the first took %v", messageOf(err), both, first)
	}
}

// docs/decisions/pdf.md#pdf-images: the header alone is read, whatever is damaged behind it.
func TestMeasure(t *testing.T) {
	for _, i := range pdftest.Images() {
		format, _, _ := strings.Cut(strings.ReplaceAll(i.Name, ",", ""), " ")
		want := "image/" + strings.ToLower(format)
		if mediaType, pixels, err := Measure(i.Body); mediaType != want || pixels != i.Pixels ||
			(err == nil) != (i.Pixels > 0) {
			t.Errorf("%s: %s, %d pixels, %v", i.Name, mediaType, pixels, err)
		}
	}
}

// Measure returns as many pixels as the decoders of the standard library and of golang.org/x/image see.
func FuzzMeasure(f *testing.F) {
	for _, i := range pdftest.Images() {
		f.Add(i.Body)
	}
	decoders := map[string]func(io.Reader) (image.Config, error){
		"image/png": png.DecodeConfig, "image/jpeg": jpeg.DecodeConfig, "image/gif": gif.DecodeConfig,
		"image/webp": webp.DecodeConfig,
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		mediaType, pixels, failed := Measure(body)
		decode := decoders[mediaType]
		if decode == nil {
			if failed == nil {
				t.Errorf("%d pixels of no format", pixels)
			}
			return
		}
		size, err := decode(bytes.NewReader(body))
		seen := int64(size.Width) * int64(size.Height)
		if err != nil {
			return
		}
		// a GIF's first image may be larger
		if (failed == nil) != (pixels > 0) || pixels < seen || mediaType != "image/gif" && pixels != seen {
			t.Errorf("%s: %d pixels, want %d", mediaType, pixels, seen)
		}
	})
}
