package rates

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/rates/refresh"
)

// fetch fetches rates as the scheduled function does.
func fetch(ctx context.Context, s *app.Stack, acceptMoves bool) (*refresh.Report, error) {
	actor, err := s.Actor(ctx)
	if err != nil {
		return nil, err
	}
	r := &refresh.Refresher{Store: s.Rates, Client: s.Vendors, Secrets: s.Secrets, Endpoint: s.Sandbox, Now: time.Now}
	return r.Run(ctx, refresh.Options{Actor: actor, AcceptMoves: acceptMoves})
}

type outcomeView struct {
	Source string       `json:"source"`
	What   refresh.What `json:"what"`
	Detail string       `json:"detail"`
}

// printReport tells what a sync did. The functions use what it put in place within a minute.
func printReport(a *app.App, report *refresh.Report) error {
	views := []outcomeView{}
	t := app.Table{Header: []string{"SOURCE", "WHAT", "WHY"}}
	for _, o := range report.Outcomes {
		views = append(views, outcomeView(o))
		t.Rows = append(t.Rows, []string{o.Source, string(o.What), o.Detail})
	}
	return a.Print(views, t)
}

type syncOptions struct {
	*app.App
	moves bool
}

func sync(a *app.App) *cobra.Command {
	o := &syncOptions{App: a}
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Fetch rates now, as the schedule does every hour",
		Long: `Fetch rates now, as the schedule does every hour: from the first source that
gives a table that can be believed, and from the central bank. What is refused
leaves what is in use. This machine asks the sources, with the service's
accounts.`,
		Args: cobra.NoArgs,
		RunE: a.On(app.Bind(), o.run),
	}
	cmd.Flags().BoolVar(&o.moves, "accept-moves", false, "take moves of over 50 % as well: you know that they are real")
	return cmd
}

func (o *syncOptions) run(ctx context.Context, s *app.Stack) error {
	report, err := fetch(ctx, s, o.moves)
	if err == nil {
		return printReport(o.App, report)
	}
	if report != nil {
		for _, outcome := range report.Outcomes {
			o.Note("%s %s: %s", outcome.Source, outcome.What, outcome.Detail)
		}
	}
	return err
}

// eventView is an entry of the history as programs read it.
type eventView struct {
	At     time.Time `json:"at"`
	Source string    `json:"source"`
	What   string    `json:"what"`
	Detail string    `json:"detail"`
	Actor  string    `json:"actor"`
	Pair   *pairView `json:"pair,omitempty"`
}

type historyOptions struct {
	*app.App
	codes []string // base and target, or none
	limit int
}

func history(a *app.App) *cobra.Command {
	o := &historyOptions{App: a}
	cmd := &cobra.Command{
		Use:   "history [BASE TARGET]",
		Short: "Show what became of fetches, the newest first, and how one rate changed",
		Long: `Show what became of fetches in the last 90 days, the newest first: what was
taken and changed the rates in use, what was refused or failed and why, and
operators' choices. With two codes also what their rate was from then on.`,
		Args: cobra.MaximumNArgs(2),
		RunE: a.On(o.parse, o.run),
	}
	cmd.Flags().IntVar(&o.limit, "limit", 20, "most entries")
	return cmd
}

func (o *historyOptions) parse(args []string) error {
	o.codes = args
	if len(args) == 1 {
		return errCodes
	}
	if o.limit < 1 {
		return app.Usagef("--limit is at least 1")
	}
	return nil
}

func (o *historyOptions) run(ctx context.Context, s *app.Stack) error {
	events, err := s.Rates.History(ctx, o.limit)
	if err != nil {
		return err
	}
	views := []eventView{}
	t := app.Table{Header: []string{"AT", "SOURCE", "WHAT", "BY", "WHY"}, Empty: "Nothing has happened yet."}
	if len(o.codes) == 2 {
		t.Header = append(t.Header, "RATE", "FROM")
	}
	for _, e := range events {
		v := eventView{e.At, e.Source, e.What, e.Detail, e.Actor, nil}
		row := []string{app.Second(e.At), e.Source, e.What, e.Actor, e.Detail}
		if len(o.codes) == 2 {
			rate, from := "", ""
			if e.Set != nil {
				if pair, ok := viewPair(e.Set, o.codes[0], o.codes[1], e.At); ok {
					v.Pair, rate, from = &pair, pair.Rate.String(), pair.Source
				}
			}
			row = append(row, rate, from)
		}
		views = append(views, v)
		t.Rows = append(t.Rows, row)
	}
	return o.Print(views, t)
}
