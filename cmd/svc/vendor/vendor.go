// Package vendor holds the command "svc vendor".
package vendor

import (
	"context"
	"fmt"
	"slices"
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
		Short: "List the vendors by kind, with the settings and secret fields that each needs",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			offers := catalog.Offers()
			if len(args) > 0 {
				if err := catalog.ValidateKind(args[0]); err != nil {
					return err
				}
				offers = slices.DeleteFunc(offers, func(o catalog.Offer) bool { return string(o.Kind) != args[0] })
			}
			var tables []app.Table
			kind := project.Kind("")
			views, _ := app.List(offers, func(o catalog.Offer) (View, []string) {
				v := View{o.Kind, o.Spec.Name, o.Spec.Title, o.Spec.Endpoint, viewFields(o.Settings()), viewFields(o.Spec.Secrets), o.Spec.ManagedWithoutSecret}
				if o.Kind != kind {
					kind = o.Kind
					tables = append(tables, app.Table{Header: []string{"KIND", "VENDOR", "TITLE", "FIELD", "IS", "REQUIRED", "DESCRIPTION"}})
				}
				t := &tables[len(tables)-1]
				t.Rows = append(t.Rows, v.rows()...)
				return v, nil
			})
			return a.Print(views, tables...)
		},
	}
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
	offer        catalog.Offer
	environments []project.Environment
	file         string
}

func account(a *app.App) *cobra.Command {
	o := &accountOptions{}
	cmd := a.Command(&cobra.Command{
		Use:   "account KIND VENDOR",
		Short: "Set the service's own account at a vendor, for Managed integrations",
		Long: `Set the service's own account at a vendor. Every Managed integration of the
kind and environment uses this account.

At a terminal the command asks for the secret fields. Programs pass the fields as a
JSON object in a file, or on standard input with --secrets -.`,
		Example: `  svc vendor account sms quicksend --env production
  svc vendor account sms quicksend --env both --secrets - < quicksend.json`,
	}, o.parse, o.run)
	app.EnvironmentsFlag(cmd, &o.environments, false)
	cmd.Flags().StringVar(&o.file, "secrets", "", "file with a JSON object of the secret fields, - for standard input")
	return cmd
}

func (o *accountOptions) parse(args []string) (err error) {
	if o.offer, err = catalog.Find(args[0], args[1]); err != nil {
		return err
	}
	if spec := o.offer.Spec; len(spec.Secrets) == 0 {
		return app.Usagef("%s needs no account", spec.Title)
	} else if spec.ManagedWithoutSecret {
		return app.Usagef("%s needs no account: Managed integrations use the function's own role", spec.Title)
	}
	return nil
}

type changedView struct {
	catalog.AccountView
	Changed bool `json:"changed"`
}

func (o *accountOptions) run(ctx context.Context, s *app.Stack) error {
	var accounts []catalog.Account
	for _, env := range o.environments {
		t, err := catalog.ReadAccount(ctx, s, o.offer, secret.Managed, env)
		if err != nil {
			return err
		}
		accounts = append(accounts, t)
	}
	if err := catalog.ReadSecrets(ctx, s, accounts, o.file, true); err != nil {
		return err
	}
	var views []changedView
	var tables []app.Table
	for _, t := range accounts {
		if missing := upstream.Missing(o.offer.Spec.Secrets, t.Fields); len(missing) > 0 {
			return fmt.Errorf("%w: %s needs %s", app.ErrRefused, o.offer.Spec.Title, strings.Join(missing, ", "))
		}
		view, rows := t.View(s)
		views, tables = append(views, changedView{view, t.Changed()}), append(tables, app.Table{Rows: rows})
	}
	if err := catalog.PutAll(ctx, s, accounts); err != nil {
		return err
	}
	return s.Print(app.OneOrAll(views), tables...)
}
