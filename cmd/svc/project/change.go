package project

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

func pause(a *app.App, name, short string, paused bool) *cobra.Command {
	return a.ProjectCommand(&cobra.Command{Use: name + " PROJECT", Short: short}, nil, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		p, err := s.Projects.SetPaused(ctx, rec.ID, paused)
		return printChange(s, p, err, "State", func(v View) string { return v.state() + soon })
	})
}

// soon says when functions know of a change.
const soon = " (functions follow within seconds)"

// printChange prints one changed property of a project, or returns the error of the change.
func printChange(s *app.Stack, p project.Project, err error, name string, text func(View) string) error {
	if err != nil {
		return err
	}
	view := viewOf(p)
	return s.Print(view, app.Table{Rows: app.Rows("Project", p.ID, name, text(view))})
}

type trialOptions struct {
	on    bool
	allow []string
}

func trial(a *app.App) *cobra.Command {
	o := &trialOptions{}
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "trial PROJECT on|off",
		Short: "Put a project on trial (SMS to allowed destinations only), or end the trial",
		Example: `  svc project trial acme on --allow 0771234567
  svc project trial acme off`,
	}, o.parse, o.run)
	cmd.Flags().StringArrayVar(&o.allow, "allow", nil, "a destination that the trial allows (repeat for more); replaces earlier destinations")
	return cmd
}

func (o *trialOptions) parse(args []string) error {
	o.on = args[0] == "on"
	if !o.on && args[0] != "off" {
		return app.Usagef(`the trial is "on" or "off", not %q`, args[0])
	}
	if !o.on && len(o.allow) > 0 {
		return app.Usagef("--allow is only for \"on\"")
	}
	return nil
}

func (o *trialOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	p, err := s.Projects.SetTrial(ctx, rec.ID, o.on, o.allow)
	return printChange(s, p, err, "Trial", func(v View) string { return v.trial() + soon })
}

type scaleOptions struct{ shards int }

func scale(a *app.App) *cobra.Command {
	o := &scaleOptions{}
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "scale PROJECT --shards N",
		Short: "Spread the wallet, the ledger and the rate limit of a busy project over shards",
		Long: `One item of DynamoDB takes 1,000 write units a second, and a project's wallet is one item. N shards
take nearly N times as many paid requests; docs/scale.md has the figures.

Nothing changes for clients: the balance is the sum of the shards, credits move to a shard that
lacks credits, and the rate limit stays the same. The change takes effect 90 seconds later.`,
		Example: `  svc project scale acme --shards 16
  svc project scale acme --shards 1`,
	}, o.parse, o.run)
	cmd.Flags().IntVar(&o.shards, "shards", 0, fmt.Sprintf("1 to %d; 1 ends the sharding", credit.MaxShards))
	return cmd
}

func (o *scaleOptions) parse([]string) error {
	if o.shards < 1 || o.shards > credit.MaxShards {
		return app.Usagef("--shards is 1 to %d, not %d", credit.MaxShards, o.shards)
	}
	return nil
}

func (o *scaleOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	if err := rec.ValidateShards(o.shards); err != nil {
		return err
	}
	// The shards must exist before the record that names their number.
	if err := s.Credits.AddShards(ctx, rec.ID, o.shards); err != nil {
		return err
	}
	p, err := s.Projects.SetShards(ctx, rec.ID, o.shards)
	return printChange(s, p, err, "Shards", View.shards)
}
