// Package conntest plays servers connection by connection, with responses that no HTTP server sends.
package conntest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"

	"svcapi/test/must"
)

// Listen serves each connection once and returns the server's address.
func Listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
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
