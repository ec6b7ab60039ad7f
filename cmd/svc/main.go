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
	"svcapi/cmd/svc/catalog"
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
	root.AddCommand(projectCommand(a), credentialCommand(a), integrationCommand(a), creditCommand(a), vendorCommand(a),
		smsCommand(a), burnerCommand(a), ratesCommand(a), priceCommand(a), ledgerCommand(a), secretsCommand(a),
		doctorCommand(a), logsCommand(a), usageCommand(a), preflightCommand(a), protectCommand(a), version(a))
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
			b, err := startedBrowser(cmd.Context(), s)
			if err != nil {
				return err
			}
			browser := "no start in the log of the last 30 days"
			if value["browser"] = b; b != nil {
				browser = b.Age()
				if b.Old() {
					a.Note("Warning: the browser is old. %s", renewBrowser(s))
				}
			}
			return a.PrintRows(value, append(texts, "Browser", browser)...)
		},
	}
}
