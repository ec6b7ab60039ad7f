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
	o := &options{}
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
	d := &Diagnosis{Stack: s, Only: o.projectID, probe: o.probe, Pause: probePause, Now: time.Now}
	step := s.Progress("checking", len(checks))
	for _, check := range checks {
		check(d, ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		step()
	}
	return o.report(s, d.Found)
}

// intended reports whether a finding is a fault that the local stack's demo has on purpose.
func intended(s *app.Stack, f Finding) bool {
	return slices.ContainsFunc(s.Intended, func(fault app.Fault) bool {
		id, _, _ := strings.Cut(f.Subject, " ")
		return id == fault.Project && f.Check == fault.Check && strings.Contains(f.Detail, fault.Detail)
	})
}

func (o *options) report(s *app.Stack, found []Finding) error {
	count, planned := map[Severity]int{}, 0
	shown := []Finding{}
	t := app.Table{Header: []string{"STATE", "CHECK", "SUBJECT", "DETAIL", "ADVICE"}, Empty: "All checks passed."}
	for _, f := range found {
		if intended(s, f) {
			f.Severity, f.Detail, f.Advice = OK, f.Detail+": a fault that the demo has on purpose", ""
			planned++
		}
		count[f.Severity]++
		if f.Severity == OK && !o.all {
			continue
		}
		shown = append(shown, f)
		t.Rows = append(t.Rows, []string{string(f.Severity), f.Check, f.Subject, f.Detail, f.Advice})
	}
	if err := s.Print(shown, t); err != nil {
		return err
	}
	s.Note("%d in order, %d warnings, %d broken.", count[OK], count[Warning], count[Broken])
	if planned > 0 {
		s.Note("%d of those in order are faults that the demo has on purpose; --all shows them.", planned)
	}
	return app.Problems(count[Broken])
}

// Severity is the severity of a finding.
type Severity string

// The severities.
const (
	OK      Severity = "ok"
	Warning Severity = "warning"
	Broken  Severity = "broken"
)

// Finding is the result of one check.
type Finding struct {
	Severity Severity `json:"Severity"`
	Check    string   `json:"check"`
	Subject  string   `json:"subject"`
	Detail   string   `json:"detail"`
	// Advice is what to do, a command where one does it; empty where nothing needs to be done.
	Advice string `json:"advice"`
}

// Diagnosis is one run of doctor.
type Diagnosis struct {
	*app.Stack
	Only  string // the only project to check; empty for all projects
	probe bool
	// Pause is the time between the probe's attempts.
	Pause             time.Duration
	Now               func() time.Time
	Found             []Finding
	noTables, noVault bool // later checks skip what cannot be reached
}

func (d *Diagnosis) add(s Severity, check, subject, detail, advice string) {
	d.Found = append(d.Found, Finding{s, check, subject, detail, advice})
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
