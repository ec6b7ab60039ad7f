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

	"svcapi/cmd/svc/app"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/ratelimit"
	"svcapi/shared/wallet"
)

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
			if stack, err := s.StageLimits(ctx); err != nil {
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
	for _, l := range []struct {
		lacks        bool
		bounds, flag string
	}{
		{len(p.Limits.Recipients) == 0, "messages to one number", "--per-recipient 5/10m,20/24h"},
		{p.Limits.DailyCredits == 0, "credits of a day", app.ProposedCredits},
		{p.Limits.DailyUnits == 0, "SMS units of a day", app.ProposedUnits},
	} {
		if l.lacks {
			lacks, line = lacks+", "+l.bounds, line+" "+l.flag
		}
	}
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

var errRecipients = errors.New(`messages to one number in windows, such as 5/10m,20/24h, or "none"`)

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
			return nil, errRecipients
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
