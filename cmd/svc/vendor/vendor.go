// Package vendor holds the command "svc vendor".
package vendor

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// Command returns "svc vendor".
func Command(a *app.App) *cobra.Command {
	return app.Group("vendor", "List vendors, and set the service's own accounts at them", list(a), account(a))
}

type fieldView struct {
	Name        string `json:"name"`
	Required    bool   `json:"required"`
	Description string `json:"description"`
}

// View is a vendor in the format for programs.
type View struct {
	Kind     project.Kind `json:"kind"`
	Name     string       `json:"name"`
	Title    string       `json:"title"`
	Endpoint string       `json:"endpoint"`
	Settings []fieldView  `json:"settings"`
	Secrets  []fieldView  `json:"secrets"`
	// ManagedWithoutSecret means that only byok integrations need the secret fields.
	ManagedWithoutSecret bool `json:"managed_without_secret"`
}

func viewFields(fields []upstream.Field) []fieldView {
	views := make([]fieldView, 0, len(fields))
	for _, f := range fields {
		views = append(views, fieldView{f.Name, f.Required, f.Description})
	}
	return views
}

// list opens no stage, because the vendors are the tables of this version.
func list(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list [KIND]",
		Short: "List the vendors with the settings and secret fields that each needs",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			kind := strings.Join(args, "")
			if len(args) > 0 {
				if err := catalog.ValidateKind(kind); err != nil {
					return err
				}
			}
			return runList(a, project.Kind(kind))
		},
	}
}

func runList(a *app.App, kind project.Kind) error {
	views := []View{}
	t := app.Table{Header: []string{"KIND", "VENDOR", "TITLE", "FIELD", "IS", "REQUIRED", "DESCRIPTION"}, Empty: "No vendors of this kind in this version."}
	for _, o := range catalog.Offers() {
		if kind != "" && o.Kind != kind {
			continue
		}
		v := View{o.Kind, o.Spec.Name, o.Spec.Title, o.Spec.Endpoint, viewFields(o.Settings()), viewFields(o.Spec.Secrets), o.Spec.ManagedWithoutSecret}
		views = append(views, v)
		t.Rows = append(t.Rows, v.rows()...)
	}
	return a.Print(views, t)
}

func (v View) rows() [][]string {
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

type accountOptions struct {
	*app.App
	account catalog.Account
	file    string
}

func account(a *app.App) *cobra.Command {
	o := &accountOptions{App: a, account: catalog.Account{Owner: secret.Managed}}
	cmd := a.Command(&cobra.Command{
		Use:   "account KIND VENDOR",
		Short: "Set the service's own account at a vendor, for Managed integrations",
		Long: `Set the service's own account at a vendor. Every Managed integration of the
kind and environment uses this account.

At a terminal the command asks for the secret fields. Programs pass the fields as a
JSON object in a file, or on standard input with --secrets -.`,
		Example: `  svc vendor account sms quicksend --env production
  svc vendor account sms quicksend --env production --secrets - < quicksend.json`,
	}, o.parse, o.run)
	app.EnvironmentFlag(cmd, &o.account.Environment)
	cmd.Flags().StringVar(&o.file, "secrets", "", "file with a JSON object of the secret fields, - for standard input")
	return cmd
}

func (o *accountOptions) parse(args []string) (err error) {
	if o.account.Offer, err = catalog.Find(args[0], args[1]); err != nil {
		return err
	}
	spec := o.account.Offer.Spec
	if len(spec.Secrets) == 0 {
		return app.Usagef("%s needs no account", spec.Title)
	}
	if spec.ManagedWithoutSecret {
		return app.Usagef("%s needs no account: Managed integrations use the function's own role", spec.Title)
	}
	return nil
}

func (o *accountOptions) run(ctx context.Context, s *app.Stack) error {
	stored, err := o.account.Stored(ctx, s)
	if err != nil {
		return err
	}
	spec := o.account.Offer.Spec
	fields, changed, err := catalog.ReadSecrets(ctx, o.App, spec, stored, o.file, true)
	if err != nil {
		return err
	}
	if missing := upstream.Missing(spec.Secrets, fields); len(missing) > 0 {
		return fmt.Errorf("%w: %s needs %s", app.ErrRefused, spec.Title, strings.Join(missing, ", "))
	}
	if changed {
		if err := o.account.Put(ctx, s, fields); err != nil {
			return err
		}
	}
	view, rows := o.account.View(s, fields)
	return o.Print(struct {
		catalog.AccountView
		Changed bool `json:"changed"`
	}{view, changed}, app.Table{Rows: rows})
}
