package project

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/project"
)

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
