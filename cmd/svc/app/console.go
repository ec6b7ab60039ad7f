package app

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/shopspring/decimal"
	"golang.org/x/term"

	"svcapi/shared/wallet"
)

// Console holds the input and the outputs of a command.
type Console struct {
	In        io.Reader
	Out, Errs io.Writer
	Terminal  bool // the output is a terminal
	// Hidden reads a line without echo; nil where the input is no terminal.
	Hidden func(context.Context) (string, error)
}

// SystemConsole returns the console of the process.
func SystemConsole() Console {
	c := Console{In: os.Stdin, Out: os.Stdout, Errs: os.Stderr, Terminal: term.IsTerminal(int(os.Stdout.Fd()))}
	if fd := int(os.Stdin.Fd()); term.IsTerminal(fd) {
		c.Hidden = func(ctx context.Context) (string, error) { return readHidden(ctx, fd) }
	}
	return c
}

// readHidden reads a line without echo. An interrupt restores the terminal.
func readHidden(ctx context.Context, fd int) (string, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	text, err := await(ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	if ctx.Err() != nil {
		_ = term.Restore(fd, before)
	}
	return string(text), err
}

// await returns the result of read, or the error of a context that ends first.
func await[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

var errUnconfirmed = &FailureError{Text: "Not confirmed. Run again with --yes.", Exit: ExitRefused}

// Confirm asks before steps that cannot be undone. Without a terminal only yes confirms them. A dry run ends there, and
// prints the steps.
func (a *App) Confirm(ctx context.Context, yes bool, question string, steps ...string) error {
	switch {
	case a.DryRun:
		return &dryRunError{append([]string{"ask: " + question}, steps...)}
	case yes:
		return nil
	case a.Hidden == nil:
		a.Note("%s", question)
		return errUnconfirmed
	}
	fmt.Fprintf(a.Errs, "%s [y/N] ", question)
	reply, err := await(ctx, func() (string, error) {
		line, _ := bufio.NewReader(a.In).ReadString('\n') // the end of the input is a no
		return strings.ToLower(strings.TrimSpace(line)), nil
	})
	if err == nil && reply != "y" && reply != "yes" {
		err = errUnconfirmed
	}
	return err
}

// Table is a result for people. The rows of a table without a header are names and values.
type Table struct {
	Header []string
	Rows   [][]string
	// Empty is printed in place of a table without rows.
	Empty string
}

// TableOf returns the table of values. Commas separate the names in the header.
func TableOf[V any](header, empty string, values []V, row func(V) []string) Table {
	t := Table{Header: strings.Split(header, ", "), Empty: empty}
	for _, value := range values {
		t.Rows = append(t.Rows, row(value))
	}
	return t
}

// Rows returns the rows of a table without a header, from names and values in turn.
func Rows(texts ...string) [][]string { return slices.Collect(slices.Chunk(texts, 2)) }

// OneOrAll returns the only value, or several values as a list, in the format for programs.
func OneOrAll[V any](values []V) any {
	if len(values) == 1 {
		return values[0]
	}
	return values
}

// JSON reports whether the output is for programs.
func (a *App) JSON() bool { return a.output == "json" }

// CSV reports whether the output is for spreadsheets.
func (a *App) CSV() bool { return a.output == "csv" }

// PrintJSON prints a value for programs.
func (a *App) PrintJSON(value any) error {
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// Print prints a result: the value as JSON for programs, or the tables with an empty line between them.
func (a *App) Print(value any, tables ...Table) error {
	a.ClearProgress()
	if a.JSON() {
		return a.PrintJSON(value)
	}
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		if err := a.printTable(t); err != nil {
			return err
		}
	}
	return nil
}

// PrintRows prints a value for programs, and its names and texts in turn for people.
func (a *App) PrintRows(value any, texts ...string) error {
	return a.Print(value, Table{Rows: Rows(texts...)})
}

// PrintList prints values for programs, and their table for people.
func PrintList[V any](a *App, header, empty string, values []V, row func(V) []string) error {
	return a.Print(append([]V{}, values...), TableOf(header, empty, values, row))
}

func (a *App) printTable(t Table) error {
	if a.CSV() {
		return csv.NewWriter(a.Out).WriteAll(t.lines())
	}
	if len(t.Rows) == 0 {
		_, err := fmt.Fprintln(a.Out, t.Empty)
		return err
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, row := range t.Rows {
		for i := range row {
			row[i] = Cell(row[i])
		}
	}
	for _, row := range t.lines() {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// lines returns the header, where there is one, and the rows.
func (t Table) lines() [][]string {
	if t.Header == nil {
		return t.Rows
	}
	return append([][]string{t.Header}, t.Rows...)
}

// Number formats an amount for the output: in groups of digits for people, plain for spreadsheets.
func (a *App) Number(n int64) string {
	if a.CSV() {
		return strconv.FormatInt(n, 10)
	}
	return wallet.Grouped(n)
}

// Time formats a time for the output: to the second for people, and as RFC 3339 for spreadsheets.
func (a *App) Time(t time.Time) string {
	if a.CSV() && !t.IsZero() {
		return t.UTC().Format(time.RFC3339Nano)
	}
	return Second(t)
}

// Dollars formats credits as US dollars with at least two decimals: 10000 is 0.01.
func Dollars(credits int64) string {
	amount := decimal.New(credits, -6)
	if amount.Equal(amount.Truncate(2)) {
		return amount.StringFixed(2)
	}
	return amount.String()
}

// Count formats a number with its noun, of which plural is the form for all numbers but 1.
func Count[N int | int64](n N, noun, plural string) string {
	if n != 1 {
		noun = plural
	}
	return wallet.Grouped(int64(n)) + " " + noun
}

// Credits formats credits with their value in US dollars.
func Credits(n int64) string { return wallet.Grouped(n) + " credits (" + Dollars(n) + " USD)" }

// Cell returns a text that cannot break the table or the terminal.
func Cell(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	if text == "" {
		return "-"
	}
	return text
}

// ClearProgress removes the line of a progress from the terminal, before another output.
func (a *App) ClearProgress() {
	if a.drawn {
		fmt.Fprint(a.Errs, "\r\x1b[K")
	}
	a.drawn = false
}

// Note prints a line for people on standard error, apart from the result.
func (a *App) Note(format string, args ...any) {
	a.ClearProgress()
	fmt.Fprintf(a.Errs, format+"\n", args...)
}

// Second formats a time to the second.
func Second(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// Read returns the content of the file that an argument names, or standard input for "-". The content has at most limit
// bytes.
func (a *App) Read(file string, limit int64) ([]byte, error) {
	from := a.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, Usagef("%v", err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	content, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = Usagef("%s has more than %d bytes", file, limit)
	}
	return content, err
}

// Progress counts steps on standard error where the input is a terminal. The caller calls step for each step; a total
// of 0 means that the number of steps is not known.
func (a *App) Progress(what string, total int) (step func()) {
	done, drawn := 0, time.Now()
	return func() {
		done++
		last := done == total
		if a.Hidden == nil || !last && time.Since(drawn) < 100*time.Millisecond {
			return
		}
		drawn, a.drawn = time.Now(), !last
		text := fmt.Sprintf("\r%s %d", what, done)
		if total > 0 {
			text += fmt.Sprintf("/%d", total)
		}
		if last {
			text += "\n"
		}
		fmt.Fprint(a.Errs, text)
	}
}

// Severity is the severity of a finding.
type Severity string

// The severities.
const (
	OK      Severity = "ok"
	Warning Severity = "warning"
	Broken  Severity = "broken"
)

// Finding is the result of one check.
type Finding struct {
	Severity Severity `json:"severity"`
	Check    string   `json:"check"`
	Subject  string   `json:"subject"`
	Detail   string   `json:"detail"`
	// Advice is empty where nothing needs to be done.
	Advice string `json:"advice"`
}

// Findings are the results of a run's checks, in their order.
type Findings struct{ Found []Finding }

// Add adds a finding.
func (f *Findings) Add(s Severity, check, subject, detail, advice string) {
	f.Found = append(f.Found, Finding{s, check, subject, detail, advice})
}

// AddIf adds a finding where the check has found the problem.
func (f *Findings) AddIf(found bool, s Severity, check, subject, detail, advice string) {
	if found {
		f.Add(s, check, subject, detail, advice)
	}
}

// Failed adds an error of AWS with its hint, and reports whether there is an error.
func (f *Findings) Failed(check, subject string, err error) bool {
	if err != nil {
		f.Add(Broken, check, subject, err.Error(), Hint(err))
	}
	return err != nil
}

// PrintFindings prints the problems among findings, or all findings, and returns an error where something is broken.
func (a *App) PrintFindings(found []Finding, all bool) error {
	count := map[Severity]int{}
	var shown []Finding
	for _, f := range found {
		if count[f.Severity]++; f.Severity != OK || all {
			shown = append(shown, f)
		}
	}
	err := PrintList(a, ", CHECK, SUBJECT, DETAIL, ADVICE", "All checks passed.", shown, func(f Finding) []string {
		return []string{string(f.Severity), f.Check, f.Subject, f.Detail, f.Advice}
	})
	if err != nil {
		return err
	}
	a.Note("%d in order, %s, %d broken.", count[OK], Count(count[Warning], "warning", "warnings"), count[Broken])
	return Problems(count[Broken])
}
