// Package secrets holds the command "svc secrets".
package secrets

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// Command returns "svc secrets".
func Command(a *app.App) *cobra.Command {
	return app.Group("secrets", "Rotate the keys of vendor accounts, encrypt secrets with another KMS key", rotate(a), rekey(a))
}

type rotateOptions struct {
	offer           catalog.Offer
	environments    []project.Environment
	projectID, file string
	untried         bool
}

func rotate(a *app.App) *cobra.Command {
	o := &rotateOptions{}
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
	}, catalog.ParseVendor(&o.offer), o.run)
	app.EnvironmentsFlag(cmd, &o.environments, "development")
	flags := cmd.Flags()
	flags.StringVar(&o.projectID, "project", "", "the project that owns the account")
	flags.StringVar(&o.file, "secrets", "", "file with a JSON object of the secret fields, - for standard input")
	flags.BoolVar(&o.untried, "untried", false, "do not test the new key first")
	return cmd
}

func (o *rotateOptions) run(ctx context.Context, s *app.Stack) error {
	var integrations []project.Integration
	for _, env := range o.environments {
		i, err := o.integration(ctx, s, env)
		if err != nil {
			return err
		}
		integrations = append(integrations, i)
	}
	accounts, err := catalog.ReadAccounts(ctx, s, o.offer, secret.Owner(integrations[0].Mode, o.projectID), o.environments)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(accounts, func(t catalog.Account) bool { return len(t.Stored) == 0 }); at >= 0 {
		return fmt.Errorf("%w: %s has no key to rotate", app.ErrRefused, accounts[at].Name(s))
	}
	if err := catalog.ReadSecrets(ctx, s, accounts, o.file, true); err != nil {
		return err
	}
	if !slices.ContainsFunc(accounts, func(t catalog.Account) bool { return t.Changed() }) {
		return app.Usagef("no field has a new value")
	}
	for n, i := range integrations {
		if accounts[n].Tried, err = o.try(ctx, s, i, accounts[n]); err != nil {
			return err
		}
	}
	return catalog.Store(ctx, s, accounts)
}

// integration returns an integration with the account: the project's, or a temporary one for the service's own account.
func (o *rotateOptions) integration(ctx context.Context, s *app.Stack, env project.Environment) (i project.Integration, err error) {
	kind, spec := o.offer.Kind, o.offer.Spec
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
		i = *own
	}
	i.Settings, _ = o.offer.WithSandbox(s, i.Settings)
	return i, nil
}

// try tests the new fields at the vendor and returns the result for the operator.
func (o *rotateOptions) try(ctx context.Context, s *app.Stack, i project.Integration, t catalog.Account) (tried string, err error) {
	if o.untried {
		return "not tried", nil
	}
	account, err := s.Vendors.Resolve(ctx, t.Owner, i, &o.offer.Spec, catalog.Staged(t.Fields))
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
