package acceptance

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Requests per second through the whole stack, on demo projects: gateway, compiled function, and DynamoDB Local with the
// writes that each request makes (1 where it is free, 4 where it is paid).
func BenchmarkBarcode(b *testing.B) {
	for _, c := range []struct{ name, project, path, body string }{
		{"free", "byok", barcodes, `{"data":"SVC-2026/11 00481516"}`},
		{"paid", "managed", barcodes, `{"data":"SVC-2026/11 00481516"}`},
		{"QR", "byok", qrcodes, `{"data":"https://example.com/pay?amount=1250.00"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			as := demoProject(c.project).dev
			b.SetParallelism(4)
			b.RunParallel(func(next *testing.PB) {
				for next.Next() {
					r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, fixture.baseURL+c.path, strings.NewReader(c.body))
					if err != nil {
						b.Error(err)
						return
					}
					r.Header.Set("X-API-KEY", as.ID)
					r.Header.Set("X-API-SECRET", as.Secret)
					a, err := client.Do(r)
					if err != nil {
						b.Error(err)
						return
					}
					_, err = io.Copy(io.Discard, a.Body)
					a.Body.Close()
					if err != nil || a.StatusCode != http.StatusOK {
						b.Errorf("%d, %v", a.StatusCode, err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
