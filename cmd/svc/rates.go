package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/pattern"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/rates"
	"svcapi/shared/rates/refresh"
	"svcapi/shared/rates/sources"
)

// codePattern matches a currency's code, and those of the central bank's values (openapi.yaml#CurrencyTarget).
var codePattern = pattern.New(`^[A-Za-z]{3}(-[A-Za-z]+)?$`)

// rateCodes are the two codes of a rate, or both empty.
type rateCodes struct{ base, target string }

func (c *rateCodes) parse(args []string) error {
	if len(args) == 1 {
		return app.Usagef("give two codes, or none")
	}
	for _, code := range args {
		if !codePattern().MatchString(code) {
			return app.Usagef("a code is such as USD or LKR-SELL, not %q", code)
		}
	}
	return app.Bind(&c.base, &c.target)(args)
}

// pairView is one rate in the format for programs.
type pairView struct {
	Base   string        `json:"base"`
	Target string        `json:"target"`
	Rate   rates.Decimal `json:"rate"`
	Source string        `json:"source"`
	Date   time.Time     `json:"date"`
	Made   string        `json:"made"`
}

// viewPair returns a rate and its derivation, and false for a code that is not active.
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
		v.Made = fmt.Sprintf("%s %s divided by %s %s, each for 1 %s", set.Rates[plain], plain,
			set.Rates[base], base, set.Base)
	}
	if plain != target && pair.Source != rates.BankSource {
		v.Made += "; the central bank has no usable value"
	}
	return v, true
}

func setRows(s *rates.Set) [][]string {
	return app.Rows("Source", s.Source, "Source's date", app.Second(s.Date), "Fetched", app.Second(s.Fetched),
		"Currencies", strconv.Itoa(len(s.Rates))+", for 1 "+s.Base)
}

// sourceView is the stored state of a source in the format for programs.
type sourceView struct {
	Name string `json:"source"`
	rates.Source
	Date time.Time `json:"date"`
}

func pinText(p *rates.Pin) string {
	if p == nil {
		return "no"
	}
	return fmt.Sprintf("to %s since %s by %s: %s", p.Source, app.Second(p.At), p.Actor, p.Reason)
}

func bankTable(bank rates.Bank, now time.Time) app.Table {
	bases := slices.DeleteFunc(rates.BankBases(), func(base string) bool { _, known := bank[base]; return !known })
	const header, empty = "CENTRAL BANK, LKR-BUY, LKR-SELL, OF, LKR-CENTRAL, OF, USABLE", "There are no values of the " +
		"central bank."
	return app.TableOf(header, empty, bases, func(base string) []string {
		r, usable := bank[base], []string{}
		for name, quote := range map[string]rates.Quote{"buy": r.Buy, "sell": r.Sell, "central": r.Central} {
			if quote.Usable(now) {
				usable = append(usable, name)
			}
		}
		slices.Sort(usable)
		return []string{base, r.Buy.Rate.String(), r.Sell.Rate.String(), string(r.Buy.Date), r.Central.Rate.String(),
			string(r.Central.Date), strings.Join(usable, " ")}
	})
}

func showRates(a *app.App) *cobra.Command {
	var c rateCodes
	var projectID string
	var env []project.Environment // one
	cmd := a.Command("show [BASE TARGET]", c.parse, func(ctx context.Context, s *app.Stack) error {
		if c.base == "" && projectID == "" {
			return showAllRates(ctx, s)
		}
		set, err := readSet(ctx, s, projectID, env[0])
		if err != nil {
			return err
		}
		if c.base == "" {
			return s.Print(set, app.Table{Rows: setRows(set)})
		}
		v, ok := viewPair(set, c.base, c.target, time.Now())
		if !ok {
			return fmt.Errorf("rate of %s to %s: %w", c.base, c.target, admin.ErrNotFound)
		}
		return s.PrintRows(v, "Rate", "1 "+v.Base+" = "+v.Rate.String()+" "+v.Target,
			"Source", v.Source, "Source's date", app.Second(v.Date), "Derivation", v.Made)
	})
	cmd.Flags().StringVar(&projectID, "project", "", "the rates of this project's own key, in the environment of --env")
	app.EnvironmentFlag(cmd, &env, "development", false)
	return cmd
}

// readSet returns the service's rates, or the rates of a project's own key.
func readSet(ctx context.Context, s *app.Stack, projectID string, env project.Environment) (*rates.Set, error) {
	if projectID == "" {
		stored, err := s.Rates.Stored(ctx)
		if err != nil {
			return nil, err
		}
		if stored.Current == nil {
			return nil, fmt.Errorf(`rates: %w; "svc rates sync" fetches them`, admin.ErrNotFound)
		}
		return stored.Current, nil
	}
	r, err := s.Rates.ProjectRates(ctx, projectID, env, true)
	if err == nil && r.Set == nil {
		err = fmt.Errorf("rates of %s with its own key: %w", projectID, admin.ErrNotFound)
	}
	return r.Set, err
}

// showAllRates shows the rates of the service, and the state of each source in the order of the fetches.
func showAllRates(ctx context.Context, s *app.Stack) error {
	stored, err := s.Rates.Stored(ctx)
	if err != nil {
		return err
	}
	var views []sourceView
	for _, name := range append(sources.Names(), rates.BankSource) {
		v := sourceView{Name: name, Source: stored.Sources[name]}
		if v.Table != nil {
			v.Date = v.Table.Date
		}
		views = append(views, v)
	}
	const header = "SOURCE, LAST VALID FETCH, ITS DATE, LAST TRIED, FAILURE"
	states := app.TableOf(header, "", views, func(v sourceView) []string {
		return []string{v.Name, app.Second(v.Fetched), app.Second(v.Date), app.Second(v.Tried), v.Failure}
	})
	tables := []app.Table{{Empty: `No rates yet. "svc rates sync" fetches rates.`}, states}
	if stored.Current != nil {
		tables[0].Rows = append(setRows(stored.Current), []string{"Pinned", pinText(stored.Pin)})
		tables = append(tables, bankTable(stored.Current.Bank, time.Now()))
	}
	return s.Print(map[string]any{"current": stored.Current, "pinned": stored.Pin, "sources": views}, tables...)
}

// fetchRates fetches rates as the scheduled function does.
func fetchRates(ctx context.Context, s *app.Stack, acceptMoves bool) (*refresh.Report, error) {
	actor, err := s.Actor(ctx)
	if err != nil {
		return nil, err
	}
	r := &refresh.Refresher{Store: s.Rates, Client: s.Vendors, Secrets: s.Secrets, Now: time.Now,
		Endpoint: s.Running.SandboxURL}
	return r.Run(ctx, refresh.Options{Actor: actor, AcceptMoves: acceptMoves})
}

// printFetch prints the results of a run. The functions use the new rates within a minute.
func printFetch(s *app.Stack, report *refresh.Report) error {
	return app.PrintList(s.App, "SOURCE, OUTCOME, WHY", "", report.Results, func(r refresh.Result) []string {
		return []string{r.Source, string(r.Outcome), r.Detail}
	})
}

func syncRates(a *app.App) *cobra.Command {
	var acceptMoves bool
	cmd := a.Command("sync", nil, func(ctx context.Context, s *app.Stack) error {
		report, err := fetchRates(ctx, s, acceptMoves)
		if err == nil {
			return printFetch(s, report)
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
	rates.Event
	Pair *pairView `json:"pair,omitempty"`
}

func ratesHistory(a *app.App) *cobra.Command {
	var c rateCodes
	var limit int
	cmd := a.Command("history [BASE TARGET]", func(args []string) error {
		if limit < 1 {
			return app.Usagef("--limit is at least 1")
		}
		return c.parse(args)
	}, func(ctx context.Context, s *app.Stack) error {
		events, err := s.Rates.History(ctx, limit)
		if err != nil {
			return err
		}
		views, header := make([]eventView, len(events)), "AT, SOURCE, OUTCOME, BY, WHY"
		if c.base != "" {
			header += ", RATE, FROM"
		}
		for i, e := range events {
			views[i].Event = e
			if c.base != "" && e.Set != nil {
				if pair, ok := viewPair(e.Set, c.base, c.target, e.At); ok {
					views[i].Pair = &pair
				}
			}
		}
		return app.PrintList(s.App, header, "Nothing has happened yet.", views, func(v eventView) []string {
			row := []string{s.Time(v.At), v.Source, v.Outcome, v.Actor, v.Detail}
			switch {
			case v.Pair != nil:
				row = append(row, v.Pair.Rate.String(), v.Pair.Source)
			case c.base != "":
				row = append(row, "", "")
			}
			return row
		})
	})
	cmd.Flags().IntVar(&limit, "limit", 20, "largest number of entries")
	return cmd
}

func pinRates(a *app.App) *cobra.Command {
	var source, reason string
	var off bool
	cmd := a.Command("pin [SOURCE]", func(args []string) error {
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
		report, err := fetchRates(ctx, s, false)
		if err != nil {
			s.Note("The choice is stored; the rates in use stay until the source returns valid rates.")
			return err
		}
		return printFetch(s, report)
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
