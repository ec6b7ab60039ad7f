package project

import (
	"crypto/cipher"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReserved checks the words that are no project ID (docs/decisions/operating.md#reserved-names).
func TestReserved(t *testing.T) {
	for id, valid := range map[string]bool{
		"managed": false, "all": false, "*": false, "demo-managed": true, "managed-": true, "manage": true, "alle": true,
		"all-": true,
	} {
		if ValidID(id) != valid {
			t.Errorf("%s is a project ID: %t", id, !valid)
		}
	}
}

// TestTrialAllows: docs/decisions/sms.md#trial; numbers compare in one format (docs/decisions/sms.md#phone-numbers).
func TestTrialAllows(t *testing.T) {
	trial := Project{Trial: true, TrialDestinations: []string{"+94771234567"}}
	for _, c := range []struct {
		project Project
		number  string
		allowed bool
	}{
		{trial, "0771234567", true},
		{trial, "+94771234567", true},
		{trial, "0771234568", false},
		{trial, "94771234567", false},
		{trial, "", false},
		{Project{Trial: true}, "0771234567", false},
		{Project{TrialDestinations: []string{"+94771234567"}}, "0770000000", true},
	} {
		if got := c.project.TrialAllows(c.number); got != c.allowed {
			t.Errorf("%v %q: %v, want %v", c.project.Trial, c.number, got, c.allowed)
		}
	}
}

// docs/decisions/extensions.md#test-vendor: the vendor "test" is alone, and never in production.
func TestActive(t *testing.T) {
	rec := Record{Integrations: []Integration{
		{Vendor: "off", Kind: SMS, Environment: Development},
		{Vendor: "third", Kind: SMS, Environment: Development, Active: true, Priority: 2},
		{Vendor: "b", Kind: SMS, Environment: Development, Active: true, Priority: 1},
		{Vendor: "a", Kind: SMS, Environment: Development, Active: true, Priority: 1},
		{Vendor: "other-side", Kind: SMS, Environment: Production, Active: true},
		{Vendor: TestVendor, Kind: SMS, Environment: Production, Active: true},
		{Vendor: TestVendor, Kind: Security, Environment: Development, Active: true, Priority: 9},
		{Vendor: "beside", Kind: Security, Environment: Development, Active: true},
		{Vendor: "other-kind", Kind: PDF, Environment: Development, Active: true},
	}}
	var got []string
	for _, i := range slices.Concat(rec.Chain(SMS, Development), rec.Chain(SMS, Production),
		rec.Chain(Security, Development)) {
		got = append(got, i.Vendor)
	}
	if want := []string{"a", "b", "third", "other-side", TestVendor}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if rec.Chain(Location, Development) != nil {
		t.Error("an integration where there is none")
	}
}

// docs/decisions/extensions.md#references: the key of a cipher belongs to one project and one purpose.
func TestCipher(t *testing.T) {
	of := func(key, purpose string) cipher.AEAD { return (&Project{HashKey: []byte(key)}).Cipher(purpose) }
	sealed := of("own", "a").Seal(nil, nil, []byte("text"), nil)
	for c, opens := range map[cipher.AEAD]bool{of("own", "a"): true, of("own", "b"): false, of("other", "a"): false} {
		if text, err := c.Open(nil, nil, sealed, nil); (err == nil) != opens || opens && string(text) != "text" {
			t.Errorf("%q, %v", text, err)
		}
	}
}

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
