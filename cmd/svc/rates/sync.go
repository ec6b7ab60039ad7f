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
	t := app.Table{Header: []string{"SOURCE", "OUTCOME", "WHY"}}
	return app.PrintList(s.App, t, report.Results, func(r refresh.Result) (refresh.Result, []string) {
		return r, []string{r.Source, string(r.Outcome), r.Detail}
	})
}

func sync(a *app.App) *cobra.Command {
	var acceptMoves bool
	cmd := a.Command(&cobra.Command{
		Use:   "sync",
		Short: "Fetch rates now, as the schedule does every hour",
		Long: `Fetch rates now, as the schedule does every hour: from the first source with a
valid table, and from the central bank. The rates in use stay where new rates are
refused. The requests go out from this machine, with the service's accounts.`,
	}, nil, func(ctx context.Context, s *app.Stack) error {
		report, err := fetch(ctx, s, acceptMoves)
		if err == nil {
			return printReport(s, report)
		}
		if report != nil {
			for _, result := range report.Results {
				s.Note("%s %s: %s", result.Source, result.Outcome, result.Detail)
			}
		}
		return err
	})
	cmd.Flags().BoolVar(&acceptMoves, "accept-moves", false, "also accept moves of over 50 % that you have confirmed")
	return cmd
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

func history(a *app.App) *cobra.Command {
	var c codes
	var limit int
	cmd := a.Command(&cobra.Command{
		Use:   "history [BASE TARGET]",
		Short: "Show the outcomes of fetches, the newest first, and the changes of one rate",
		Long: `Show the outcomes of fetches in the last 90 days, the newest first: fetches that
changed the rates in use, refused and failed fetches with their reasons, and the
choices of operators. With two codes the command also shows their rate after each
event.`,
	}, c.parse, func(ctx context.Context, s *app.Stack) error {
		if limit < 1 {
			return app.Usagef("--limit is at least 1")
		}
		events, err := s.Rates.History(ctx, limit)
		if err != nil {
			return err
		}
		t := app.Table{Header: []string{"AT", "SOURCE", "OUTCOME", "BY", "WHY"}, Empty: "Nothing has happened yet."}
		if c.base != "" {
			t.Header = append(t.Header, "RATE", "FROM")
		}
		return app.PrintList(s.App, t, events, func(e rates.Event) (eventView, []string) {
			v := eventView{e.At, e.Source, e.Outcome, e.Detail, e.Actor, nil}
			row := []string{s.Time(e.At), e.Source, e.Outcome, e.Actor, e.Detail}
			if c.base == "" {
				return v, row
			}
			if e.Set != nil {
				if pair, ok := viewPair(e.Set, c.base, c.target, e.At); ok {
					v.Pair = &pair
					return v, append(row, pair.Rate.String(), pair.Source)
				}
			}
			return v, append(row, "", "")
		})
	})
	cmd.Flags().IntVar(&limit, "limit", 20, "largest number of entries")
	return cmd
}

func pin(a *app.App) *cobra.Command {
	var source, reason string
	var off bool
	cmd := a.Command(&cobra.Command{
		Use:   "pin [SOURCE]",
		Short: "Use one source alone, or with --off all sources in their order",
		Long: `Use one source alone, and fetch from it at once. The rates in use stay until the
source returns valid rates. --off uses all sources in their order again.`,
		Example: `  svc rates pin frankfurter --reason "openexchangerates reports a wrong LKR"
  svc rates pin --off --reason "corrected by the source"`,
	}, func(args []string) error {
		if off != (len(args) == 0) {
			return app.Usagef("give either a source or --off")
		}
		if reason == "" {
			return app.Usagef("give a --reason for the history")
		}
		if off {
			return nil
		}
		if source = args[0]; sources.Find(source) == nil {
			return app.Usagef("no source %q; the sources are %s", source, strings.Join(sources.Names(), ", "))
		}
		return nil
	}, func(ctx context.Context, s *app.Stack) error {
		if off {
			stored, err := s.Rates.Stored(ctx)
			if err != nil {
				return err
			}
			if stored.Pin == nil {
				s.Note("No source is pinned: nothing was changed.")
				return nil
			}
		}
		if err := putPin(ctx, s, source, reason); err != nil {
			return err
		}
		report, err := fetch(ctx, s, false)
		if err != nil {
			s.Note("The choice is stored; the rates in use stay until the source returns valid rates.")
			return err
		}
		return printReport(s, report)
	})
	cmd.Flags().BoolVar(&off, "off", false, "use all sources in their order again")
	cmd.Flags().StringVar(&reason, "reason", "", "reason for the history")
	return cmd
}

// putPin stores the choice of a source, or of all for an empty source, and the choice's event in the history.
func putPin(ctx context.Context, s *app.Stack, source, reason string) error {
	actor, err := s.Actor(ctx)
	if err != nil {
		return err
	}
	event := rates.Event{At: time.Now(), Outcome: "unpinned", Source: source, Detail: reason, Actor: actor}
	var pin *rates.Pin
	if source != "" {
		event.Outcome, pin = "pinned", &rates.Pin{Source: source, Reason: reason, Actor: actor, At: event.At}
	}
	if err := s.Rates.PutPin(ctx, pin); err != nil {
		return err
	}
	return s.Rates.PutEvent(ctx, event, 0)
}
