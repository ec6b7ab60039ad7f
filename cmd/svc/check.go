package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	location "svcapi/functions/location/vendors"
	security "svcapi/functions/security/vendors"
	sms "svcapi/functions/sms/vendors"
	"svcapi/shared/iplookup"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// anyAddress is what vendors of look-ups are asked for when an account is tried: a public resolver's.
var anyAddress = netip.MustParseAddr("9.9.9.9")

// errCannotTry says that a vendor has no call that would try an account without effect.
var errCannotTry = errors.New("the vendor has no call that tries an account without sending anything")

// try makes one call with an account that sends and changes nothing, and says what came of it.
func (s *stack) try(ctx context.Context, account upstream.Account) (string, error) {
	name := account.Integration.Vendor
	switch account.Integration.Kind {
	case project.SMS:
		vendor := sms.NewTable(s.aws).Find(name)
		if vendor == nil {
			return "", errCannotTry
		}
		balancer, ok := vendor.New(s.vendors, account).(sms.Balancer)
		if !ok {
			return "", errCannotTry
		}
		balance, err := balancer.Balance(ctx)
		return "balance at the vendor: " + balance, err
	case project.Security:
		return lookUp(ctx, s, security.Table(), account)
	case project.Location:
		return lookUp(ctx, s, location.Table(), account)
	}
	return "", errCannotTry
}

// lookUp asks a vendor of look-ups once.
func lookUp[T any](ctx context.Context, s *stack, rows []iplookup.Vendor[T], account upstream.Account) (string, error) {
	vendor := iplookup.Find(rows, account.Integration.Vendor)
	if vendor == nil || vendor.OnDisk() {
		return "", errCannotTry
	}
	_, err := vendor.Ask(ctx, iplookup.Caller{Client: s.vendors, Account: account}, anyAddress)
	if errors.Is(err, iplookup.ErrUnknown) {
		err = nil
	}
	return "the vendor answers look-ups", err
}

type checkView struct {
	Environment project.Environment `json:"environment"`
	Kind        project.Kind        `json:"kind"`
	Vendor      string              `json:"vendor"`
	OK          bool                `json:"ok"`
	Detail      string              `json:"detail"`
}

func (a *app) integrationCheck() *cobra.Command {
	var env string
	cmd := &cobra.Command{
		Use:   "check PROJECT [KIND [VENDOR]]",
		Short: "Try a project's integrations: settings, secret, endpoint, and the account where the vendor lets one",
		Long: `Try a project's integrations. Nothing is sent and no credits are charged; a
look-up that a vendor counts is one of its own account.`,
		Args: cobra.RangeArgs(1, 3),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			environment, err := chosenEnvironment(env)
			if err != nil {
				return err
			}
			rec, err := s.load(ctx, args[0])
			if err != nil {
				return err
			}
			views := []checkView{}
			failed := 0
			t := table{header: []string{"ENVIRONMENT", "KIND", "VENDOR", "OK", "DETAIL"}}
			for _, i := range rec.Integrations {
				if env != "" && i.Environment != environment || len(args) > 1 && string(i.Kind) != args[1] || len(args) > 2 && i.Vendor != args[2] {
					continue
				}
				v := s.check(ctx, rec.ID, i)
				if !v.OK {
					failed++
				}
				views = append(views, v)
				t.rows = append(t.rows, []string{string(v.Environment), string(v.Kind), v.Vendor, map[bool]string{true: "yes", false: "no"}[v.OK], v.Detail})
			}
			if len(views) == 0 {
				return nothingToCheck(args)
			}
			if err := a.print(views, t); err != nil {
				return err
			}
			if failed > 0 {
				return &problemsError{failed}
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&env, "env", "", "development or production (default: both)")
	return cmd
}

// nothingToCheck tells a name that there is not from an integration that is not there.
func nothingToCheck(args []string) error {
	switch {
	case len(args) > 2:
		if _, err := findOffer(args[1], args[2]); err != nil {
			return err
		}
	case len(args) > 1 && !slices.Contains(project.Kinds(), project.Kind(args[1])):
		return &usageError{fmt.Sprintf("no kind %q; kinds are %s", args[1], joined(project.Kinds()))}
	}
	return fmt.Errorf("no such integrations of project %s: %w", args[0], project.ErrNotFound)
}

// check tries one integration.
func (s *stack) check(ctx context.Context, projectID string, i project.Integration) checkView {
	v := checkView{Environment: i.Environment, Kind: i.Kind, Vendor: i.Vendor}
	o, err := findOffer(string(i.Kind), i.Vendor)
	if err == nil {
		var account upstream.Account
		if account, err = s.vendors.Resolve(ctx, projectID, i, &o.spec, s.secrets); err == nil {
			v.Detail, err = s.try(ctx, account)
			if errors.Is(err, errCannotTry) {
				v.Detail, err = "complete; "+errCannotTry.Error(), nil
			}
		}
	}
	if v.OK = err == nil; !v.OK {
		v.Detail = err.Error()
	}
	return v
}

func (a *app) secretsGroup() *cobra.Command {
	return group("secrets", "Rotate the keys of vendor accounts", a.secretsRotate())
}

func (a *app) secretsRotate() *cobra.Command {
	var env, file, projectID string
	var untried bool
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
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			environment, err := parseEnvironment(env)
			if err != nil {
				return err
			}
			o, err := findOffer(args[0], args[1])
			if err != nil {
				return err
			}
			i := project.Integration{Kind: o.kind, Environment: environment, Vendor: o.spec.Name, Mode: project.Managed, Settings: map[string]string{}}
			for _, f := range o.spec.Settings {
				if f.Name != upstream.EndpointSetting {
					i.Settings[f.Name] = "any" // the account is what is tried
				}
			}
			owner := secret.Managed
			if projectID != "" {
				rec, err := s.load(ctx, projectID)
				if err != nil {
					return err
				}
				own := rec.Integration(environment, o.kind, o.spec.Name)
				if own == nil || own.Mode != project.BYOK {
					return fmt.Errorf("byok integration %s: %w", project.IntegrationID(environment, o.kind, o.spec.Name), project.ErrNotFound)
				}
				i, owner = *own, rec.ID
			}
			i.Settings, _ = s.withSandbox(o, i.Settings)
			stored, err := s.secrets.Fields(ctx, o.kind, owner, environment, o.spec.Name)
			if err != nil {
				return err
			}
			if len(stored) == 0 {
				return fmt.Errorf("%w: there is no key to rotate in %s", errRefused, secret.Name(s.stage, o.kind, owner, environment))
			}
			fields, changed, err := a.readSecrets(ctx, o.spec, stored, file, true)
			if err != nil {
				return err
			}
			if !changed {
				return &usageError{"nothing new was given"}
			}
			tried := "not tried"
			if !untried {
				account, err := s.vendors.Resolve(ctx, owner, i, &o.spec, staged(fields))
				if err == nil {
					tried, err = s.try(ctx, account)
				}
				if err != nil && !errors.Is(err, errCannotTry) {
					return fmt.Errorf("%w: the new key does not work, the old one stays (--untried takes it all the same): %w", errRefused, err)
				}
				if err != nil {
					tried = errCannotTry.Error()
				}
			}
			if err := s.secrets.Put(ctx, o.kind, owner, environment, o.spec.Name, fields); err != nil {
				return err
			}
			name := secret.Name(s.stage, o.kind, owner, environment)
			return a.print(
				struct {
					Secret string   `json:"secret"`
					Vendor string   `json:"vendor"`
					Fields []string `json:"fields"`
					Tried  string   `json:"tried"`
				}{name, o.spec.Name, fields.Names(), tried},
				table{rows: [][]string{{"Secret", name}, {"Vendor", o.spec.Name}, {"Fields", strings.Join(fields.Names(), ", ")}, {"Tried", tried}}})
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&env, "env", string(project.Development), "development or production")
	flags.StringVar(&projectID, "project", "", "the project whose own account it is")
	flags.StringVar(&file, "secrets", "", "file with a JSON object of the secret fields, - for standard input")
	flags.BoolVar(&untried, "untried", false, "do not try the new key first")
	return cmd
}
