package upstream

import (
	"net/url"
	"strings"
	"testing"
)

// No form of a secret is left in a text.
func FuzzRedact(f *testing.F) {
	f.Add("https://v.example/?key=k3y%2F%2B1&x", "k3y/+1", "pass word")
	f.Add("aab", "ab", "a")
	f.Add("Authorization: Bearer \xff", "\xff", "")
	f.Fuzz(func(t *testing.T, text, a, b string) {
		if strings.Contains(a+b, "*") {
			return // it might be made of what stands for secrets
		}
		got := Redact(text, []string{a, b})
		for _, s := range []string{a, b} {
			for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s)} {
				if s != "" && strings.Contains(got, form) {
					t.Errorf("%q without %q and %q is %q", text, a, b, got)
				}
			}
		}
	})
}

// An endpoint is a plain https URL, whatever an operator's file holds.
func FuzzEndpoint(f *testing.F) {
	for _, endpoint := range []string{"https://v.example/base", "http://v.example", "https://u:p@v.example", "https://v.example?x", "https://[::1%25a]/", "//v.example", "https://v.example#f", "HTTPS://V", "https:v.example"} {
		f.Add(endpoint)
	}
	client := New(Config{TimeoutSeconds: 1})
	f.Fuzz(func(t *testing.T, endpoint string) {
		if client.checkEndpoint(endpoint) != nil {
			return
		}
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(endpoint, "@") && !strings.Contains(u.Path, "@") {
			t.Errorf("%q is taken", endpoint)
		}
	})
}
