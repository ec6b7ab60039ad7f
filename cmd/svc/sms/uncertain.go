// Package sms holds the command "svc sms".
package sms

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	command "svcapi/cmd/svc/credit"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

// Command returns "svc sms".
func Command(a *app.App) *cobra.Command {
	return app.Group("sms", "Resolve SMS with an uncertain outcome, test integrations",
		app.Group("uncertain", "SMS with an unknown outcome at the vendor: charged until an operator resolves them", list(a), resolve(a)),
		test(a))
}

// Uncertain is an uncertain charge in the format for programs.
type Uncertain struct {
	ProjectID   string     `json:"project_id"`
	ID          credit.Key `json:"id"`
	Began       time.Time  `json:"began"` // when the request began
	Credits     int64      `json:"credits"`
	Environment string     `json:"environment"`
	Vendor      string     `json:"vendor"`
	RequestID   string     `json:"request_id"`
}

type listOptions struct{ projectID string } // empty for all projects

func list(a *app.App) *cobra.Command {
	o := &listOptions{}
	return a.Command(&cobra.Command{Use: "list [PROJECT]", Short: "List the uncertain SMS of one project or of all projects"}, app.Bind(&o.projectID), o.run)
}

func (o *listOptions) run(ctx context.Context, s *app.Stack) error {
	ids, err := s.ProjectIDs(ctx, o.projectID)
	if err != nil {
		return err
	}
	views := []Uncertain{}
	t := app.Table{Header: []string{"PROJECT", "ID", "TIME", "CREDITS", "USD", "ENVIRONMENT", "VENDOR", "REQUEST"}, Empty: "No SMS is uncertain."}
	for _, id := range ids {
		entries, err := s.Credits.Uncertain(ctx, id)
		if err != nil {
			return err
		}
		for _, e := range entries {
			v := Uncertain{id, e.Key, e.Key.Time(), e.Credits, e.Environment, e.Vendor, e.RequestID}
			views = append(views, v)
			t.Rows = append(t.Rows, []string{id, string(v.ID), s.Time(v.Began), s.Number(v.Credits), app.Dollars(v.Credits), v.Environment, v.Vendor, v.RequestID})
		}
	}
	return s.Print(views, t)
}

type resolveOptions struct {
	key             credit.Key
	confirm, refund bool
	resolution      credit.Resolution
}

func resolve(a *app.App) *cobra.Command {
	o := &resolveOptions{}
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "resolve PROJECT ID",
		Short: "Confirm an uncertain SMS, or refund its credits",
		Long: `Confirm that an uncertain SMS was sent (--confirm: the charge stays), or refund its
credits (--refund: a ledger entry of its own). Ask the vendor first. If the result
is lost, repeat the command: it counts once. A resolution is final.`,
		Example: `  svc sms uncertain resolve acme 1767225600000000-abcdefgh --refund --reason "vendor has no record of it"`,
	}, o.parse, o.run)
	cmd.Flags().BoolVar(&o.confirm, "confirm", false, "the SMS was sent: the charge stays")
	cmd.Flags().BoolVar(&o.refund, "refund", false, "the SMS was not sent: refund the credits")
	cmd.Flags().StringVar(&o.resolution.Reason, "reason", "", "reason for the ledger")
	return cmd
}

func (o *resolveOptions) parse(args []string) (err error) {
	o.resolution.Verdict = credit.VerdictConfirmed
	if o.refund {
		o.resolution.Verdict = credit.VerdictRefunded
	}
	if o.confirm == o.refund {
		return app.Usagef("give either --confirm or --refund")
	}
	if o.resolution.Reason == "" {
		return app.Usagef("give a --reason for the ledger")
	}
	if o.key, err = credit.ParseKey(args[0]); err != nil {
		return app.Usagef(`ID is an ID of "svc sms uncertain list", not %q`, args[0])
	}
	return nil
}

func (o *resolveOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	actor, err := s.Actor(ctx)
	if err != nil {
		return err
	}
	o.resolution.Actor = actor
	entry, err := s.Credits.Resolve(ctx, rec.ID, o.key, o.resolution)
	if err != nil {
		return err
	}
	balance, err := s.Credits.Balance(ctx, rec.ID)
	if err != nil {
		return err
	}
	r := entry.Resolution
	return s.Print(struct {
		ProjectID  string                 `json:"project_id"`
		ID         credit.Key             `json:"id"`
		Credits    int64                  `json:"credits"`
		Resolution command.ResolutionView `json:"resolution"`
		Balance    int64                  `json:"balance"`
	}{rec.ID, entry.Key, entry.Credits, command.ResolutionView(r), balance}, app.Table{Rows: app.Rows(
		"Project", rec.ID, "SMS", string(entry.Key), "Credits", app.Credits(entry.Credits),
		"Resolution", string(r.Verdict), "Reason", r.Reason, "By", r.Actor, "Balance", app.Credits(balance),
	)})
}
