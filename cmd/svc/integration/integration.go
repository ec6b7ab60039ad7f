// Package integration holds the command "svc integration".
package integration

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/project"
)

// Command returns "svc integration".
func Command(a *app.App) *cobra.Command {
	return app.Group("integration", "Connect projects to vendors",
		set(a), list(a), check(a), enable(a, "enable", true), enable(a, "disable", false))
}

func printOne(ctx context.Context, a *app.App, s *app.Stack, projectID string, env project.Environment, kind project.Kind, vendor string) error {
	rec, err := s.Load(ctx, projectID)
	if err != nil {
		return err
	}
	i := rec.Integration(env, kind, vendor)
	if i == nil {
		return fmt.Errorf("integration %s: %w", project.IntegrationID(env, kind, vendor), project.ErrNotFound)
	}
	v, err := catalog.ViewOf(ctx, s, projectID, *i)
	if err != nil {
		return err
	}
	return a.Print(v, catalog.Table([]catalog.View{v}))
}

type listOptions struct {
	*app.App
	environment project.Environment
}

func list(a *app.App) *cobra.Command {
	o := &listOptions{App: a}
	short := "List a project's integrations with their missing fields"
	cmd := a.ProjectCommand(&cobra.Command{Use: "list PROJECT", Short: short}, nil, o.run)
	app.OptionalEnvironmentFlag(cmd, &o.environment)
	return cmd
}

func (o *listOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	views, err := catalog.ViewAll(ctx, s, rec, o.environment)
	if err != nil {
		return err
	}
	return o.Print(views, catalog.Table(views))
}

type enableOptions struct {
	*app.App
	active            bool
	projectID, vendor string
	kind              project.Kind
	environment       project.Environment
}

func enable(a *app.App, name string, active bool) *cobra.Command {
	o := &enableOptions{App: a, active: active}
	short := "Stop using an integration; its settings and secrets stay"
	if active {
		short = "Use an integration"
	}
	cmd := &cobra.Command{Use: name + " PROJECT KIND VENDOR", Short: short}
	app.EnvironmentFlag(cmd, &o.environment)
	return a.Command(cmd, app.Bind(&o.projectID, (*string)(&o.kind), &o.vendor), o.run)
}

func (o *enableOptions) run(ctx context.Context, s *app.Stack) error {
	if err := s.Projects.EnableIntegration(ctx, o.projectID, o.environment, o.kind, o.vendor, o.active); err != nil {
		return err
	}
	return printOne(ctx, o.App, s, o.projectID, o.environment, o.kind, o.vendor)
}
