// Command svc is the operator's command line: projects, their credentials,
// integrations, credits and uncertain SMS, on a deployed stage or on the local stack.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
)

// help holds the texts that each command's help shows besides its flags.
//
//go:embed commands.yaml
var help []byte

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
	a := &app.App{Console: c, Help: help, Values: catalog.Values()}
	root := &cobra.Command{Use: "svc"}
	root.AddCommand(commands(a)...)
	return a.Run(ctx, root, args)
}

// commands returns the commands of svc.
func commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		app.Group("project", createCommand(a), listProjects(a), projectTop(a),
			a.ProjectCommand("show PROJECT", nil, showProject),
			pauseProject(a, "pause", true), pauseProject(a, "resume", false), limitsCommand(a), trialCommand(a),
			exportProject(a), importProject(a), closeProject(a), reopenProject(a)),
		app.Group("integration", setIntegration(a), listIntegrations(a), checkIntegrations(a),
			enableIntegration(a, "enable", true), enableIntegration(a, "disable", false)),
		app.Group("credit", grantCredits(a), refundCharge(a), adjustBalance(a), setAlert(a),
			a.ProjectCommand("balance PROJECT", nil, showBalance), listLedger(a)),
		app.Group("vendor", listVendors(a), accountCommand(a), outageCommand(a)),
		app.Group("sms", app.Group("uncertain", listUncertain(a), askUncertain(a), resolveUncertain(a)),
			findSMS(a), smsStatus(a), testSMS(a)),
		app.Group("rates", showRates(a), syncRates(a), ratesHistory(a), pinRates(a)),
		app.Group("ledger", a.Command("verify", nil, verifyLedger)),
		app.Group("credential", a.ProjectCommand("list PROJECT", nil, listCredentials), issueCredential(a),
			rotateCredential(a), revokeCredential(a)),
		app.Group("price", listPrices(a), ownPrice(a, "set PROJECT NAME CREDITS"), ownPrice(a, "unset PROJECT NAME")),
		burnerCommand(a), secretsCommand(a), doctorCommand(a), logsCommand(a), usageCommand(a), preflightCommand(a),
		a.Command("protect", nil, protectTables), version(a),
	}
}

// version returns "svc version". A release names its version; another build has the version that Go derives from the
// commit. For a stage, the command also names the browser of its renderer.
func version(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "version", Args: cobra.NoArgs,
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
