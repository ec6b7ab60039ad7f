package project

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

type pauseOptions struct {
	*app.App
	projectID string
	paused    bool
}

func pause(a *app.App, name string, paused bool) *cobra.Command {
	o := &pauseOptions{App: a, paused: paused}
	short := "End the pause of a project"
	if paused {
		short = "Refuse every request of a project with 503 project_paused"
	}
	return a.Command(&cobra.Command{Use: name + " PROJECT", Short: short}, app.Bind(&o.projectID), o.run)
}

func (o *pauseOptions) run(ctx context.Context, s *app.Stack) error {
	p, err := s.Projects.SetPaused(ctx, o.projectID, o.paused)
	if err != nil {
		return err
	}
	view := viewOf(p)
	return view.printChange(o.App, "State", view.state()+" (functions follow within seconds)")
}

type limitOptions struct {
	*app.App
	projectID string
	limit     project.RateLimit
}

func limit(a *app.App) *cobra.Command {
	o := &limitOptions{App: a}
	cmd := a.Command(&cobra.Command{
		Use:     "limit PROJECT REQUESTS",
		Short:   "Set how many requests a project may make per window, in each environment",
		Example: `  svc project limit acme 1200 --window 1m`,
	}, o.parse, o.run)
	cmd.Flags().DurationVar(&o.limit.Window, "window", time.Minute, "window of the limit, in whole seconds")
	return cmd
}

func (o *limitOptions) parse(args []string) (err error) {
	o.projectID = args[0]
	if o.limit.Requests, err = strconv.Atoi(args[1]); err != nil {
		return app.Usagef("REQUESTS is a whole number, not %q", args[1])
	}
	return nil
}

func (o *limitOptions) run(ctx context.Context, s *app.Stack) error {
	p, err := s.Projects.SetLimit(ctx, o.projectID, o.limit)
	if err != nil {
		return err
	}
	view := viewOf(p)
	return view.printChange(o.App, "Limit", view.limit()+", in each environment (functions follow within seconds)")
}

type trialOptions struct {
	*app.App
	projectID string
	on        bool
	allow     []string
}

func trial(a *app.App) *cobra.Command {
	o := &trialOptions{App: a}
	cmd := a.Command(&cobra.Command{
		Use:   "trial PROJECT on|off",
		Short: "Put a project on trial (SMS to allowed destinations only), or end the trial",
		Example: `  svc project trial acme on --allow 0771234567
  svc project trial acme off`,
	}, o.parse, o.run)
	cmd.Flags().StringArrayVar(&o.allow, "allow", nil, "a destination that the trial allows (repeat for more); replaces earlier destinations")
	return cmd
}

func (o *trialOptions) parse(args []string) error {
	o.projectID, o.on = args[0], args[1] == "on"
	if !o.on && args[1] != "off" {
		return app.Usagef(`the trial is "on" or "off", not %q`, args[1])
	}
	if !o.on && len(o.allow) > 0 {
		return app.Usagef("--allow is only for \"on\"")
	}
	return nil
}

func (o *trialOptions) run(ctx context.Context, s *app.Stack) error {
	p, err := s.Projects.SetTrial(ctx, o.projectID, o.on, o.allow)
	if err != nil {
		return err
	}
	view := viewOf(p)
	return view.printChange(o.App, "Trial", view.trial()+" (functions follow within seconds)")
}

type scaleOptions struct {
	*app.App
	shards int
}

func scale(a *app.App) *cobra.Command {
	o := &scaleOptions{App: a}
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
	cmd.Flags().IntVar(&o.shards, "parts", 0, "the earlier name of --shards")
	_ = cmd.Flags().MarkHidden("parts") // the flag exists
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
	if err != nil {
		return err
	}
	view := viewOf(p)
	return view.printChange(o.App, "Shards", view.shards())
}
