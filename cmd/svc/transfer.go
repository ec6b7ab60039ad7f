package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"svcapi/shared/project"
)

// transferFormat is the version of an exported project.
const transferFormat = 1

// maxTransfer bounds an exported project, in bytes.
const maxTransfer = 1 << 20

// transfer is a project as it is exported: all that an operator has set, no secrets and no credits.
type transfer struct {
	Format            int                   `json:"format"`
	ID                string                `json:"project_id"`
	Name              string                `json:"name"`
	Paused            bool                  `json:"paused"`
	LimitRequests     int                   `json:"limit_requests"`
	LimitSeconds      int                   `json:"limit_seconds"`
	Trial             bool                  `json:"trial"`
	TrialDestinations []string              `json:"trial_destinations"`
	Integrations      []transferIntegration `json:"integrations"`
}

type transferIntegration struct {
	Environment project.Environment `json:"environment"`
	Kind        project.Kind        `json:"kind"`
	Vendor      string              `json:"vendor"`
	Mode        project.Mode        `json:"mode"`
	Active      bool                `json:"active"`
	Priority    int                 `json:"priority"`
	Settings    map[string]string   `json:"settings"`
}

func (a *app) projectExport() *cobra.Command {
	return &cobra.Command{
		Use:   "export PROJECT",
		Short: "Print a project's settings and integrations as JSON, without secrets and credits",
		Example: `  svc project export acme --stage staging > acme.json
  svc project import acme.json --stage prod`,
		Args: cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			rec, err := s.load(ctx, args[0])
			if err != nil {
				return err
			}
			out := transfer{
				Format: transferFormat, ID: rec.ID, Name: rec.Name, Paused: rec.Paused,
				LimitRequests: rec.Limit.Requests, LimitSeconds: int(rec.Limit.Window / time.Second),
				Trial: rec.Trial, TrialDestinations: append([]string{}, rec.TrialDestinations...), Integrations: []transferIntegration{},
			}
			for _, i := range rec.Integrations {
				out.Integrations = append(out.Integrations, transferIntegration{i.Environment, i.Kind, i.Vendor, i.Mode, i.Active, i.Priority, i.Settings})
			}
			e := json.NewEncoder(a.out)
			e.SetIndent("", "  ")
			e.SetEscapeHTML(false)
			return e.Encode(out)
		}),
	}
}

func (a *app) readTransfer(file string) (transfer, error) {
	from := a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return transfer{}, &usageError{err.Error()}
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	var t transfer
	d := json.NewDecoder(io.LimitReader(from, maxTransfer))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return t, &usageError{file + ` is not what "svc project export" prints: ` + err.Error()}
	}
	if t.Format != transferFormat {
		return t, &usageError{"format " + strconv.Itoa(t.Format) + " is not one that this version reads"}
	}
	for _, i := range t.Integrations {
		o, err := findOffer(string(i.Kind), i.Vendor)
		if err != nil {
			return t, err
		}
		for name, value := range i.Settings {
			if _, err := o.applySettings(nil, []string{name + "=" + value}); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}

func (a *app) projectImport() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make a project of what export printed; secrets, credentials and credits are new",
		Long: `Make a project of what "svc project export" printed. Its integrations are
imported inactive where their secret is not there yet: set it with
"svc integration set", which also makes them active. Credentials are issued
anew. "-" reads standard input.`,
		Args: cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			t, err := a.readTransfer(args[0])
			if err != nil {
				return err
			}
			if id != "" {
				t.ID = id
			}
			made, err := s.projects.CreateProject(ctx, project.Project{
				ID: t.ID, Name: t.Name, Paused: t.Paused, Trial: t.Trial, TrialDestinations: t.TrialDestinations,
				Limit: project.RateLimit{Requests: t.LimitRequests, Window: time.Duration(t.LimitSeconds) * time.Second},
			})
			if err != nil {
				return err
			}
			if err := s.credits.CreateWallet(ctx, made.ID); err != nil {
				return err
			}
			for _, from := range t.Integrations {
				i := project.Integration{Kind: from.Kind, Environment: from.Environment, Vendor: from.Vendor, Mode: from.Mode, Active: from.Active, Priority: from.Priority, Settings: from.Settings}
				view, err := s.viewIntegration(ctx, made.ID, i)
				if err != nil {
					return err
				}
				if i.Active && view.Incomplete != "" {
					i.Active = false
					a.note("%s is imported inactive: %s", project.IntegrationID(i.Environment, i.Kind, i.Vendor), view.Incomplete)
				}
				if err := s.projects.PutIntegration(ctx, made.ID, i); err != nil {
					return fmt.Errorf("project %s is made, its integration %s is not: %w", made.ID, project.IntegrationID(i.Environment, i.Kind, i.Vendor), err)
				}
			}
			rec, err := s.load(ctx, made.ID)
			if err != nil {
				return err
			}
			views, err := s.viewIntegrations(ctx, rec, "")
			if err != nil {
				return err
			}
			return a.print(struct {
				projectView
				Integrations []integrationView `json:"integrations"`
			}{viewProject(made), views}, table{rows: append(viewProject(made).rows(), []string{"Integrations", strconv.Itoa(len(views))})})
		}),
	}
	cmd.Flags().StringVar(&id, "id", "", "another project ID than the exported one")
	return cmd
}

func (a *app) projectLimit() *cobra.Command {
	var window time.Duration
	cmd := &cobra.Command{
		Use:     "limit PROJECT REQUESTS",
		Short:   "Set how many requests a project may make per window, in each environment",
		Example: `  svc project limit acme 1200 --window 1m`,
		Args:    cobra.ExactArgs(2),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			requests, err := strconv.Atoi(args[1])
			if err != nil {
				return &usageError{"REQUESTS is a whole number, not " + strconv.Quote(args[1])}
			}
			p, err := s.projects.SetLimit(ctx, args[0], project.RateLimit{Requests: requests, Window: window})
			if err != nil {
				return err
			}
			view := viewProject(p)
			return a.print(view, table{rows: [][]string{{"Project", view.ID}, {"Limit", view.limit() + ", in each environment (functions follow within seconds)"}}})
		}),
	}
	cmd.Flags().DurationVar(&window, "window", time.Minute, "window of the limit, in whole seconds")
	return cmd
}

func (a *app) projectTrial() *cobra.Command {
	var allow []string
	cmd := &cobra.Command{
		Use:   "trial PROJECT on|off",
		Short: "Put a project on trial (SMS to allowed destinations only), or take it off",
		Example: `  svc project trial acme on --allow 0771234567
  svc project trial acme off`,
		Args: cobra.ExactArgs(2),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			on := args[1] == "on"
			if !on && args[1] != "off" {
				return &usageError{`say "on" or "off", not ` + strconv.Quote(args[1])}
			}
			if !on && len(allow) > 0 {
				return &usageError{"--allow goes with on"}
			}
			p, err := s.projects.SetTrial(ctx, args[0], on, allow)
			if err != nil {
				return err
			}
			view := viewProject(p)
			return a.print(view, table{rows: [][]string{{"Project", view.ID}, {"Trial", view.trial() + " (functions follow within seconds)"}}})
		}),
	}
	cmd.Flags().StringArrayVar(&allow, "allow", nil, "a destination that the trial allows (repeat for more); replaces those before")
	return cmd
}
