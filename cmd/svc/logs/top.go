package logs

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/project"
)

// Traffic is what a project has asked for, in the format for programs.
type Traffic struct {
	Project  string `json:"project"`
	Requests int64  `json:"requests"`
	BYOK     int64  `json:"byok_requests"`
	Credits  int64  `json:"credits"`
	Refused  int64  `json:"refused"` // responses with a status from 400 to 499
	Failed   int64  `json:"failed"`  // responses with a status from 500
}

// add adds requests with one mode and one status.
func (t *Traffic) add(mode, status string, requests, credits int64) {
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
}

// Top returns "svc project top".
func Top(a *app.App) *cobra.Command {
	var by func(Traffic) int64
	var last time.Duration
	var lines int
	cmd := a.Command(&cobra.Command{
		Use:   "top",
		Short: "List the projects with the most requests, credits or refusals of the last hour",
		Long: `List the projects with the most requests, also those of Manual (BYOK) integrations, the
most charged credits or the most refused requests (HTTP status 400 to 499), from the log
lines of the functions. Requests without valid credentials belong to no project, and
functions log no requests at a LogLevel above INFO. A look at a stage is a query of
CloudWatch Logs Insights, which AWS charges by the bytes of the logs that it reads.`,
		Args: cobra.NoArgs,
		Example: `  svc project top
  svc project top --by refused --last 15m`,
	}, func([]string) error {
		if last < time.Minute || lines <= 0 {
			return app.Usagef("--last is a minute or more, such as 24h, and --lines is 1 or more")
		}
		return nil
	}, func(ctx context.Context, s *app.Stack) error {
		all, err := traffic(ctx, s, last)
		if err != nil {
			return err
		}
		slices.SortFunc(all, func(a, b Traffic) int {
			return cmp.Or(cmp.Compare(by(b), by(a)), cmp.Compare(a.Project, b.Project))
		})
		table := app.Table{Header: []string{"PROJECT", "REQUESTS", "OF THEM BYOK", "CREDITS", "REFUSED", "FAILED"},
			Empty: "No requests in this time. Functions log no requests at a LogLevel above INFO."}
		var views []Traffic
		views, table.Rows = app.List(all[:min(lines, len(all))], func(t Traffic) (Traffic, []string) {
			return t, []string{t.Project, s.Number(t.Requests), s.Number(t.BYOK), s.Number(t.Credits), s.Number(t.Refused),
				s.Number(t.Failed)}
		})
		return s.Print(views, table)
	})
	flags := cmd.Flags()
	by = func(t Traffic) int64 { return t.Requests }
	app.ChoiceFlag(cmd, flags, "by", "what most of is meant: requests (default), credits, refused", &by,
		map[string]func(Traffic) int64{"requests": by, "credits": func(t Traffic) int64 { return t.Credits },
			"refused": func(t Traffic) int64 { return t.Refused }})
	flags.DurationVar(&last, "last", time.Hour, "age of the oldest request")
	flags.IntVar(&lines, "lines", 20, "the largest number of projects")
	return cmd
}

// traffic returns the traffic of each project with requests in the time before now.
func traffic(ctx context.Context, s *app.Stack, last time.Duration) ([]Traffic, error) {
	var all []Traffic
	at := map[string]int{}
	add := func(id, mode, status string, requests, credits int64) {
		if id == "" {
			return
		}
		i, known := at[id]
		if !known {
			i, at[id] = len(all), len(all)
			all = append(all, Traffic{Project: id})
		}
		all[i].add(mode, status, requests, credits)
	}
	if s.Local {
		found, err := (&Filter{Last: last, Lines: math.MaxInt}).local(ctx, s)
		for _, l := range found {
			credits, _ := strconv.ParseInt(l.Field("Credits"), 10, 64)
			add(l.Field("project"), l.Field("mode"), l.Field("status"), 1, credits)
		}
		return all, err
	}
	logs := cloudwatchlogs.NewFromConfig(s.AWS)
	groups, err := requestGroups(ctx, logs, "/aws/lambda/"+s.StackName()+"-")
	if err != nil {
		return nil, err
	}
	rows, err := query(ctx, logs, groups, last, "filter ispresent(project) | stats count(*) as requests, sum(Credits) as "+
		"credits by project, mode, status | limit "+strconv.Itoa(mostGroups))
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
	return all, nil
}

// mostGroups is the largest number of rows that a query returns (CloudWatch Logs User Guide, limit).
const mostGroups = 10_000
