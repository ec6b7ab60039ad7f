// Package doctor holds the command "svc doctor".
package doctor

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
)

// Command returns "svc doctor".
func Command(a *app.App) *cobra.Command {
	o := &options{App: a}
	cmd := a.Command(&cobra.Command{
		Use:   "doctor",
		Short: "Check a stage end to end and report problems",
		Long: `Check a stage end to end, report problems and advise what to do: sign-in, clock,
tables, secrets, the API itself, and each project's credentials, integrations
and credits. The command changes nothing; with --probe it makes a request with a
credential that it issues and revokes.

Exit code 1 means that something is broken. Warnings alone have exit code 0.`,
		Example: `  svc doctor --stage prod
  svc doctor --local --project acme --probe`,
	}, o.parse, o.run)
	cmd.Flags().StringVar(&o.projectID, "project", "", "check this project alone")
	cmd.Flags().BoolVar(&o.probe, "probe", false, "also make a request")
	cmd.Flags().BoolVar(&o.all, "all", false, "also show checks without a problem")
	return cmd
}

type options struct {
	*app.App
	projectID  string
	probe, all bool
}

func (o *options) parse([]string) error {
	if o.probe && o.projectID == "" {
		return app.Usagef("--probe needs --project")
	}
	return nil
}

func (o *options) run(ctx context.Context, s *app.Stack) error {
	d := &Diagnosis{Stack: s, local: o.Local, Only: o.projectID, probe: o.probe, Pause: probePause, Now: time.Now}
	step := o.Progress("checking", len(checks))
	for _, check := range checks {
		check(d, ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		step()
	}
	return o.PrintFindings(d.Found, o.all)
}

// The severities and findings of app, by short names.
const (
	OK      = app.OK
	Warning = app.Warning
	Broken  = app.Broken
)

type (
	// Severity is the severity of a finding.
	Severity = app.Severity
	// Finding is the result of one check.
	Finding = app.Finding
)

// Diagnosis is one run of doctor.
type Diagnosis struct {
	*app.Stack
	local bool
	Only  string // the only project to check; empty for all projects
	probe bool
	// Pause is the time between the probe's attempts.
	Pause             time.Duration
	Now               func() time.Time
	Found             []Finding
	noTables, noVault bool // later checks skip what cannot be reached
}

func (d *Diagnosis) add(s Severity, check, subject, detail, advice string) {
	d.Found = append(d.Found, Finding{Severity: s, Check: check, Subject: subject, Detail: detail, Advice: advice})
}

// fail adds an error of AWS with its hint.
func (d *Diagnosis) fail(check, subject string, err error) {
	d.add(Broken, check, subject, err.Error(), app.Hint(err))
}

// checks are in the order of their run, because later checks depend on earlier ones.
var checks = []func(*Diagnosis, context.Context){
	(*Diagnosis).identity, (*Diagnosis).tables, (*Diagnosis).vaultAccess, (*Diagnosis).gateway, (*Diagnosis).managedSecrets,
	(*Diagnosis).exchangeRates, (*Diagnosis).projects,
}

func (d *Diagnosis) identity(ctx context.Context) {
	actor, err := d.Actor(ctx)
	if err != nil {
		d.fail("identity", "", err)
		return
	}
	d.add(OK, "identity", actor, "", "")
}
