// Package usage holds the command "svc usage".
package usage

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/credit"
	"svcapi/shared/project"
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
}

// Report is the result of "svc usage".
type Report struct {
	Rows   []Row `json:"rows"`
	Totals Sums  `json:"totals"`
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

The command reads the ledger of these days, and prints what the reads cost. Manual
(BYOK) requests charge nothing: docs/operate.md counts them in the logs.`,
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

func report(ctx context.Context, s *app.Stack, ids []string, days app.Days) error {
	result, read, step := Report{Rows: []Row{}}, credit.Reading{}, s.Progress("reading entry", 0)
	for _, id := range ids {
		rows := map[[2]string]Sums{} // by day and operation
		err := s.Credits.Visit(ctx, &read, id, days.First, days.Last, func(e credit.Entry) {
			step()
			switch at := [2]string{e.Key.Day(), e.Price}; e.State {
			case credit.Captured:
				rows[at] = rows[at].plus(Sums{Requests: 1, Units: e.Units, Credits: e.Credits})
			case credit.Refunded:
				rows[at] = rows[at].plus(Sums{Refunds: e.Credits})
			}
		})
		if err != nil {
			return err
		}
		for _, at := range slices.SortedFunc(maps.Keys(rows), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
			result.Rows = append(result.Rows, Row{id, at[0], at[1], rows[at].valued()})
			result.Totals = result.Totals.plus(rows[at])
		}
	}
	noteCost(s, read)
	result.Totals = result.Totals.valued()
	lines := result.Rows
	if len(lines) > 0 && !s.CSV() { // the lines of a CSV file are all of one kind
		lines = append(slices.Clip(lines), Row{"total", "", "", result.Totals})
	}
	table := app.Table{Header: []string{"PROJECT", "DAY", "OPERATION", "REQUESTS", "UNITS", "CREDITS", "REFUNDS", "USD"}, Empty: "No usage."}
	_, table.Rows = app.List(lines, func(r Row) (Row, []string) {
		return r, []string{r.ProjectID, r.Day, r.Operation, s.Number(r.Requests), s.Number(r.Units), s.Number(r.Credits), s.Number(r.Refunds), r.USD}
	})
	return s.Print(result, table)
}

// noteCost prints what the reads cost. A read unit costs 0.125 USD a million in us-east-1 (docs/units.json).
func noteCost(s *app.Stack, read credit.Reading) {
	if s.Hidden != nil {
		s.Note("") // ends the line of the progress
	}
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
		read := credit.Reading{}
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
