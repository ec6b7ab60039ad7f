package project

import (
	"slices"
	"strings"
	"testing"
)

// TestParseEnvironment checks the names of the environments (docs/decisions.md#environments).
func TestParseEnvironment(t *testing.T) {
	for _, c := range []struct {
		header string
		env    Environment
		ok     bool
	}{
		{"", Development, true},
		{"dev", Development, true},
		{"development", Development, true},
		{"DEV", Development, true},
		{"prod", Production, true},
		{"production", Production, true},
		{"Production", Production, true},
		{"staging", "", false},
		{" dev", "", false},
		{"developmen", "", false},
	} {
		if env, ok := ParseEnvironment(c.header); env != c.env || ok != c.ok {
			t.Errorf("%q: %q %v, want %q %v", c.header, env, ok, c.env, c.ok)
		}
	}
}

func TestParseClientID(t *testing.T) {
	for _, c := range []struct {
		clientID, project string
		ok                bool
	}{
		{"svc_acme_abcdefgh", "acme", true},
		{"svc_acme-2_a2345672", "acme-2", true},
		{"svc_" + strings.Repeat("a", 32) + "_abcdefgh", strings.Repeat("a", 32), true},
		{"svc_" + strings.Repeat("a", 33) + "_abcdefgh", "", false},
		{"svc_ab_abcdefgh", "", false},
		{"svc_acme_abcdefg", "", false},
		{"svc_acme_abcdefgh\n", "", false},
		{"svc_acme_abcdefg1", "", false},
		{"SVC_acme_abcdefgh", "", false},
		{"svc_ac#e_abcdefgh", "", false},
		{"", "", false},
	} {
		if id, ok := ParseClientID(c.clientID); id != c.project || ok != c.ok {
			t.Errorf("%q: %q %v, want %q %v", c.clientID, id, ok, c.project, c.ok)
		}
	}
	id := newID()
	if got, ok := ParseClientID(newClientID(id)); !ok || got != id || len(id) != 12 {
		t.Errorf("a new client ID of project %q names %q", id, got)
	}
	if a, b := newSecret(), newSecret(); a == b || len(a) != len("svcs_")+43 {
		t.Error("secrets are not 32 random bytes")
	}
}

// TestTrialAllows checks which recipients a trial permits (docs/decisions.md#trial): numbers compare in one normal format.
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

func TestActive(t *testing.T) {
	rec := Record{Integrations: []Integration{
		{Vendor: "off", Kind: SMS, Environment: Development},
		{Vendor: "third", Kind: SMS, Environment: Development, Active: true, Priority: 2},
		{Vendor: "b", Kind: SMS, Environment: Development, Active: true, Priority: 1},
		{Vendor: "a", Kind: SMS, Environment: Development, Active: true, Priority: 1},
		{Vendor: "other-side", Kind: SMS, Environment: Production, Active: true},
		{Vendor: "other-kind", Kind: PDF, Environment: Development, Active: true},
	}}
	var got []string
	for _, i := range rec.Active(SMS, Development) {
		got = append(got, i.Vendor)
	}
	if want := []string{"a", "b", "third"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if rec.Active(Location, Development) != nil {
		t.Error("an integration where there is none")
	}
}
