package project

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/project"
)

// transferFormat is the version of an exported project.
const transferFormat = 1

// maxTransfer bounds an exported project, in bytes.
const maxTransfer = 1 << 20

// transfer is a project as it is exported: all that an operator has set, no secrets and no credits.
type transfer struct {
	Format int `json:"format"`
	Settings
	Integrations []catalog.Integration `json:"integrations"`
}

type exportOptions struct {
	*app.App
	projectID string
}

func export(a *app.App) *cobra.Command {
	o := &exportOptions{App: a}
	return &cobra.Command{
		Use:   "export PROJECT",
		Short: "Print a project's settings and integrations as JSON, without secrets and credits",
		Example: `  svc project export acme --stage staging > acme.json
  svc project import acme.json --stage prod`,
		Args: cobra.ExactArgs(1),
		RunE: a.On(app.Bind(&o.projectID), o.run),
	}
}

func (o *exportOptions) run(ctx context.Context, s *app.Stack) error {
	rec, err := s.Load(ctx, o.projectID)
	if err != nil {
		return err
	}
	out := transfer{Format: transferFormat, Settings: settingsOf(rec.Project), Integrations: []catalog.Integration{}}
	for _, i := range rec.Integrations {
		out.Integrations = append(out.Integrations, catalog.Export(i))
	}
	return o.PrintJSON(out)
}

type importOptions struct {
	*app.App
	file, id string
}

func importFile(a *app.App) *cobra.Command {
	o := &importOptions{App: a}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make a project of what export printed; secrets, credentials and credits are new",
		Long: `Make a project of what "svc project export" printed. Its integrations are
imported inactive where their secret is not there yet: set it with
"svc integration set", which also makes them active. Credentials are issued
anew. "-" reads standard input.`,
		Args: cobra.ExactArgs(1),
		RunE: a.On(app.Bind(&o.file), o.run),
	}
	cmd.Flags().StringVar(&o.id, "id", "", "another project ID than the exported one")
	return cmd
}

func (o *importOptions) read() (t transfer, err error) {
	from, err := o.Read(o.file)
	if err != nil {
		return t, err
	}
	defer func() { _ = from.Close() }()
	d := json.NewDecoder(io.LimitReader(from, maxTransfer))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return t, app.Usagef(`%s is not what "svc project export" prints: %v`, o.file, err)
	}
	if t.Format != transferFormat {
		return t, app.Usagef("format %d is not one that this version reads", t.Format)
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
	if o.id != "" {
		t.ID = o.id
	}
	return t, nil
}

func (o *importOptions) run(ctx context.Context, s *app.Stack) error {
	t, err := o.read()
	if err != nil {
		return err
	}
	made, err := s.Projects.CreateProject(ctx, project.Project{
		ID: t.ID, Name: t.Name, Paused: t.Paused, Trial: t.Trial, TrialDestinations: t.TrialDestinations,
		Limit: project.RateLimit{Requests: t.LimitRequests, Window: time.Duration(t.LimitSeconds) * time.Second},
	})
	if err != nil {
		return err
	}
	if err := s.Credits.CreateWallet(ctx, made.ID); err != nil {
		return err
	}
	for _, i := range t.Integrations {
		if err := o.addIntegration(ctx, s, made.ID, i.Record()); err != nil {
			return err
		}
	}
	rec, err := s.Load(ctx, made.ID)
	if err != nil {
		return err
	}
	views, err := catalog.ViewAll(ctx, s, rec, "")
	if err != nil {
		return err
	}
	view := struct {
		View
		Integrations []catalog.View `json:"integrations"`
	}{viewOf(made), views}
	return o.Print(view, app.Table{Rows: append(view.rows(), []string{"Integrations", strconv.Itoa(len(views))})})
}

// addIntegration stores one integration, inactive where something is missing in it.
func (o *importOptions) addIntegration(ctx context.Context, s *app.Stack, projectID string, i project.Integration) error {
	view, err := catalog.ViewOf(ctx, s, projectID, i)
	if err != nil {
		return err
	}
	id := project.IntegrationID(i.Environment, i.Kind, i.Vendor)
	if i.Active && view.Incomplete != "" {
		i.Active = false
		o.Note("%s is imported inactive: %s", id, view.Incomplete)
	}
	if err := s.Projects.PutIntegration(ctx, projectID, i); err != nil {
		return fmt.Errorf("project %s is made, its integration %s is not: %w", projectID, id, err)
	}
	return nil
}
