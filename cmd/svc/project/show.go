package project

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/cmd/svc/credential"
	"svcapi/shared/project"
)

type createOptions struct {
	*app.App
	project project.Project
}

func create(a *app.App) *cobra.Command {
	o := &createOptions{App: a}
	cmd := a.Command(&cobra.Command{
		Use:   "create NAME",
		Short: "Create a project and its empty wallet",
		Example: `  svc project create "Acme Ltd" --limit 600 --window 1m
  svc project create "Acme Trial" --id acme-trial --trial --allow 0771234567 --allow 0717654321`,
	}, o.parse, o.run)
	flags := cmd.Flags()
	flags.StringVar(&o.project.ID, "id", "", "project ID, 3 to 32 of a-z, 0-9 and - (default: a random one)")
	flags.IntVar(&o.project.Limit.Requests, "limit", 600, "requests per window, in each environment")
	flags.DurationVar(&o.project.Limit.Window, "window", time.Minute, "window of the limit, in whole seconds")
	flags.BoolVar(&o.project.Trial, "trial", false, "send SMS to the allowed destinations only")
	flags.StringArrayVar(&o.project.TrialDestinations, "allow", nil, "a destination that the trial allows (repeat for more)")
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
	created, err := createProject(ctx, s, o.project)
	if err != nil {
		return err
	}
	view := viewOf(created)
	return o.Print(view, app.Table{Rows: view.rows()})
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

func list(a *app.App) *cobra.Command {
	run := func(ctx context.Context, s *app.Stack) error { return runList(ctx, a, s) }
	return a.Command(&cobra.Command{Use: "list", Short: "List all projects"}, nil, run)
}

func runList(ctx context.Context, a *app.App, s *app.Stack) error {
	projects, err := s.Projects.ListProjects(ctx)
	if err != nil {
		return err
	}
	views, rows := app.List(projects, func(p project.Project) (View, []string) {
		v := viewOf(p)
		return v, []string{v.ID, v.Name, v.state(), v.limit(), v.trial(), v.created()}
	})
	header := []string{"PROJECT", "NAME", "STATE", "LIMIT", "TRIAL", "CREATED"}
	return a.Print(views, app.Table{Header: header, Rows: rows, Empty: `No projects yet. "svc project create" creates one.`})
}

type showOptions struct{ *app.App }

func show(a *app.App) *cobra.Command {
	o := &showOptions{a}
	short := "Show a project with its balance, credentials and integrations"
	return a.ProjectCommand(&cobra.Command{Use: "show PROJECT", Short: short}, nil, o.run)
}

func (o *showOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	balance, err := s.Credits.Balance(ctx, rec.ID)
	if err != nil {
		return err
	}
	integrations, err := catalog.ViewAll(ctx, s, rec, "")
	if err != nil {
		return err
	}
	credentials, credentialTable := credential.ViewAll(rec)
	view := struct {
		View
		Balance      int64             `json:"balance"`
		Credentials  []credential.View `json:"credentials"`
		Integrations []catalog.View    `json:"integrations"`
	}{viewOf(rec.Project), balance, credentials, integrations}
	if o.JSON() {
		return o.PrintJSON(view)
	}
	rows := append(view.rows(), []string{"Balance", app.Grouped(balance) + " credits"})
	for _, t := range []app.Table{{Rows: rows}, credentialTable, catalog.Table(integrations)} {
		if err := o.Print(nil, t); err != nil {
			return err
		}
		fmt.Fprintln(o.Out)
	}
	return nil
}
