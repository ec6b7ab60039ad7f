package admin

import (
	"bytes"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/test/itemtest"
)

// A record reads as it was written. Items that the product never wrote give an error or a record and never a panic.
func FuzzItems(f *testing.F) {
	f.Add([]byte("project"), "acme", "Acme", "0771234567", int64(60), uint32(5), true)
	f.Add(bytes.Repeat([]byte{3, 'a', 'b', 'c', 9, 7, 1, 0}, 20), "a", "\xff", "", int64(-1), uint32(0), false)
	f.Fuzz(func(t *testing.T, data []byte, id, name, destination string, number int64, seconds uint32, yes bool) {
		strange := itemtest.Item(data, "pk", "sk", "v", "version")
		if r, err := project.Decode([]item{strange}); r != nil && (err != nil || dynamo.TextOf(strange["v"]) == "") {
			t.Errorf("%+v, %v", r, err)
		}
		if !utf8.ValidString(id + " " + name + " " + destination) {
			return // JSON holds a replacement character
		}
		at := time.Unix(int64(seconds), 0).UTC()
		want := project.Record{
			Project: project.Project{ID: id, Name: name, Paused: yes,
				Limit: project.RateLimit{Requests: int(number), Window: time.Duration(seconds) * time.Second}, Trial: !yes,
				TrialDestinations: []string{destination, name}, Created: at, Closed: at, Version: number,
				Limits: project.Limits{Recipients: []project.RecipientLimit{
					{Messages: int(number), Window: time.Duration(seconds) * time.Second}, {Messages: 1, Window: project.Day}},
					DailyCredits: number, DailyUnits: int64(seconds)}, HashKey: []byte(name), Prices: map[string]int64{name: number}},
			Credentials: []project.Credential{{ClientID: name, Environment: project.Production, Active: yes,
				Secrets: []project.SecretDigest{{Digest: project.DigestSecret(name), Created: at},
					{Digest: project.DigestSecret(id), Created: at}}}},
			Integrations: []project.Integration{{ID: project.IntegrationID(project.Development, project.SMS, destination),
				Kind: project.SMS, Environment: project.Development,
				Vendor: destination, Mode: project.BYOK, Active: yes, SetAside: !yes,
				Priority: int(seconds), Settings: map[string]string{name: id}, Updated: at}},
		}
		got, err := project.Decode([]item{projectItem(&want.Project), credentialItem(id, &want.Credentials[0]),
			integrationItem(id, &want.Integrations[0])})
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	})
}
