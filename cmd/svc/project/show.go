package project

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/cmd/svc/credential"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

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
	rows := append(view.rows(), []string{"Balance", credit.Grouped(balance) + " credits"})
	for _, t := range []app.Table{{Rows: rows}, credentialTable, catalog.Table(integrations)} {
		if err := o.Print(nil, t); err != nil {
			return err
		}
		fmt.Fprintln(o.Out)
	}
	return nil
}
