package acceptance

import "testing"

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
				if a := (request{path: c.path, body: c.body, as: as}).send(b); a.status != 200 {
					b.Fatalf("%d %s", a.status, a.body)
				}
			}
		})
	}
}
