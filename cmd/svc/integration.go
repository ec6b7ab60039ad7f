package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

func (a *app) integration() *cobra.Command {
	return group("integration", "Connect projects to vendors",
		a.integrationSet(), a.integrationList(), a.integrationCheck(), a.integrationActive("enable", true), a.integrationActive("disable", false))
}

// integrationView is an integration as programs read it.
type integrationView struct {
	Environment project.Environment `json:"environment"`
	Kind        project.Kind        `json:"kind"`
	Vendor      string              `json:"vendor"`
	Mode        project.Mode        `json:"mode"`
	Active      bool                `json:"active"`
	Priority    int                 `json:"priority"`
	Settings    map[string]string   `json:"settings"`
	// Incomplete says why the integration cannot be used as it is; empty when it can.
	Incomplete string    `json:"incomplete"`
	Updated    time.Time `json:"updated"`
}

// viewIntegrations shows a project's integrations of one environment, or of both when env is empty.
func (s *stack) viewIntegrations(ctx context.Context, rec *project.Record, env project.Environment) ([]integrationView, error) {
	views := []integrationView{}
	for _, i := range rec.Integrations {
		if env != "" && i.Environment != env {
			continue
		}
		v, err := s.viewIntegration(ctx, rec.ID, i)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

func (s *stack) viewIntegration(ctx context.Context, projectID string, i project.Integration) (integrationView, error) {
	v := integrationView{i.Environment, i.Kind, i.Vendor, i.Mode, i.Active, i.Priority, i.Settings, "", i.Updated}
	o, err := findOffer(string(i.Kind), i.Vendor)
	if err == nil {
		_, err = s.vendors.Resolve(ctx, projectID, i, &o.spec, s.secrets)
	}
	var unknown *usageError
	switch {
	case errors.Is(err, upstream.ErrIncomplete):
		v.Incomplete = strings.TrimPrefix(err.Error(), upstream.ErrIncomplete.Error()+": ")
	case errors.As(err, &unknown):
		v.Incomplete = unknown.text
	case err != nil:
		return v, err
	}
	return v, nil
}

func integrationTable(views []integrationView) table {
	t := table{
		header: []string{"ENVIRONMENT", "KIND", "VENDOR", "MODE", "STATE", "PRIORITY", "SETTINGS", "INCOMPLETE"},
		empty:  `No integrations. "svc integration set" makes one.`,
	}
	for _, v := range views {
		state := "inactive"
		if v.Active {
			state = "active"
		}
		var settings []string
		for _, name := range slices.Sorted(maps.Keys(v.Settings)) {
			settings = append(settings, name+"="+v.Settings[name])
		}
		t.rows = append(t.rows, []string{
			string(v.Environment), string(v.Kind), v.Vendor, string(v.Mode), state,
			strconv.Itoa(v.Priority), strings.Join(settings, " "), v.Incomplete,
		})
	}
	return t
}

// staged are the secrets of an integration as they would be.
type staged secret.Values

func (s staged) Fields(context.Context, project.Kind, string, project.Environment, string) (secret.Values, error) {
	return secret.Values(s), nil
}

func (a *app) integrationSet() *cobra.Command {
	var (
		env, mode, file      string
		settings             []string
		priority             int
		inactive, incomplete bool
		ask                  bool
	)
	cmd := &cobra.Command{
		Use:   "set PROJECT KIND VENDOR",
		Short: "Connect a project to a vendor, or change how it is connected",
		Long: `Connect a project to a vendor, or change how it is connected. What is not given
stays as it is; a setting given empty is removed. A new integration is active.

A byok integration uses the project's own vendor account: its secret fields are
asked for at a terminal while one is missing, or with --ask (Enter keeps what is
stored). Programs give a JSON object of them in a file, or on standard input
with --secrets -. A managed integration uses the service's own account, see
"svc vendor account".`,
		Example: `  svc integration set acme sms quicksend --mode byok --setting sender_id=Acme
  svc integration set acme sms twilio --mode managed --env production --priority 2`,
		Args: cobra.ExactArgs(3),
	}
	cmd.RunE = a.on(func(ctx context.Context, s *stack, args []string) error {
		environment, err := parseEnvironment(env)
		if err != nil {
			return err
		}
		o, err := findOffer(args[1], args[2])
		if err != nil {
			return err
		}
		rec, err := s.load(ctx, args[0])
		if err != nil {
			return err
		}
		i := project.Integration{Kind: o.kind, Environment: environment, Vendor: o.spec.Name, Active: !inactive}
		if before := rec.Integration(environment, o.kind, o.spec.Name); before != nil {
			i = *before
		} else if mode == "" {
			return &usageError{`a new integration needs --mode, "managed" or "byok"`}
		}
		if mode != "" {
			i.Mode = project.Mode(mode)
		}
		if i.Mode != project.Managed && i.Mode != project.BYOK {
			return &usageError{`--mode is "managed" or "byok", not ` + strconv.Quote(mode)}
		}
		if cmd.Flags().Changed("priority") {
			i.Priority = priority
		}
		if inactive {
			i.Active = false
		}
		if i.Settings, err = o.applySettings(i.Settings, settings); err != nil {
			return err
		}
		var toSandbox bool
		if i.Settings, toSandbox = s.withSandbox(o, i.Settings); toSandbox {
			a.note("Endpoint: the sandbox, %s. The local stack calls no real vendor unless --setting endpoint=URL says so.", i.Settings[upstream.EndpointSetting])
		}

		if i.Mode == project.BYOK && !project.ValidID(rec.ID) {
			return fmt.Errorf("%w: project %s has a reserved ID, its secrets would be those of the service's own vendor accounts", errRefused, rec.ID)
		}
		owner := secret.Owner(i.Mode, rec.ID)
		stored, err := s.secrets.Fields(ctx, o.kind, owner, environment, o.spec.Name)
		if err != nil {
			return err
		}
		fields, changed := stored, false
		switch {
		case i.Mode == project.BYOK && len(o.spec.Secrets) > 0:
			if fields, changed, err = a.readSecrets(ctx, o.spec, stored, file, ask); err != nil {
				return err
			}
		case file != "":
			return &usageError{`--secrets is for byok integrations; "svc vendor account" sets the account that managed ones use`}
		}
		if _, err := s.vendors.Resolve(ctx, rec.ID, i, &o.spec, staged(fields)); err != nil && (!incomplete || !errors.Is(err, upstream.ErrIncomplete)) {
			return err
		}

		// The secret first: an active integration is never without it.
		if changed {
			if err := s.secrets.Put(ctx, o.kind, owner, environment, o.spec.Name, fields); err != nil {
				return err
			}
		}
		if err := s.projects.PutIntegration(ctx, rec.ID, i); err != nil {
			return err
		}
		return a.printIntegration(ctx, s, rec.ID, environment, o.kind, o.spec.Name)
	})
	flags := cmd.Flags()
	flags.StringVar(&env, "env", string(project.Development), "development or production")
	flags.StringVar(&mode, "mode", "", "managed: the service's account, the project pays credits; byok: the project's own account")
	flags.StringArrayVar(&settings, "setting", nil, "NAME=VALUE, a setting of the vendor (repeat for more)")
	flags.StringVar(&file, "secrets", "", "file with a JSON object of the secret fields, - for standard input")
	flags.BoolVar(&ask, "ask", false, "ask for the secret fields although they are stored")
	flags.IntVar(&priority, "priority", 0, "order among the active ones, the lowest first")
	flags.BoolVar(&inactive, "inactive", false, "do not use it yet")
	flags.BoolVar(&incomplete, "incomplete", false, "store it although something that the vendor needs is missing")
	return cmd
}

// withSandbox gives settings the sandbox's endpoint on the local stack, where
// they have none of their own, and tells whether it did.
func (s *stack) withSandbox(o offer, settings map[string]string) (map[string]string, bool) {
	if s.sandbox == "" || o.builtIn || settings[upstream.EndpointSetting] != "" {
		return settings, false
	}
	settings = maps.Clone(settings)
	if settings == nil {
		settings = map[string]string{}
	}
	settings[upstream.EndpointSetting] = s.sandbox + "/" + o.spec.Name
	return settings, true
}

// applySettings puts NAME=VALUE texts over settings.
func (o offer) applySettings(before map[string]string, given []string) (map[string]string, error) {
	after := maps.Clone(before)
	if after == nil {
		after = map[string]string{}
	}
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, &usageError{"--setting wants NAME=VALUE, not " + strconv.Quote(text)}
		}
		at := slices.IndexFunc(o.settings(), func(f upstream.Field) bool { return f.Name == name })
		if at < 0 {
			if slices.ContainsFunc(o.spec.Secrets, func(f upstream.Field) bool { return f.Name == name }) {
				return nil, &usageError{name + " is a secret field: give it at the prompt or with --secrets, never as an argument"}
			}
			return nil, &usageError{fmt.Sprintf("%s has no setting %q; it has %s", o.spec.Title, name, names(o.settings()))}
		}
		if f := o.settings()[at]; value != "" && f.Pattern != "" && !regexp.MustCompile(f.Pattern).MatchString(value) {
			return nil, &usageError{fmt.Sprintf("%s cannot be %q; it is: %s", name, value, f.Description)}
		}
		if value == "" {
			delete(after, name)
		} else {
			after[name] = value
		}
	}
	return after, nil
}

func (a *app) printIntegration(ctx context.Context, s *stack, projectID string, env project.Environment, kind project.Kind, vendor string) error {
	rec, err := s.load(ctx, projectID)
	if err != nil {
		return err
	}
	i := rec.Integration(env, kind, vendor)
	if i == nil {
		return fmt.Errorf("integration %s: %w", project.IntegrationID(env, kind, vendor), project.ErrNotFound)
	}
	v, err := s.viewIntegration(ctx, projectID, *i)
	if err != nil {
		return err
	}
	return a.print(v, integrationTable([]integrationView{v}))
}

func (a *app) integrationList() *cobra.Command {
	var env string
	cmd := &cobra.Command{
		Use:   "list PROJECT",
		Short: "List a project's integrations, and what is missing in them",
		Args:  cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			environment, err := chosenEnvironment(env)
			if err != nil {
				return err
			}
			rec, err := s.load(ctx, args[0])
			if err != nil {
				return err
			}
			views, err := s.viewIntegrations(ctx, rec, environment)
			if err != nil {
				return err
			}
			return a.print(views, integrationTable(views))
		}),
	}
	cmd.Flags().StringVar(&env, "env", "", "development or production (default: both)")
	return cmd
}

func (a *app) integrationActive(name string, active bool) *cobra.Command {
	short := "Stop using an integration; it keeps its settings and secrets"
	if active {
		short = "Use an integration"
	}
	var env string
	cmd := &cobra.Command{
		Use:   name + " PROJECT KIND VENDOR",
		Short: short,
		Args:  cobra.ExactArgs(3),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			environment, err := parseEnvironment(env)
			if err != nil {
				return err
			}
			kind, vendor := project.Kind(args[1]), args[2]
			if err := s.projects.EnableIntegration(ctx, args[0], environment, kind, vendor, active); err != nil {
				return err
			}
			return a.printIntegration(ctx, s, args[0], environment, kind, vendor)
		}),
	}
	cmd.Flags().StringVar(&env, "env", string(project.Development), "development or production")
	return cmd
}
