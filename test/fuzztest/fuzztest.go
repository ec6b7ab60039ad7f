// Package fuzztest fuzzes the decoders of requests.
package fuzztest

import (
	"testing"

	"svcapi/shared/request"
	"svcapi/test/must"
)

// Bodies fuzzes a decoder of bodies, beginning with these ones. A decoder returns no error here; check gets what decoded
// without a problem.
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
		r, err := decode(in)
		must.Succeed(t, err)
		if len(in.Problems()) == 0 {
			check(t, in, r)
		}
	})
}
