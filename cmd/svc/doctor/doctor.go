// Package doctor holds the command "svc doctor".
package doctor

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
)

// Command returns "svc doctor".
func Command(a *app.App) *cobra.Command {
	var only string
	var probe, all bool
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
	}, nil, func(ctx context.Context, s *app.Stack) error {
		if probe && only == "" {
			return app.Usagef("--probe needs --project")
		}
		d := &Diagnosis{Stack: s, Only: only, probe: probe, Pause: probePause, Now: time.Now}
		return d.run(ctx, all)
	})
	cmd.Flags().StringVar(&only, "project", "", "check this project alone")
	cmd.Flags().BoolVar(&probe, "probe", false, "also make a request")
	cmd.Flags().BoolVar(&all, "all", false, "also show checks without a problem")
	return cmd
}

func (d *Diagnosis) run(ctx context.Context, all bool) error {
	step := d.Progress("checking", len(checks))
	for _, check := range checks {
		check(d, ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		step()
	}
	intended := d.intended()
	err := d.PrintFindings(d.Found, all)
	if intended > 0 {
		d.Note("%d of those in order are faults that the demo has on purpose; --all shows them.", intended)
	}
	return err
}

// intended takes the advice from findings that the local stack's demo has on purpose, and returns their number.
func (d *Diagnosis) intended() (n int) {
	for i := range d.Found {
		f := &d.Found[i]
		id, _, _ := strings.Cut(f.Subject, " ")
		if slices.ContainsFunc(d.Intended, func(fault app.Fault) bool {
			return id == fault.Project && f.Check == fault.Check && strings.Contains(f.Detail, fault.Detail)
		}) {
			n++
			f.Severity, f.Detail, f.Advice = app.OK, f.Detail+": a fault that the demo has on purpose", ""
		}
	}
	return n
}

// Diagnosis is one run of doctor.
type Diagnosis struct {
	*app.Stack
	app.Findings
	Only  string // the only project to check; empty for all projects
	probe bool
	// Pause is the time between the probe's attempts.
	Pause             time.Duration
	Now               func() time.Time
	noTables, noVault bool // later checks skip what cannot be reached
}

// checks are in the order of their run, because later checks depend on earlier ones.
var checks = []func(*Diagnosis, context.Context){
	(*Diagnosis).identity, (*Diagnosis).tables, (*Diagnosis).vaultAccess, (*Diagnosis).gateway, (*Diagnosis).managedSecrets,
	(*Diagnosis).exchangeRates, (*Diagnosis).projects,
}

func (d *Diagnosis) identity(ctx context.Context) {
	actor, err := d.Actor(ctx)
	if err != nil {
		d.Fail("identity", "", err)
		return
	}
	d.Add(app.OK, "identity", actor, "", "")
}
