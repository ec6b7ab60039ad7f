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
	root.AddCommand(commands(a)...)
	return a.Run(ctx, root, args)
}

// commands returns the commands of svc.
func commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		app.Group("project", "Create, show, change, pause, close, export and import projects",
			createCommand(a), listProjects(a), projectTop(a),
			a.ProjectCommand(&cobra.Command{
				Use: "show PROJECT", Short: "Show a project with its balance, credentials, integrations and failures of the last " +
					"hour",
				Example: "  svc project show acme",
			}, nil, showProject),
			pauseProject(a, "pause", "Refuse every request of a project with 503 project_paused", true),
			pauseProject(a, "resume", "End the pause of a project", false),
			limitsCommand(a), trialCommand(a), exportProject(a), importProject(a), closeProject(a), reopenProject(a)),
		app.Group("integration", "Connect projects to vendors",
			setIntegration(a), listIntegrations(a), checkIntegrations(a),
			enableIntegration(a, "enable", "Use an integration", true),
			enableIntegration(a, "disable", "Stop using an integration; its settings and secrets stay", false)),
		app.Group("credit", "Grant credits, show balances and the ledger (1 USD is 1,000,000 credits)",
			grantCredits(a), refundCharge(a), adjustBalance(a), setAlert(a),
			a.ProjectCommand(&cobra.Command{Use: "balance PROJECT", Short: "Show the balance of a project"}, nil, showBalance),
			listLedger(a)),
		app.Group("vendor", "List vendors; set and rotate the keys of accounts at them; set a vendor "+
			"aside while it is out",
			listVendors(a), accountCommand(a), outageCommand(a)),
		app.Group("sms", "Find messages and their state, resolve SMS with an uncertain outcome, test integrations",
			app.Group("uncertain", "SMS with an unknown outcome at the vendor: charged until the vendor or an operator "+
				"resolves them", listUncertain(a), askUncertain(a), resolveUncertain(a)),
			findSMS(a), smsStatus(a), testSMS(a)),
		app.Group("rates", "Show exchange rates with their sources, fetch rates, choose a source",
			showRates(a), syncRates(a), ratesHistory(a), pinRates(a)),
		app.Group("ledger", "Audit the wallets against the ledger", verifyLedger(a)),
		credentialCommand(a), burnerCommand(a), priceCommand(a), secretsCommand(a), doctorCommand(a), logsCommand(a),
		usageCommand(a), preflightCommand(a), protectCommand(a), version(a),
	}
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
