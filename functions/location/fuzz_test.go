package main

import (
	"regexp"
	"testing"

	"svcapi/shared/request"
	"svcapi/test/fuzztest"
)

// A body that decodes without a problem has an address, and no vendor or one that openapi.yaml#LocationRequest permits.
func FuzzBody(f *testing.F) {
	form := regexp.MustCompile(`\A[A-Za-z0-9_-]{1,50}\z`)
	fuzztest.Bodies(f, decodeLookup, func(t *testing.T, _ *request.Input, r lookupRequest) {
		if !r.addr.IsValid() || r.addr.Zone() != "" || r.provider != nil && !form.MatchString(*r.provider) {
			t.Errorf("%+v", r)
		}
	}, `{"ip":"112.134.0.1"}`, `{"ip":"2001:db8::1","provider":"ip-api"}`, `{"ip":" 1.2.3.4"}`,
		`{"ip":"1.2.3.4","provider":""}`, `{"ip":"1.2.3.4","provider":"ip-api\n"}`, `{"ip":"1.2.3.4","provider":null}`,
		`{"ip":1}`, `{"ip":"1.2.3.4","provider":["x"]}`)
}
