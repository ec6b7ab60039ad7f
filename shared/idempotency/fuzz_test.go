package idempotency

import (
	"bytes"
	"testing"
	"time"

	"svcapi/shared/attr"
	"svcapi/test/itemtest"
)

// An outcome unpacks as it was packed. Bytes that the product never packed give an error, and take no memory.
func FuzzOutcome(f *testing.F) {
	f.Add([]byte(`{"status":200}`), []byte("n"))
	f.Add(bytes.Repeat([]byte{0}, 1000), []byte{0xed, 0xc1, 0x01, 0x01, 0, 0, 0, 0x80})
	f.Add([]byte{}, []byte{0, 0, 4, 1, 5, 200, 1, 2, 3})
	s := New(nil, "")
	s.now = func() time.Time { return time.Unix(0, 0) }
	f.Fuzz(func(t *testing.T, outcome, data []byte) {
		got, err := unpack(attr.Item{"n": attr.Number(1), "d": attr.Bytes(pack(outcome))})
		if err != nil || !bytes.Equal(got, outcome) {
			t.Errorf("%q, %v; want %q", got, err, outcome)
		}
		if got, err := unpack(attr.Item{"n": attr.Number(1), "d": attr.Bytes(data)}); len(got) > maxOutcome || err != nil && got != nil {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		strange := itemtest.Item(data, "pk", "o", "h", "dead", "expires", "d", "n")
		if until, none := attr.NumberOf(strange["dead"]); strange["n"] == nil && none == nil && until <= 0 {
			return // the outcome of a dead request would be written
		}
		if outcome, err := s.outcome(t.Context(), "idem#a", strange, nil); err != nil && outcome != nil {
			t.Errorf("%q beside %v", outcome, err)
		}
	})
}
