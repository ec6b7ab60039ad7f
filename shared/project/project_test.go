package project

import (
	"crypto/cipher"
	"slices"
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
