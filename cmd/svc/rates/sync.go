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

// printReport prints the results of a run. The functions use the new rates within a minute.
func printReport(a *app.App, report *refresh.Report) error {
	results, rows := app.List(report.Results, func(r refresh.Result) (refresh.Result, []string) {
		return r, []string{r.Source, string(r.Outcome), r.Detail}
	})
	return a.Print(results, app.Table{Header: []string{"SOURCE", "WHAT", "WHY"}, Rows: rows})
}

type syncOptions struct {
	*app.App
	acceptMoves bool
}

func sync(a *app.App) *cobra.Command {
	o := &syncOptions{App: a}
	cmd := a.Command(&cobra.Command{
		Use:   "sync",
		Short: "Fetch rates now, as the schedule does every hour",
		Long: `Fetch rates now, as the schedule does every hour: from the first source with a
valid table, and from the central bank. The rates in use stay where new rates are
refused. The requests go out from this machine, with the service's accounts.`,
	}, nil, o.run)
	cmd.Flags().BoolVar(&o.acceptMoves, "accept-moves", false, "also accept moves of over 50 % that you have confirmed")
	return cmd
}

func (o *syncOptions) run(ctx context.Context, s *app.Stack) error {
	report, err := fetch(ctx, s, o.acceptMoves)
	if err == nil {
		return printReport(o.App, report)
	}
	if report != nil {
		for _, result := range report.Results {
			o.Note("%s %s: %s", result.Source, result.Outcome, result.Detail)
		}
	}
	return err
}

// eventView is an entry of the history in the format for programs.
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
	codes []string // base and target, or empty
	limit int
}

func history(a *app.App) *cobra.Command {
	o := &historyOptions{App: a}
	cmd := a.Command(&cobra.Command{
		Use:   "history [BASE TARGET]",
		Short: "Show the outcomes of fetches, the newest first, and the changes of one rate",
		Long: `Show the outcomes of fetches in the last 90 days, the newest first: fetches that
changed the rates in use, refused and failed fetches with their reasons, and the
choices of operators. With two codes the command also shows their rate after each
event.`,
	}, o.parse, o.run)
	cmd.Flags().IntVar(&o.limit, "limit", 20, "largest number of entries")
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
		v := eventView{e.At, e.Source, e.Outcome, e.Detail, e.Actor, nil}
		row := []string{app.Second(e.At), e.Source, e.Outcome, e.Actor, e.Detail}
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
