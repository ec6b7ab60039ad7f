package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/books"
	"svcapi/shared/burner"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/wallet"
)

// projectSettings are the properties of a project that an operator sets.
type projectSettings struct {
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

	Prices map[string]int64 `json:"prices,omitempty"` // its own, in credits
}

func settingsOf(p project.Project) projectSettings {
	return projectSettings{
		ID: p.ID, Name: p.Name, Paused: p.Paused,
		LimitRequests: p.Limit.Requests, LimitSeconds: int(p.Limit.Window / time.Second),
		PerRecipient: recipientTexts(p.Limits.Recipients), DailyCredits: p.Limits.DailyCredits,
		DailyUnits: p.Limits.DailyUnits,
		Trial:      p.Trial, TrialDestinations: append([]string{}, p.TrialDestinations...), Prices: p.Prices,
	}
}

// project returns the project with these settings, or an error for limits that cannot be read.
func (p projectSettings) project() (project.Project, error) {
	recipients, err := parseRecipients(cmp.Or(strings.Join(p.PerRecipient, ","), noLimit))
	return project.Project{
		ID: p.ID, Name: p.Name, Paused: p.Paused, Trial: p.Trial, TrialDestinations: p.TrialDestinations,
		Prices: p.Prices,
		Limit:  project.RateLimit{Requests: p.LimitRequests, Window: time.Duration(p.LimitSeconds) * time.Second},
		Limits: project.Limits{Recipients: recipients, DailyCredits: p.DailyCredits, DailyUnits: p.DailyUnits},
	}, err
}

// projectView is a project in the format for programs.
type projectView struct {
	projectSettings
	Created time.Time `json:"created"`
	Closed  time.Time `json:"closed,omitzero"`
}

func projectViewOf(p project.Project) projectView {
	return projectView{settingsOf(p), p.Created, p.Closed}
}

func (p projectView) state() string {
	switch {
	case !p.Closed.IsZero():
		return "closed"
	case p.Paused:
		return "paused"
	}
	return "running"
}

func (p projectView) limit() string {
	return fmt.Sprintf("%d per %s", p.LimitRequests, shortWindow(time.Duration(p.LimitSeconds)*time.Second))
}

func (p projectView) trial() string {
	if !p.Trial {
		return "no"
	}
	return "yes, to: " + strings.Join(p.TrialDestinations, ", ")
}

func (p projectView) rows() [][]string {
	rows := append(app.Rows("Project", p.ID, "Name", p.Name, "State", p.state()), p.limitRows()...)
	return append(rows, app.Rows("Trial", p.trial(), "Created", app.Second(p.Created))...)
}

// listedProject is a project in the list, in the format for programs.
type listedProject struct {
	projectView
	Balance int64 `json:"balance"`
	Spent   int64 `json:"spent_today"` // credits charged on this UTC day, before refunds
}

func listProjects(a *app.App) *cobra.Command {
	type order = func(a, b listedProject) int
	byID := func(a, b listedProject) int { return cmp.Compare(a.ID, b.ID) }
	by := byID
	cmd := a.Command("list", nil, func(ctx context.Context, s *app.Stack) error {
		projects, err := s.Projects.ListProjects(ctx)
		if err != nil {
			return err
		}
		listed, now := make([]listedProject, len(projects)), time.Now()
		unreadable := make([][]error, len(projects))
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(8)
		for i, p := range projects {
			group.Go(func() (err error) {
				l := &listed[i]
				l.projectView = projectViewOf(p)
				if l.Balance, err = s.Credits.Balance(ctx, p.ID); err != nil {
					return err
				}
				read := books.Reading{Skip: func(err error) { unreadable[i] = append(unreadable[i], err) }}
				return s.Credits.Visit(ctx, &read, p.ID, now, now, func(e books.Entry) {
					if e.State == wallet.Captured {
						l.Spent += e.Credits
					}
				})
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		problems := 0
		for i, p := range projects {
			for _, err := range unreadable[i] {
				problems++
				s.Note("%s: %v: the sum lacks this entry", p.ID, err)
			}
		}
		slices.SortStableFunc(listed, func(a, b listedProject) int { return cmp.Or(by(a, b), byID(a, b)) })
		const header, empty = "PROJECT, NAME, STATE, BALANCE, SPENT TODAY, LIMIT, TRIAL, CREATED", `No projects yet. ` +
			`"svc project create" creates one.`
		err = app.PrintList(s.App, header, empty, listed, func(l listedProject) []string {
			return []string{l.ID, l.Name, l.state(), s.Number(l.Balance), s.Number(l.Spent), l.limit(), l.trial(),
				s.Time(l.Created)}
		})
		return cmp.Or(err, app.Problems(problems))
	})
	app.ChoiceFlag(cmd, cmd.Flags(), "sort", "project (default), state, balance (the lowest first) or spent (the highest "+
		"first)", &by, map[string]order{
		"project": byID,
		"state":   func(a, b listedProject) int { return cmp.Compare(a.state(), b.state()) },
		"balance": func(a, b listedProject) int { return cmp.Compare(a.Balance, b.Balance) },
		"spent":   func(a, b listedProject) int { return cmp.Compare(b.Spent, a.Spent) },
	})
	return cmd
}

func showProject(ctx context.Context, s *app.Stack, rec *project.Record) error {
	balance, err := s.Credits.Balance(ctx, rec.ID)
	if err != nil {
		return err
	}
	integrations, err := catalog.ViewAll(ctx, s, rec)
	if err != nil {
		return err
	}
	credentials, credentialTable := viewCredentials(rec)
	failures, failureTable := failuresOf(ctx, s, rec.ID)
	view := struct {
		projectView
		Balance      int64            `json:"balance"`
		Credentials  []credentialView `json:"credentials"`
		Integrations []catalog.View   `json:"integrations"`
		Failures     []failure        `json:"failures"` // of the last hour
	}{projectViewOf(rec.Project), balance, credentials, integrations, failures}
	rows := append(view.rows(), []string{"Balance", app.Credits(balance)})
	return s.Print(view, app.Table{Rows: rows}, credentialTable, catalog.Table(integrations), failureTable)
}

func pauseProject(a *app.App, name string, paused bool) *cobra.Command {
	return a.ProjectCommand(name+" PROJECT", nil, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		p, err := s.Projects.Update(ctx, rec.ID, func(p *project.Project) { p.Paused = paused })
		return printChange(s, p, err, "State", func(v projectView) string { return v.state() + soon })
	})
}

// soon says when functions know of a change.
const soon = " (functions follow within seconds)"

// printChange prints one changed property of a project, or returns the error of the change.
func printChange(s *app.Stack, p project.Project, err error, name string, text func(projectView) string) error {
	if err != nil {
		return err
	}
	view := projectViewOf(p)
	return s.PrintRows(view, "Project", p.ID, name, text(view))
}

func trialCommand(a *app.App) *cobra.Command {
	var on bool
	var allow []string
	cmd := a.ProjectCommand("trial PROJECT on|off", func(args []string) error {
		if on = args[0] == "on"; !on && args[0] != "off" {
			return app.Usagef(`the trial is "on" or "off", not %q`, args[0])
		}
		if !on && len(allow) > 0 {
			return app.Usagef("--allow is only for \"on\"")
		}
		return nil
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		p, err := s.Projects.Update(ctx, rec.ID, func(p *project.Project) { p.Trial, p.TrialDestinations = on, allow })
		return printChange(s, p, err, "Trial", func(v projectView) string { return v.trial() + soon })
	})
	cmd.Flags().StringArrayVar(&allow, "allow", nil,
		"a destination that the trial allows (repeat for more); replaces earlier destinations")
	return cmd
}

func createCommand(a *app.App) *cobra.Command {
	var p project.Project
	var given limitFlags
	var like string
	cmd := a.Command("create NAME", func(args []string) error {
		p.Name = args[0]
		if len(p.TrialDestinations) > 0 && !p.Trial {
			return app.Usagef("--allow goes with --trial")
		}
		if p.Trial && len(p.TrialDestinations) == 0 {
			return app.Usagef("--trial needs --allow: a trial without destinations can send nothing")
		}
		return nil
	}, func(ctx context.Context, s *app.Stack) error {
		rec, judged := &project.Record{}, burner.Domains{}
		if like != "" {
			var err error
			if rec, err = s.Load(ctx, like); err == nil {
				judged, err = s.Burners.List(ctx, like)
			}
			if err != nil {
				return err
			}
			if p.Limit, p.Limits, p.Prices = rec.Limit, rec.Limits, rec.Prices; !given.flags.Changed("trial") {
				p.Trial, p.TrialDestinations = rec.Trial, rec.TrialDestinations
			}
		}
		given.apply(&p.Limit, &p.Limits, like == "")
		return createProject(ctx, s, p, rec.Integrations, judged)
	})
	flags := cmd.Flags()
	flags.StringVar(&p.ID, "id", "", "project ID, 3 to 32 of a-z, 0-9 and - (default: a random one)")
	flags.StringVar(&like, "like", "",
		"the project whose limits, trial, prices and integrations the new project gets; other flags come first")
	flags.BoolVar(&p.Trial, "trial", false, "send SMS to the allowed destinations only")
	flags.StringArrayVar(&p.TrialDestinations, "allow", nil, "a destination that the trial allows (repeat for more)")
	given.add(flags, 600)
	return cmd
}

// createProject creates a project with its integrations, all or nothing, then its empty wallet and its judgements about
// domains, and prints the project. Secrets, credentials and credits are not copied: an integration without a stored
// secret is inactive until "svc integration set" stores the secret.
func createProject(ctx context.Context, s *app.Stack, p project.Project, all []project.Integration,
	judged burner.Domains) error {
	p.ID = cmp.Or(p.ID, admin.NewID())
	for n := range all {
		i := &all[n]
		view, err := catalog.ViewOf(ctx, s, p.ID, *i)
		if err != nil {
			return err
		}
		if i.Active && view.Incomplete != "" {
			i.Active = false
			s.Note("%s is imported inactive: %s", project.IntegrationID(i.Environment, i.Kind, i.Vendor), view.Incomplete)
		}
	}
	created, err := s.Projects.CreateProject(ctx, p, all...)
	if err != nil {
		return err
	}
	if err := s.Credits.CreateWallet(ctx, created.ID); err != nil {
		return fmt.Errorf("the project %s exists, its wallet does not (a grant creates the wallet): %w", created.ID, err)
	}
	for _, j := range []burner.Judgement{burner.Disposable, burner.Allowed} {
		if err := s.Burners.Put(ctx, created.ID, j, judged.Of(j)...); err != nil {
			return fmt.Errorf("the project %s exists, and lacks own domains: %w", created.ID, err)
		}
	}
	noteUnlimited(s, created)
	rec, err := s.Load(ctx, created.ID)
	if err != nil {
		return err
	}
	views, err := catalog.ViewAll(ctx, s, rec)
	if err != nil {
		return err
	}
	view := struct {
		projectView
		Integrations []catalog.View `json:"integrations"`
	}{projectViewOf(created), views}
	return s.Print(view, app.Table{Rows: append(view.rows(), []string{"Integrations", strconv.Itoa(len(views))})})
}
