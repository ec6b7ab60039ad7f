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
	cmd := &cobra.Command{
		Use:   "rotate KIND VENDOR",
		Short: "Put a new key of a vendor account in the place of the old one, after trying it",
		Long: `Put a new key of a vendor account in the place of the old one. It is tried at the
vendor first, where the vendor has a call for that. Functions take it when the
vendor refuses the old one, within five minutes in any case: end the old key at
the vendor after that.

Without --project it is the service's own account, which Managed integrations use.`,
		Example: `  svc secrets rotate sms twilio --env production
  svc secrets rotate sms twilio --env production --project acme --secrets - < twilio.json`,
		Args: cobra.ExactArgs(2),
		RunE: a.On(o.parse, o.run),
	}
	app.EnvironmentFlag(cmd, &o.account.Environment)
	flags := cmd.Flags()
	flags.StringVar(&o.projectID, "project", "", "the project whose own account it is")
	flags.StringVar(&o.file, "secrets", "", "file with a JSON object of the secret fields, - for standard input")
	flags.BoolVar(&o.untried, "untried", false, "do not try the new key first")
	return cmd
}

func (o *rotateOptions) parse(args []string) (err error) {
	if err := app.ParseEnvironment(&o.account.Environment); err != nil {
		return err
	}
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
		return fmt.Errorf("%w: there is no key to rotate in %s", app.ErrRefused, o.account.Name(s))
	}
	fields, changed, err := catalog.ReadSecrets(ctx, o.App, o.account.Offer.Spec, stored, o.file, true)
	if err != nil {
		return err
	}
	if !changed {
		return app.Usagef("nothing new was given")
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

// integration returns one that uses the account: the project's, or one made up for the service's own account.
func (o *rotateOptions) integration(ctx context.Context, s *app.Stack) (i project.Integration, err error) {
	kind, env, spec := o.account.Offer.Kind, o.account.Environment, o.account.Offer.Spec
	i = project.Integration{Kind: kind, Environment: env, Vendor: spec.Name, Mode: project.Managed, Settings: map[string]string{}}
	for _, f := range spec.Settings {
		if f.Name != upstream.EndpointSetting {
			i.Settings[f.Name] = "any" // the account is what is tried
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

// try tries the new fields at the vendor and returns what came of it.
func (o *rotateOptions) try(ctx context.Context, s *app.Stack, i project.Integration, fields secret.Values) (string, error) {
	if o.untried {
		return "not tried", nil
	}
	account, err := s.Vendors.Resolve(ctx, o.account.Owner, i, &o.account.Offer.Spec, catalog.Staged(fields))
	tried := ""
	if err == nil {
		tried, err = catalog.Try(ctx, s, account)
	}
	if errors.Is(err, catalog.ErrCannotTry) {
		return catalog.ErrCannotTry.Error(), nil
	}
	if err != nil {
		return "", fmt.Errorf("%w: the new key does not work, the old one stays (--untried takes it all the same): %w", app.ErrRefused, err)
	}
	return tried, nil
}
