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
		var unknown error // a name that this version does not know
		if o.vendor != "" {
			_, unknown = catalog.Find(o.kind, o.vendor)
		} else if o.kind != "" {
			unknown = catalog.ValidateKind(o.kind)
		}
		if unknown != nil {
			return unknown
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
