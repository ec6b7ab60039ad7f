package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/upstream"
)

// chooseIntegrations keeps the integrations of a project in environments, of a kind and with a vendor. An empty text is
// for all.
func chooseIntegrations(rec *project.Record, envs []project.Environment, kind project.Kind, vendor string) {
	rec.Integrations = slices.DeleteFunc(rec.Integrations, func(i project.Integration) bool {
		return !slices.Contains(envs, i.Environment) || kind != "" && i.Kind != kind || vendor != "" && i.Vendor != vendor
	})
}

// integrationUse is an integration of all projects that have it alike, in the format for programs.
type integrationUse struct {
	Kind        project.Kind        `json:"kind"`
	Vendor      string              `json:"vendor"`
	Environment project.Environment `json:"environment"`
	Mode        project.Mode        `json:"mode"`
	State       string              `json:"state"`
	Priority    int                 `json:"priority"`
	Projects    []string            `json:"projects"`
}

// listAll lists the integrations of all projects by kind, vendor and environment.
func listAll(ctx context.Context, s *app.Stack, envs []project.Environment) error {
	projects, err := s.ListProjects(ctx, "")
	if err != nil {
		return err
	}
	uses := map[string]*integrationUse{} // by what they have alike
	for _, p := range projects {
		rec, err := s.Load(ctx, p.ID)
		if err != nil {
			return err
		}
		chooseIntegrations(rec, envs, "", "")
		for _, i := range rec.Integrations {
			state := catalog.State(i)
			key := fmt.Sprintf("%s %s %s %s %s %04d", i.Kind, i.Vendor, i.Environment, i.Mode, state, i.Priority)
			if uses[key] == nil {
				uses[key] = &integrationUse{i.Kind, i.Vendor, i.Environment, i.Mode, state, i.Priority, nil}
			}
			uses[key].Projects = append(uses[key].Projects, p.ID)
		}
	}
	var all []integrationUse
	for _, key := range slices.Sorted(maps.Keys(uses)) {
		all = append(all, *uses[key])
	}
	const header = "KIND, VENDOR, ENVIRONMENT, MODE, STATE, PRIORITY, PROJECTS"
	return app.PrintList(s.App, header, "No integrations.", all, func(u integrationUse) []string {
		return []string{string(u.Kind), u.Vendor, string(u.Environment), string(u.Mode), u.State,
			strconv.Itoa(u.Priority), strings.Join(u.Projects, " ")}
	})
}

func listIntegrations(a *app.App) *cobra.Command {
	var envs []project.Environment
	var id string // empty for all projects
	cmd := a.Command("list [PROJECT]", app.Bind(&id), func(ctx context.Context, s *app.Stack) error {
		if id == "" {
			return listAll(ctx, s, envs)
		}
		rec, err := s.Load(ctx, id)
		if err != nil {
			return err
		}
		chooseIntegrations(rec, envs, "", "")
		views, err := catalog.ViewAll(ctx, s, rec)
		if err != nil {
			return err
		}
		return s.Print(views, catalog.Table(views))
	})
	app.EnvironmentFlag(cmd, &envs, "both", true)
	return cmd
}

func enableIntegration(a *app.App, name string, active bool) *cobra.Command {
	var kind, vendor string
	var envs []project.Environment
	var cmd *cobra.Command
	cmd = a.ProjectCommand(name+" PROJECT KIND VENDOR", func(args []string) (err error) {
		if err = catalog.ValidateKind(args[0]); active { // disable also takes a vendor that only another version knows
			_, err = catalog.Find(args[0], args[1])
		}
		return cmp.Or(err, app.Bind(&kind, &vendor)(args))
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		if !cmd.Flags().Changed("env") {
			var err error
			if envs, err = onlyEnvironment(rec, project.Kind(kind), vendor); err != nil {
				return err
			}
		}
		return storeIntegrations(ctx, s, rec.ID, envs, project.Kind(kind), vendor, false,
			func(rec *project.Record) (all []project.Integration, err error) {
				for _, env := range envs {
					i := admin.Integration(rec, env, project.Kind(kind), vendor)
					if i == nil {
						return nil, fmt.Errorf("integration %s: %w",
							project.IntegrationID(env, project.Kind(kind), vendor), admin.ErrNotFound)
					}
					i.Active, i.SetAside = active, false
					all = append(all, *i)
				}
				return all, nil
			})
	})
	app.EnvironmentFlag(cmd, &envs, "development", true)
	return cmd
}

// onlyEnvironment returns the environment that has the integration, development where none has it. Of two the operator
// has to choose.
func onlyEnvironment(rec *project.Record, kind project.Kind, vendor string) ([]project.Environment, error) {
	var have []project.Environment
	for _, env := range admin.Environments() {
		if admin.Integration(rec, env, kind, vendor) != nil {
			have = append(have, env)
		}
	}
	if len(have) > 1 {
		return nil, app.Usagef("both environments of %s have %s %s: give --env development, production or both", rec.ID,
			kind, vendor)
	}
	return append(have, project.Development)[:1], nil
}

// storeIntegrations edits the integrations of a project with a vendor in some environments, in one write, and prints
// them.
func storeIntegrations(ctx context.Context, s *app.Stack, id string, envs []project.Environment, kind project.Kind,
	vendor string, replace bool, edit func(*project.Record) ([]project.Integration, error)) error {
	err := s.Projects.EditIntegrations(ctx, id, func(rec *project.Record) ([]project.Integration, error) {
		all, err := edit(rec)
		if err != nil {
			return nil, err
		}
		return withOthers(s, rec, replace, all)
	})
	if err != nil {
		return err
	}
	rec, err := s.Load(ctx, id)
	if err != nil {
		return err
	}
	if replace {
		vendor = ""
	}
	chooseIntegrations(rec, envs, kind, vendor)
	views, err := catalog.ViewAll(ctx, s, rec)
	if err != nil {
		return err
	}
	return s.Print(app.OneOrAll(views), catalog.Table(views))
}

// withOthers validates integrations, and with replace makes them active and adds the other active ones of their kinds
// and environments, inactive. The refusal of mixed modes names the commands that avoid it, for a shell; set refuses to
// replace others by an integration that is incomplete.
func withOthers(s *app.Stack, rec *project.Record, replace bool,
	all []project.Integration) ([]project.Integration, error) {
	var others []project.Integration
	hint := []string{
		"Replace the others in one write, or deactivate them first:",
		strings.Replace(s.Again("--replace"), "integration enable", "integration set", 1),
	}
	for n := range all {
		i := &all[n]
		i.Active = i.Active || replace
		i.SetAside = i.SetAside && !i.Active
		for _, other := range rec.Active(i.Kind, i.Environment) {
			if other.Active = false; other.Vendor != i.Vendor {
				others = append(others, other)
				if other.Mode != i.Mode {
					hint = append(hint, s.Line("integration disable %s %s %s --env %s", rec.ID, other.Kind,
						other.Vendor, other.Environment))
				}
			}
		}
	}
	if replace {
		all = append(others, all...) // in this order, so that no mixed modes are active in between
	}
	err := admin.ValidateIntegrations(rec, all...)
	if errors.Is(err, admin.ErrMixedModes) {
		err = app.Failf(app.ExitRefused, strings.Join(hint, "\n"), "%v", err)
	}
	return all, err
}

func checkIntegrations(a *app.App) *cobra.Command {
	var kind, vendor string // empty for all
	var envs []project.Environment
	cmd := a.ProjectCommand("check PROJECT [KIND [VENDOR]]", func(args []string) error {
		return cmp.Or(catalog.ValidateArguments(args), app.Bind(&kind, &vendor)(args))
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		if chooseIntegrations(rec, envs, project.Kind(kind), vendor); len(rec.Integrations) == 0 {
			return fmt.Errorf("no such integrations of project %s: %w", rec.ID, admin.ErrNotFound)
		}
		var f app.Findings
		for _, i := range rec.Integrations {
			detail, err := checkIntegration(ctx, s, rec.ID, i)
			f.AddIf(!f.Failed("integration", i.ID, err), app.OK, "integration", i.ID, detail, "")
		}
		return s.PrintFindings(f.Found, true)
	})
	app.EnvironmentFlag(cmd, &envs, "both", true)
	return cmd
}

// checkIntegration checks one integration.
func checkIntegration(ctx context.Context, s *app.Stack, id string, i project.Integration) (detail string, err error) {
	account, err := catalog.Resolve(ctx, s, id, i)
	if err == nil {
		detail, err = catalog.TestAccount(ctx, s, account)
	}
	if err != nil {
		return "", err
	}
	switch lacks, unchecked := catalog.CheckRight(ctx, s, i); {
	case unchecked != nil:
		detail += "; " + catalog.NotChecked + unchecked.Error()
	case lacks != "":
		err = errors.New(lacks)
	}
	return detail, err
}

type setOptions struct {
	*app.App
	offer                     catalog.Offer
	environments              []project.Environment
	mode                      project.Mode
	secrets                   catalog.SecretInput
	settings                  []string
	priority                  int
	given                     func(flag string) bool
	inactive, incomplete, ask bool
	replace                   bool
	noted                     bool // that the endpoint is the sandbox
}

func setIntegration(a *app.App) *cobra.Command {
	o := &setOptions{}
	cmd := a.ProjectCommand("set PROJECT KIND [VENDOR]", o.parse, o.run)
	o.App = a
	app.EnvironmentFlag(cmd, &o.environments, "development", true)
	flags := cmd.Flags()
	// Manual is the contract's word for BYOK.
	modes := map[string]project.Mode{"managed": project.Managed, "byok": project.BYOK, "manual": project.BYOK}
	app.ChoiceFlag(cmd, flags, "mode", "managed: the service's account, the project pays credits; "+
		"byok or manual: the project's own account", &o.mode, modes)
	flags.StringArrayVar(&o.settings, "setting", nil, "NAME=VALUE, a setting of the vendor (repeat for more)")
	_ = cmd.RegisterFlagCompletionFunc("setting", completeSettings) // the flag exists
	o.secrets.AddFlag(cmd)
	flags.BoolVar(&o.replace, "replace", false,
		"activate it and deactivate the others of its kind and environment, in one write")
	flags.BoolVar(&o.ask, "ask", false, "ask for secret fields that are already stored")
	flags.IntVar(&o.priority, "priority", 0, "order of the active integrations, the lowest first")
	flags.BoolVar(&o.inactive, "inactive", false, "do not use the integration yet")
	flags.BoolVar(&o.incomplete, "incomplete", false, "store the integration although a required field is missing")
	o.given = flags.Changed
	return cmd
}

func completeSettings(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) > 1 {
		offer, _ := catalog.FindByArguments(args[1:]) // an unknown vendor has no settings
		for _, f := range offer.Settings() {
			names = append(names, f.Name+"=")
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (o *setOptions) parse(args []string) (err error) {
	if o.offer, err = catalog.FindByArguments(args); err != nil {
		return err
	}
	settings, err := o.offer.Apply(nil, o.settings)
	if err != nil {
		return err
	}
	if endpoint := settings[upstream.EndpointSetting]; endpoint != "" {
		if err := upstream.ValidateEndpoint(endpoint, o.Local); err != nil {
			return app.Usagef("%v: %q", err, endpoint)
		}
	}
	switch {
	case o.offer.Spec.Name == project.TestVendor && slices.Contains(o.environments, project.Production):
		return app.Usagef("the vendor %s exists only in development", project.TestVendor)
	case o.given("priority") && (o.priority < 0 || o.priority > admin.MaxPriority):
		return app.Usagef("--priority is a whole number from 0 to %d, not %d", admin.MaxPriority, o.priority)
	case o.replace && o.inactive:
		return app.Usagef("give --replace or --inactive, not both")
	case o.secrets.File != "" && o.mode == project.Managed:
		return errSecretsOfManaged
	}
	return o.secrets.Parse(o.App, o.offer.Spec)
}

var errSecretsOfManaged = app.Usagef(`--secrets is for byok integrations; "svc vendor account" sets the account that ` +
	`managed ones use`)

func (o *setOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	if !o.given("env") {
		if _, err := onlyEnvironment(rec, o.offer.Kind, o.offer.Spec.Name); err != nil {
			return err
		}
	}
	var accounts []catalog.Account // with the new secret fields; nil before the first edit
	// Another operator may change the project while this one types, so each edit begins with the present record.
	edit := func(rec *project.Record) (all []project.Integration, err error) {
		for n, env := range o.environments {
			i, err := o.integration(s, rec, env)
			switch {
			case err != nil:
				return nil, err
			case accounts != nil && accounts[n].Owner != upstream.Owner(i.Mode, rec.ID):
				return nil, fmt.Errorf("%w: %s is %s now; run the command again", app.ErrRefused, i.ID, i.Mode)
			case accounts != nil:
				_, err := s.Vendors.Resolve(ctx, rec.ID, i, &o.offer.Spec, catalog.Staged(accounts[n].Fields))
				if err != nil && (!o.incomplete || !errors.Is(err, upstream.ErrIncomplete)) {
					return nil, err
				}
			}
			all = append(all, i)
		}
		_, err = withOthers(s, rec, o.replace, slices.Clone(all))
		return all, err
	}
	integrations, err := edit(rec)
	if err != nil {
		return err
	}
	for _, i := range integrations {
		if i.Mode == project.BYOK && !project.ValidID(rec.ID) {
			return fmt.Errorf("%w: project %s has a reserved ID, its secrets would have the names of the service's own vendor "+
				"accounts", app.ErrRefused, rec.ID)
		}
		account, err := catalog.ReadAccount(ctx, s, o.offer, upstream.Owner(i.Mode, rec.ID), i.Environment)
		if err != nil {
			return err
		}
		accounts = append(accounts, account)
	}
	if err := o.readSecrets(ctx, s, integrations, accounts); err != nil {
		return err
	}
	if rec, err = s.Load(ctx, rec.ID); err == nil {
		_, err = edit(rec)
	}
	// The secret is written first, so that an active integration always has a secret.
	if err == nil {
		err = catalog.Put(ctx, s, accounts)
	}
	if err != nil {
		return err
	}
	return storeIntegrations(ctx, s, rec.ID, o.environments, o.offer.Kind, o.offer.Spec.Name, o.replace, edit)
}

// integration returns the project's integration with the changes of the options, or a new integration.
func (o *setOptions) integration(s *app.Stack, rec *project.Record,
	env project.Environment) (i project.Integration, err error) {
	i = project.Integration{Kind: o.offer.Kind, Environment: env, Vendor: o.offer.Spec.Name, Active: !o.inactive}
	if before := admin.Integration(rec, env, o.offer.Kind, o.offer.Spec.Name); before != nil {
		i = *before
	} else if o.mode == "" {
		return i, app.Usagef(`a new integration needs --mode, "managed" or "byok"`)
	}
	i.Mode = cmp.Or(o.mode, i.Mode)
	if o.given("priority") {
		i.Priority = o.priority
	}
	if o.inactive {
		i.Active, i.SetAside = false, false
	}
	if i.Settings, err = o.offer.Apply(i.Settings, o.settings); err != nil {
		return i, err
	}
	var usesSandbox bool
	if i.Settings, usesSandbox = o.offer.WithSandbox(s, i.Settings); usesSandbox && !o.noted {
		o.noted = true
		s.Note("Endpoint: the sandbox, %s. The local stack calls a real vendor only with --setting endpoint=URL.",
			i.Settings[upstream.EndpointSetting])
	}
	return i, nil
}

// readSecrets sets the secret fields of the accounts of byok integrations.
func (o *setOptions) readSecrets(ctx context.Context, s *app.Stack, integrations []project.Integration,
	accounts []catalog.Account) error {
	managed := slices.ContainsFunc(integrations, func(i project.Integration) bool { return i.Mode == project.Managed })
	if !managed && len(o.offer.Spec.Secrets) > 0 {
		return o.secrets.Read(ctx, s, accounts, o.ask)
	}
	if o.secrets.File != "" {
		return errSecretsOfManaged
	}
	return nil
}
