package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"golang.org/x/term"
)

// Console holds the input and the outputs of a command.
type Console struct {
	In        io.Reader
	Out, Errs io.Writer
	// Hidden reads a line without echo; nil where the input is no terminal.
	Hidden func(context.Context) (string, error)
}

// SystemConsole returns the console of the process.
func SystemConsole() Console {
	c := Console{In: os.Stdin, Out: os.Stdout, Errs: os.Stderr}
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

// confirm asks before a step that cannot be undone. Without a terminal only --yes confirms the step.
func (c Console) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if c.Hidden == nil {
		return &unconfirmedError{question + " Add --yes to confirm"}
	}
	fmt.Fprintf(c.Errs, "%s [y/N] ", question)
	reply, err := await(ctx, func() (string, error) {
		line, _ := bufio.NewReader(c.In).ReadString('\n') // the end of the input is a no
		return strings.ToLower(strings.TrimSpace(line)), nil
	})
	if err == nil && reply != "y" && reply != "yes" {
		err = &unconfirmedError{"nothing was done"}
	}
	return err
}

// The output formats.
const (
	outputTable = "table"
	outputJSON  = "json"
)

// Table is a result for people. The rows of a table without a header are names and values.
type Table struct {
	Header []string
	Rows   [][]string
	// Empty is printed in place of a table without rows.
	Empty string
}

// List returns the views of values for programs, and the rows of their table for people.
func List[V, W any](values []V, view func(V) (W, []string)) ([]W, [][]string) {
	views, rows := make([]W, len(values)), make([][]string, len(values))
	for i, value := range values {
		views[i], rows[i] = view(value)
	}
	return views, rows
}

// JSON reports whether the output is for programs.
func (a *App) JSON() bool { return a.output == outputJSON }

// PrintJSON prints a value for programs.
func (a *App) PrintJSON(value any) error {
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// Print prints a result: the value as JSON for programs, or the table for people.
func (a *App) Print(value any, t Table) error {
	if a.JSON() {
		return a.PrintJSON(value)
	}
	if len(t.Rows) == 0 {
		_, err := fmt.Fprintln(a.Out, t.Empty)
		return err
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	if t.Header != nil {
		fmt.Fprintln(w, strings.Join(t.Header, "\t"))
	}
	for _, row := range t.Rows {
		for i := range row {
			row[i] = Cell(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

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

// Note prints a line for people on standard error, apart from the result.
func (a *App) Note(format string, args ...any) {
	fmt.Fprintf(a.Errs, format+"\n", args...)
}

// Second formats a time to the second.
func Second(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// Read opens the file that an argument names, or standard input for "-".
func (a *App) Read(file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(a.In), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, Usagef("%v", err)
	}
	return f, nil
}

// progressEvery is the shortest time between two drawings of a progress bar.
const progressEvery = 100 * time.Millisecond

// Progress draws a bar on standard error where the input is a terminal. The caller calls step for each step; a total of
// 0 means that the number of steps is not known.
func (a *App) Progress(what string, total int) (step func()) {
	const width = 30
	done, drawn := 0, time.Now()
	return func() {
		done++
		last := done == total
		if a.Hidden == nil || !last && time.Since(drawn) < progressEvery {
			return
		}
		drawn = time.Now()
		if total == 0 {
			fmt.Fprintf(a.Errs, "\r%s %d", what, done)
			return
		}
		full := width * done / total
		fmt.Fprintf(a.Errs, "\r%s [%s%s] %d/%d", what, strings.Repeat("#", full), strings.Repeat(" ", width-full), done, total)
		if last {
			fmt.Fprintln(a.Errs)
		}
	}
}
