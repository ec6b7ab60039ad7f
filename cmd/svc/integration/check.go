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
	args        []string // project, kind and vendor; the last two are optional
	environment project.Environment
}

func check(a *app.App) *cobra.Command {
	o := &checkOptions{App: a}
	cmd := a.Command(&cobra.Command{
		Use:   "check PROJECT [KIND [VENDOR]]",
		Short: "Check a project's integrations: settings, secret, endpoint, and the account where the vendor permits a test",
		Long: `Check a project's integrations. The command sends no SMS and charges no credits. A
vendor may count a look-up of the command.`,
	}, o.parse, o.run)
	app.OptionalEnvironmentFlag(cmd, &o.environment)
	return cmd
}

func (o *checkOptions) parse(args []string) error {
	o.args = args
	return nil
}

func (o *checkOptions) run(ctx context.Context, s *app.Stack) error {
	rec, err := s.Load(ctx, o.args[0])
	if err != nil {
		return err
	}
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
		return o.notFound()
	}
	if err := o.Print(views, t); err != nil {
		return err
	}
	if failed > 0 {
		return app.ProblemsError(failed)
	}
	return nil
}

func (o *checkOptions) matches(i project.Integration) bool {
	return (o.environment == "" || i.Environment == o.environment) &&
		(len(o.args) < 2 || string(i.Kind) == o.args[1]) && (len(o.args) < 3 || i.Vendor == o.args[2])
}

// notFound returns the error for arguments without an integration: an unknown name, or an integration that does not exist.
func (o *checkOptions) notFound() error {
	var err error
	switch len(o.args) {
	case 3:
		_, err = catalog.Find(o.args[1], o.args[2])
	case 2:
		err = catalog.ValidateKind(o.args[1])
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("no such integrations of project %s: %w", o.args[0], project.ErrNotFound)
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
