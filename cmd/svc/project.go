package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/ratelimit"
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

// noLimit removes a limit, and shows one that is not set.
const noLimit = "none"

func limitsCommand(a *app.App) *cobra.Command {
	var given limitFlags
	validate := func([]string) error { return given.validate() }
	cmd := a.ProjectCommand("limits PROJECT", validate,
		func(ctx context.Context, s *app.Stack, rec *project.Record) error {
			if !given.apply(&project.RateLimit{}, &project.Limits{}, false) {
				return showLimits(ctx, s, rec)
			}
			p, err := s.Projects.Update(ctx, rec.ID, func(p *project.Project) { given.apply(&p.Limit, &p.Limits, false) })
			if err != nil {
				return err
			}
			s.Note("functions follow within seconds")
			if stack, err := s.DeployedStack(ctx); err != nil {
				s.Note("The stage's own limits are not known: %v", err)
			} else if above := stack.AboveStage(p.Limit); above != "" {
				s.Note("Warning: %s. docs/limits-and-429.md says which limit comes first.", above)
			}
			view := projectViewOf(p)
			return s.Print(view, app.Table{Rows: append(app.Rows("Project", p.ID), view.limitRows()...)})
		})
	given.add(cmd.Flags(), 0)
	return cmd
}

// limitFlags are the flags that set the limits of a project.
type limitFlags struct {
	flags    *pflag.FlagSet
	requests project.RateLimit
	limits   project.Limits
}

// add adds the flags, with a default for the requests of a window.
func (f *limitFlags) add(flags *pflag.FlagSet, requests int) {
	f.flags = flags
	flags.IntVar(&f.requests.Requests, "requests", requests, "requests per window, in each environment")
	flags.DurationVar(&f.requests.Window, "window", time.Minute, "window of the requests, in whole seconds")
	const windows = "messages to one number in `windows`, such as 5/10m,20/24h, or \"none\""
	flags.Func("per-recipient", windows, func(text string) (err error) {
		f.limits.Recipients, err = parseRecipients(text)
		return err
	})
	flags.Func("daily-credits", "`credits` of a UTC day, or \"none\"", parseDaily(&f.limits.DailyCredits))
	flags.Func("daily-units", "SMS `units` of a UTC day through Manual (BYOK) integrations, or \"none\"",
		parseDaily(&f.limits.DailyUnits))
}

// apply sets the limits whose flags are given, or all, and reports whether it has set one.
func (f *limitFlags) apply(r *project.RateLimit, l *project.Limits, all bool) (changed bool) {
	for flag, set := range map[string]func(){
		"requests":      func() { r.Requests = f.requests.Requests },
		"window":        func() { r.Window = f.requests.Window },
		"per-recipient": func() { l.Recipients = f.limits.Recipients },
		"daily-credits": func() { l.DailyCredits = f.limits.DailyCredits },
		"daily-units":   func() { l.DailyUnits = f.limits.DailyUnits },
	} {
		if all || f.flags.Changed(flag) {
			set()
			changed = true
		}
	}
	return changed
}

// validate refuses limits that no project can have.
func (f *limitFlags) validate() error {
	requests, limits := project.RateLimit{Requests: 1, Window: time.Minute}, project.Limits{}
	f.apply(&requests, &limits, false)
	return cmp.Or(admin.ValidateRate(requests), admin.ValidateLimits(limits))
}

// noteUnlimited prints which limits against abuse a project lacks, with the command that sets them.
func noteUnlimited(s *app.Stack, p project.Project) {
	line, lacks := "", ""
	check := func(lacking bool, bounds, flag string) {
		if lacking {
			lacks, line = lacks+", "+bounds, line+" "+flag
		}
	}
	check(len(p.Limits.Recipients) == 0, "messages to one number", "--per-recipient 5/10m,20/24h")
	check(p.Limits.DailyCredits == 0, "credits of a day", app.ProposedCredits)
	check(p.Limits.DailyUnits == 0, "SMS units of a day", app.ProposedUnits)
	if line != "" {
		s.Note("Not limited: %s. This command limits them:\n%s", lacks[2:], s.Line("project limits %s%s", p.ID, line))
	}
}

// parseDaily returns a function that reads and stores the limit of a day. A limit of 0 means that there is none.
func parseDaily(limit *int64) func(text string) error {
	return func(text string) (err error) {
		if *limit, err = strconv.ParseInt(text, 10, 64); text != noLimit && (err != nil || *limit < 1) {
			return errors.New(`a whole number above 0 or "none"`)
		}
		return nil
	}
}

// parseRecipients reads limits such as 5/10m,20/24h.
func parseRecipients(text string) ([]project.RecipientLimit, error) {
	if text == noLimit {
		return nil, nil
	}
	var all []project.RecipientLimit
	for one := range strings.SplitSeq(text, ",") {
		messages, window, _ := strings.Cut(strings.TrimSpace(one), "/")
		n, err := strconv.Atoi(messages)
		length, windowErr := time.ParseDuration(window)
		if err != nil || windowErr != nil {
			return nil, errors.New(`messages to one number in windows, such as 5/10m,20/24h, or "none"`)
		}
		all = append(all, project.RecipientLimit{Messages: n, Window: length})
	}
	return all, nil
}

// showLimits prints the limits of a project, and what the daily limits have counted since 00:00 UTC. A limit that is
// not set counts nothing.
func showLimits(ctx context.Context, s *app.Stack, rec *project.Record) (err error) {
	counters, now := ratelimit.New(s.DB, s.Table("transient")), time.Now()
	view := struct {
		projectView
		Credits int64 `json:"credits_today"`
		Units   int64 `json:"units_today"`
	}{projectView: projectViewOf(rec.Project)}
	if rec.Limits.DailyCredits > 0 {
		view.Credits, err = counters.Counted(ctx, ratelimit.Daily{Project: rec.ID, Unit: ratelimit.Credits}, now)
	}
	if err == nil && rec.Limits.DailyUnits > 0 {
		view.Units, err = counters.Counted(ctx, ratelimit.Daily{Project: rec.ID, Unit: ratelimit.Units}, now)
	}
	if err != nil {
		return err
	}
	today := fmt.Sprintf("%s credits, %s SMS units counted", wallet.Grouped(view.Credits), wallet.Grouped(view.Units))
	return s.Print(view, app.Table{Rows: slices.Concat(app.Rows("Project", rec.ID), view.limitRows(),
		app.Rows("Today", today))})
}

// limitRows are the limits in force.
func (p projectView) limitRows() [][]string {
	daily := func(most int64, unit string) string {
		if most == 0 {
			return noLimit
		}
		return wallet.Grouped(most) + " " + unit + " a day (UTC)"
	}
	perRecipient := noLimit
	if len(p.PerRecipient) > 0 {
		perRecipient = strings.Join(p.PerRecipient, ", ")
	}
	return app.Rows("Limit", p.limit()+", in each environment", "Per recipient", perRecipient,
		"Daily credits", daily(p.DailyCredits, "credits"), "Daily units", daily(p.DailyUnits, "SMS units"))
}

// recipientTexts are limits in the form of --per-recipient.
func recipientTexts(limits []project.RecipientLimit) []string {
	var texts []string
	for _, l := range limits {
		texts = append(texts, fmt.Sprintf("%d/%s", l.Messages, shortWindow(l.Window)))
	}
	return texts
}

// shortWindow returns a window without zeros at its end: 1m for 1m0s.
func shortWindow(window time.Duration) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(window.String())
}
