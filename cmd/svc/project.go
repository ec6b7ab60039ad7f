package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/shared/credit"
	"svcapi/shared/project"
)

func (a *app) project() *cobra.Command {
	return group("project", "Make, show, change, pause and move projects",
		a.projectCreate(), a.projectList(), a.projectShow(), a.projectPaused("pause", true), a.projectPaused("resume", false),
		a.projectLimit(), a.projectTrial(), a.projectScale(), a.projectExport(), a.projectImport())
}

// projectView is a project as programs read it.
type projectView struct {
	ID                string    `json:"project_id"`
	Name              string    `json:"name"`
	Paused            bool      `json:"paused"`
	LimitRequests     int       `json:"limit_requests"`
	LimitSeconds      int       `json:"limit_seconds"`
	Trial             bool      `json:"trial"`
	TrialDestinations []string  `json:"trial_destinations"`
	Created           time.Time `json:"created"`
	Shards            int       `json:"parts"`
	// ShardsNext is the number of shards from ShardsSince on.
	ShardsNext  int        `json:"parts_next,omitempty"`
	ShardsSince *time.Time `json:"parts_since,omitempty"`
}

func viewProject(p project.Project) projectView {
	view := projectView{
		ID: p.ID, Name: p.Name, Paused: p.Paused,
		LimitRequests: p.Limit.Requests, LimitSeconds: int(p.Limit.Window / time.Second),
		Trial: p.Trial, TrialDestinations: append([]string{}, p.TrialDestinations...), Created: p.Created,
	}
	now := time.Now()
	view.Shards = p.Shards.At(now)
	if now.Before(p.Shards.Since) {
		view.ShardsNext, view.ShardsSince = p.Shards.Count, &p.Shards.Since
	}
	return view
}

func (p projectView) shards() string {
	if p.ShardsSince == nil {
		return strconv.Itoa(p.Shards)
	}
	return fmt.Sprintf("%d (%d from %s)", p.Shards, p.ShardsNext, p.ShardsSince.UTC().Format("15:04:05 UTC"))
}

func (p projectView) state() string {
	if p.Paused {
		return "paused"
	}
	return "running"
}

func (p projectView) limit() string {
	window := (time.Duration(p.LimitSeconds) * time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} { // 1m0s reads 1m
		if strings.HasSuffix(window, zero) {
			window = strings.TrimSuffix(window, zero[1:])
		}
	}
	return fmt.Sprintf("%d per %s", p.LimitRequests, window)
}

func (p projectView) trial() string {
	if !p.Trial {
		return "no"
	}
	return "yes, to: " + strings.Join(p.TrialDestinations, ", ")
}

func (p projectView) rows() [][]string {
	return [][]string{
		{"Project", p.ID},
		{"Name", p.Name},
		{"State", p.state()},
		{"Limit", p.limit() + ", in each environment"},
		{"Trial", p.trial()},
		{"Shards", p.shards()},
		{"Created", day(p.Created)},
	}
}

func (a *app) projectCreate() *cobra.Command {
	var p project.Project
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a project and its empty wallet",
		Example: `  svc project create "Acme Ltd" --limit 600 --window 1m
  svc project create "Acme Trial" --id acme-trial --trial --allow 0771234567 --allow 0717654321`,
		Args: cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			p.Name = args[0]
			if len(p.TrialDestinations) > 0 && !p.Trial {
				return &usageError{"--allow goes with --trial"}
			}
			if p.Trial && len(p.TrialDestinations) == 0 {
				return &usageError{"--trial needs --allow: a trial without destinations can send nothing"}
			}
			made, err := s.projects.CreateProject(ctx, p)
			if err != nil {
				return err
			}
			if err := s.credits.CreateWallet(ctx, made.ID); err != nil {
				return fmt.Errorf("project %s is made, its wallet is not (a grant makes it): %w", made.ID, err)
			}
			view := viewProject(made)
			return a.print(view, table{rows: view.rows()})
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&p.ID, "id", "", "project ID, 3 to 32 of a-z, 0-9 and - (default: a random one)")
	flags.IntVar(&p.Limit.Requests, "limit", 600, "requests per window, in each environment")
	flags.DurationVar(&p.Limit.Window, "window", time.Minute, "window of the limit, in whole seconds")
	flags.BoolVar(&p.Trial, "trial", false, "send SMS to the allowed destinations only")
	flags.StringArrayVar(&p.TrialDestinations, "allow", nil, "a destination that the trial allows (repeat for more)")
	return cmd
}

func (a *app) projectList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all projects",
		Args:  cobra.NoArgs,
		RunE: a.on(func(ctx context.Context, s *stack, _ []string) error {
			projects, err := s.projects.ListProjects(ctx)
			if err != nil {
				return err
			}
			views := make([]projectView, 0, len(projects))
			t := table{header: []string{"PROJECT", "NAME", "STATE", "LIMIT", "TRIAL", "CREATED"}, empty: `No projects yet. "svc project create" makes one.`}
			for _, p := range projects {
				v := viewProject(p)
				views = append(views, v)
				t.rows = append(t.rows, []string{v.ID, v.Name, v.state(), v.limit(), v.trial(), day(v.Created)})
			}
			return a.print(views, t)
		}),
	}
}

func (a *app) projectShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show PROJECT",
		Short: "Show a project with its balance, credentials and integrations",
		Args:  cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			rec, err := s.load(ctx, args[0])
			if err != nil {
				return err
			}
			balance, err := s.credits.Balance(ctx, rec.ID)
			if err != nil {
				return err
			}
			integrations, err := s.viewIntegrations(ctx, rec, "")
			if err != nil {
				return err
			}
			credentials := viewCredentials(rec)
			view := struct {
				projectView
				Balance      int64             `json:"balance"`
				Credentials  []credentialView  `json:"credentials"`
				Integrations []integrationView `json:"integrations"`
			}{viewProject(rec.Project), balance, credentials, integrations}
			if a.output == outputJSON {
				return a.print(view, table{})
			}
			rows := append(view.rows(), []string{"Balance", grouped(balance) + " credits"})
			for _, t := range []table{{rows: rows}, credentialTable(credentials), integrationTable(integrations)} {
				if err := a.print(nil, t); err != nil {
					return err
				}
				fmt.Fprintln(a.out)
			}
			return nil
		}),
	}
}

func (a *app) projectPaused(name string, paused bool) *cobra.Command {
	short := "Let a paused project go on"
	if paused {
		short = "Refuse every request of a project with 503 project_paused"
	}
	return &cobra.Command{
		Use:   name + " PROJECT",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			p, err := s.projects.SetPaused(ctx, args[0], paused)
			if err != nil {
				return err
			}
			view := viewProject(p)
			return a.print(view, table{rows: [][]string{{"Project", view.ID}, {"State", view.state() + " (functions follow within seconds)"}}})
		}),
	}
}

func (a *app) projectScale() *cobra.Command {
	var shards int
	cmd := &cobra.Command{
		Use:   "scale PROJECT --shards N",
		Short: "Spread the wallet, the ledger and the rate limit of a busy project over shards",
		Long: `One item of DynamoDB takes 1,000 write units a second, and a project's wallet is one item. N shards
take nearly N times as many paid requests; docs/scale.md has the figures.

Nothing changes for clients: the balance is the sum of the shards, credits move to a shard that
lacks them, and the rate limit stays what it is. The change takes effect 90 seconds later.`,
		Example: `  svc project scale acme --shards 16
  svc project scale acme --shards 1`,
		Args: cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			if shards < 1 || shards > credit.MaxShards {
				return &usageError{fmt.Sprintf("--shards is 1 to %d; it was %d, or left away", credit.MaxShards, shards)}
			}
			rec, err := s.load(ctx, args[0])
			if err != nil {
				return err
			}
			if err := rec.ValidateShards(shards); err != nil {
				return err
			}
			// The shards come before the record that leads requests to them.
			if err := s.credits.AddShards(ctx, rec.ID, shards); err != nil {
				return err
			}
			p, err := s.projects.SetShards(ctx, rec.ID, shards)
			if err != nil {
				return err
			}
			view := viewProject(p)
			return a.print(view, table{rows: [][]string{{"Project", view.ID}, {"Shards", view.shards()}}})
		}),
	}
	cmd.Flags().IntVar(&shards, "shards", 0, fmt.Sprintf("1 to %d; 1 ends the spreading", credit.MaxShards))
	cmd.Flags().IntVar(&shards, "parts", 0, "the earlier name of --shards")
	_ = cmd.Flags().MarkHidden("parts") // the flag exists
	return cmd
}

// parseEnvironment reads --env.
func parseEnvironment(text string) (project.Environment, error) {
	env, ok := project.ParseEnvironment(text)
	if !ok || text == "" {
		return "", &usageError{"--env is development (dev) or production (prod), not " + strconv.Quote(text)}
	}
	return env, nil
}

// chosenEnvironment reads an --env that may be left away: then it is empty.
func chosenEnvironment(text string) (project.Environment, error) {
	if text == "" {
		return "", nil
	}
	return parseEnvironment(text)
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
