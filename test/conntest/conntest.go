// Package conntest plays servers connection by connection, with responses that no HTTP server sends, and helps tests
// whose requests go through a proxy.
package conntest

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"

	"svcapi/test/must"
)

// Listen serves each connection once and returns the server's address.
func Listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0")).Or(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// Read reads one whole request.
func Read(c net.Conn) {
	if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// Respond returns a function that reads a request and writes the text.
func Respond(text string) func(net.Conn) {
	return func(c net.Conn) {
		Read(c)
		_, _ = io.WriteString(c, text)
	}
}

// Buffer returns a handler that reads the whole request before next, which is a httputil.ReverseProxy. The server
// closes the body of a request when the response begins; a proxy that still expects the end of that body then breaks
// the response off.
func Buffer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}
