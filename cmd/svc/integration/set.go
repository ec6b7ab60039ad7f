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
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

type setOptions struct {
	offer                     catalog.Offer
	environments              []project.Environment
	mode                      project.Mode
	file                      string
	settings                  []string
	priority                  int
	hasPriority               func() bool
	inactive, incomplete, ask bool
}

func set(a *app.App) *cobra.Command {
	o := &setOptions{}
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "set PROJECT KIND VENDOR",
		Short: "Create or change the integration of a project with a vendor",
		Long: `Create or change the integration of a project with a vendor. Omitted settings stay
unchanged; an empty value removes a setting. A new integration is active.

A byok integration uses the project's own vendor account. At a terminal the command
asks for the secret fields while one is missing, or with --ask (Enter keeps the
stored value). Programs pass the fields as a JSON object in a file, or on standard
input with --secrets -. A managed integration uses the service's own account, see
"svc vendor account".`,
		Example: `  svc integration set acme sms quicksend --mode byok --setting sender_id=Acme
  svc integration set acme sms twilio --mode managed --env production --priority 2`,
	}, catalog.ParseVendor(&o.offer), o.run)
	app.EnvironmentsFlag(cmd, &o.environments, false)
	flags := cmd.Flags()
	flags.StringVar((*string)(&o.mode), "mode", "", "managed: the service's account, the project pays credits; byok: the project's own account")
	app.Complete(cmd, "mode", string(project.Managed), string(project.BYOK))
	flags.StringArrayVar(&o.settings, "setting", nil, "NAME=VALUE, a setting of the vendor (repeat for more)")
	flags.StringVar(&o.file, "secrets", "", "file with a JSON object of the secret fields, - for standard input")
	flags.BoolVar(&o.ask, "ask", false, "ask for secret fields that are already stored")
	flags.IntVar(&o.priority, "priority", 0, "order of the active integrations, the lowest first")
	flags.BoolVar(&o.inactive, "inactive", false, "do not use the integration yet")
	flags.BoolVar(&o.incomplete, "incomplete", false, "store the integration although a required field is missing")
	o.hasPriority = func() bool { return flags.Changed("priority") }
	return cmd
}

func (o *setOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	var integrations []project.Integration
	var accounts []catalog.Account
	for _, env := range o.environments {
		i, err := o.integration(s, rec, env)
		if err != nil {
			return err
		}
		if i.Mode == project.BYOK && !project.ValidID(rec.ID) {
			return fmt.Errorf("%w: project %s has a reserved ID, its secrets would have the names of the service's own vendor accounts", app.ErrRefused, rec.ID)
		}
		account, err := catalog.ReadAccount(ctx, s, o.offer, secret.Owner(i.Mode, rec.ID), env)
		if err != nil {
			return err
		}
		integrations, accounts = append(integrations, i), append(accounts, account)
	}
	if err := o.readSecrets(ctx, s, integrations, accounts); err != nil {
		return err
	}
	for n, i := range integrations {
		_, err := s.Vendors.Resolve(ctx, rec.ID, i, &o.offer.Spec, catalog.Staged(accounts[n].Fields))
		if err != nil && (!o.incomplete || !errors.Is(err, upstream.ErrIncomplete)) {
			return err
		}
	}
	for n, i := range integrations {
		// The secret is written first, so that an active integration always has a secret.
		if err := accounts[n].Put(ctx, s); err != nil {
			return err
		}
		if err := s.Projects.PutIntegration(ctx, rec.ID, i); err != nil {
			return err
		}
	}
	return show(ctx, s, rec.ID, o.environments, o.offer.Kind, o.offer.Spec.Name)
}

// integration returns the project's integration with the changes of the options, or a new integration.
func (o *setOptions) integration(s *app.Stack, rec *project.Record, env project.Environment) (i project.Integration, err error) {
	i = project.Integration{Kind: o.offer.Kind, Environment: env, Vendor: o.offer.Spec.Name, Active: !o.inactive}
	if before := rec.Integration(env, o.offer.Kind, o.offer.Spec.Name); before != nil {
		i = *before
	} else if o.mode == "" {
		return i, app.Usagef(`a new integration needs --mode, "managed" or "byok"`)
	}
	if o.mode != "" {
		i.Mode = o.mode
	}
	if i.Mode != project.Managed && i.Mode != project.BYOK {
		return i, app.Usagef(`--mode is "managed" or "byok", not %q`, string(o.mode))
	}
	if o.hasPriority() {
		i.Priority = o.priority
	}
	if o.inactive {
		i.Active = false
	}
	if i.Settings, err = o.offer.Apply(i.Settings, o.settings); err != nil {
		return i, err
	}
	var usesSandbox bool
	if i.Settings, usesSandbox = o.offer.WithSandbox(s, i.Settings); usesSandbox {
		s.Note("Endpoint: the sandbox, %s. The local stack calls a real vendor only with --setting endpoint=URL.", i.Settings[upstream.EndpointSetting])
	}
	return i, nil
}

// readSecrets sets the secret fields of the accounts of byok integrations.
func (o *setOptions) readSecrets(ctx context.Context, s *app.Stack, integrations []project.Integration, accounts []catalog.Account) error {
	managed := slices.ContainsFunc(integrations, func(i project.Integration) bool { return i.Mode == project.Managed })
	if !managed && len(o.offer.Spec.Secrets) > 0 {
		return catalog.ReadSecrets(ctx, s, accounts, o.file, o.ask)
	}
	if o.file != "" {
		return app.Usagef(`--secrets is for byok integrations; "svc vendor account" sets the account that managed ones use`)
	}
	return nil
}
