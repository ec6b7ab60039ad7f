package main

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
	"unicode"

	"golang.org/x/term"
)

// console is where a command reads and prints.
type console struct {
	in        io.Reader
	out, errs io.Writer
	// hidden reads a line that is not shown; nil where nobody sits at the input.
	hidden func(context.Context) (string, error)
}

func systemConsole() console {
	c := console{in: os.Stdin, out: os.Stdout, errs: os.Stderr}
	if fd := int(os.Stdin.Fd()); term.IsTerminal(fd) {
		c.hidden = func(ctx context.Context) (string, error) { return readHidden(ctx, fd) }
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
func (c console) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if c.hidden == nil {
		return &unconfirmedError{question + " Add --yes to say so"}
	}
	fmt.Fprintf(c.errs, "%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(c.in).ReadString('\n')
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

// table is an answer for people. Without a header its rows are names and values.
type table struct {
	header []string
	rows   [][]string
	// empty is said in place of a table without rows.
	empty string
}

// print prints an answer: the value for programs, or the table for people.
func (a *app) print(value any, t table) error {
	if a.output == outputJSON {
		e := json.NewEncoder(a.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(value)
	}
	if len(t.rows) == 0 {
		_, err := fmt.Fprintln(a.out, t.empty)
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	if t.header != nil {
		fmt.Fprintln(w, strings.Join(t.header, "\t"))
	}
	for _, row := range t.rows {
		for i := range row {
			row[i] = cell(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// cell keeps a text from breaking the table or the terminal.
func cell(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	if text == "" {
		return "-"
	}
	return text
}

// note tells people something beside the answer.
func (a *app) note(format string, args ...any) {
	fmt.Fprintf(a.errs, format+"\n", args...)
}

// grouped writes credits with thousands apart: 1,234,567.
func grouped(credits int64) string {
	digits := strconv.FormatInt(credits, 10)
	sign := ""
	if credits < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
