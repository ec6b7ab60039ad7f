package project

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"svcapi/cmd/svc/app"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
)

// limitFlags are the flags that change a limit.
var limitFlags = []string{"requests", "window", "per-recipient", "daily-credits", "daily-units"}

// none removes a limit, and shows one that is not set.
const none = "none"

type limitsOptions struct {
	flags                    *pflag.FlagSet
	requests                 int
	window                   time.Duration
	perRecipient             string
	dailyCredits, dailyUnits string
	recipients               []project.RecipientLimit // of perRecipient
	creditsOfDay, unitsOfDay int64                    // of dailyCredits and dailyUnits
}

func limits(a *app.App) *cobra.Command {
	o := &limitsOptions{}
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "limits PROJECT",
		Short: "Show, set and remove the limits of a project: requests, messages to one number, a day's credits and SMS units",
		Long: `Show, set and remove the limits of a project. A limit that no flag names stays as it is, and
"none" removes a limit. The requests count in each environment, all else over both of them.
The windows of --per-recipient divide a day and begin at 00:00 UTC; a day ends at 00:00 UTC.
--daily-credits is for Managed integrations, --daily-units for SMS on Manual (BYOK) ones.
docs/abuse.md says what each limit stops and what to do when it fires.`,
		Example: `  svc project limits acme
  svc project limits acme --requests 1200 --window 1m
  svc project limits acme --per-recipient 5/10m,20/24h --daily-credits 5000000
  svc project limits acme --per-recipient none --daily-units 2000`,
	}, o.parse, o.run)
	o.flags = cmd.Flags()
	o.flags.IntVar(&o.requests, "requests", 0, "requests per window, in each environment")
	o.flags.DurationVar(&o.window, "window", time.Minute, "window of the requests, in whole seconds")
	o.flags.StringVar(&o.perRecipient, "per-recipient", "", `messages to one number in windows, such as 5/10m,20/24h, or "none"`)
	o.flags.StringVar(&o.dailyCredits, "daily-credits", "", `credits of a UTC day, or "none"`)
	o.flags.StringVar(&o.dailyUnits, "daily-units", "", `SMS units of a UTC day through Manual (BYOK) integrations, or "none"`)
	return cmd
}

func (o *limitsOptions) parse([]string) (err error) {
	if o.flags.Changed("per-recipient") {
		if o.recipients, err = parseRecipients(o.perRecipient); err != nil {
			return err
		}
	}
	for _, daily := range []struct {
		flag, text string
		into       *int64
	}{{"daily-credits", o.dailyCredits, &o.creditsOfDay}, {"daily-units", o.dailyUnits, &o.unitsOfDay}} {
		if !o.flags.Changed(daily.flag) || daily.text == none {
			continue
		}
		if *daily.into, err = strconv.ParseInt(daily.text, 10, 64); err != nil || *daily.into < 1 {
			return app.Usagef(`--%s is a whole number above 0 or "none", not %q`, daily.flag, daily.text)
		}
	}
	return nil
}

// parseRecipients reads limits such as 5/10m,20/24h.
func parseRecipients(text string) ([]project.RecipientLimit, error) {
	if text == none {
		return nil, nil
	}
	var all []project.RecipientLimit
	for one := range strings.SplitSeq(text, ",") {
		messages, window, _ := strings.Cut(strings.TrimSpace(one), "/")
		n, err := strconv.Atoi(messages)
		if err != nil {
			return nil, app.Usagef(`a limit of messages to one number is a number and a window such as 5/10m, or "none", not %q`, one)
		}
		length, err := time.ParseDuration(window)
		if err != nil {
			return nil, app.Usagef("a window is a time such as 10m, 1h or 24h, not %q", window)
		}
		all = append(all, project.RecipientLimit{Messages: n, Window: length})
	}
	return all, nil
}

// edit changes the limits that a flag names.
func (o *limitsOptions) edit(requests *project.RateLimit, l *project.Limits) {
	for name, set := range map[string]func(){
		"requests":      func() { requests.Requests = o.requests },
		"window":        func() { requests.Window = o.window },
		"per-recipient": func() { l.Recipients = o.recipients },
		"daily-credits": func() { l.DailyCredits = o.creditsOfDay },
		"daily-units":   func() { l.DailyUnits = o.unitsOfDay },
	} {
		if o.flags.Changed(name) {
			set()
		}
	}
}

func (o *limitsOptions) run(ctx context.Context, s *app.Stack, rec *project.Record) error {
	if slices.ContainsFunc(limitFlags, o.flags.Changed) {
		p, err := s.Projects.SetLimits(ctx, rec.ID, o.edit)
		if err != nil {
			return err
		}
		s.Note("functions follow within seconds")
		view := viewOf(p)
		return s.Print(view, app.Table{Rows: append(app.Rows("Project", p.ID), view.limitRows()...)})
	}
	used, err := usedToday(ctx, s, &rec.Project)
	if err != nil {
		return err
	}
	view := struct {
		View
		today
	}{viewOf(rec.Project), used}
	return s.Print(view, app.Table{Rows: slices.Concat(app.Rows("Project", rec.ID), view.limitRows(), used.rows())})
}

// today is what the daily limits of a project have counted since 00:00 UTC. A limit that is not set counts nothing.
type today struct {
	Credits int64 `json:"credits_today"`
	Units   int64 `json:"units_today"`
}

func usedToday(ctx context.Context, s *app.Stack, p *project.Project) (used today, err error) {
	counters, now := ratelimit.New(s.DB, s.Table("transient")), time.Now()
	if p.Limits.DailyCredits > 0 {
		used.Credits, err = counters.Counted(ctx, ratelimit.Daily{Project: p.ID, Unit: ratelimit.Credits}, now)
	}
	if err == nil && p.Limits.DailyUnits > 0 {
		used.Units, err = counters.Counted(ctx, ratelimit.Daily{Project: p.ID, Unit: ratelimit.Units}, now)
	}
	return used, err
}

func (t today) rows() [][]string {
	return app.Rows("Today", fmt.Sprintf("%s credits, %s SMS units counted", credit.Grouped(t.Credits), credit.Grouped(t.Units)))
}

// limitRows are the limits in force.
func (p View) limitRows() [][]string {
	daily := func(most int64, unit string) string {
		if most == 0 {
			return none
		}
		return credit.Grouped(most) + " " + unit + " a day (UTC)"
	}
	perRecipient := none
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
		texts = append(texts, fmt.Sprintf("%d/%s", l.Messages, short(l.Window)))
	}
	return texts
}

// short returns a window without zeros at its end: 1m for 1m0s.
func short(window time.Duration) string {
	text := window.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}
