// Package jail starts the functions of the local stack as AWS Lambda confines them: without privileges, without the
// system calls that Lambda denies, with a file system in which only /tmp can be written, within Lambda's limits. It
// stops, continues and ends a function with all that the function has started.
//
// The jail needs Linux. The jail leaves out and reports what the kernel refuses; docs/lambda-sandbox.md has the table.
package jail

import (
	"context"
	"errors"
	"os"
	"slices"

	"svcapi/local/jail/spec"
)

// Variable turns the jail off with the value "off".
const Variable = "JAIL"

// Command is the function that Start starts.
type Command = spec.Command

// Jail starts functions. It holds nothing that must be closed.
type Jail struct {
	supervisor string   // the path of the program
	parts      []string // the parts in force
}

// New builds the supervisor and finds out which parts of the jail this machine's kernel permits. Each part that it
// refuses is reported in one line. The variable JAIL turns all parts off.
func New(ctx context.Context, report func(line string)) (*Jail, error) {
	wanted := os.Getenv(Variable)
	if wanted != "" && wanted != "on" && wanted != "off" {
		return nil, errors.New(Variable + " is neither on nor off")
	}
	return open(ctx, wanted != "off", report)
}

// Has reports whether a part of the jail is in force.
func (j *Jail) Has(part string) bool {
	return slices.Contains(j.parts, part)
}
