package project

import (
	"context"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/cmd/svc/credential"
	"svcapi/shared/project"
)

func list(ctx context.Context, s *app.Stack) error {
	projects, err := s.Projects.ListProjects(ctx)
	if err != nil {
		return err
	}
	views, rows := app.List(projects, func(p project.Project) (View, []string) {
		v := viewOf(p)
		return v, []string{v.ID, v.Name, v.state(), v.limit(), v.trial(), v.created()}
	})
	header := []string{"PROJECT", "NAME", "STATE", "LIMIT", "TRIAL", "CREATED"}
	return s.Print(views, app.Table{Header: header, Rows: rows, Empty: `No projects yet. "svc project create" creates one.`})
}

func show(ctx context.Context, s *app.Stack, rec *project.Record) error {
	balance, err := s.Credits.Balance(ctx, rec.ID)
	if err != nil {
		return err
	}
	integrations, err := catalog.ViewAll(ctx, s, rec)
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
	rows := append(view.rows(), []string{"Balance", app.Credits(balance)})
	return s.Print(view, app.Table{Rows: rows}, credentialTable, catalog.Table(integrations))
}
