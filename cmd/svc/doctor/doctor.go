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
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a stage end to end and say what is wrong",
		Long: `Check a stage end to end and say what is wrong, and what to do: sign-in, clock,
tables, secrets, the API itself, and each project's credentials, integrations
and credits. It changes nothing; with --probe it makes a request with a
credential that it issues and revokes.

Exit code 1: something is broken. Warnings alone are 0.`,
		Example: `  svc doctor --stage prod
  svc doctor --local --project acme --probe`,
		Args: cobra.NoArgs,
		RunE: a.On(o.parse, o.run),
	}
	cmd.Flags().StringVar(&o.projectID, "project", "", "look at this project alone")
	cmd.Flags().BoolVar(&o.probe, "probe", false, "make a request, too")
	cmd.Flags().BoolVar(&o.all, "all", false, "show what is in order, too")
	return cmd
}

type options struct {
	*app.App
	projectID  string
	probe, all bool
}

func (o *options) parse([]string) error {
	if o.probe && o.projectID == "" {
		return app.Usagef("--probe goes with --project")
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
	return o.print(d.Found)
}

func (o *options) print(found []Finding) error {
	count := map[Severity]int{}
	shown := []Finding{}
	t := app.Table{Header: []string{"", "CHECK", "SUBJECT", "DETAIL", "ADVICE"}, Empty: "All is in order."}
	for _, f := range found {
		count[f.Severity]++
		if f.Severity == Fine && !o.all {
			continue
		}
		shown = append(shown, f)
		t.Rows = append(t.Rows, []string{string(f.Severity), f.Check, f.Subject, f.Detail, f.Advice})
	}
	if err := o.Print(shown, t); err != nil {
		return err
	}
	o.Note("%d in order, %d warnings, %d broken.", count[Fine], count[Warns], count[Broken])
	if count[Broken] > 0 {
		return app.ProblemsError(count[Broken])
	}
	return nil
}

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	Fine   Severity = "ok"
	Warns  Severity = "warning"
	Broken Severity = "broken"
)

// Finding is one thing that doctor looked at.
type Finding struct {
	Severity Severity `json:"Severity"`
	Check    string   `json:"check"`
	Subject  string   `json:"subject"`
	Detail   string   `json:"detail"`
	// Advice is what to do; empty where all is well.
	Advice string `json:"advice"`
}

// Diagnosis is one run of doctor.
type Diagnosis struct {
	*app.Stack
	local bool
	Only  string // the one project to look at; empty: all
	probe bool
	// Pause is the time between the probe's attempts.
	Pause time.Duration
	Now   func() time.Time
	Found []Finding
	// What cannot be reached is not looked into.
	noTables, noVault bool
}

func (d *Diagnosis) add(s Severity, check, subject, detail, advice string) {
	d.Found = append(d.Found, Finding{s, check, subject, detail, advice})
}

// fail notes an error of AWS: what was asked for and what a person can do.
func (d *Diagnosis) fail(check, subject string, err error) {
	d.add(Broken, check, subject, err.Error(), app.Hint(err))
}

// checks in the order in which they are made. Later ones need what earlier ones found in order.
var checks = []func(*Diagnosis, context.Context){
	(*Diagnosis).identity, (*Diagnosis).tables, (*Diagnosis).vaultAccess, (*Diagnosis).gateway, (*Diagnosis).managedSecrets, (*Diagnosis).exchangeRates, (*Diagnosis).everyProject,
}

func (d *Diagnosis) identity(ctx context.Context) {
	who, err := d.Actor(ctx)
	if err != nil {
		d.fail("identity", "", err)
		return
	}
	d.add(Fine, "identity", who, "", "")
}
