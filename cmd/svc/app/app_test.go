package app

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"svcapi/shared/books"
)

func TestCell(t *testing.T) {
	for text, want := range map[string]string{"": "-", "Ācme (1)": "Ācme (1)", "a\tb": `"a\tb"`, "\x1b[2J": `"\x1b[2J"`} {
		if got := Cell(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestCertainlyRefused: a movement that certainly did not take place needs no repeat with its ID.
func TestCertainlyRefused(t *testing.T) {
	for err, certain := range map[error]bool{
		fmt.Errorf("grant: %w", books.ErrOutOfRange):           true,
		books.ErrOtherMovement:                                 true,
		&smithy.GenericAPIError{Code: "AccessDeniedException"}: true,
		&smithy.GenericAPIError{Code: "InternalServerError"}:   false,
		context.DeadlineExceeded:                               false,
		syscall.ECONNREFUSED:                                   false,
	} {
		if got := CertainlyRefused(err); got != certain {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestLine: a command line that svc advises is for the stage of the run.
func TestLine(t *testing.T) {
	for want, a := range map[string]*App{
		"svc project show acme --local":                         {Local: true, Stage: "local"},
		"svc project show acme":                                 {},
		"svc project show acme --stage prod --region us-east-1": {Stage: "prod", region: "us-east-1"},
		"svc project show acme --profile me --stack other":      {profile: "me", stackName: "other"},
	} {
		if got := a.Line("project show %s", "acme"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestCountArguments(t *testing.T) {
	for use, want := range map[string][2]int{
		"list": {0, 0}, "show PROJECT": {1, 1}, "list [KIND]": {0, 1}, "show [BASE TARGET]": {0, 2},
		"check PROJECT [KIND [VENDOR]]": {1, 3}, "adjust PROJECT --by CREDITS": {1, 1}, "add PROJECT DOMAIN...": {2, 9},
	} {
		for n := range 10 {
			err := countArguments(use)(&cobra.Command{}, make([]string, n))
			if valid := want[0] <= n && n <= want[1]; (err == nil) != valid {
				t.Errorf("%s with %d arguments: %v", use, n, err)
			}
		}
	}
}
