package project

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

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
		t, err := transferOf(ctx, s, rec)
		if err != nil {
			return err
		}
		return s.PrintJSON(t)
	})
}

func transferOf(ctx context.Context, s *app.Stack, rec *project.Record) (transfer, error) {
	judged, err := s.Burners.List(ctx, rec.ID)
	return transfer{transferFormat, settingsOf(rec.Project), append([]project.Integration{}, rec.Integrations...), judged}, err
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

// create creates the project with its integrations, all or nothing, and then stores its judgements about domains. An
// integration without a stored secret is inactive.
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
	for _, j := range []burner.Judgement{burner.Disposable, burner.Allowed} {
		if err := s.Burners.Put(ctx, created.ID, j, t.Burner.Of(j)...); err != nil {
			return fmt.Errorf("the project %s exists, and lacks own domains: %w", created.ID, err)
		}
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
