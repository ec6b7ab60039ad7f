package integration

import (
	"context"
	"errors"
	"fmt"

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
	*app.App
	names       []string // kind and vendor, both optional
	environment project.Environment
}

func check(a *app.App) *cobra.Command {
	o := &checkOptions{App: a}
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "check PROJECT [KIND [VENDOR]]",
		Short: "Check a project's integrations: settings, secret, endpoint, and the account where the vendor permits a test",
		Long: `Check a project's integrations. The command sends no SMS and charges no credits. A
vendor may count a look-up of the command.`,
	}, o.parse, o.run)
	app.OptionalEnvironmentFlag(cmd, &o.environment)
	return cmd
}

func (o *checkOptions) parse(args []string) error {
	o.names = args
	return nil
}

func (o *checkOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	views := []checkView{}
	failed := 0
	t := app.Table{Header: []string{"ENVIRONMENT", "KIND", "VENDOR", "OK", "DETAIL"}}
	for _, i := range rec.Integrations {
		if !o.matches(i) {
			continue
		}
		v, ok := checkOne(ctx, s, rec.ID, i), "yes"
		if !v.OK {
			ok = "no"
			failed++
		}
		views = append(views, v)
		t.Rows = append(t.Rows, []string{string(v.Environment), string(v.Kind), v.Vendor, ok, v.Detail})
	}
	if len(views) == 0 {
		return o.notFound(rec.ID)
	}
	if err := o.Print(views, t); err != nil {
		return err
	}
	return app.Problems(failed)
}

func (o *checkOptions) matches(i project.Integration) bool {
	return (o.environment == "" || i.Environment == o.environment) &&
		(len(o.names) < 1 || string(i.Kind) == o.names[0]) && (len(o.names) < 2 || i.Vendor == o.names[1])
}

// notFound returns the error for arguments without an integration: an unknown name, or an integration that does not exist.
func (o *checkOptions) notFound(projectID string) error {
	var err error
	switch len(o.names) {
	case 2:
		_, err = catalog.Find(o.names[0], o.names[1])
	case 1:
		err = catalog.ValidateKind(o.names[0])
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("no such integrations of project %s: %w", projectID, project.ErrNotFound)
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
