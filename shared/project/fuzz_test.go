package project

import (
	"bytes"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"svcapi/shared/dynamo"
	"svcapi/test/itemtest"
)

// A record reads as it was written. Items that the product never wrote give an error or a record and never a panic.
func FuzzItems(f *testing.F) {
	f.Add([]byte("project"), "acme", "Acme", "0771234567", int64(60), uint32(5), true)
	f.Add(bytes.Repeat([]byte{3, 'a', 'b', 'c', 9, 7, 1, 0}, 20), "a", "\xff", "", int64(-1), uint32(0), false)
	f.Fuzz(func(t *testing.T, data []byte, id, name, destination string, number int64, seconds uint32, yes bool) {
		strange := itemtest.Item(data, "pk", "sk", "v", "version")
		if r, err := decode([]item{strange}); r != nil && (err != nil || dynamo.TextOf(strange["v"]) == "") {
			t.Errorf("%+v, %v", r, err)
		}
		if !utf8.ValidString(id + " " + name + " " + destination) {
			return // JSON holds a replacement character
		}
		at := time.Unix(int64(seconds), 0).UTC()
		want := Record{
			Project: Project{ID: id, Name: name, Paused: yes,
				Limit: RateLimit{int(number), time.Duration(seconds) * time.Second}, Trial: !yes,
				TrialDestinations: []string{destination, name}, Created: at, Closed: at, version: number,
				Limits: Limits{[]RecipientLimit{{int(number), time.Duration(seconds) * time.Second}, {1, Day}}, number,
					int64(seconds)}, hashKey: []byte(name)},
			Credentials: []Credential{{ClientID: name, Environment: Production, Active: yes,
				Secrets: []SecretDigest{{DigestSecret(name), at}, {DigestSecret(id), at}}}},
			Integrations: []Integration{{ID: IntegrationID(Development, SMS, destination), Kind: SMS, Environment: Development,
				Vendor: destination, Mode: BYOK, Active: yes, SetAside: !yes,
				Priority: int(seconds), Settings: map[string]string{name: id}, Updated: at}},
		}
		got, err := decode([]item{projectItem(&want.Project), credentialItem(id, &want.Credentials[0]),
			integrationItem(id, &want.Integrations[0])})
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	})
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
