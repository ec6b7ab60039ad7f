package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/project"
)

func logsCommand(a *app.App) *cobra.Command {
	f := &logFilter{Time: time.Minute}
	cmd := a.Command("logs [REQUEST_ID]", f.parse, f.run)
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

// logFilter selects the log lines of requests. An empty field selects all of them.
type logFilter struct {
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

// plainValue matches the values that a filter pattern does not interpret.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_-]*$`)

func (f *logFilter) parse(args []string) error {
	if len(args) > 0 {
		id, err := uuid.Parse(args[0])
		if err != nil {
			return app.Usagef("REQUEST_ID is the request_id of a response, such as 9ed060e6-1f0a-4a52-9b3c-0c1a5d7c4e11, not %q",
				args[0])
		}
		f.ID = id.String()
	}
	if f.Last <= 0 || f.Lines <= 0 || !plainValue.MatchString(f.Project+f.operation+f.reason) {
		return app.Usagef("--last is a time above 0, such as 72h, --lines is 1 or more, and the other flags have letters, " +
			"digits, - and _")
	}
	return nil
}

func (f *logFilter) run(ctx context.Context, s *app.Stack) error {
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
func (f *logFilter) print(s *app.Stack, found []logLine) error {
	if f.ID == "" || s.CSV() {
		const header = "TIME, OPERATION, STATUS, REASON, VENDOR, ENVIRONMENT, REQUEST, ERROR"
		const empty = "No log lines. Functions log no requests at a LogLevel above INFO."
		return app.PrintList(s.App, header, empty, found, func(l logLine) []string {
			return []string{s.Time(l.At), l.Field("operation"), l.Field("status"), l.Reason(), l.Field("vendor"),
				l.Field("environment"), l.Field("request_id"), l.Field("error")}
		})
	}
	tables := make([]app.Table, len(found))
	for i, l := range found {
		tables[i].Rows = app.Rows("function", l.Function)
		for _, name := range slices.Sorted(maps.Keys(l.fields)) {
			tables[i].Rows = append(tables[i].Rows, []string{name, l.Field(name)})
		}
	}
	return s.Print(found, tables...)
}

// failure counts the requests of a project that failed alike.
type failure struct {
	Operation string    `json:"operation"`
	Status    int       `json:"status"`
	Reason    string    `json:"reason"` // or the code of an error without reasons
	Requests  int       `json:"requests"`
	Last      time.Time `json:"last"`
}

// failuresOf returns the failures of a project in the last hour, the newest first, and their table. The function notes
// where it cannot read the logs, or not all of them.
func failuresOf(ctx context.Context, s *app.Stack, projectID string) ([]failure, app.Table) {
	f := &logFilter{Project: projectID, Failed: true, Last: time.Hour, Lines: 1000, Time: 10 * time.Second}
	found, missing, err := f.Search(ctx, s)
	if err != nil {
		s.Note("The failures of the last hour are not known: %v", err)
	} else if missing != "" {
		s.Note("There may be more failures: %s", s.Line("logs --project %s --failed --last 1h", projectID))
	}
	failures, at := []failure{}, map[failure]int{}
	for _, l := range slices.Backward(found) {
		status, _ := strconv.Atoi(l.Field("status"))
		kind := failure{Operation: l.Field("operation"), Status: status, Reason: l.Reason()}
		i, known := at[kind]
		if !known {
			i, at[kind] = len(failures), len(failures)
			failures = append(failures, kind)
			failures[i].Last = l.At
		}
		failures[i].Requests++
	}
	const header = "FAILED IN THE LAST HOUR, STATUS, REASON, REQUESTS, LAST"
	return failures, app.TableOf(header, "No failures in the last hour.", failures, func(f failure) []string {
		return []string{f.Operation, strconv.Itoa(f.Status), f.Reason, s.Number(int64(f.Requests)), s.Time(f.Last)}
	})
}

// projectTraffic is what a project has asked for, in the format for programs.
type projectTraffic struct {
	Project  string `json:"project"`
	Requests int64  `json:"requests"`
	BYOK     int64  `json:"byok_requests"`
	Credits  int64  `json:"credits"`
	Refused  int64  `json:"refused"` // responses with a status from 400 to 499
	Failed   int64  `json:"failed"`  // responses with a status from 500
}

// projectTop returns "svc project top".
func projectTop(a *app.App) *cobra.Command {
	var by func(projectTraffic) int64
	var last time.Duration
	var lines int
	cmd := a.Command("top", func([]string) error {
		if last < time.Minute || lines <= 0 {
			return app.Usagef("--last is a minute or more, such as 24h, and --lines is 1 or more")
		}
		return nil
	}, func(ctx context.Context, s *app.Stack) error {
		all, err := trafficOf(ctx, s, last)
		if err != nil {
			return err
		}
		slices.SortFunc(all, func(a, b projectTraffic) int {
			return cmp.Or(cmp.Compare(by(b), by(a)), cmp.Compare(a.Project, b.Project))
		})
		const header = "PROJECT, REQUESTS, OF THEM BYOK, CREDITS, REFUSED, FAILED"
		const empty = "No requests in this time. Functions log no requests at a LogLevel above INFO."
		return app.PrintList(s.App, header, empty, all[:min(lines, len(all))], func(t projectTraffic) []string {
			return []string{t.Project, s.Number(t.Requests), s.Number(t.BYOK), s.Number(t.Credits), s.Number(t.Refused),
				s.Number(t.Failed)}
		})
	})
	flags := cmd.Flags()
	by = func(t projectTraffic) int64 { return t.Requests }
	app.ChoiceFlag(cmd, flags, "by", "what most of is meant: requests (default), credits, refused", &by,
		map[string]func(projectTraffic) int64{"requests": by, "credits": func(t projectTraffic) int64 { return t.Credits },
			"refused": func(t projectTraffic) int64 { return t.Refused }})
	flags.DurationVar(&last, "last", time.Hour, "age of the oldest request")
	flags.IntVar(&lines, "lines", 20, "the largest number of projects")
	return cmd
}

// trafficOf returns the traffic of each project with requests in the time before now.
func trafficOf(ctx context.Context, s *app.Stack, last time.Duration) ([]projectTraffic, error) {
	all := map[string]projectTraffic{}
	add := func(id, mode, status string, requests, credits int64) { // of one mode and one status
		if id == "" {
			return
		}
		t := all[id]
		t.Project = id
		t.Requests += requests
		t.Credits += credits
		if mode == string(project.BYOK) {
			t.BYOK += requests
		}
		switch code, _ := strconv.Atoi(status); {
		case code >= 500:
			t.Failed += requests
		case code >= 400:
			t.Refused += requests
		}
		all[id] = t
	}
	if s.Local {
		found, err := (&logFilter{Last: last, Lines: math.MaxInt}).local(ctx, s)
		for _, l := range found {
			credits, _ := strconv.ParseInt(l.Field("Credits"), 10, 64)
			add(l.Field("project"), l.Field("mode"), l.Field("status"), 1, credits)
		}
		return slices.Collect(maps.Values(all)), err
	}
	logs := cloudwatchlogs.NewFromConfig(s.AWS)
	groups, err := requestGroups(ctx, logs, "/aws/lambda/"+s.StackName()+"-")
	if err != nil {
		return nil, err
	}
	rows, err := queryLogs(ctx, logs, groups, last, "filter ispresent(project) | stats count(*) as requests, "+
		"sum(Credits) as credits by project, mode, status | limit "+strconv.Itoa(mostGroups))
	if err != nil {
		return nil, err
	}
	if len(rows) == mostGroups {
		s.Note("The query returns no more than %d groups, and requests are missing: a shorter --last has fewer.", mostGroups)
	}
	for _, row := range rows {
		value := map[string]string{}
		for _, field := range row {
			value[aws.ToString(field.Field)] = aws.ToString(field.Value)
		}
		requests, _ := strconv.ParseFloat(value["requests"], 64) // CloudWatch writes numbers
		credits, _ := strconv.ParseFloat(value["credits"], 64)
		add(value["project"], value["mode"], value["status"], int64(requests), int64(credits))
	}
	return slices.Collect(maps.Values(all)), nil
}

// mostGroups is the largest number of rows that a query returns (CloudWatch Logs User Guide, limit).
const mostGroups = 10_000
