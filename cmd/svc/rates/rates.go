// Package rates holds the command "svc rates".
package rates

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/rates/sources"
)

// Command returns "svc rates".
func Command(a *app.App) *cobra.Command {
	return app.Group("rates", "Show exchange rates with their sources, fetch rates, choose a source",
		show(a), sync(a), history(a), pin(a))
}

// codes are the two codes of a rate, or both empty.
type codes struct{ base, target string }

func (c *codes) parse(args []string) error {
	if len(args) == 1 {
		return app.Usagef("give two codes, or none")
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
		v.Made = fmt.Sprintf("%s %s divided by %s %s, each for 1 %s", set.Rates[plain], plain, set.Rates[base], base, set.Base)
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
	Source  string    `json:"source"`
	Fetched time.Time `json:"fetched"`
	Date    time.Time `json:"date"`
	Tried   time.Time `json:"tried"`
	Failure string    `json:"failure"`
}

func pinText(p *rates.Pin) string {
	if p == nil {
		return "no"
	}
	return fmt.Sprintf("to %s since %s by %s: %s", p.Source, app.Second(p.At), p.Actor, p.Reason)
}

func bankTable(bank rates.Bank, now time.Time) app.Table {
	t := app.Table{
		Header: []string{"CENTRAL BANK", "LKR-BUY", "LKR-SELL", "OF", "LKR-CENTRAL", "OF", "USABLE"},
		Empty:  "There are no values of the central bank.",
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
		t.Rows = append(t.Rows, []string{
			base, r.Buy.Rate.String(), r.Sell.Rate.String(), string(r.Buy.Date), r.Central.Rate.String(), string(r.Central.Date), strings.Join(usable, " "),
		})
	}
	return t
}

func show(a *app.App) *cobra.Command {
	var c codes
	var projectID string
	var env []project.Environment // one
	cmd := a.Command(&cobra.Command{
		Use:   "show [BASE TARGET]",
		Short: "Show the rates in use, or one rate with its derivation",
		Example: `  svc rates show
  svc rates show USD LKR-SELL
  svc rates show EUR LKR --project acme --env production`,
	}, c.parse, func(ctx context.Context, s *app.Stack) error {
		if c.base == "" && projectID == "" {
			return showAll(ctx, s)
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
			return fmt.Errorf("rate of %s to %s: %w", c.base, c.target, project.ErrNotFound)
		}
		return s.PrintRows(v, "Rate", "1 "+v.Base+" = "+v.Rate.String()+" "+v.Target,
			"Source", v.Source, "Source's date", app.Second(v.Date), "Derivation", v.Made)
	})
	cmd.Flags().StringVar(&projectID, "project", "", "the rates of this project's own key, in the environment of --env")
	app.EnvironmentFlag(cmd, &env)
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
			return nil, fmt.Errorf(`rates: %w; "svc rates sync" fetches them`, project.ErrNotFound)
		}
		return stored.Current, nil
	}
	r, err := s.Rates.ProjectRates(ctx, projectID, env, true)
	if err == nil && r.Set == nil {
		err = fmt.Errorf("rates of %s with its own key: %w", projectID, project.ErrNotFound)
	}
	return r.Set, err
}

// viewSources returns the state of each source in the order of the fetches.
func viewSources(stored *rates.Stored) ([]sourceView, app.Table) {
	views, rows := app.List(append(sources.Names(), rates.BankSource), func(name string) (sourceView, []string) {
		source := stored.Sources[name]
		v := sourceView{Source: name, Fetched: source.Fetched, Tried: source.Tried, Failure: source.Failure}
		if source.Table != nil {
			v.Date = source.Table.Date
		}
		return v, []string{name, app.Second(v.Fetched), app.Second(v.Date), app.Second(v.Tried), v.Failure}
	})
	return views, app.Table{Header: []string{"SOURCE", "LAST VALID FETCH", "ITS DATE", "LAST TRIED", "FAILURE"}, Rows: rows}
}

// showAll shows all rates of the service.
func showAll(ctx context.Context, s *app.Stack) error {
	stored, err := s.Rates.Stored(ctx)
	if err != nil {
		return err
	}
	sources, sourceTable := viewSources(stored)
	tables := []app.Table{{Empty: `No rates yet. "svc rates sync" fetches rates.`}, sourceTable}
	if stored.Current != nil {
		tables[0].Rows = append(setRows(stored.Current), []string{"Pinned", pinText(stored.Pin)})
		tables = append(tables, bankTable(stored.Current.Bank, time.Now()))
	}
	return s.Print(map[string]any{"current": stored.Current, "pinned": stored.Pin, "sources": sources}, tables...)
}
