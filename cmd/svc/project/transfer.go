package project

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/burner"
	"svcapi/shared/project"
)

// transferFormat is the version of an exported project.
const transferFormat = 1

// maxTransfer bounds an exported project, in bytes: an import of domains is as large.
const maxTransfer = 16 << 20

// transfer is an exported project: the settings of the operator, without secrets and credits.
type transfer struct {
	Format int `json:"format"`
	Settings
	Integrations []project.Integration `json:"integrations"`
	Burner       burner.Domains        `json:"burner"` // the project's own judgements about e-mail domains
}

func export(a *app.App) *cobra.Command {
	return a.ProjectCommand(&cobra.Command{
		Use:   "export PROJECT",
		Short: "Print a project's settings, integrations and own e-mail domains as JSON, without secrets and credits",
		Example: `  svc project export acme --stage staging > acme.json
  svc project import acme.json --stage prod`,
	}, nil, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		judged, err := s.Burners.List(ctx, rec.ID)
		if err != nil {
			return err
		}
		return s.PrintJSON(transfer{transferFormat, settingsOf(rec.Project),
			append([]project.Integration{}, rec.Integrations...), judged})
	})
}

func importFile(a *app.App) *cobra.Command {
	var id string
	var t transfer
	var p project.Project
	cmd := a.Command(&cobra.Command{
		Use:   "import FILE",
		Short: "Create a project from an export; secrets, credentials and credits are new",
		Long: `Create a project from the output of "svc project export". The command imports an
integration without a stored secret as inactive: "svc integration set" stores the
secret and activates the integration. Issue new credentials. "-" reads standard input.`,
	}, func(args []string) (err error) {
		if t, err = readTransfer(a, args[0]); err != nil {
			return err
		}
		t.ID = cmp.Or(id, t.ID)
		if p, err = t.project(); err != nil {
			return app.Usagef("per_recipient is %v", err)
		}
		return nil
	}, func(ctx context.Context, s *app.Stack) error {
		return createProject(ctx, s, p, t.Integrations, t.Burner)
	})
	cmd.Flags().StringVar(&id, "id", "", "project ID in place of the exported one")
	return cmd
}

func readTransfer(a *app.App, file string) (t transfer, err error) {
	content, err := a.Read(file, maxTransfer)
	if err != nil {
		return t, err
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return t, app.Usagef(`%s is not an output of "svc project export": %v`, file, err)
	}
	if t.Format != transferFormat {
		return t, app.Usagef("this version cannot read format %d", t.Format)
	}
	for _, domain := range slices.Concat(t.Burner.Disposable, t.Burner.Allowed) {
		if ascii, err := burner.ASCII(domain); err != nil || ascii != domain {
			return t, app.Usagef("%q is not a domain in lower-case ASCII", domain)
		}
	}
	for _, i := range t.Integrations {
		offer, err := catalog.Find(string(i.Kind), i.Vendor)
		if err != nil {
			return t, err
		}
		for name, value := range i.Settings {
			if _, err := offer.Apply(nil, []string{name + "=" + value}); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}
