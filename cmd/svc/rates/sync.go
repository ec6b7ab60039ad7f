package rates

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/rates"
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
func printReport(s *app.Stack, report *refresh.Report) error {
	results, rows := app.List(report.Results, func(r refresh.Result) (refresh.Result, []string) {
		return r, []string{r.Source, string(r.Outcome), r.Detail}
	})
	return s.Print(results, app.Table{Header: []string{"SOURCE", "WHAT", "WHY"}, Rows: rows})
}

type syncOptions struct{ acceptMoves bool }

func sync(a *app.App) *cobra.Command {
	o := &syncOptions{}
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
		return printReport(s, report)
	}
	if report != nil {
		for _, result := range report.Results {
			s.Note("%s %s: %s", result.Source, result.Outcome, result.Detail)
		}
	}
	return err
}

// eventView is an entry of the history in the format for programs.
type eventView struct {
	At     time.Time `json:"at"`
	Source string    `json:"source"`
	What   string    `json:"outcome"`
	Detail string    `json:"detail"`
	Actor  string    `json:"actor"`
	Pair   *pairView `json:"pair,omitempty"`
}

type historyOptions struct {
	codes
	limit int
}

func history(a *app.App) *cobra.Command {
	o := &historyOptions{}
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

func (o *historyOptions) run(ctx context.Context, s *app.Stack) error {
	if o.limit < 1 {
		return app.Usagef("--limit is at least 1")
	}
	events, err := s.Rates.History(ctx, o.limit)
	if err != nil {
		return err
	}
	header := []string{"AT", "SOURCE", "WHAT", "BY", "WHY"}
	if o.base != "" {
		header = append(header, "RATE", "FROM")
	}
	views, rows := app.List(events, func(e rates.Event) (eventView, []string) {
		v := eventView{e.At, e.Source, e.Outcome, e.Detail, e.Actor, nil}
		row := []string{s.Time(e.At), e.Source, e.Outcome, e.Actor, e.Detail}
		if o.base == "" {
			return v, row
		}
		if e.Set != nil {
			if pair, ok := viewPair(e.Set, o.base, o.target, e.At); ok {
				v.Pair = &pair
				return v, append(row, pair.Rate.String(), pair.Source)
			}
		}
		return v, append(row, "", "")
	})
	return s.Print(views, app.Table{Header: header, Rows: rows, Empty: "Nothing has happened yet."})
}
