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

// View is a vendor in the format for programs.
type View struct {
	Kind project.Kind `json:"kind"`
	upstream.Spec
}

// list opens no stage, because the vendors are the tables of this version.
func list(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list [KIND]",
		Short: "List the vendors by kind, with the settings and secret fields that each needs",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := catalog.ValidateKind(args[0]); err != nil {
					return err
				}
			}
			var views []View
			var tables []app.Table
			for _, o := range catalog.Offers() {
				if len(args) > 0 && string(o.Kind) != args[0] {
					continue
				}
				if len(views) == 0 || o.Kind != views[len(views)-1].Kind {
					tables = append(tables, app.Table{Header: []string{"KIND", "VENDOR", "TITLE", "FIELD", "IS", "REQUIRED", "DESCRIPTION"}})
				}
				v := View{o.Kind, o.Spec}
				v.Settings, v.Secrets = append([]upstream.Field{}, o.Settings()...), append([]upstream.Field{}, v.Secrets...)
				t := &tables[len(tables)-1]
				views, t.Rows = append(views, v), append(t.Rows, v.rows()...)
			}
			return a.Print(views, tables...)
		},
	}
}

// rows returns a row for each field, or one row for a vendor without fields.
func (v View) rows() (rows [][]string) {
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

func account(a *app.App) *cobra.Command {
	var offer catalog.Offer
	var envs []project.Environment
	var file string
	cmd := a.Command(&cobra.Command{
		Use:   "account KIND VENDOR",
		Short: "Set the service's own account at a vendor, for Managed integrations",
		Long: `Set the service's own account at a vendor. Every Managed integration of the
kind and environment uses this account.

At a terminal the command asks for the secret fields. Programs pass the fields as a
JSON object in a file, or on standard input with --secrets -.`,
		Example: `  svc vendor account sms quicksend --env production
  svc vendor account sms quicksend --env both --secrets - < quicksend.json`,
	}, catalog.ParseVendor(&offer), func(ctx context.Context, s *app.Stack) error {
		spec := offer.Spec
		if len(spec.Secrets) == 0 {
			return app.Usagef("%s needs no account", spec.Title)
		}
		if spec.ManagedAction != "" {
			return app.Usagef("%s needs no account: Managed integrations use the function's own role", spec.Title)
		}
		accounts, err := catalog.ReadAccounts(ctx, s, offer, secret.Managed, envs)
		if err != nil {
			return err
		}
		if err := catalog.ReadSecrets(ctx, s, accounts, file, true); err != nil {
			return err
		}
		for _, t := range accounts {
			if missing := upstream.Missing(spec.Secrets, t.Fields); len(missing) > 0 {
				return fmt.Errorf("%w: %s needs %s", app.ErrRefused, spec.Title, strings.Join(missing, ", "))
			}
		}
		return catalog.Store(ctx, s, accounts)
	})
	app.EnvironmentsFlag(cmd, &envs, "development")
	cmd.Flags().StringVar(&file, "secrets", "", "file with a JSON object of the secret fields, - for standard input")
	return cmd
}
