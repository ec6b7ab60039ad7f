package upstream

import (
	"net/url"
	"strings"
	"testing"
)

// An endpoint is a plain https URL, whatever an operator's file holds.
func FuzzEndpoint(f *testing.F) {
	for _, endpoint := range []string{"https://v.example/base", "http://v.example", "https://u:p@v.example",
		"https://v.example?x", "https://[::1%25a]/", "//v.example", "https://v.example#f", "HTTPS://V", "https:v.example"} {
		f.Add(endpoint)
	}
	client := New(Config{TimeoutSeconds: 1})
	f.Fuzz(func(t *testing.T, endpoint string) {
		if client.validateEndpoint(endpoint) != nil {
			return
		}
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil ||
			strings.ContainsAny(endpoint, "@") && !strings.Contains(u.Path, "@") {
			t.Errorf("%q is accepted", endpoint)
		}
	})
}
