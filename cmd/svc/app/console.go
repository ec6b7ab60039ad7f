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

	"svcapi/shared/credit"
)

// Console is where a command reads and prints.
type Console struct {
	In        io.Reader
	Out, Errs io.Writer
	// Hidden reads a line that is not shown; nil where nobody sits at the input.
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

// readHidden reads a line without echo. An interrupt gives the terminal back as it was.
func readHidden(ctx context.Context, fd int) (string, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		return string(l.text), l.err
	case <-ctx.Done():
		_ = term.Restore(fd, before)
		return "", ctx.Err()
	}
}

// confirm asks before something that cannot be taken back. Without a terminal the answer must be --yes.
func (c Console) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if c.Hidden == nil {
		return &unconfirmedError{question + " Add --yes to say so"}
	}
	fmt.Fprintf(c.Errs, "%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(c.In).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return &unconfirmedError{"nothing was done"}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The forms of output.
const (
	outputTable = "table"
	outputJSON  = "json"
)

// Table is a result for people. Without a header its rows are names and values.
type Table struct {
	Header []string
	Rows   [][]string
	// Empty is printed in place of a table without rows.
	Empty string
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

// Print prints a result: the value for programs, or the table for people.
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

// Cell keeps a text from breaking the table or the terminal.
func Cell(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	if text == "" {
		return "-"
	}
	return text
}

// Note prints something apart from the result, for people.
func (a *App) Note(format string, args ...any) {
	fmt.Fprintf(a.Errs, format+"\n", args...)
}

// Grouped returns credits with a comma between groups of three digits: 1,234,567.
func Grouped(credits int64) string { return credit.Grouped(credits) }

// Second writes a time to the second.
func Second(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// Read opens a file that an argument names, standard input for "-".
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
