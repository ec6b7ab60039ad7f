package project

import (
	"context"
	"fmt"
	"time"

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
	return s.PrintRows(view, "Project", p.ID, name, text(view))
}

func trial(a *app.App) *cobra.Command {
	var on bool
	var allow []string
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "trial PROJECT on|off",
		Short: "Put a project on trial (SMS to allowed destinations only), or end the trial",
		Example: `  svc project trial acme on --allow 0771234567
  svc project trial acme off`,
	}, func(args []string) error {
		if on = args[0] == "on"; !on && args[0] != "off" {
			return app.Usagef(`the trial is "on" or "off", not %q`, args[0])
		}
		if !on && len(allow) > 0 {
			return app.Usagef("--allow is only for \"on\"")
		}
		return nil
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		p, err := s.Projects.SetTrial(ctx, rec.ID, on, allow)
		return printChange(s, p, err, "Trial", func(v View) string { return v.trial() + soon })
	})
	cmd.Flags().StringArrayVar(&allow, "allow", nil, "a destination that the trial allows (repeat for more); replaces earlier destinations")
	return cmd
}

func scale(a *app.App) *cobra.Command {
	var shards int
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "scale PROJECT --shards N",
		Short: "Spread the wallet, the ledger and the rate limit of a busy project over shards",
		Long: `One item of DynamoDB takes 1,000 write units a second, and a project's wallet is one item. N shards
take nearly N times as many paid requests; docs/scale.md has the figures.

Nothing changes for clients: the balance is the sum of the shards, credits move to a shard that
lacks credits, and the rate limit stays the same. The change takes effect 90 seconds later.`,
		Example: `  svc project scale acme --shards 16
  svc project scale acme --shards 1`,
	}, func([]string) error {
		if shards < 1 || shards > credit.MaxShards {
			return app.Usagef("--shards is 1 to %d, not %d", credit.MaxShards, shards)
		}
		return nil
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		if err := rec.ValidateShards(shards); err != nil {
			return err
		}
		// The shards must exist before the record that names their number.
		if err := s.Credits.AddShards(ctx, rec.ID, shards); err != nil {
			return err
		}
		p, err := s.Projects.SetShards(ctx, rec.ID, shards)
		return printChange(s, p, err, "Shards", View.shards)
	})
	cmd.Flags().IntVar(&shards, "shards", 0, fmt.Sprintf("1 to %d; 1 ends the sharding", credit.MaxShards))
	return cmd
}

type createOptions struct {
	project project.Project
	like    string
	changed func(flag string) bool
}

func create(a *app.App) *cobra.Command {
	o := &createOptions{}
	cmd := a.Command(&cobra.Command{
		Use:   "create NAME",
		Short: "Create a project and its empty wallet",
		Example: `  svc project create "Acme Ltd" --limit 600 --window 1m
  svc project create "Acme Trial" --id acme-trial --trial --allow 0771234567 --allow 0717654321
  svc project create "Globex" --like acme`,
	}, o.parse, o.run)
	flags := cmd.Flags()
	flags.StringVar(&o.project.ID, "id", "", "project ID, 3 to 32 of a-z, 0-9 and - (default: a random one)")
	flags.IntVar(&o.project.Limit.Requests, "limit", 600, "requests per window, in each environment")
	flags.DurationVar(&o.project.Limit.Window, "window", time.Minute, "window of the limit, in whole seconds")
	flags.StringVar(&o.like, "like", "", "the project whose limit, trial and integrations the new project gets; other flags come first")
	flags.BoolVar(&o.project.Trial, "trial", false, "send SMS to the allowed destinations only")
	flags.StringArrayVar(&o.project.TrialDestinations, "allow", nil, "a destination that the trial allows (repeat for more)")
	o.changed = flags.Changed
	return cmd
}

func (o *createOptions) parse(args []string) error {
	o.project.Name = args[0]
	if len(o.project.TrialDestinations) > 0 && !o.project.Trial {
		return app.Usagef("--allow goes with --trial")
	}
	if o.project.Trial && len(o.project.TrialDestinations) == 0 {
		return app.Usagef("--trial needs --allow: a trial without destinations can send nothing")
	}
	return nil
}

func (o *createOptions) run(ctx context.Context, s *app.Stack) error {
	if o.like != "" {
		return o.createLike(ctx, s)
	}
	created, err := createProject(ctx, s, o.project)
	if err != nil {
		return err
	}
	view := viewOf(created)
	return s.Print(view, app.Table{Rows: view.rows()})
}

// createLike creates a project with the settings and integrations of another one. Secrets, credentials and credits are not
// copied: a byok integration is inactive until "svc integration set" stores the project's own secret.
func (o *createOptions) createLike(ctx context.Context, s *app.Stack) error {
	rec, err := s.Load(ctx, o.like)
	if err != nil {
		return err
	}
	t, given := transferOf(rec), settingsOf(o.project)
	t.ID, t.Name, t.Paused = given.ID, given.Name, false
	if o.changed("limit") {
		t.LimitRequests = given.LimitRequests
	}
	if o.changed("window") {
		t.LimitSeconds = given.LimitSeconds
	}
	if o.changed("trial") {
		t.Trial, t.TrialDestinations = given.Trial, given.TrialDestinations
	}
	return t.create(ctx, s)
}

// createProject creates a project and its empty wallet.
func createProject(ctx context.Context, s *app.Stack, p project.Project) (project.Project, error) {
	created, err := s.Projects.CreateProject(ctx, p)
	if err != nil {
		return created, err
	}
	if err := s.Credits.CreateWallet(ctx, created.ID); err != nil {
		return created, fmt.Errorf("the project %s exists, its wallet does not (a grant creates the wallet): %w", created.ID, err)
	}
	return created, nil
}
