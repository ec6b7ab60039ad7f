package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"svcapi/functions/security/disposable"
	"svcapi/shared/ipaddr"
	"svcapi/shared/iplookup"
	"svcapi/shared/request"
)

// A body that decodes without a problem names an address that can be evaluated.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		`{"email":"a@example.com","ip":"192.0.2.1"}`, `{"email":"а@еxample.com","ip":"::ffff:1.2.3.4"}`,
		`{"email":"\"a b\"@bücher.example","ip":"fe80::1%eth0"}`,
		`{"email":"a@[127.0.0.1]","ip":"1.2.3.4 "}`, `{"email":"a@xn--bcher-kva.example","ip":"0x7f.1"}`,
		`{"email":"a@ex\u200bample.com","ip":"１.2.3.4"}`,
		`{"email":null,"ip":[]}`, `{"email":"a@example.com\u0000","ip":"1.2.3.04"}`, `{"email":"a@e\u0301xample.com"}`,
		`{"email":"a@\u202eexample.com"}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := request.ReadInput(body, nil)
		if err != nil {
			return
		}
		r, err := decodeEmail(in)
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Problems()) == 0 {
			if utf8.RuneCountInString(r.email) > maxEmail || r.domain != strings.ToLower(r.domain) || len(r.domain) > 253 ||
				!strings.Contains(r.domain, ".") || !strings.Contains(r.email, "@") {
				t.Errorf("%+v", r)
			}
			(*disposable.Difference)(nil).Find(r.domain)
		}
		again, _ := request.ReadInput(body, nil)
		addr := iplookup.Address(again, "ip")
		if len(again.Problems()) > 0 {
			return
		}
		if other, ok := ipaddr.Parse(addr.String()); !ok || other != addr || addr.Zone() != "" || addr.Is4In6() {
			t.Errorf("%s, %s", addr, other)
		}
	})
}
