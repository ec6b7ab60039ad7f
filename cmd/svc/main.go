// Command svc is the operator's command line: projects, their credentials,
// integrations, credits and uncertain SMS, on a deployed stage or on the local stack.
package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/burner"
	"svcapi/cmd/svc/catalog"
	"svcapi/cmd/svc/credential"
	"svcapi/cmd/svc/credit"
	"svcapi/cmd/svc/doctor"
	"svcapi/cmd/svc/integration"
	"svcapi/cmd/svc/logs"
	"svcapi/cmd/svc/preflight"
	"svcapi/cmd/svc/project"
	"svcapi/cmd/svc/protect"
	"svcapi/cmd/svc/rates"
	"svcapi/cmd/svc/secrets"
	"svcapi/cmd/svc/sms"
	"svcapi/cmd/svc/usage"
	"svcapi/cmd/svc/vendor"
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
	a := &app.App{Console: c, Values: catalog.Values()}
	root := &cobra.Command{
		Use:   "svc",
		Short: "Operate SVC API: projects, credentials, integrations, credits, SMS, rates",
		Long: `Operate SVC API: projects, credentials, integrations, credits, SMS, rates.

Commands work on a deployed stage, found as the AWS CLI finds it (profile,
region, environment), or with --local on the stack that "make run" started.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 not found,
4 refused or not confirmed, 130 interrupted.`,
	}
	root.AddCommand(project.Command(a), credential.Command(a), integration.Command(a),
		credit.Command(a), vendor.Command(a),
		sms.Command(a), burner.Command(a), rates.Command(a), credit.PriceCommand(a), credit.LedgerCommand(a),
		secrets.Command(a),
		doctor.Command(a), logs.Command(a), usage.Command(a), preflight.Command(a), protect.Command(a), version(a))
	return a.Run(ctx, root, args)
}

// version returns "svc version". A release names its version; another build has the version that Go derives from the
// commit. For a stage, the command also names the browser of its renderer.
func version(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of svc, and of a stage's browser for PDFs", Args: cobra.NoArgs,
		Example: "  svc version\n  svc version --stage prod",
		RunE: func(cmd *cobra.Command, _ []string) error {
			version, commit, system := release, "", runtime.GOOS+"/"+runtime.GOARCH
			if info, ok := debug.ReadBuildInfo(); ok {
				version = cmp.Or(version, info.Main.Version)
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						commit = s.Value
					}
				}
			}
			value := map[string]any{"version": version, "commit": commit, "go": runtime.Version(), "system": system}
			texts := []string{"Version", version, "Commit", commit, "Go", runtime.Version(), "System", system}
			if a.Stage == "" && !a.Local {
				return a.PrintRows(value, texts...)
			}
			s, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			b, err := logs.StartedBrowser(cmd.Context(), s)
			if err != nil {
				return err
			}
			browser := "no start in the log of the last 30 days"
			if value["browser"] = b; b != nil {
				browser = b.Age()
				if b.Old() {
					a.Note("Warning: the browser is old. %s", logs.Renew(s))
				}
			}
			return a.PrintRows(value, append(texts, "Browser", browser)...)
		},
	}
}
