// Package usage holds the command "svc usage".
package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/wallet"
)

// Sums are what charges and refunds add up to.
type Sums struct {
	Requests int64  `json:"requests"`
	Units    int64  `json:"units"`   // before refunds
	Credits  int64  `json:"credits"` // before refunds
	Refunds  int64  `json:"refunds"` // credits
	USD      string `json:"usd"`     // of the credits less the refunds
}

func (s Sums) plus(o Sums) Sums {
	return Sums{s.Requests + o.Requests, s.Units + o.Units, s.Credits + o.Credits, s.Refunds + o.Refunds, ""}
}

func (s Sums) valued() Sums {
	s.USD = app.Dollars(s.Credits - s.Refunds)
	return s
}

// Row is what a project used of one operation on one UTC day.
type Row struct {
	ProjectID string `json:"project_id"`
	Day       string `json:"day"`
	Operation string `json:"operation"`
	Sums
	// Final says that the day ended half an hour ago, and that no lease of that day is open: its sums do not change.
	Final bool `json:"final"`
}

// Command returns "svc usage".
func Command(a *app.App) *cobra.Command {
	var days app.Days
	var only string
	cmd := a.Command(&cobra.Command{
		Use:   "usage",
		Short: "Show what each project used, by day and operation, and statements",
		Long: `Show what each project used, by UTC day and operation: charged requests, their
units (SMS; 1 for other operations) and credits, the credits refunded on that day,
and the value of the credits less the refunds in US dollars.

A day that is not final may still grow: it has not ended half an hour ago, or the
settling function has yet to close a lease of that day.

The command reads the ledger of these days, prints the rows as it reads, and in the
end what the reads cost. An entry that cannot be read is named; the rest is reported,
and the exit code is 1. Manual (BYOK) requests charge nothing: docs/operate.md counts
them in the logs.`,
		Example: `  svc usage --day yesterday --output csv
  svc usage --month 2026-03
  svc usage --project acme --from 2026-03-01 --to 2026-03-07 --output json`,
	}, days.Parse, func(ctx context.Context, s *app.Stack) error {
		ids, err := s.ProjectIDs(ctx, only)
		if err != nil {
			return err
		}
		return report(ctx, s, ids, days)
	})
	days.AddFlags(cmd)
	cmd.Flags().StringVar(&only, "project", "", "one project's usage alone")
	cmd.AddCommand(statement(a))
	return cmd
}

// report prints the usage of one project after another, and names entries that cannot be read, which then are an error.
func report(ctx context.Context, s *app.Stack, ids []string, days app.Days) error {
	total, unreadable, step, list := Sums{}, 0, s.Progress("reading entry", 0), &list{Stack: s, before: "{\n  \"rows\": ["}
	list.table = app.Table{Header: []string{"PROJECT", "DAY", "OPERATION", "REQUESTS", "UNITS", "CREDITS", "REFUNDS",
		"USD", "FINAL"}, Empty: "No usage."}
	longest := slices.MaxFunc(append(slices.Clip(ids), "PROJECT"), func(a, b string) int { return len(a) - len(b) })
	list.widths = []int{len(longest), 10, 19, 9, 9, 14, 13, 12, 0}
	read := books.Reading{}
	for _, id := range ids {
		rows := map[[2]string]Sums{} // by day and operation
		read.Skip = func(err error) {
			unreadable++
			s.Note("%s: %v: the sums lack this entry", id, err)
		}
		open, err := openSince(ctx, s, id) // before the entries: a lease that closes meanwhile has written them
		if err != nil {
			return err
		}
		err = s.Credits.Visit(ctx, &read, id, days.First, days.Last, func(e books.Entry) {
			step()
			switch at := [2]string{e.Key.Day(), e.Price}; e.State {
			case wallet.Captured:
				rows[at] = rows[at].plus(Sums{Requests: 1, Units: e.Units, Credits: e.Credits})
			case wallet.Refunded:
				rows[at] = rows[at].plus(Sums{Refunds: e.Credits})
			}
		})
		if err != nil {
			return err
		}
		for _, at := range slices.SortedFunc(maps.Keys(rows),
			func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
			if err := list.print(Row{id, at[0], at[1], rows[at].valued(), at[0] < open}); err != nil {
				return err
			}
			total = total.plus(rows[at])
		}
	}
	noteCost(s, read)
	return cmp.Or(list.end(total.valued()), app.Problems(unreadable))
}

// openSince returns the first UTC day of a project that may still change: the day of half an hour ago, or that of the
// oldest open lease. A lease that cannot be read may be of any day.
func openSince(ctx context.Context, s *app.Stack, id string) (string, error) {
	since := time.Now().Add(-30 * time.Minute).UTC().Format(time.DateOnly)
	item, err := s.Credits.Item(ctx, id)
	for _, l := range wallet.LeasesOf(item, func(string, error) { since = "" }) {
		since = min(since, l.Key.Day())
	}
	return since, err
}

// list prints rows as they come and keeps none: 1,000 projects have 300,000 rows in a month.
type list struct {
	*app.Stack
	table  app.Table // with the header until the first row
	widths []int     // of the columns
	before string    // the text before the next row of JSON
}

func (l *list) print(r Row) error {
	if l.ClearProgress(); l.JSON() {
		text, err := json.Marshal(r)
		fmt.Fprintf(l.Out, "%s\n    %s", l.before, text)
		l.before = ","
		return err
	}
	row := []string{
		r.ProjectID, r.Day, r.Operation, l.Number(r.Requests), l.Number(r.Units), l.Number(r.Credits), l.Number(r.Refunds),
		r.USD, map[bool]string{true: "yes", false: "no"}[r.Final],
	}
	if r.Day == "" { // the total
		row[len(row)-1] = ""
	}
	for i := range row {
		if !l.CSV() {
			row[i] = fmt.Sprintf("%-*s", l.widths[i], app.Cell(row[i]))
		}
	}
	l.table.Rows = [][]string{row}
	err := l.Print(nil, l.table)
	l.table.Header = nil
	return err
}

// end prints the totals, which a CSV file lacks: its lines are all of one kind.
func (l *list) end(total Sums) error {
	switch {
	case l.JSON():
		text, err := json.Marshal(total)
		fmt.Fprintf(l.Out, "%s],\n  \"totals\": %s\n}\n", strings.Replace(l.before, ",", "\n  ", 1), text)
		return err
	case l.table.Header != nil: // no project has rows
		return l.Print(nil, l.table)
	case l.CSV():
		return nil
	}
	return l.print(Row{ProjectID: "total", Sums: total})
}

// noteCost prints what the reads cost. A read unit costs 0.125 USD a million in us-east-1 (docs/units.json).
func noteCost(s *app.Stack, read books.Reading) {
	s.Note("%s read, %s (%s USD in us-east-1).", app.Count(read.Entries, "entry", "entries"),
		app.Count(int64(read.Units), "read unit", "read units"), app.Dollars(int64(read.Units*0.125)))
}

func statement(a *app.App) *cobra.Command {
	var days app.Days
	cmd := a.ProjectCommand(&cobra.Command{
		Use:   "statement PROJECT",
		Short: "Show how the balance of a project came about, checked against the ledger",
		Long: `Show how the balance of a project came about: opening balance, grants, adjustments,
charges by operation, refunds, closing balance. The balances include what is reserved.

The command reads all entries of the project and compares their sum with the wallet.
Exit code 1 means that they differ: "svc ledger verify" says where.`,
		Example: `  svc usage statement acme --month 2026-03
  svc usage statement acme --from 2026-03-01 --to yesterday --output json`,
	}, days.Parse, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		read := books.Reading{}
		st, err := s.Credits.Statement(ctx, &read, rec.ID, days.First, days.Last, s.Progress("reading entry", 0))
		noteCost(s, read)
		if err != nil {
			return err
		}
		table := app.Table{Header: []string{"LINE", "CREDITS", "USD"}}
		line := func(name string, credits int64) {
			table.Rows = append(table.Rows, []string{name, s.Number(credits), app.Dollars(credits)})
		}
		line("Opening balance", st.Opening)
		line("Grants", st.Grants)
		line("Adjustments", st.Adjustments)
		for _, c := range st.Charges {
			line("Charges, "+c.Operation, c.Credits)
		}
		line("Refunds", st.Refunds)
		line("Closing balance", st.Closing)
		return s.Print(st, table)
	})
	days.AddFlags(cmd)
	return cmd
}
