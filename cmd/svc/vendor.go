package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/upstream"
)

// vendorView is a vendor in the format for programs.
type vendorView struct {
	Kind project.Kind `json:"kind"`
	upstream.Spec
}

// listVendors opens no stage, because the vendors are the tables of this version.
func listVendors(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:  "list [KIND [VENDOR]]",
		Args: cobra.MaximumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := catalog.ValidateArguments(args); err != nil {
				return err
			}
			header := []string{"KIND", "VENDOR", "TITLE", "SETTINGS", "SECRET FIELDS"}
			if len(args) == 2 {
				header = []string{"KIND", "VENDOR", "TITLE", "FIELD", "IS", "REQUIRED", "DESCRIPTION"}
			}
			var views []vendorView
			var tables []app.Table
			for _, o := range catalog.Offers() {
				if len(args) > 0 && string(o.Kind) != args[0] || len(args) > 1 && o.Spec.Name != args[1] {
					continue
				}
				if len(views) == 0 || o.Kind != views[len(views)-1].Kind {
					tables = append(tables, app.Table{Header: header})
				}
				v := vendorView{o.Kind, o.Spec}
				v.Settings, v.Secrets = append([]upstream.Field{}, o.Settings()...), append([]upstream.Field{}, v.Secrets...)
				rows := [][]string{{string(v.Kind), v.Name, v.Title, markedFields(v.Settings), markedFields(v.Secrets)}}
				if len(args) == 2 {
					rows = v.rows()
				}
				t := &tables[len(tables)-1]
				views, t.Rows = append(views, v), append(t.Rows, rows...)
			}
			return a.Print(views, tables...)
		},
	}
}

// markedFields returns the names of fields, the required ones with a star.
func markedFields(fields []upstream.Field) string {
	var names []string
	for _, f := range fields {
		names = append(names, f.Name+map[bool]string{true: "*"}[f.Required])
	}
	return strings.Join(names, " ")
}

// rows returns a row for each field, or one row for a vendor without fields.
func (v vendorView) rows() (rows [][]string) {
	add := func(name, is, required, description string) {
		rows = append(rows, []string{string(v.Kind), v.Name, v.Title, name, is, required, description})
	}
	answer := map[bool]string{true: "yes", false: "no"}
	for _, f := range v.Settings {
		add(f.Name, "setting", answer[f.Required], f.Description)
	}
	for _, f := range v.Secrets {
		required := answer[f.Required]
		if f.Required && v.ManagedAction != "" {
			required = "byok only"
		}
		add(f.Name, "secret", required, f.Description)
	}
	if rows == nil {
		add("", "", "", "")
	}
	return rows
}

type accountOptions struct {
	offer        catalog.Offer
	environments []project.Environment
	projectID    string
	secrets      catalog.SecretInput
	untried      bool
}

func accountCommand(a *app.App) *cobra.Command {
	o := &accountOptions{}
	cmd := a.Command("account KIND VENDOR", func(args []string) (err error) {
		if o.offer, err = catalog.FindByArguments(args); err != nil {
			return err
		}
		spec := o.offer.Spec
		if len(spec.Secrets) == 0 {
			return app.Usagef("%s needs no account", spec.Title)
		}
		if spec.ManagedAction != "" && o.projectID == "" {
			return app.Usagef("%s needs no account: Managed integrations use the function's own role", spec.Title)
		}
		return o.secrets.Parse(a, spec)
	}, o.run)
	app.EnvironmentFlag(cmd, &o.environments, "development", true)
	o.secrets.AddFlag(cmd)
	cmd.Flags().StringVar(&o.projectID, "project", "", "the project that owns the account")
	cmd.Flags().BoolVar(&o.untried, "untried", false, "do not test the new key first")
	return cmd
}

func (o *accountOptions) run(ctx context.Context, s *app.Stack) error {
	rec := &project.Record{}
	if o.projectID != "" {
		var err error
		if rec, err = s.Load(ctx, o.projectID); err != nil {
			return err
		}
	}
	var integrations []project.Integration
	var accounts []catalog.Account
	for _, env := range o.environments {
		i, err := o.integration(s, rec, env)
		if err != nil {
			return err
		}
		account, err := catalog.ReadAccount(ctx, s, o.offer, cmp.Or(o.projectID, upstream.ManagedOwner), env)
		if err != nil {
			return err
		}
		integrations, accounts = append(integrations, i), append(accounts, account)
	}
	if err := o.secrets.Read(ctx, s, accounts, true); err != nil {
		return err
	}
	for n := range accounts {
		t := &accounts[n]
		if missing := upstream.Missing(o.offer.Spec.Secrets, t.Fields); len(missing) > 0 {
			return fmt.Errorf("%w: %s needs %s", app.ErrRefused, o.offer.Spec.Title, strings.Join(missing, ", "))
		}
		if o.untried || len(t.Stored) == 0 || !t.Changed() {
			continue
		}
		account, err := s.Vendors.Resolve(ctx, t.Owner, integrations[n], &o.offer.Spec, catalog.Staged(t.Fields))
		if err == nil {
			t.Tried, err = catalog.TestAccount(ctx, s, account)
		}
		if err != nil {
			return fmt.Errorf("%w: the new key does not work, and the old key stays (--untried skips the test): %w",
				app.ErrRefused, err)
		}
	}
	if err := catalog.Put(ctx, s, accounts); err != nil {
		return err
	}
	var views []map[string]any
	var tables []app.Table
	for _, t := range accounts {
		name, vendor, fields := upstream.SecretName(s.Stage, t.Offer.Kind, t.Owner), o.offer.Spec.Name, t.Fields.Names()
		views = append(views, map[string]any{
			"secret": name, "environment": t.Environment, "vendor": vendor,
			"fields": fields, "changed": t.Changed(), "tried": t.Tried,
		})
		tables = append(tables, app.Table{Rows: app.Rows("Secret", name, "Environment", string(t.Environment),
			"Vendor", vendor, "Fields", strings.Join(fields, ", "), "Tried", t.Tried)})
	}
	return s.Print(app.OneOrAll(views), tables...)
}

// integration returns an integration with the account: the project's, or a temporary one for the service's own account.
func (o *accountOptions) integration(s *app.Stack, rec *project.Record,
	env project.Environment) (i project.Integration, err error) {
	kind, spec := o.offer.Kind, o.offer.Spec
	i = project.Integration{Kind: kind, Environment: env, Vendor: spec.Name, Mode: project.Managed,
		Settings: map[string]string{}}
	for _, f := range spec.Settings {
		if f.Name != upstream.EndpointSetting {
			i.Settings[f.Name] = "any" // the test concerns the account, not the settings
		}
	}
	if o.projectID != "" {
		own := admin.Integration(rec, env, kind, spec.Name)
		if own == nil || own.Mode != project.BYOK {
			return i, fmt.Errorf("byok integration %s: %w", project.IntegrationID(env, kind, spec.Name), admin.ErrNotFound)
		}
		i = *own
	}
	i.Settings, _ = o.offer.WithSandbox(s, i.Settings)
	return i, nil
}

// outageProject is a project in the outage of a vendor, in the format for programs.
type outageProject struct {
	ProjectID string   `json:"project_id"`
	State     string   `json:"state"` // "active", "set_aside", "restored", "left" or "failed"
	Then      []string `json:"then"`  // the vendors that the project uses without this one, in their order
	Detail    string   `json:"detail"`
}

type outageOptions struct {
	kind                 project.Kind
	vendor               string
	environments         []project.Environment // one
	apply, end, alsoLast bool
}

func outageCommand(a *app.App) *cobra.Command {
	o := &outageOptions{}
	cmd := a.Command("outage KIND VENDOR", func(args []string) error {
		_, err := catalog.Find(args[0], args[1])
		switch {
		case err != nil:
			return err
		case len(o.environments) == 0:
			return app.Usagef("give --env development or --env production")
		case o.apply && o.end, o.alsoLast && !o.apply:
			return app.Usagef("give --apply, with --also-last or without it, or --end")
		}
		o.kind, o.vendor = project.Kind(args[0]), args[1]
		return nil
	}, o.run)
	app.EnvironmentFlag(cmd, &o.environments, "", false)
	flags := cmd.Flags()
	flags.BoolVar(&o.apply, "apply", false, "set the integrations aside")
	flags.BoolVar(&o.end, "end", false, "make the integrations active again that --apply has set aside")
	flags.BoolVar(&o.alsoLast, "also-last", false, "with --apply: also where a project has no other vendor")
	return cmd
}

func (o *outageOptions) run(ctx context.Context, s *app.Stack) error {
	projects, err := s.ListProjects(ctx, "")
	if err != nil {
		return err
	}
	var concerned []outageProject
	problems := 0
	step := s.Progress("projects", len(projects))
	for _, p := range projects {
		c, err := o.one(ctx, s, p.ID)
		if err != nil {
			return err
		}
		if c != nil {
			concerned = append(concerned, *c)
			problems += map[string]int{"left": 1, "failed": 1}[c.State]
		}
		step()
	}
	empty := fmt.Sprintf("No project uses %s %s in %s.", o.kind, o.vendor, o.environments[0])
	err = app.PrintList(s.App, "PROJECT, STATE, THEN, DETAIL", empty, concerned, func(c outageProject) []string {
		return []string{c.ProjectID, c.State, strings.Join(c.Then, ", "), c.Detail}
	})
	switch {
	case err != nil:
		return err
	case problems > 0:
		return app.Failf(app.ExitFailed, "The others are done. Give such a project another vendor, or add --also-last.",
			"%s as before", app.Count(problems, "project is left", "projects are left"))
	case !o.apply && !o.end && len(concerned) > 0:
		s.Note("Set them aside: %s", s.Again("--apply"))
	}
	return nil
}

// one shows or changes the integration of one project; nil: the outage does not concern the project.
func (o *outageOptions) one(ctx context.Context, s *app.Stack, id string) (*outageProject, error) {
	rec, err := s.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	i := admin.Integration(rec, o.environments[0], o.kind, o.vendor)
	if i == nil || !i.Active && !i.SetAside {
		return nil, nil
	}
	state := map[bool]string{true: "active", false: "set_aside"}[i.Active]
	c := &outageProject{ProjectID: id, State: state, Then: []string{}}
	for _, other := range rec.Active(o.kind, o.environments[0]) {
		v, err := catalog.ViewOf(ctx, s, id, other)
		if err != nil {
			return nil, err
		}
		if other.Vendor != o.vendor && v.Incomplete == "" {
			c.Then = append(c.Then, other.Vendor)
		}
	}
	if len(c.Then) == 0 {
		c.Detail = "no other vendor"
	}
	switch {
	case o.apply && i.Active && len(c.Then) == 0 && !o.alsoLast:
		c.State = "left"
	case o.apply && i.Active:
		c.State, err = "set_aside", o.store(ctx, s, id, false)
	case o.end && i.SetAside:
		c.State, err = "restored", o.store(ctx, s, id, true)
		if errors.Is(err, admin.ErrMixedModes) || errors.Is(err, admin.ErrClosed) {
			c.State, c.Detail, err = "failed", err.Error(), nil
		}
	case o.end:
		return nil, nil
	}
	return c, err
}

// store sets the integration of a project aside, or makes it active again. An integration that another operator has
// changed meanwhile stays as it is.
func (o *outageOptions) store(ctx context.Context, s *app.Stack, id string, active bool) error {
	env := o.environments[0]
	return s.Projects.EditIntegrations(ctx, id, func(rec *project.Record) ([]project.Integration, error) {
		i := admin.Integration(rec, env, o.kind, o.vendor)
		if i == nil {
			return nil, fmt.Errorf("integration %s: %w", project.IntegrationID(env, o.kind, o.vendor), admin.ErrNotFound)
		}
		others := slices.ContainsFunc(rec.Active(o.kind, env), func(other project.Integration) bool {
			return other.Vendor != o.vendor
		})
		if i.Active != active && (active || others || o.alsoLast) {
			i.Active, i.SetAside = active, !active
		}
		return []project.Integration{*i}, nil
	})
}
