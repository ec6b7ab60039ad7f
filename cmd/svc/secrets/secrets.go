// Package secrets holds the command "svc secrets".
package secrets

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// Command returns "svc secrets".
func Command(a *app.App) *cobra.Command {
	return app.Group("secrets", "Rotate the keys of vendor accounts", rotate(a))
}

type rotateOptions struct {
	*app.App
	account   catalog.Account
	projectID string
	file      string
	untried   bool
}

func rotate(a *app.App) *cobra.Command {
	o := &rotateOptions{App: a, account: catalog.Account{Owner: secret.Managed}}
	cmd := a.Command(&cobra.Command{
		Use:   "rotate KIND VENDOR",
		Short: "Replace the key of a vendor account after a test of the new key",
		Long: `Replace the key of a vendor account. The command first tests the new key, where the
vendor has a call for that. Functions use the new key when the vendor refuses the
old one, and after five minutes at the latest: end the old key at the vendor then.

Without --project the command changes the service's own account, which Managed
integrations use.`,
		Example: `  svc secrets rotate sms twilio --env production
  svc secrets rotate sms twilio --env production --project acme --secrets - < twilio.json`,
	}, o.parse, o.run)
	app.EnvironmentFlag(cmd, &o.account.Environment)
	flags := cmd.Flags()
	flags.StringVar(&o.projectID, "project", "", "the project that owns the account")
	flags.StringVar(&o.file, "secrets", "", "file with a JSON object of the secret fields, - for standard input")
	flags.BoolVar(&o.untried, "untried", false, "do not test the new key first")
	return cmd
}

func (o *rotateOptions) parse(args []string) (err error) {
	o.account.Offer, err = catalog.Find(args[0], args[1])
	return err
}

func (o *rotateOptions) run(ctx context.Context, s *app.Stack) error {
	i, err := o.integration(ctx, s)
	if err != nil {
		return err
	}
	stored, err := o.account.Stored(ctx, s)
	if err != nil {
		return err
	}
	if len(stored) == 0 {
		return fmt.Errorf("%w: %s has no key to rotate", app.ErrRefused, o.account.Name(s))
	}
	fields, changed, err := catalog.ReadSecrets(ctx, o.App, o.account.Offer.Spec, stored, o.file, true)
	if err != nil {
		return err
	}
	if !changed {
		return app.Usagef("no field has a new value")
	}
	tried, err := o.try(ctx, s, i, fields)
	if err != nil {
		return err
	}
	if err := o.account.Put(ctx, s, fields); err != nil {
		return err
	}
	view, rows := o.account.View(s, fields)
	return o.Print(struct {
		catalog.AccountView
		Tried string `json:"tried"`
	}{view, tried}, app.Table{Rows: append(rows, []string{"Tried", tried})})
}

// integration returns an integration with the account: the project's, or a temporary one for the service's own account.
func (o *rotateOptions) integration(ctx context.Context, s *app.Stack) (i project.Integration, err error) {
	kind, env, spec := o.account.Offer.Kind, o.account.Environment, o.account.Offer.Spec
	i = project.Integration{Kind: kind, Environment: env, Vendor: spec.Name, Mode: project.Managed, Settings: map[string]string{}}
	for _, f := range spec.Settings {
		if f.Name != upstream.EndpointSetting {
			i.Settings[f.Name] = "any" // the test concerns the account, not the settings
		}
	}
	if o.projectID != "" {
		rec, err := s.Load(ctx, o.projectID)
		if err != nil {
			return i, err
		}
		own := rec.Integration(env, kind, spec.Name)
		if own == nil || own.Mode != project.BYOK {
			return i, fmt.Errorf("byok integration %s: %w", project.IntegrationID(env, kind, spec.Name), project.ErrNotFound)
		}
		i, o.account.Owner = *own, rec.ID
	}
	i.Settings, _ = o.account.Offer.WithSandbox(s, i.Settings)
	return i, nil
}

// try tests the new fields at the vendor and returns the result for the operator.
func (o *rotateOptions) try(ctx context.Context, s *app.Stack, i project.Integration, fields secret.Values) (string, error) {
	if o.untried {
		return "not tried", nil
	}
	account, err := s.Vendors.Resolve(ctx, o.account.Owner, i, &o.account.Offer.Spec, catalog.Staged(fields))
	tried := ""
	if err == nil {
		tried, err = catalog.TestAccount(ctx, s, account)
	}
	if errors.Is(err, catalog.ErrNoTest) {
		return catalog.ErrNoTest.Error(), nil
	}
	if err != nil {
		return "", fmt.Errorf("%w: the new key does not work, and the old key stays (--untried skips the test): %w", app.ErrRefused, err)
	}
	return tried, nil
}
