// Command svc is the operator's command line: projects, their credentials,
// integrations, credits and uncertain SMS, on a deployed stage or on the local stack.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/burner"
	"svcapi/cmd/svc/credential"
	"svcapi/cmd/svc/credit"
	"svcapi/cmd/svc/doctor"
	"svcapi/cmd/svc/integration"
	"svcapi/cmd/svc/ledger"
	"svcapi/cmd/svc/logs"
	"svcapi/cmd/svc/preflight"
	"svcapi/cmd/svc/price"
	"svcapi/cmd/svc/project"
	"svcapi/cmd/svc/protect"
	"svcapi/cmd/svc/rates"
	"svcapi/cmd/svc/secrets"
	"svcapi/cmd/svc/sms"
	"svcapi/cmd/svc/vendor"
	"svcapi/cmd/svc/version"
)

// release is the version of a released binary, which the linker sets.
var release string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, app.SystemConsole(), os.Args[1:])
	stop()
	os.Exit(code)
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, c app.Console, args []string) int {
	a := &app.App{Console: c}
	root := &cobra.Command{
		Use:   "svc",
		Short: "Operate SVC API: projects, credentials, integrations, credits, SMS, rates",
		Long: `Operate SVC API: projects, credentials, integrations, credits, SMS, rates.

Commands work on a deployed stage, found as the AWS CLI finds it (profile,
region, environment), or with --local on the stack that "make run" started.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 not found,
4 refused or not confirmed, 130 interrupted.`,
	}
	root.AddCommand(project.Command(a), credential.Command(a), integration.Command(a), credit.Command(a), vendor.Command(a),
		sms.Command(a), burner.Command(a), rates.Command(a), price.Command(a), ledger.Command(a), secrets.Command(a), doctor.Command(a),
		logs.Command(a), preflight.Command(a), protect.Command(a), version.Command(a, release))
	return a.Run(ctx, root, args)
}
