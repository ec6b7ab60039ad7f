package reference

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// docs/decisions/extensions.md#references: a reference opens in its project and environment alone, and reveals nothing.
func TestReferences(t *testing.T) {
	of := func(id string, env project.Environment) Sealer {
		return New(&project.Project{ID: id}, env)
	}
	own, others := of("acme", project.Production),
		[]Sealer{of("acme", project.Development), of("acme2", project.Production)}
	const number, request = "+94771234567", "7b6f3b0e-6d1c-4f0a-9a53-2c1f0d7b8a11/9999"
	by := upstream.Account{Endpoint: "https://a", Owner: "managed",
		Secrets: map[string]string{"user": "u", "password": "p"}}
	by.Integration.Vendor = "ultimatesms"
	moved, rotated, foreign := by, by, by
	moved.Endpoint, foreign.Owner, rotated.Secrets = "https://b", "acme", map[string]string{"user": "u", "password": "q"}
	key, long := own.Scope+request, strings.Repeat("i", maxID)
	for range 2000 { // one of 64 texts of Base64 begins so, and "svc sms status" would refuse it as a flag
		if text := own.Seal(by, key, "7", number, "text"); text[0] == '-' {
			t.Fatalf("%s begins with a hyphen", text)
		}
	}
	for id, want := range map[string]string{long: long, "": "", long + "i": ""} {
		text := own.Seal(by, key, id, number, "text")
		vendor, send, ok := own.Open(text)
		if !ok || vendor != "ultimatesms" || send.Key != key || send.ID != want ||
			time.Since(send.Ended).Abs() > time.Minute || len(text) > 200 {
			t.Errorf("%s %+v %t, %d characters", vendor, send, ok, len(text))
		}
		if send.IsTo(number, "text") != (want == "") || send.IsTo("+94771234568", "text") || send.IsTo(number, "other") {
			t.Errorf("%+v knows another number or text, or not the own one", send)
		}
		if !send.IsBy(by) || send.IsBy(moved) || send.IsBy(rotated) != (want != "") || send.IsBy(foreign) {
			t.Errorf("%+v knows another account, or not the own one", send)
		}
		if !send.IsOf(by) || !send.IsOf(moved) || !send.IsOf(rotated) || send.IsOf(foreign) {
			t.Errorf("%+v knows another owner, or not the own one", send)
		}
		sealed, _ := base64.RawURLEncoding.DecodeString(text)
		if strings.Contains(string(sealed), request) || own.Seal(by, key, id, number, "text") == text {
			t.Errorf("%q is not encrypted", sealed)
		}
		malformed := []string{"", "A", "....", strings.Repeat("A", 200), text[:50], "+" + text, text + "\n",
			text + "A", text + "="}
		for i := range sealed {
			forged := append([]byte{}, sealed...)
			forged[i] ^= 1
			malformed = append(malformed, base64.RawURLEncoding.EncodeToString(forged))
		}
		for _, forged := range malformed {
			if _, send, ok := own.Open(forged); ok {
				t.Errorf("%q: %+v", forged, send)
			}
		}
		for _, other := range others {
			if _, send, ok := other.Open(text); ok {
				t.Errorf("%s opens a reference of %s: %+v", other.Scope, own.Scope, send)
			}
		}
	}
}
