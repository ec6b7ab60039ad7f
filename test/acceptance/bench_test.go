package acceptance

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"svcapi/test/must"
)

// benchmarked is a request on a demo project.
type benchmarked struct{ name, project, path, body string }

// measure measures one request after the other through gateway, compiled function and DynamoDB Local.
func (c benchmarked) measure(b *testing.B) {
	if fixture.stack == nil {
		b.Skip("a deployed stack is not for measuring")
	}
	as := demoProject(c.project).dev
	b.Run(c.name, func(b *testing.B) {
		for b.Loop() {
			r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, fixture.baseURL+c.path, strings.NewReader(c.body))
			must.Succeed(b, err)
			r.Header.Set("X-API-KEY", as.ID)
			r.Header.Set("X-API-SECRET", as.Secret)
			a, err := client.Do(r)
			must.Succeed(b, err)
			_, err = io.Copy(io.Discard, a.Body)
			a.Body.Close()
			if err != nil || a.StatusCode != http.StatusOK {
				b.Fatalf("%d, %v", a.StatusCode, err)
			}
		}
	})
}

// BenchmarkLookups measures whole requests, one after the other, of a function that is warm.
func BenchmarkLookups(b *testing.B) {
	for _, c := range []benchmarked{
		{"email free", "byok", burner, email("someone@mailinator.com")}, {"email paid", "managed", burner,
			email("someone@mailinator.com")},
		{"vpn not routable", "byok", vpn, ip("10.0.0.1")}, {"vpn through the vendor", "byok", vpn, ip("45.83.0.1")},
		{"location kept", "byok", location, ip("112.134.0.1")},
	} {
		c.measure(b)
	}
}
