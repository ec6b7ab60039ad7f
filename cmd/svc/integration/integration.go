// Package integration holds the command "svc integration".
package integration

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/project"
)

// Command returns "svc integration".
func Command(a *app.App) *cobra.Command {
	return app.Group("integration", "Connect projects to vendors",
		set(a), list(a), check(a), enable(a, "enable", "Use an integration", true),
		enable(a, "disable", "Stop using an integration; its settings and secrets stay", false))
}

// show prints the integrations of a project with one vendor in some environments.
func show(ctx context.Context, s *app.Stack, projectID string, envs []project.Environment, kind project.Kind, vendor string) error {
	rec, err := s.Load(ctx, projectID)
	if err != nil {
		return err
	}
	var views []catalog.View
	for _, env := range envs {
		i, err := catalog.Integration(rec, env, kind, vendor)
		if err != nil {
			return err
		}
		v, err := catalog.ViewOf(ctx, s, projectID, i)
		if err != nil {
			return err
		}
		views = append(views, v)
	}
	return s.Print(app.OneOrAll(views), catalog.Table(views))
}

type listOptions struct{ environments []project.Environment }

func list(a *app.App) *cobra.Command {
	o := &listOptions{}
	short := "List a project's integrations with their missing fields"
	cmd := a.ProjectCommand(&cobra.Command{Use: "list PROJECT", Short: short}, nil, o.run)
	app.EnvironmentsFlag(cmd, &o.environments, true)
	return cmd
}

func (o *listOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	views, err := catalog.ViewAll(ctx, s, rec)
	if err != nil {
		return err
	}
	views = slices.DeleteFunc(views, func(v catalog.View) bool { return !slices.Contains(o.environments, v.Environment) })
	return s.Print(views, catalog.Table(views))
}

type enableOptions struct {
	active       bool
	kind         project.Kind
	vendor       string
	environments []project.Environment
}

func enable(a *app.App, name, short string, active bool) *cobra.Command {
	o := &enableOptions{active: active}
	cmd := &cobra.Command{Use: name + " PROJECT KIND VENDOR", Short: short}
	app.EnvironmentsFlag(cmd, &o.environments, false)
	return a.ProjectCommand(cmd, app.Bind((*string)(&o.kind), &o.vendor), o.run)
}

func (o *enableOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	for _, env := range o.environments {
		if err := s.Projects.EnableIntegration(ctx, rec.ID, env, o.kind, o.vendor, o.active); err != nil {
			return err
		}
	}
	return show(ctx, s, rec.ID, o.environments, o.kind, o.vendor)
}
