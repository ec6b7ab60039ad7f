// Package integration holds the command "svc integration".
package integration

import (
	"context"
	"errors"
	"fmt"
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
	rec.Integrations = slices.DeleteFunc(rec.Integrations, func(i project.Integration) bool {
		return i.Kind != kind || i.Vendor != vendor || !slices.Contains(envs, i.Environment)
	})
	views, err := catalog.ViewAll(ctx, s, rec)
	if err != nil {
		return err
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

// checkView is the result of the check of one integration.
type checkView struct {
	Environment project.Environment `json:"environment"`
	Kind        project.Kind        `json:"kind"`
	Vendor      string              `json:"vendor"`
	OK          bool                `json:"ok"`
	Detail      string              `json:"detail"`
}

type checkOptions struct {
	kind, vendor string // empty for all
	environments []project.Environment
}

func check(a *app.App) *cobra.Command {
	o := &checkOptions{}
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "check PROJECT [KIND [VENDOR]]",
		Short: "Check a project's integrations: settings, secret, endpoint, and the account where the vendor permits a test",
		Long: `Check a project's integrations. The command sends no SMS and charges no credits. A
vendor may count a look-up of the command.`,
	}, app.Bind(&o.kind, &o.vendor), o.run)
	app.EnvironmentsFlag(cmd, &o.environments, true)
	return cmd
}

func (o *checkOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	integrations := slices.DeleteFunc(slices.Clone(rec.Integrations), func(i project.Integration) bool {
		return !slices.Contains(o.environments, i.Environment) || o.kind != "" && string(i.Kind) != o.kind || o.vendor != "" && i.Vendor != o.vendor
	})
	if len(integrations) == 0 {
		if o.kind != "" { // a name that this version does not know
			if _, err := catalog.Find(o.kind, o.vendor); err != nil && (o.vendor != "" || catalog.ValidateKind(o.kind) != nil) {
				return err
			}
		}
		return fmt.Errorf("no such integrations of project %s: %w", rec.ID, project.ErrNotFound)
	}
	failed := 0
	views, rows := app.List(integrations, func(i project.Integration) (checkView, []string) {
		v, ok := checkOne(ctx, s, rec.ID, i), "yes"
		if !v.OK {
			ok = "no"
			failed++
		}
		return v, []string{string(v.Environment), string(v.Kind), v.Vendor, ok, v.Detail}
	})
	if err := s.Print(views, app.Table{Header: []string{"ENVIRONMENT", "KIND", "VENDOR", "OK", "DETAIL"}, Rows: rows}); err != nil {
		return err
	}
	return app.Problems(failed)
}

// checkOne checks one integration.
func checkOne(ctx context.Context, s *app.Stack, projectID string, i project.Integration) checkView {
	v := checkView{Environment: i.Environment, Kind: i.Kind, Vendor: i.Vendor}
	account, err := catalog.Resolve(ctx, s, projectID, i)
	if err == nil {
		v.Detail, err = catalog.TestAccount(ctx, s, account)
		if errors.Is(err, catalog.ErrNoTest) {
			v.Detail, err = "complete; "+catalog.ErrNoTest.Error(), nil
		}
	}
	if v.OK = err == nil; !v.OK {
		v.Detail = err.Error()
	}
	return v
}
