package rates

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/rates"
	"svcapi/shared/rates/refresh"
	"svcapi/shared/rates/sources"
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
	return s.Print(results, app.Table{Header: []string{"SOURCE", "OUTCOME", "WHY"}, Rows: rows})
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
	At      time.Time `json:"at"`
	Source  string    `json:"source"`
	Outcome string    `json:"outcome"`
	Detail  string    `json:"detail"`
	Actor   string    `json:"actor"`
	Pair    *pairView `json:"pair,omitempty"`
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
	header := []string{"AT", "SOURCE", "OUTCOME", "BY", "WHY"}
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

type pinOptions struct {
	source, reason string
	off            bool
}

func pin(a *app.App) *cobra.Command {
	o := &pinOptions{}
	cmd := a.Command(&cobra.Command{
		Use:   "pin [SOURCE]",
		Short: "Use one source alone, or with --off all sources in their order",
		Long: `Use one source alone, and fetch from it at once. The rates in use stay until the
source returns valid rates. --off uses all sources in their order again.`,
		Example: `  svc rates pin frankfurter --reason "openexchangerates reports a wrong LKR"
  svc rates pin --off --reason "corrected by the source"`,
	}, o.parse, o.run)
	cmd.Flags().BoolVar(&o.off, "off", false, "use all sources in their order again")
	cmd.Flags().StringVar(&o.reason, "reason", "", "reason for the history")
	return cmd
}

func (o *pinOptions) parse(args []string) error {
	if o.off != (len(args) == 0) {
		return app.Usagef("give either a source or --off")
	}
	if o.reason == "" {
		return app.Usagef("give a --reason for the history")
	}
	if o.off {
		return nil
	}
	if o.source = args[0]; sources.Find(o.source) == nil {
		return app.Usagef("no source %q; the sources are %s", o.source, strings.Join(sources.Names(), ", "))
	}
	return nil
}

func (o *pinOptions) run(ctx context.Context, s *app.Stack) error {
	if o.off {
		stored, err := s.Rates.Stored(ctx)
		if err != nil {
			return err
		}
		if stored.Pin == nil {
			s.Note("No source is pinned: nothing was changed.")
			return nil
		}
	}
	if err := o.put(ctx, s); err != nil {
		return err
	}
	report, err := fetch(ctx, s, false)
	if err != nil {
		s.Note("The choice is stored; the rates in use stay until the source returns valid rates.")
		return err
	}
	return printReport(s, report)
}

// put stores the choice and its event in the history.
func (o *pinOptions) put(ctx context.Context, s *app.Stack) error {
	actor, err := s.Actor(ctx)
	if err != nil {
		return err
	}
	event := rates.Event{At: time.Now(), Outcome: "unpinned", Detail: o.reason, Actor: actor}
	var pin *rates.Pin
	if !o.off {
		event.Outcome, event.Source = "pinned", o.source
		pin = &rates.Pin{Source: o.source, Reason: o.reason, Actor: actor, At: event.At}
	}
	if err := s.Rates.PutPin(ctx, pin); err != nil {
		return err
	}
	return s.Rates.PutEvent(ctx, event, 0)
}
