// Package sms holds the command "svc sms".
package sms

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	command "svcapi/cmd/svc/credit"
	"svcapi/shared/credit"
)

// Command returns "svc sms".
func Command(a *app.App) *cobra.Command {
	return app.Group("sms", "Resolve SMS whose outcome is uncertain, try integrations",
		app.Group("uncertain", "SMS whose outcome at the vendor is not known: charged until they are resolved", list(a), resolve(a)),
		test(a))
}

// Uncertain is an uncertain charge as programs read it.
type Uncertain struct {
	ProjectID   string     `json:"project_id"`
	ID          credit.Key `json:"id"`
	Began       time.Time  `json:"began"` // the request
	Credits     int64      `json:"credits"`
	Environment string     `json:"environment"`
	Vendor      string     `json:"vendor"`
	RequestID   string     `json:"request_id"`
}

type listOptions struct {
	*app.App
	projects []string // one, or none: all projects
}

func list(a *app.App) *cobra.Command {
	o := &listOptions{App: a}
	return &cobra.Command{
		Use:   "list [PROJECT]",
		Short: "List the SMS whose outcome is uncertain, of one project or of all",
		Args:  cobra.MaximumNArgs(1),
		RunE:  a.On(o.parse, o.run),
	}
}

func (o *listOptions) parse(args []string) error {
	o.projects = args
	return nil
}

func (o *listOptions) run(ctx context.Context, s *app.Stack) error {
	ids, err := o.ids(ctx, s)
	if err != nil {
		return err
	}
	views := []Uncertain{}
	t := app.Table{Header: []string{"PROJECT", "ID", "TIME", "CREDITS", "ENVIRONMENT", "VENDOR", "REQUEST"}, Empty: "No SMS is uncertain."}
	for _, id := range ids {
		entries, err := s.Credits.Uncertain(ctx, id)
		if err != nil {
			return err
		}
		for _, e := range entries {
			v := Uncertain{id, e.Key, e.Key.Time(), e.Credits, e.Environment, e.Vendor, e.RequestID}
			views = append(views, v)
			t.Rows = append(t.Rows, []string{id, string(v.ID), app.Second(v.Began), app.Grouped(v.Credits), v.Environment, v.Vendor, v.RequestID})
		}
	}
	return o.Print(views, t)
}

// ids returns the project that was named, or every one.
func (o *listOptions) ids(ctx context.Context, s *app.Stack) ([]string, error) {
	if len(o.projects) > 0 {
		_, err := s.Load(ctx, o.projects[0])
		return o.projects, err
	}
	projects, err := s.Projects.ListProjects(ctx)
	ids := make([]string, len(projects))
	for i, p := range projects {
		ids[i] = p.ID
	}
	return ids, err
}

type resolveOptions struct {
	*app.App
	projectID       string
	key             credit.Key
	confirm, refund bool
	resolution      credit.Resolution
}

func resolve(a *app.App) *cobra.Command {
	o := &resolveOptions{App: a}
	cmd := &cobra.Command{
		Use:   "resolve PROJECT ID",
		Short: "Say that an uncertain SMS was sent, or give its credits back",
		Long: `Say that an uncertain SMS was sent (--confirm: it stays charged), or give its
credits back (--refund: counts once, as a ledger entry of its own). Ask the
vendor first. If the answer is lost, repeat the command. A resolution is final.`,
		Example: `  svc sms uncertain resolve acme 1767225600000000-abcdefgh --refund --reason "vendor has no record of it"`,
		Args:    cobra.ExactArgs(2),
		RunE:    a.On(o.parse, o.run),
	}
	cmd.Flags().BoolVar(&o.confirm, "confirm", false, "it was sent: it stays charged")
	cmd.Flags().BoolVar(&o.refund, "refund", false, "it was not: credit it back")
	cmd.Flags().StringVar(&o.resolution.Reason, "reason", "", "why, for the ledger")
	return cmd
}

func (o *resolveOptions) parse(args []string) (err error) {
	o.projectID, o.resolution.Verdict = args[0], credit.VerdictConfirmed
	if o.refund {
		o.resolution.Verdict = credit.VerdictRefunded
	}
	if o.confirm == o.refund {
		return app.Usagef("give --confirm or --refund, one of them")
	}
	if o.resolution.Reason == "" {
		return app.Usagef("give a --reason: it stands in the ledger")
	}
	if o.key, err = credit.ParseKey(args[1]); err != nil {
		return app.Usagef(`ID is one that "svc sms uncertain list" shows, not %q`, args[1])
	}
	return nil
}

func (o *resolveOptions) run(ctx context.Context, s *app.Stack) error {
	if _, err := s.Load(ctx, o.projectID); err != nil {
		return err
	}
	var err error
	if o.resolution.Actor, err = s.Actor(ctx); err != nil {
		return err
	}
	entry, err := s.Credits.Resolve(ctx, o.projectID, o.key, o.resolution)
	if err != nil {
		return err
	}
	balance, err := s.Credits.Balance(ctx, o.projectID)
	if err != nil {
		return err
	}
	r := entry.Resolution
	return o.Print(struct {
		ProjectID  string                 `json:"project_id"`
		ID         credit.Key             `json:"id"`
		Credits    int64                  `json:"credits"`
		Resolution command.ResolutionView `json:"resolution"`
		Balance    int64                  `json:"balance"`
	}{o.projectID, entry.Key, entry.Credits, command.ResolutionView(r), balance}, app.Table{Rows: [][]string{
		{"Project", o.projectID}, {"SMS", string(entry.Key)}, {"Credits", app.Grouped(entry.Credits)},
		{"Resolution", string(r.Verdict)}, {"Reason", r.Reason}, {"By", r.Actor}, {"Balance", app.Grouped(balance) + " credits"},
	}})
}
