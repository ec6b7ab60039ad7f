package project

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/project"
)

// transferFormat is the version of an exported project.
const transferFormat = 1

// maxTransfer bounds an exported project, in bytes.
const maxTransfer = 1 << 20

// transfer is an exported project: the settings of the operator, without secrets and credits.
type transfer struct {
	Format int `json:"format"`
	Settings
	Integrations []project.Integration `json:"integrations"`
}

func export(a *app.App) *cobra.Command {
	return a.ProjectCommand(&cobra.Command{
		Use:   "export PROJECT",
		Short: "Print a project's settings and integrations as JSON, without secrets and credits",
		Example: `  svc project export acme --stage staging > acme.json
  svc project import acme.json --stage prod`,
	}, nil, func(_ context.Context, s *app.Stack, rec *project.Record) error {
		return s.PrintJSON(transferOf(rec))
	})
}

func transferOf(rec *project.Record) transfer {
	return transfer{Format: transferFormat, Settings: settingsOf(rec.Project), Integrations: append([]project.Integration{}, rec.Integrations...)}
}

func importFile(a *app.App) *cobra.Command {
	var id string
	var t transfer
	cmd := a.Command(&cobra.Command{
		Use:   "import FILE",
		Short: "Create a project from an export; secrets, credentials and credits are new",
		Long: `Create a project from the output of "svc project export". The command imports an
integration without a stored secret as inactive: "svc integration set" stores the
secret and activates the integration. Issue new credentials. "-" reads standard input.`,
	}, func(args []string) (err error) {
		t, err = readTransfer(a, args[0])
		t.ID = cmp.Or(id, t.ID)
		return err
	}, t.create)
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

// create creates the project with its integrations, all or nothing. An integration without a stored secret is inactive.
func (t *transfer) create(ctx context.Context, s *app.Stack) error {
	t.ID = cmp.Or(t.ID, project.NewID())
	p, err := t.project()
	if err != nil {
		return err
	}
	for n := range t.Integrations {
		i := &t.Integrations[n]
		view, err := catalog.ViewOf(ctx, s, t.ID, *i)
		if err != nil {
			return err
		}
		if i.Active && view.Incomplete != "" {
			i.Active = false
			s.Note("%s is imported inactive: %s", project.IntegrationID(i.Environment, i.Kind, i.Vendor), view.Incomplete)
		}
	}
	created, err := createProject(ctx, s, p, t.Integrations...)
	if err != nil {
		return err
	}
	rec, err := s.Load(ctx, created.ID)
	if err != nil {
		return err
	}
	views, err := catalog.ViewAll(ctx, s, rec)
	if err != nil {
		return err
	}
	view := struct {
		View
		Integrations []catalog.View `json:"integrations"`
	}{viewOf(created), views}
	return s.Print(view, app.Table{Rows: append(view.rows(), []string{"Integrations", strconv.Itoa(len(views))})})
}
