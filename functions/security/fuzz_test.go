package main

import (
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"svcapi/functions/security/disposable"
	"svcapi/shared/ipaddr"
	"svcapi/shared/iplookup"
	"svcapi/shared/request"
	"svcapi/test/fuzztest"
)

// A body that decodes without a problem names an e-mail address of one form.
func FuzzEmail(f *testing.F) {
	fuzztest.Bodies(f, decodeEmail, func(t *testing.T, _ *request.Input, r emailRequest) {
		if utf8.RuneCountInString(r.email) > maxEmail || r.domain != strings.ToLower(r.domain) || len(r.domain) > 253 ||
			!strings.Contains(r.domain, ".") || !strings.Contains(r.email, "@") {
			t.Errorf("%+v", r)
		}
		(*disposable.Difference)(nil).Find(r.domain)
	}, `{"email":"a@example.com"}`, `{"email":"а@еxample.com"}`, `{"email":"\"a b\"@bücher.example"}`,
		`{"email":"a@[127.0.0.1]"}`, `{"email":"a@xn--bcher-kva.example"}`, `{"email":"a@ex\u200bample.com"}`,
		`{"email":null}`, `{"email":"a@example.com\u0000"}`, `{"email":"a@e\u0301xample.com"}`,
		`{"email":"a@\u202eexample.com"}`)
}

// A body that decodes without a problem names an IP address that can be evaluated.
func FuzzAddress(f *testing.F) {
	decode := func(in *request.Input) (netip.Addr, error) { return iplookup.Address(in, "ip"), nil }
	fuzztest.Bodies(f, decode, func(t *testing.T, _ *request.Input, addr netip.Addr) {
		if other, ok := ipaddr.Parse(addr.String()); !ok || other != addr || addr.Zone() != "" || addr.Is4In6() {
			t.Errorf("%s, %s", addr, other)
		}
	}, `{"ip":"192.0.2.1"}`, `{"ip":"::ffff:1.2.3.4"}`, `{"ip":"fe80::1%eth0"}`, `{"ip":"1.2.3.4 "}`, `{"ip":"0x7f.1"}`,
		`{"ip":"１.2.3.4"}`, `{"ip":[]}`, `{"ip":"1.2.3.04"}`)
}
