// Package proxytest helps tests whose requests go through a proxy.
package proxytest

import (
	"bytes"
	"io"
	"net/http"
)

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
