// Package fuzztest fuzzes the decoders of requests.
package fuzztest

import (
	"testing"

	"svcapi/shared/request"
	"svcapi/test/must"
)

// Bodies fuzzes decode, beginning with bodies. No body makes decode return an error; check gets what decode returns
// without a problem of a field.
func Bodies[R any](
	f *testing.F, decode func(*request.Input) (R, error), check func(*testing.T, *request.Input, R), bodies ...string,
) {
	for _, body := range bodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := request.ReadInput(body, nil)
		if err != nil {
			return
		}
		r := must.Get(decode(in)).Or(t)
		if len(in.Problems()) == 0 {
			check(t, in, r)
		}
	})
}
