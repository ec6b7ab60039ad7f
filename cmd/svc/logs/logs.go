// Package logs holds the command "svc logs".
package logs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
)

// Command returns "svc logs".
func Command(a *app.App) *cobra.Command {
	f := &Filter{Time: time.Minute}
	cmd := a.Command(&cobra.Command{
		Use:   "logs [REQUEST_ID]",
		Short: "Show the log lines of a request, or of the requests of a project, an operation or an error",
		Long: `Show the log lines of a request, or the newest lines that all flags select, from the
logs of the local stack or from the log groups of the stage's functions in CloudWatch.
REQUEST_ID is "request_id" of the response, which is also its header X-SVC-Request-ID.

A terminal shows tables. Into a file or a pipe the command writes each log line as a line
of JSON. The search ends after a minute, and says so.`,
		Example: `  svc logs --project acme --failed --last 1h
  svc logs --operation sms_send --status 502
  svc logs --project acme --reason vendor_unreachable --last 24h --lines 1000
  svc logs 9ed060e6-1f0a-4a52-9b3c-0c1a5d7c4e11 --last 72h`,
	}, f.parse, f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.Project, "project", "", "requests of this project")
	flags.StringVar(&f.operation, "operation", "", "requests of this operation, such as sms_send")
	flags.BoolVar(&f.Failed, "failed", false, "requests with an HTTP status of 400 or more")
	flags.IntVar(&f.status, "status", 0, "requests with this HTTP status, such as 502")
	flags.StringVar(&f.reason, "reason", "",
		"requests with this code or reason of their error, such as vendor_unreachable")
	flags.DurationVar(&f.Last, "last", 24*time.Hour, "age of the oldest line")
	flags.IntVar(&f.Lines, "lines", 100, "the largest number of lines; the newest ones are shown")
	return cmd
}

// Filter selects the log lines of requests. An empty field selects all of them.
type Filter struct {
	Project           string
	Failed            bool
	Last              time.Duration // the age of the oldest line
	Lines             int           // the largest number of lines, the newest ones
	Time              time.Duration // of the search
	Until             time.Time     // the newest line; zero: now
	ID                string        // of the request
	Term              string        // a text of letters and digits in the line
	operation, reason string
	status            int
}

// plain matches the values that a filter pattern does not interpret.
var plain = regexp.MustCompile(`^[A-Za-z0-9_-]*$`)

func (f *Filter) parse(args []string) error {
	if len(args) > 0 {
		id, err := uuid.Parse(args[0])
		if err != nil {
			return app.Usagef("REQUEST_ID is the request_id of a response, such as 9ed060e6-1f0a-4a52-9b3c-0c1a5d7c4e11, not %q",
				args[0])
		}
		f.ID = id.String()
	}
	if f.Last <= 0 || f.Lines <= 0 || !plain.MatchString(f.Project+f.operation+f.reason) {
		return app.Usagef("--last is a time above 0, such as 72h, --lines is 1 or more, and the other flags have letters, " +
			"digits, - and _")
	}
	return nil
}

func (f *Filter) run(ctx context.Context, s *app.Stack) error {
	if f.Project != "" {
		if _, err := s.Load(ctx, f.Project); err != nil {
			return err
		}
	}
	found, more, err := f.Search(ctx, s)
	if err != nil {
		return err
	}
	if len(found) == 0 && f.ID != "" {
		hint := "--last looks back further than " + f.Last.String() + ". Functions log no requests at a LogLevel above INFO."
		return app.Failf(app.ExitNotFound, cmp.Or(more, hint), "no log lines of request %s", f.ID)
	}
	if more != "" {
		s.Note("%s", more)
	}
	if s.Terminal || s.JSON() || s.CSV() {
		return f.print(s, found)
	}
	for _, l := range found {
		fmt.Fprintf(s.Out, "%s\n", l.Text)
	}
	return nil
}

// print prints a table for each line of one request, or one table for those of many requests.
func (f *Filter) print(s *app.Stack, found []Line) error {
	tables := make([]app.Table, len(found))
	all := app.Table{Empty: "No log lines. Functions log no requests at a LogLevel above INFO."}
	all.Header = []string{"TIME", "OPERATION", "STATUS", "REASON", "VENDOR", "ENVIRONMENT", "REQUEST", "ERROR"}
	for i, l := range found {
		tables[i].Rows = app.Rows("function", l.Function)
		for _, name := range slices.Sorted(maps.Keys(l.fields)) {
			tables[i].Rows = append(tables[i].Rows, []string{name, l.Field(name)})
		}
		row := []string{s.Time(l.At), l.Field("operation"), l.Field("status"), l.Reason()}
		all.Rows = append(all.Rows, append(row, l.Field("vendor"), l.Field("environment"),
			l.Field("request_id"), l.Field("error")))
	}
	if f.ID == "" || s.CSV() {
		tables = []app.Table{all}
	}
	return s.Print(append([]Line{}, found...), tables...)
}

// Failure counts the requests of a project that failed alike.
type Failure struct {
	Operation string    `json:"operation"`
	Status    int       `json:"status"`
	Reason    string    `json:"reason"` // or the code of an error without reasons
	Requests  int       `json:"requests"`
	Last      time.Time `json:"last"`
}

// Failures returns the failures of a project in the last hour, the newest first, and their table. Failures notes where
// it cannot read the logs, or not all of them.
func Failures(ctx context.Context, s *app.Stack, projectID string) ([]Failure, app.Table) {
	f := &Filter{Project: projectID, Failed: true, Last: time.Hour, Lines: 1000, Time: 10 * time.Second}
	found, missing, err := f.Search(ctx, s)
	if err != nil {
		s.Note("The failures of the last hour are not known: %v", err)
	} else if missing != "" {
		s.Note("There may be more failures: %s", s.Line("logs --project %s --failed --last 1h", projectID))
	}
	failures, at := []Failure{}, map[Failure]int{}
	for _, l := range slices.Backward(found) {
		status, _ := strconv.Atoi(l.Field("status"))
		kind := Failure{Operation: l.Field("operation"), Status: status, Reason: l.Reason()}
		i, known := at[kind]
		if !known {
			i, at[kind] = len(failures), len(failures)
			failures = append(failures, kind)
			failures[i].Last = l.At
		}
		failures[i].Requests++
	}
	t := app.Table{Header: []string{"FAILED IN THE LAST HOUR", "STATUS", "REASON", "REQUESTS", "LAST"},
		Empty: "No failures in the last hour."}
	_, t.Rows = app.List(failures, func(f Failure) (Failure, []string) {
		return f, []string{f.Operation, strconv.Itoa(f.Status), f.Reason, s.Number(int64(f.Requests)), s.Time(f.Last)}
	})
	return failures, t
}
