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
	"svcapi/shared/rates/vendors"
)

// Command returns "svc rates".
func Command(a *app.App) *cobra.Command {
	return app.Group("rates", "Show exchange rates and where they come from, fetch them, choose their source",
		show(a), sync(a), history(a), pin(a))
}

var errCodes = app.Usagef("give two codes, or none")

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
		{"Source", p.Source}, {"Source's date", app.Second(p.Date)}, {"Made of", p.Made},
	}
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
		{"Source", v.Source}, {"Source's date", app.Second(v.Date)}, {"Fetched", app.Second(v.Fetched)},
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
	return fmt.Sprintf("to %s since %s by %s: %s", p.Source, app.Second(p.At), p.Actor, p.Reason)
}

// vendorNames are the names of the sources but the central bank, in the order in which they are asked.
func vendorNames() []string {
	var list []string
	for _, v := range vendors.Table() {
		list = append(list, v.Name)
	}
	return list
}

func bankTable(bank rates.Bank, now time.Time) app.Table {
	t := app.Table{
		Header: []string{"CENTRAL BANK", "LKR-BUY", "LKR-SELL", "OF", "LKR-CENTRAL", "OF", "USABLE"},
		Empty:  "No values of the central bank are held.",
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

type showOptions struct {
	*app.App
	codes       []string // base and target, or none
	projectID   string
	environment project.Environment
}

func show(a *app.App) *cobra.Command {
	o := &showOptions{App: a}
	cmd := &cobra.Command{
		Use:   "show [BASE TARGET]",
		Short: "Show the rates in use, or one rate and what it is made of",
		Example: `  svc rates show
  svc rates show USD LKR-SELL
  svc rates show EUR LKR --project acme --env production`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 2 {
				return errCodes
			}
			return nil
		},
		RunE: a.On(o.parse, o.run),
	}
	cmd.Flags().StringVar(&o.projectID, "project", "", "the rates fetched with this project's own key")
	cmd.Flags().StringVar((*string)(&o.environment), "env", string(project.Development), "development or production, with --project")
	return cmd
}

func (o *showOptions) parse(args []string) error {
	o.codes = args
	if o.projectID == "" {
		return nil
	}
	return app.ParseEnvironment(&o.environment)
}

func (o *showOptions) run(ctx context.Context, s *app.Stack) error {
	if len(o.codes) == 0 && o.projectID == "" {
		return o.held(ctx, s)
	}
	set, err := o.set(ctx, s)
	if err != nil {
		return err
	}
	if len(o.codes) == 0 {
		v := viewSet(set)
		return o.Print(v, app.Table{Rows: v.rows()})
	}
	v, ok := viewPair(set, o.codes[0], o.codes[1], time.Now())
	if !ok {
		return fmt.Errorf("rate of %s to %s: %w", o.codes[0], o.codes[1], project.ErrNotFound)
	}
	return o.Print(v, app.Table{Rows: v.rows()})
}

// set returns the service's rates, or those of a project's own key.
func (o *showOptions) set(ctx context.Context, s *app.Stack) (*rates.Set, error) {
	if o.projectID == "" {
		held, err := s.Rates.Held(ctx)
		if err != nil {
			return nil, err
		}
		if held.Current == nil {
			return nil, fmt.Errorf(`rates: %w: none are held; "svc rates sync" fetches them`, project.ErrNotFound)
		}
		return held.Current, nil
	}
	own, err := s.Rates.Own(ctx, o.projectID, o.environment, true)
	if err == nil && own.Set == nil {
		err = fmt.Errorf("rates of %s with its own key: %w", o.projectID, project.ErrNotFound)
	}
	return own.Set, err
}

// viewSources views what is held of each source, in the order in which sources are asked.
func viewSources(held *rates.Held) (views []sourceView, t app.Table) {
	t.Header = []string{"SOURCE", "LAST GOOD FETCH", "ITS DATE", "LAST TRIED", "TROUBLE"}
	for _, name := range append(vendorNames(), rates.BankSource) {
		source := held.Sources[name]
		v := sourceView{Source: name, Fetched: source.Fetched, Tried: source.Tried, Trouble: source.Trouble}
		if source.Table != nil {
			v.Date = source.Table.Date
		}
		views = append(views, v)
		t.Rows = append(t.Rows, []string{name, app.Second(v.Fetched), app.Second(v.Date), app.Second(v.Tried), v.Trouble})
	}
	return views, t
}

// held shows all that is held.
func (o *showOptions) held(ctx context.Context, s *app.Stack) error {
	held, err := s.Rates.Held(ctx)
	if err != nil {
		return err
	}
	view := struct {
		Current *setView     `json:"current"`
		Pinned  *pinView     `json:"pinned"`
		Sources []sourceView `json:"sources"`
	}{Pinned: viewPin(held.Pin)}
	tables := []app.Table{{Empty: `No rates are held. "svc rates sync" fetches them.`}, {}}
	view.Sources, tables[1] = viewSources(held)
	if held.Current != nil {
		v := viewSet(held.Current)
		view.Current = &v
		tables[0].Rows = append(v.rows(), []string{"Pinned", view.Pinned.text()})
		tables = append(tables, bankTable(held.Current.Bank, time.Now()))
	}
	if o.JSON() {
		return o.PrintJSON(view)
	}
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(o.Out)
		}
		if err := o.Print(nil, t); err != nil {
			return err
		}
	}
	return nil
}
