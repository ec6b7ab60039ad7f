package project

import (
	"regexp"
	"strings"
	"testing"
)

// A client ID matches one pattern and names one project.
func FuzzClientID(f *testing.F) {
	for _, id := range []string{
		"svc_acme_aaaaaaaa", "svc_acme-2_a2345672", "svc_acme_localdev", "svc_a_aaaaaaaa", "svc_ab_abcdefgh",
		"svc_acme_aaaaaaa1",
		"svc_acme_abcdefg", "svc_acme_aaaaaaaa\n", "SVC_acme_aaaaaaaa", "svc__aaaaaaaa", "svc_acmé_aaaaaaaa",
		"svc_ac#e_abcdefgh", "",
		"svc_managed_aaaaaaaa", "svc_all_aaaaaaaa", "svc_managed-1_aaaaaaaa",
		"svc_" + strings.Repeat("a", 32) + "_abcdefgh", "svc_" + strings.Repeat("a", 33) + "_abcdefgh",
	} {
		f.Add(id)
	}
	form := regexp.MustCompile(`\Asvc_([a-z0-9-]{3,32})_[a-z2-7]{8}\z`)
	f.Fuzz(func(t *testing.T, id string) {
		project, ok := ParseClientID(id)
		m := form.FindStringSubmatch(id)
		if m != nil && (m[1] == "managed" || m[1] == "all") {
			m = nil
		}
		if ok != (m != nil) || ok && (m[1] != project || !ValidID(project)) {
			t.Errorf("%q: %q, %v", id, project, ok)
		}
	})
}

// A phone number has two formats and one normal format. An environment has some names, and no others
// (docs/decisions/requests.md#environments).
func FuzzNames(f *testing.F) {
	for _, s := range []string{
		"0771234567", "+94771234567", "0771234567\n", "٠٧٧١٢٣٤٥٦٧", "94771234567", "", "dev", "development", "DEV", "prod",
		"production",
		"PRODUCTION", "staging", " dev", "developmen", "prod\x00", "ſ", "K",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if normal, ok := NormalNumber(s); ok {
			again, ok := NormalNumber(normal)
			other, otherOK := NormalNumber("0" + strings.TrimPrefix(normal, "+94"))
			if !ok || !otherOK || again != normal || other != normal || len(normal) != 12 || len(s) > len(normal) {
				t.Errorf("%q: %q, %q, %q", s, normal, again, other)
			}
		}
		known := map[string]Environment{"": Development, "dev": Development, "development": Development, "prod": Production,
			"production": Production}
		want, named := known[strings.ToLower(s)]
		if env, ok := ParseEnvironment(s); ok != named || env != want {
			t.Errorf("%q: %q, %v", s, env, ok)
		}
	})
}
