// Package project holds the command "svc project".
package project

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/cmd/svc/credential"
	"svcapi/shared/project"
)

// Command returns "svc project".
func Command(a *app.App) *cobra.Command {
	return app.Group("project", "Create, show, change, pause, export and import projects",
		create(a),
		a.Command(&cobra.Command{Use: "list", Short: "List all projects"}, nil, list),
		a.ProjectCommand(&cobra.Command{Use: "show PROJECT", Short: "Show a project with its balance, credentials and integrations"}, nil, show),
		pause(a, "pause", "Refuse every request of a project with 503 project_paused", true), pause(a, "resume", "End the pause of a project", false),
		limits(a), trial(a), scale(a), export(a), importFile(a))
}

// Settings are the properties of a project that an operator sets.
type Settings struct {
	ID                string   `json:"project_id"`
	Name              string   `json:"name"`
	Paused            bool     `json:"paused"`
	LimitRequests     int      `json:"limit_requests"`
	LimitSeconds      int      `json:"limit_seconds"`
	PerRecipient      []string `json:"per_recipient,omitempty"` // as --per-recipient: 5/10m
	DailyCredits      int64    `json:"daily_credits,omitempty"`
	DailyUnits        int64    `json:"daily_units,omitempty"`
	Trial             bool     `json:"trial"`
	TrialDestinations []string `json:"trial_destinations"`
}

func settingsOf(p project.Project) Settings {
	return Settings{
		ID: p.ID, Name: p.Name, Paused: p.Paused,
		LimitRequests: p.Limit.Requests, LimitSeconds: int(p.Limit.Window / time.Second),
		PerRecipient: recipientTexts(p.Limits.Recipients), DailyCredits: p.Limits.DailyCredits, DailyUnits: p.Limits.DailyUnits,
		Trial: p.Trial, TrialDestinations: append([]string{}, p.TrialDestinations...),
	}
}

// project returns the project with these settings, or an error for limits that cannot be read.
func (p Settings) project() (project.Project, error) {
	recipients, err := parseRecipients(cmp.Or(strings.Join(p.PerRecipient, ","), none))
	return project.Project{
		ID: p.ID, Name: p.Name, Paused: p.Paused, Trial: p.Trial, TrialDestinations: p.TrialDestinations,
		Limit:  project.RateLimit{Requests: p.LimitRequests, Window: time.Duration(p.LimitSeconds) * time.Second},
		Limits: project.Limits{Recipients: recipients, DailyCredits: p.DailyCredits, DailyUnits: p.DailyUnits},
	}, err
}

// View is a project in the format for programs.
type View struct {
	Settings
	Created time.Time `json:"created"`
	Shards  int       `json:"shards"`
	// ShardsNext is the number of shards from ShardsSince on.
	ShardsNext  int        `json:"shards_next,omitempty"`
	ShardsSince *time.Time `json:"shards_since,omitempty"`
}

func viewOf(p project.Project) View {
	now := time.Now()
	view := View{Settings: settingsOf(p), Created: p.Created, Shards: p.Shards.At(now)}
	if now.Before(p.Shards.Since) {
		view.ShardsNext, view.ShardsSince = p.Shards.Count, &p.Shards.Since
	}
	return view
}

func (p View) shards() string {
	if p.ShardsSince == nil {
		return strconv.Itoa(p.Shards)
	}
	return fmt.Sprintf("%d (%d from %s)", p.Shards, p.ShardsNext, p.ShardsSince.UTC().Format("15:04:05 UTC"))
}

func (p View) state() string {
	if p.Paused {
		return "paused"
	}
	return "running"
}

func (p View) limit() string {
	return fmt.Sprintf("%d per %s", p.LimitRequests, short(time.Duration(p.LimitSeconds)*time.Second))
}

func (p View) trial() string {
	if !p.Trial {
		return "no"
	}
	return "yes, to: " + strings.Join(p.TrialDestinations, ", ")
}

func (p View) created() string { return p.Created.UTC().Format("2006-01-02 15:04 UTC") }

func (p View) rows() [][]string {
	rows := append(app.Rows("Project", p.ID, "Name", p.Name, "State", p.state()), p.limitRows()...)
	return append(rows, app.Rows("Trial", p.trial(), "Shards", p.shards(), "Created", p.created())...)
}

func list(ctx context.Context, s *app.Stack) error {
	projects, err := s.Projects.ListProjects(ctx)
	if err != nil {
		return err
	}
	header := []string{"PROJECT", "NAME", "STATE", "LIMIT", "TRIAL", "CREATED"}
	t := app.Table{Header: header, Empty: `No projects yet. "svc project create" creates one.`}
	return app.PrintList(s.App, t, projects, func(p project.Project) (View, []string) {
		v := viewOf(p)
		return v, []string{v.ID, v.Name, v.state(), v.limit(), v.trial(), v.created()}
	})
}

func show(ctx context.Context, s *app.Stack, rec *project.Record) error {
	balance, err := s.Credits.Balance(ctx, rec.ID)
	if err != nil {
		return err
	}
	integrations, err := catalog.ViewAll(ctx, s, rec)
	if err != nil {
		return err
	}
	credentials, credentialTable := credential.ViewAll(rec)
	view := struct {
		View
		Balance      int64             `json:"balance"`
		Credentials  []credential.View `json:"credentials"`
		Integrations []catalog.View    `json:"integrations"`
	}{viewOf(rec.Project), balance, credentials, integrations}
	rows := append(view.rows(), []string{"Balance", app.Credits(balance)})
	return s.Print(view, app.Table{Rows: rows}, credentialTable, catalog.Table(integrations))
}
