package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/wallet"
)

// usageSums are what charges and refunds add up to.
type usageSums struct {
	Requests int64  `json:"requests"`
	Units    int64  `json:"units"`   // before refunds
	Credits  int64  `json:"credits"` // before refunds
	Refunds  int64  `json:"refunds"` // credits
	USD      string `json:"usd"`     // of the credits less the refunds
}

func (s usageSums) plus(o usageSums) usageSums {
	return usageSums{s.Requests + o.Requests, s.Units + o.Units, s.Credits + o.Credits, s.Refunds + o.Refunds, ""}
}

func (s usageSums) valued() usageSums {
	s.USD = app.Dollars(s.Credits - s.Refunds)
	return s
}

// usageRow is what a project used of one operation on one UTC day.
type usageRow struct {
	ProjectID string `json:"project_id"`
	Day       string `json:"day"`
	Operation string `json:"operation"`
	usageSums
	// Final says that the day ended half an hour ago, and that no lease of that day is open: its sums do not change.
	Final bool `json:"final"`
}

// usageCustomer is a row of "svc usage --by project": what a project used in all days.
type usageCustomer struct {
	ProjectID string `json:"project_id"`
	Name      string `json:"name"`
	Period    string `json:"period"` // a month, a day, or the first and the last day
	usageSums
	// BYOK says that Manual requests, which charge nothing and leave no entry, are not in the sums.
	BYOK string `json:"byok_requests"`
}

func usageCommand(a *app.App) *cobra.Command {
	var days app.Days
	var only string
	var whole bool // a row for each project
	cmd := a.Command("usage", days.Parse, func(ctx context.Context, s *app.Stack) error {
		projects, err := s.ListProjects(ctx, only)
		if err != nil {
			return err
		}
		return reportUsage(ctx, s, projects, days, whole)
	})
	days.AddFlags(cmd)
	cmd.Flags().StringVar(&only, "project", "", "only this project's usage")
	app.ChoiceFlag(cmd, cmd.Flags(), "by", "day (default): a row for each day and operation; project: for each project",
		&whole, map[string]bool{"day": false, "project": true})
	cmd.AddCommand(statementCommand(a))
	return cmd
}

// reportUsage prints the usage of one project after another, and names entries that cannot be read, which then are an
// error.
func reportUsage(ctx context.Context, s *app.Stack, projects []project.Project, days app.Days, whole bool) error {
	total, unreadable, step, list := usageSums{}, 0, s.Progress("reading entry", 0), newUsageList(s, projects, whole)
	read := books.Reading{}
	for _, p := range projects {
		rows, sum := map[[2]string]usageSums{}, usageSums{} // by day and operation, and of the project
		read.Skip = func(err error) {
			unreadable++
			s.Note("%s: %v: the sums lack this entry", p.ID, err)
		}
		open, err := openSince(ctx, s, p.ID) // before the entries: a lease that closes meanwhile has written them
		if err != nil {
			return err
		}
		err = s.Credits.Visit(ctx, &read, p.ID, days.First, days.Last, func(e books.Entry) {
			step()
			switch at := [2]string{e.Key.Day(), e.Price}; e.State {
			case wallet.Captured:
				rows[at] = rows[at].plus(usageSums{Requests: 1, Units: e.Units, Credits: e.Credits})
			case wallet.Refunded:
				rows[at] = rows[at].plus(usageSums{Refunds: e.Credits})
			}
		})
		for _, at := range slices.SortedFunc(maps.Keys(rows),
			func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
			if err == nil && !whole {
				row := usageRow{p.ID, at[0], at[1], rows[at].valued(), at[0] < open}
				err = list.print(row, p.ID, at[0], at[1], row.usageSums, map[bool]string{true: "yes", false: "no"}[row.Final])
			}
			sum = sum.plus(rows[at])
		}
		if err == nil && whole && len(rows) > 0 {
			row := usageCustomer{p.ID, p.Name, days.Period(), sum.valued(), "not counted"}
			err = list.print(row, p.ID, p.Name, row.Period, row.usageSums, row.BYOK)
		}
		if err != nil {
			return err
		}
		total = total.plus(sum)
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

// usageList prints rows as they come and keeps none: 1,000 projects have 300,000 rows in a month.
type usageList struct {
	*app.Stack
	table  app.Table // with the header until the first row
	widths []int     // of the columns
	before string    // the text before the next row of JSON
}

func newUsageList(s *app.Stack, projects []project.Project, whole bool) *usageList {
	id, name := len("PROJECT"), len("NAME")
	for _, p := range projects {
		id, name = max(id, len(p.ID)), max(name, len(p.Name))
	}
	header, widths := "PROJECT, DAY, OPERATION, REQUESTS, UNITS, CREDITS, REFUNDS, USD, FINAL",
		[]int{id, 10, 19, 9, 9, 14, 13, 12, 0}
	if whole {
		header = "PROJECT, NAME, PERIOD, REQUESTS, UNITS, CREDITS, REFUNDS, USD, BYOK"
		widths[1], widths[2] = name, 22
	}
	return &usageList{s, app.Table{Header: strings.Split(header, ", "), Empty: "No usage."}, widths, "{\n  \"rows\": ["}
}

// print prints a row: the value for programs, or its columns for people.
func (l *usageList) print(value any, id, second, third string, sums usageSums, last string) error {
	if l.ClearProgress(); l.JSON() {
		text, err := json.Marshal(value)
		fmt.Fprintf(l.Out, "%s\n    %s", l.before, text)
		l.before = ","
		return err
	}
	row := []string{id, second, third, l.Number(sums.Requests), l.Number(sums.Units), l.Number(sums.Credits),
		l.Number(sums.Refunds), sums.USD, last}
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
func (l *usageList) end(total usageSums) error {
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
	return l.print(nil, "total", "", "", total, "")
}

// noteCost prints what the reads cost. A read unit costs 0.125 USD a million in us-east-1 (docs/units.json).
func noteCost(s *app.Stack, read books.Reading) {
	s.Note("%s read, %s (%s USD in us-east-1).", app.Count(read.Entries, "entry", "entries"),
		app.Count(int64(read.Units), "read unit", "read units"), app.Dollars(int64(read.Units*0.125)))
}

func statementCommand(a *app.App) *cobra.Command {
	var days app.Days
	var id, dir string
	var all bool
	cmd := a.Command("statement [PROJECT]", func(args []string) error {
		id = strings.Join(args, "")
		if all == (id != "") || all != (dir != "") {
			return app.Usagef("a statement is of PROJECT, or of --all in --output-dir")
		}
		return days.Parse(args)
	}, func(ctx context.Context, s *app.Stack) error {
		projects, err := s.ListProjects(ctx, id)
		if err != nil {
			return err
		}
		read := books.Reading{}
		defer func() { noteCost(s, read) }()
		step := s.Progress("reading entry", 0)
		if !all {
			st, err := s.Credits.Statement(ctx, &read, id, days.First, days.Last, step)
			if err != nil {
				return err
			}
			return s.Print(st, app.Table{Header: []string{"LINE", "CREDITS", "USD"}, Rows: statementLines(st, s.Number)})
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		written := app.Table{Header: []string{"PROJECT", "CLOSING BALANCE", "FILE"}, Empty: "No project."}
		files, differ := []string{}, 0
		for _, p := range projects {
			st, err := s.Credits.Statement(ctx, &read, p.ID, days.First, days.Last, step)
			if errors.Is(err, books.ErrUnbalanced) {
				differ++
				s.Note("%s has no statement: %v", p.ID, err)
				continue
			}
			file := filepath.Join(dir, p.ID+"-"+days.Period()+".csv")
			if err == nil {
				err = writeStatement(file, p, days.Period(), st)
			}
			if err != nil {
				return err
			}
			files = append(files, file)
			written.Rows = append(written.Rows, []string{p.ID, s.Number(st.Closing), file})
		}
		return cmp.Or(s.Print(map[string]any{"files": files}, written), app.Problems(differ))
	})
	days.AddFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "a file for each project")
	cmd.Flags().StringVar(&dir, "output-dir", "", "the folder of the files of --all")
	return cmd
}

// statementLines returns name, credits and US dollars of each line of a statement.
func statementLines(st *books.Statement, number func(int64) string) (rows [][]string) {
	line := func(name string, credits int64) {
		rows = append(rows, []string{name, number(credits), app.Dollars(credits)})
	}
	line("Opening balance", st.Opening)
	line("Grants", st.Grants)
	line("Adjustments", st.Adjustments)
	for _, c := range st.Charges {
		line("Charges, "+c.Operation, c.Credits)
	}
	line("Refunds", st.Refunds)
	line("Closing balance", st.Closing)
	for _, e := range st.Prices {
		line(fmt.Sprintf("Price of %s %s, %s, by %s", e.Price, e.Reason, e.At.UTC().Format(time.RFC3339), e.Actor), 0)
	}
	return rows
}

// writeStatement writes a statement as CSV. Each line names the project and the period, so that files can be joined.
func writeStatement(path string, p project.Project, period string, st *books.Statement) error {
	var text bytes.Buffer
	rows := [][]string{{"PROJECT", "NAME", "PERIOD", "LINE", "CREDITS", "USD"}}
	for _, line := range statementLines(st, func(n int64) string { return strconv.FormatInt(n, 10) }) {
		rows = append(rows, append([]string{p.ID, p.Name, period}, line...))
	}
	if err := csv.NewWriter(&text).WriteAll(rows); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o600)
}
