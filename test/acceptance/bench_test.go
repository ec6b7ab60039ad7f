package acceptance

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"svcapi/test/must"
)

// BenchmarkLookups measures whole requests on demo projects, one after the other, through gateway, warm function and
// DynamoDB Local.
func BenchmarkLookups(b *testing.B) {
	if fixture.stack == nil {
		b.Skip("a deployed stack is not for measuring")
	}
	for _, c := range []struct{ name, project, path, body string }{
		{"email free", "byok", burner, email("someone@mailinator.com")}, {"email paid", "managed", burner,
			email("someone@mailinator.com")},
		{"vpn not routable", "byok", vpn, ip("10.0.0.1")}, {"vpn through the vendor", "byok", vpn, ip("45.83.0.1")},
		{"location kept", "byok", location, ip("112.134.0.1")},
	} {
		as := demoProject(c.project).dev
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				r := must.Get(http.NewRequestWithContext(b.Context(), http.MethodPost, fixture.baseURL+c.path,
					strings.NewReader(c.body))).Or(b)
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
}
