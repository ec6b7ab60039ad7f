// Package probetest compiles the function of local/lambda/testdata/probe, and makes the jail in which tests run it.
package probetest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"svcapi/local/build"
	"svcapi/local/jail"
	"svcapi/local/workdir"
)

// Bootstrap is the path of the compiled function, and Jail the jail, both from Main on.
var (
	Bootstrap string
	Jail      *jail.Jail
)

// Main runs the tests of a package.
func Main(m *testing.M) {
	var err error
	if Bootstrap, err = workdir.Local("bin", "probe"); err == nil {
		err = build.Packages(context.Background(), Bootstrap, "./local/lambda/testdata/probe")
	}
	if err == nil {
		Jail, err = jail.New(context.Background(), func(line string) { fmt.Fprintln(os.Stderr, line) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
