package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	location "svcapi/functions/location/vendors"
	security "svcapi/functions/security/vendors"
	sms "svcapi/functions/sms/vendors"
	"svcapi/shared/project"
	currency "svcapi/shared/rates/vendors"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// offer is one vendor that integrations of a kind can name.
type offer struct {
	kind project.Kind
	spec upstream.Spec
	// builtIn vendors are the service itself or files of it: they take no settings.
	builtIn bool
}

// offers lists every vendor, from the tables of the functions.
func offers() []offer {
	var all []offer
	for _, v := range sms.NewTable(aws.Config{}) {
		all = append(all, offer{kind: project.SMS, spec: v.Spec})
	}
	for _, v := range security.Table() {
		all = append(all, offer{kind: project.Security, spec: v.Spec, builtIn: v.OnDisk()})
	}
	for _, v := range location.Table() {
		all = append(all, offer{kind: project.Location, spec: v.Spec, builtIn: v.OnDisk()})
	}
	for _, v := range currency.Table() {
		all = append(all, offer{kind: project.Currency, spec: v.Spec})
	}
	for _, kind := range []project.Kind{project.Barcode, project.PDF} {
		all = append(all, offer{kind: kind, spec: upstream.Spec{Name: "builtin", Title: "Built in"}, builtIn: true})
	}
	return all
}

// findOffer finds the vendor of an integration by the names as they were typed.
func findOffer(kind, vendor string) (offer, error) {
	if !slices.Contains(project.Kinds(), project.Kind(kind)) {
		return offer{}, &usageError{fmt.Sprintf("no kind %q; kinds are %s", kind, joined(project.Kinds()))}
	}
	var names []string
	for _, o := range offers() {
		if o.kind != project.Kind(kind) {
			continue
		}
		if o.spec.Name == vendor {
			return o, nil
		}
		names = append(names, o.spec.Name)
	}
	if names == nil {
		return offer{}, &usageError{fmt.Sprintf("no vendors of kind %s in this version", kind)}
	}
	return offer{}, &usageError{fmt.Sprintf("no vendor %q of kind %s; there are %s", vendor, kind, strings.Join(names, ", "))}
}

func joined[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}

func (a *app) vendor() *cobra.Command {
	return group("vendor", "List vendors, and set the service's own accounts at them",
		a.vendorList(), a.vendorAccount())
}

type fieldView struct {
	Name        string `json:"name"`
	Required    bool   `json:"required"`
	Description string `json:"description"`
}

type vendorView struct {
	Kind     project.Kind `json:"kind"`
	Name     string       `json:"name"`
	Title    string       `json:"title"`
	Endpoint string       `json:"endpoint"`
	Settings []fieldView  `json:"settings"`
	Secrets  []fieldView  `json:"secrets"`
	// ManagedWithoutSecret: only byok integrations need the secret fields.
	ManagedWithoutSecret bool `json:"managed_without_secret"`
}

func viewFields(fields []upstream.Field) []fieldView {
	views := make([]fieldView, 0, len(fields))
	for _, f := range fields {
		views = append(views, fieldView{f.Name, f.Required, f.Description})
	}
	return views
}

// settings are the vendor's own and the endpoint, which every vendor on the net takes.
func (o offer) settings() []upstream.Field {
	if o.builtIn || slices.ContainsFunc(o.spec.Settings, func(f upstream.Field) bool { return f.Name == upstream.EndpointSetting }) {
		return o.spec.Settings
	}
	return append(slices.Clip(o.spec.Settings), upstream.Field{Name: upstream.EndpointSetting, Description: "base URL instead of the vendor's, https"})
}

func (a *app) vendorList() *cobra.Command {
	return &cobra.Command{
		Use:   "list [KIND]",
		Short: "List the vendors with the settings and secret fields that each needs",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && !slices.Contains(project.Kinds(), project.Kind(args[0])) {
				return &usageError{fmt.Sprintf("no kind %q; kinds are %s", args[0], joined(project.Kinds()))}
			}
			views := []vendorView{}
			t := table{header: []string{"KIND", "VENDOR", "TITLE", "FIELD", "IS", "REQUIRED", "DESCRIPTION"}, empty: "No vendors of this kind in this version."}
			for _, o := range offers() {
				if len(args) == 1 && string(o.kind) != args[0] {
					continue
				}
				v := vendorView{o.kind, o.spec.Name, o.spec.Title, o.spec.Endpoint, viewFields(o.settings()), viewFields(o.spec.Secrets), o.spec.ManagedWithoutSecret}
				views = append(views, v)
				t.rows = append(t.rows, v.rows()...)
			}
			return a.print(views, t)
		},
	}
}

func (v vendorView) rows() [][]string {
	if len(v.Settings)+len(v.Secrets) == 0 {
		return [][]string{{string(v.Kind), v.Name, v.Title, "", "", "", ""}}
	}
	var rows [][]string
	add := func(is string, fields []fieldView) {
		for _, f := range fields {
			required := "no"
			switch {
			case f.Required && is == "secret" && v.ManagedWithoutSecret:
				required = "byok only"
			case f.Required:
				required = "yes"
			}
			rows = append(rows, []string{string(v.Kind), v.Name, v.Title, f.Name, is, required, f.Description})
		}
	}
	add("setting", v.Settings)
	add("secret", v.Secrets)
	return rows
}

func (a *app) vendorAccount() *cobra.Command {
	var env, file string
	cmd := &cobra.Command{
		Use:   "account KIND VENDOR",
		Short: "Set the service's own account at a vendor, for Managed integrations",
		Long: `Set the service's own account at a vendor. Every Managed integration of the
kind and environment uses it.

The secret fields are asked for at a terminal. Programs give a JSON object of
them in a file, or on standard input with --secrets -.`,
		Example: `  svc vendor account sms quicksend --env production
  svc vendor account sms quicksend --env production --secrets - < quicksend.json`,
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
			if len(o.spec.Secrets) == 0 {
				return &usageError{o.spec.Title + " needs no account"}
			}
			if o.spec.ManagedWithoutSecret {
				return &usageError{o.spec.Title + " needs no account: Managed integrations use the function's own role"}
			}
			stored, err := s.secrets.Fields(ctx, o.kind, secret.Managed, environment, o.spec.Name)
			if err != nil {
				return err
			}
			fields, changed, err := a.readSecrets(ctx, o.spec, stored, file, true)
			if err != nil {
				return err
			}
			if missing := missing(o.spec.Secrets, fields); len(missing) > 0 {
				return fmt.Errorf("%w: %s needs %s", errRefused, o.spec.Title, strings.Join(missing, ", "))
			}
			if changed {
				if err := s.secrets.Put(ctx, o.kind, secret.Managed, environment, o.spec.Name, fields); err != nil {
					return err
				}
			}
			name := secret.Name(s.stage, o.kind, secret.Managed, environment)
			return a.print(
				struct {
					Secret  string   `json:"secret"`
					Vendor  string   `json:"vendor"`
					Fields  []string `json:"fields"`
					Changed bool     `json:"changed"`
				}{name, o.spec.Name, fields.Names(), changed},
				table{rows: [][]string{{"Secret", name}, {"Vendor", o.spec.Name}, {"Fields", strings.Join(fields.Names(), ", ")}}})
		}),
	}
	cmd.Flags().StringVar(&env, "env", string(project.Development), "development or production")
	cmd.Flags().StringVar(&file, "secrets", "", "file with a JSON object of the secret fields, - for standard input")
	return cmd
}

// missing lists the required fields that have no value.
func missing(fields []upstream.Field, values map[string]string) []string {
	var names []string
	for _, f := range fields {
		if f.Required && values[f.Name] == "" {
			names = append(names, f.Name)
		}
	}
	return names
}
