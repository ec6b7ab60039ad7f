package acceptance

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkLookups measures whole requests, one after the other, through the gateway and a compiled function that is warm,
// with DynamoDB Local behind it.
func BenchmarkLookups(b *testing.B) {
	if fixture.stack == nil {
		b.Skip("a deployed stack is not for measuring")
	}
	for _, c := range []struct{ name, project, path, body string }{
		{"email free", "byok", burner, email("someone@mailinator.com")},
		{"email paid", "managed", burner, email("someone@mailinator.com")},
		{"vpn not routable", "byok", vpn, ip("10.0.0.1")},
		{"vpn through the vendor", "byok", vpn, ip("45.83.0.1")},
		{"location kept", "byok", location, ip("112.134.0.1")},
	} {
		b.Run(c.name, func(b *testing.B) {
			as := demoProject(c.project).dev
			for b.Loop() {
				in, err := http.NewRequestWithContext(b.Context(), http.MethodPost, fixture.baseURL+c.path, strings.NewReader(c.body))
				if err != nil {
					b.Fatal(err)
				}
				in.Header.Set("X-API-KEY", as.ID)
				in.Header.Set("X-API-SECRET", as.Secret)
				out, err := client.Do(in)
				if err != nil {
					b.Fatal(err)
				}
				text, err := io.ReadAll(out.Body)
				out.Body.Close()
				if err != nil || out.StatusCode != http.StatusOK {
					b.Fatalf("%d %s %v", out.StatusCode, text, err)
				}
			}
		})
	}
}
