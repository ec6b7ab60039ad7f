package vendor

import (
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
)

// Concerned is a project in the outage of a vendor, in the format for programs.
type Concerned struct {
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

func outage(a *app.App) *cobra.Command {
	o := &outageOptions{}
	cmd := a.Command(&cobra.Command{
		Use:   "outage KIND VENDOR",
		Short: "Show who uses a vendor, and set its integrations aside while the vendor is out",
		Long: `Show the projects that use a vendor, and the vendors that each would use without it.
--apply sets the integrations aside. --end makes exactly those active again. A project
without another vendor is left as it is, with exit code 1, unless --also-last is given.
Repeat an interrupted command: it continues. Functions follow within ten seconds.`,
		Example: `  svc vendor outage sms quicksend --env production
  svc vendor outage sms quicksend --env production --apply
  svc vendor outage sms quicksend --env production --end`,
	}, func(args []string) error {
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
	ids, err := s.ProjectIDs(ctx, "")
	if err != nil {
		return err
	}
	concerned, problems := []Concerned{}, 0
	step := s.Progress("projects", len(ids))
	for _, id := range ids {
		c, err := o.one(ctx, s, id)
		if err != nil {
			return err
		}
		if c != nil {
			concerned = append(concerned, *c)
			problems += map[string]int{"left": 1, "failed": 1}[c.State]
		}
		step()
	}
	t := app.Table{Header: []string{"PROJECT", "STATE", "THEN", "DETAIL"},
		Empty: fmt.Sprintf("No project uses %s %s in %s.", o.kind, o.vendor, o.environments[0])}
	err = app.PrintList(s.App, t, concerned, func(c Concerned) (Concerned, []string) {
		return c, []string{c.ProjectID, c.State, strings.Join(c.Then, ", "), c.Detail}
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
func (o *outageOptions) one(ctx context.Context, s *app.Stack, id string) (*Concerned, error) {
	rec, err := s.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	i := admin.Integration(rec, o.environments[0], o.kind, o.vendor)
	if i == nil || !i.Active && !i.SetAside {
		return nil, nil
	}
	c := &Concerned{ProjectID: id, State: map[bool]string{true: "active", false: "set_aside"}[i.Active], Then: []string{}}
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
