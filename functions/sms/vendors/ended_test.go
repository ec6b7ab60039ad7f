package vendors

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"svcapi/shared/upstream"
	"svcapi/test/conntest"
)

// A send that ends without a usable response has the same class with a vendor's library as with the adapter's own
// request, whether the connection, the vendor's time or the context of the request ends first.
func TestEndedSends(t *testing.T) {
	firstBytes := func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }
	half := conntest.Respond("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"mess")
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close) // the tests of the table run after this function has returned
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()

	for _, test := range []struct {
		name   string
		scheme string
		serve  func(net.Conn) // what the vendor does with a connection
		holds  bool           // the vendor keeps the connection open afterwards
		ends   bool           // the request's context ends as soon as serve is done
		url    string         // of a server that serve does not emulate
		want   upstream.Class
	}{
		{"no response, the context ends", "http://", conntest.Read, true, true, "", upstream.NoResponse},
		{"no response, the vendor's time ends", "http://", conntest.Read, true, false, "", upstream.NoResponse},
		{"no response, the connection ends", "http://", conntest.Read, false, false, "", upstream.NoResponse},
		{"half a response, the context ends", "http://", half, true, true, "", upstream.NoResponse},
		{"half a response, the vendor's time ends", "http://", half, true, false, "", upstream.NoResponse},
		{"half a response, the connection ends", "http://", half, false, false, "", upstream.Unusable},
		{"unfinished TLS handshake, the context ends", "https://", firstBytes, true, true, "", upstream.NotSent},
		{"unfinished TLS handshake, the vendor's time ends", "https://", firstBytes, true, false, "", upstream.NotSent},
		{"unfinished TLS handshake, the connection ends", "https://", firstBytes, false, false, "", upstream.NotSent},
		{"untrusted certificate", "", nil, false, false, untrusted.URL, upstream.NotSent},
		{"refused connection", "", nil, false, false, closed.URL, upstream.NotSent},
	} {
		for _, name := range []string{"twilio", "aws"} {
			t.Run(test.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				url := test.url
				if url == "" {
					url = test.scheme + conntest.Listen(t, func(c net.Conn) {
						test.serve(c)
						if test.ends {
							cancel()
						}
						if test.holds {
							_, _ = io.Copy(io.Discard, c)
						}
					})
				}
				checkEnded(ctx, t, name, url, test.want)
			})
		}
	}

	// No byte leaves after the end of the context, because the vendor is not called.
	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for reason, ctx := range map[string]context.Context{"expired": expired, "cancelled": cancelled} {
		for _, name := range []string{"twilio", "aws"} {
			t.Run("context "+reason+" before the first byte/"+name, func(t *testing.T) {
				var arrived atomic.Int32
				checkEnded(ctx, t, name, "http://"+conntest.Listen(t, func(c net.Conn) {
					if n, _ := c.Read(make([]byte, 1)); n > 0 {
						arrived.Add(1)
					}
				}), upstream.NotSent)
				if arrived.Load() > 0 {
					t.Error("a byte arrived")
				}
			})
		}
	}
}

// checkEnded sends one message and compares the class of the error.
func checkEnded(ctx context.Context, t *testing.T, name, url string, want upstream.Class) {
	t.Helper()
	receipt, err := adapterAt(t, name, url, upstream.Config{TimeoutSeconds: 1, Local: true}).Send(ctx, message)
	var e *upstream.Error
	if !errors.As(err, &e) || e.Class != want {
		t.Fatalf("got %+v, %v; want %s", receipt, err, want)
	}
	if e.Vendor != name || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error is %v", err)
	}
}
