package app

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/aws/smithy-go"

	"svcapi/shared/credit"
)

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -999: "-999"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestCell(t *testing.T) {
	for text, want := range map[string]string{"": "-", "Ācme (1)": "Ācme (1)", "a\tb": `"a\tb"`, "\x1b[2J": `"\x1b[2J"`} {
		if got := Cell(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestRefusedForSure: only what certainly did not take place is not to be repeated with its ID.
func TestRefusedForSure(t *testing.T) {
	for _, c := range []struct {
		err  error
		sure bool
	}{
		{fmt.Errorf("grant: %w", credit.ErrOutOfRange), true},
		{credit.ErrOtherMovement, true},
		{&smithy.GenericAPIError{Code: "AccessDeniedException"}, true},
		{&smithy.GenericAPIError{Code: "InternalServerError"}, false},
		{context.DeadlineExceeded, false},
		{syscall.ECONNREFUSED, false},
	} {
		if got := RefusedForSure(c.err); got != c.sure {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
