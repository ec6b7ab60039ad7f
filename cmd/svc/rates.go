package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/rates/refresh"
	currency "svcapi/shared/rates/vendors"
)

func (a *app) rates() *cobra.Command {
	return group("rates", "Show exchange rates and where they come from, fetch them, choose their source",
		a.ratesShow(), a.ratesSync(), a.ratesHistory(), a.ratesPin())
}

// pairView is one rate as programs read it.
type pairView struct {
	Base   string        `json:"base"`
	Target string        `json:"target"`
	Rate   rates.Decimal `json:"rate"`
	Source string        `json:"source"`
	Date   time.Time     `json:"date"`
	Made   string        `json:"made"`
}

// viewPair tells a rate and how it was made; false: a code is not active.
func viewPair(set *rates.Set, base, target string, now time.Time) (pairView, bool) {
	base, target = strings.ToUpper(base), strings.ToUpper(target)
	pair, ok := set.Pair(base, target, now)
	if !ok {
		return pairView{}, false
	}
	v := pairView{base, target, pair.Rate, pair.Source, pair.Date, "the source's own number"}
	plain := target
	if strings.HasPrefix(target, "LKR-") {
		plain = "LKR"
	}
	switch {
	case pair.Source == rates.BankSource:
		v.Made = "the central bank's own number"
	case base == plain:
		v.Made = "a currency to itself"
	case base != set.Base:
		v.Made = fmt.Sprintf("%s %s over %s %s, each for 1 %s", set.Rates[plain], plain, set.Rates[base], base, set.Base)
	}
	if plain != target && pair.Source != rates.BankSource {
		v.Made += "; no usable value of the central bank's"
	}
	return v, true
}

func (p pairView) rows() [][]string {
	return [][]string{
		{"Rate", "1 " + p.Base + " = " + p.Rate.String() + " " + p.Target},
		{"Source", p.Source}, {"Source's date", second(p.Date)}, {"Made of", p.Made},
	}
}

func second(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// set is the service's, or that of a project's own key.
func (s *stack) set(ctx context.Context, projectID, env string) (*rates.Set, error) {
	if projectID == "" {
		held, err := s.rates.Held(ctx)
		if err != nil {
			return nil, err
		}
		if held.Current == nil {
			return nil, fmt.Errorf(`rates: %w: none are held; "svc rates sync" fetches them`, project.ErrNotFound)
		}
		return held.Current, nil
	}
	environment, err := parseEnvironment(env)
	if err != nil {
		return nil, err
	}
	own, err := s.rates.Own(ctx, projectID, environment, true)
	if err == nil && own.Set == nil {
		err = fmt.Errorf("rates of %s with its own key: %w", projectID, project.ErrNotFound)
	}
	return own.Set, err
}

func (a *app) ratesShow() *cobra.Command {
	var projectID, env string
	cmd := &cobra.Command{
		Use:   "show [BASE TARGET]",
		Short: "Show the rates in use, or one rate and what it is made of",
		Example: `  svc rates show
  svc rates show USD LKR-SELL
  svc rates show EUR LKR --project acme --env production`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 2 {
				return &usageError{"give two codes, or none"}
			}
			return nil
		},
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			if len(args) == 0 && projectID == "" {
				return a.showHeld(ctx, s)
			}
			set, err := s.set(ctx, projectID, env)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				v := viewSet(set)
				return a.print(v, table{rows: v.rows()})
			}
			v, ok := viewPair(set, args[0], args[1], time.Now())
			if !ok {
				return fmt.Errorf("rate of %s to %s: %w", args[0], args[1], project.ErrNotFound)
			}
			return a.print(v, table{rows: v.rows()})
		}),
	}
	cmd.Flags().StringVar(&projectID, "project", "", "the rates fetched with this project's own key")
	cmd.Flags().StringVar(&env, "env", string(project.Development), "development or production, with --project")
	return cmd
}

// setView is a set as programs read it.
type setView struct {
	Source  string                   `json:"source"`
	Base    string                   `json:"base"`
	Date    time.Time                `json:"date"`
	Fetched time.Time                `json:"fetched"`
	Rates   map[string]rates.Decimal `json:"rates"`
	Bank    rates.Bank               `json:"central_bank"`
}

func viewSet(s *rates.Set) setView {
	return setView{s.Source, s.Base, s.Date, s.Fetched, s.Rates, s.Bank}
}

func (v setView) rows() [][]string {
	return [][]string{
		{"Source", v.Source}, {"Source's date", second(v.Date)}, {"Fetched", second(v.Fetched)},
		{"Currencies", strconv.Itoa(len(v.Rates)) + ", for 1 " + v.Base},
	}
}

// sourceView is what is held of a source as programs read it.
type sourceView struct {
	Source  string    `json:"source"`
	Fetched time.Time `json:"fetched"`
	Date    time.Time `json:"date"`
	Tried   time.Time `json:"tried"`
	Trouble string    `json:"trouble"`
}

type pinView struct {
	Source string    `json:"source"`
	Reason string    `json:"reason"`
	Actor  string    `json:"actor"`
	At     time.Time `json:"at"`
}

func viewPin(p *rates.Pin) *pinView {
	if p == nil {
		return nil
	}
	return &pinView{p.Source, p.Reason, p.Actor, p.At}
}

func (p *pinView) text() string {
	if p == nil {
		return "no"
	}
	return fmt.Sprintf("to %s since %s by %s: %s", p.Source, second(p.At), p.Actor, p.Reason)
}

// sourceNames are all that are asked, in their order.
func sourceNames() []string {
	var list []string
	for _, v := range currency.Table() {
		list = append(list, v.Name)
	}
	return append(list, rates.BankSource)
}

func (a *app) showHeld(ctx context.Context, s *stack) error {
	held, err := s.rates.Held(ctx)
	if err != nil {
		return err
	}
	view := struct {
		Current *setView     `json:"current"`
		Pinned  *pinView     `json:"pinned"`
		Sources []sourceView `json:"sources"`
	}{Pinned: viewPin(held.Pin)}
	sources := table{header: []string{"SOURCE", "LAST GOOD FETCH", "ITS DATE", "LAST TRIED", "TROUBLE"}}
	for _, name := range sourceNames() {
		source := held.Sources[name]
		v := sourceView{Source: name, Fetched: source.Fetched, Tried: source.Tried, Trouble: source.Trouble}
		if source.Table != nil {
			v.Date = source.Table.Date
		}
		view.Sources = append(view.Sources, v)
		sources.rows = append(sources.rows, []string{name, second(v.Fetched), second(v.Date), second(v.Tried), v.Trouble})
	}
	in := table{empty: `No rates are held. "svc rates sync" fetches them.`}
	if held.Current != nil {
		v := viewSet(held.Current)
		view.Current = &v
		in.rows = append(v.rows(), []string{"Pinned", view.Pinned.text()})
	}
	if a.output == outputJSON {
		return a.print(view, table{})
	}
	tables := []table{in, sources}
	if held.Current != nil {
		tables = append(tables, bankTable(held.Current.Bank, time.Now()))
	}
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		if err := a.print(nil, t); err != nil {
			return err
		}
	}
	return nil
}

func bankTable(bank rates.Bank, now time.Time) table {
	t := table{
		header: []string{"CENTRAL BANK", "LKR-BUY", "LKR-SELL", "OF", "LKR-CENTRAL", "OF", "USABLE"},
		empty:  "No values of the central bank are held.",
	}
	for _, base := range rates.BankBases() {
		r, ok := bank[base]
		if !ok {
			continue
		}
		var usable []string
		for name, quote := range map[string]rates.Quote{"buy": r.Buy, "sell": r.Sell, "central": r.Central} {
			if quote.Usable(now) {
				usable = append(usable, name)
			}
		}
		slices.Sort(usable)
		t.rows = append(t.rows, []string{
			base, r.Buy.Rate.String(), r.Sell.Rate.String(), string(r.Buy.Date), r.Central.Rate.String(), string(r.Central.Date), strings.Join(usable, " "),
		})
	}
	return t
}

// sync fetches rates as the scheduled function does.
func (s *stack) sync(ctx context.Context, acceptMoves bool) (*refresh.Report, error) {
	actor, err := s.actor(ctx)
	if err != nil {
		return nil, err
	}
	r := &refresh.Refresher{Store: s.rates, Client: s.vendors, Secrets: s.secrets, Endpoint: s.sandbox, Now: time.Now}
	return r.Run(ctx, refresh.Options{Actor: actor, AcceptMoves: acceptMoves})
}

type outcomeView struct {
	Source string       `json:"source"`
	What   refresh.What `json:"what"`
	Detail string       `json:"detail"`
}

// printReport tells what a sync did. The functions use what it put in place within a minute.
func (a *app) printReport(report *refresh.Report) error {
	views := []outcomeView{}
	t := table{header: []string{"SOURCE", "WHAT", "WHY"}}
	for _, o := range report.Outcomes {
		views = append(views, outcomeView(o))
		t.rows = append(t.rows, []string{o.Source, string(o.What), o.Detail})
	}
	return a.print(views, t)
}

func (a *app) ratesSync() *cobra.Command {
	var moves bool
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Fetch rates now, as the schedule does every hour",
		Long: `Fetch rates now, as the schedule does every hour: from the first source that
gives a table that can be believed, and from the central bank. What is refused
leaves what is in use. This machine asks the sources, with the service's
accounts.`,
		Args: cobra.NoArgs,
		RunE: a.on(func(ctx context.Context, s *stack, _ []string) error {
			report, err := s.sync(ctx, moves)
			if err != nil {
				if report != nil {
					for _, o := range report.Outcomes {
						a.note("%s %s: %s", o.Source, o.What, o.Detail)
					}
				}
				return err
			}
			return a.printReport(report)
		}),
	}
	cmd.Flags().BoolVar(&moves, "accept-moves", false, "take moves of over 50 % as well: you know that they are real")
	return cmd
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

func (a *app) ratesHistory() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "history [BASE TARGET]",
		Short: "Show what became of fetches, the newest first, and how one rate changed",
		Long: `Show what became of fetches in the last 90 days, the newest first: what was
taken and changed the rates in use, what was refused or failed and why, and
operators' choices. With two codes also what their rate was from then on.`,
		Args: cobra.MaximumNArgs(2),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			if len(args) == 1 {
				return &usageError{"give two codes, or none"}
			}
			if limit < 1 {
				return &usageError{"--limit is at least 1"}
			}
			events, err := s.rates.History(ctx, limit)
			if err != nil {
				return err
			}
			views := []eventView{}
			t := table{header: []string{"AT", "SOURCE", "WHAT", "BY", "WHY"}, empty: "Nothing has happened yet."}
			if len(args) == 2 {
				t.header = append(t.header, "RATE", "FROM")
			}
			for _, e := range events {
				v := eventView{e.At, e.Source, e.What, e.Detail, e.Actor, nil}
				row := []string{second(e.At), e.Source, e.What, e.Actor, e.Detail}
				if len(args) == 2 {
					rate, from := "", ""
					if e.Set != nil {
						if pair, ok := viewPair(e.Set, args[0], args[1], e.At); ok {
							v.Pair, rate, from = &pair, pair.Rate.String(), pair.Source
						}
					}
					row = append(row, rate, from)
				}
				views = append(views, v)
				t.rows = append(t.rows, row)
			}
			return a.print(views, t)
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "most entries")
	return cmd
}

func (a *app) ratesPin() *cobra.Command {
	var off bool
	var reason string
	cmd := &cobra.Command{
		Use:   "pin [SOURCE]",
		Short: "Use one source alone, or with --off all in their order again",
		Long: `Use one source alone, and fetch from it at once. While it gives nothing that
can be believed, what was in use stays. --off gives all sources their turn again.`,
		Example: `  svc rates pin frankfurter --reason "openexchangerates reports a wrong LKR"
  svc rates pin --off --reason "corrected by the source"`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			if off != (len(args) == 0) {
				return &usageError{"give a source, or --off"}
			}
			if reason == "" {
				return &usageError{"give a --reason: it stands in the history"}
			}
			if !off && currency.Find(args[0]) == nil {
				var known []string
				for _, v := range currency.Table() {
					known = append(known, v.Name)
				}
				return &usageError{fmt.Sprintf("no source %q; there are %s", args[0], strings.Join(known, ", "))}
			}
			if off {
				held, err := s.rates.Held(ctx)
				if err != nil {
					return err
				}
				if held.Pin == nil {
					a.note("No source is pinned: nothing was changed.")
					return nil
				}
			}
			actor, err := s.actor(ctx)
			if err != nil {
				return err
			}
			event := rates.Event{At: time.Now(), What: "unpinned", Detail: reason, Actor: actor}
			var pin *rates.Pin
			if !off {
				event.What, event.Source = "pinned", args[0]
				pin = &rates.Pin{Source: args[0], Reason: reason, Actor: actor, At: event.At}
			}
			if err := s.rates.PutPin(ctx, pin); err != nil {
				return err
			}
			if err := s.rates.PutEvent(ctx, event, 0); err != nil {
				return err
			}
			report, err := s.sync(ctx, false)
			if err != nil {
				a.note("The choice stands; what was in use stays until the source gives rates that can be used.")
				return err
			}
			return a.printReport(report)
		}),
	}
	cmd.Flags().BoolVar(&off, "off", false, "all sources in their order again")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	return cmd
}
