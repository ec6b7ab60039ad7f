// Package logs holds the command "svc logs".
package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"svcapi/cmd/svc/app"
)

type options struct {
	id    string
	since time.Duration
}

// Command returns "svc logs".
func Command(a *app.App) *cobra.Command {
	o := &options{}
	cmd := a.Command(&cobra.Command{
		Use:   "logs REQUEST_ID",
		Short: "Show the log lines of one request",
		Long: `Show the log lines of one request, from the logs of the local stack or from the log
groups of the stage's functions in CloudWatch. REQUEST_ID is "request_id" of the
response, which is also its header X-SVC-Request-ID.`,
		Example: `  svc logs 9ed060e6-1f0a-4a52-9b3c-0c1a5d7c4e11 --since 72h`,
	}, o.parse, o.run)
	cmd.Flags().DurationVar(&o.since, "since", 24*time.Hour, "age of the oldest line in CloudWatch; a longer time takes longer")
	return cmd
}

func (o *options) parse(args []string) error {
	id, err := uuid.Parse(args[0])
	if err != nil {
		return app.Usagef("REQUEST_ID is the request_id of a response, such as 9ed060e6-1f0a-4a52-9b3c-0c1a5d7c4e11, not %q", args[0])
	}
	if o.id = id.String(); o.since <= 0 {
		return app.Usagef("--since is a time above 0, such as 72h")
	}
	return nil
}

// view is one log line in the format for programs.
type view struct {
	Function string          `json:"function"`
	Line     json.RawMessage `json:"line"`
}

func (o *options) run(ctx context.Context, s *app.Stack) error {
	search, hint := o.cloud, "--since looks back further than "+o.since.String()+". Functions log no requests at a LogLevel above INFO."
	if s.Local {
		search, hint = o.local, "Functions log no requests at a LogLevel above INFO, and the local stack removes its logs when it starts."
	}
	found, err := search(ctx, s)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return &app.FailureError{Text: "no log lines of request " + o.id, Exit: app.ExitNotFound, Hint: hint}
	}
	slices.SortStableFunc(found, func(a, b view) int { return strings.Compare(a.Function, b.Function) })
	tables := make([]app.Table, len(found))
	for i, v := range found {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(v.Line, &fields); err != nil {
			return fmt.Errorf("log line of %s: %w", v.Function, err)
		}
		delete(fields, "_aws") // the declaration of the line's metrics
		tables[i].Rows = app.Rows("function", v.Function)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			tables[i].Rows = append(tables[i].Rows, []string{name, strings.Trim(string(fields[name]), `"`)})
		}
	}
	return s.Print(found, tables...)
}

// about reports whether a log line is about the request. Lines that are not JSON are the platform's.
func (o *options) about(line []byte) bool {
	var fields struct {
		RequestID string `json:"request_id"`
	}
	return bytes.Contains(line, []byte(o.id)) && json.Unmarshal(line, &fields) == nil && fields.RequestID == o.id
}

// local searches the log of each function of the local stack.
func (o *options) local(_ context.Context, s *app.Stack) (found []view, err error) {
	files, err := filepath.Glob(filepath.Join(s.LogDir, "*.log"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(content) {
			if o.about(line) {
				found = append(found, view{strings.TrimSuffix(filepath.Base(file), ".log"), bytes.TrimSpace(line)})
			}
		}
	}
	return found, nil
}

// searches is the number of log groups that svc searches at the same time.
const searches = 4

// cloud searches the log group of each function of the stack.
func (o *options) cloud(ctx context.Context, s *app.Stack) (found []view, err error) {
	logs := cloudwatchlogs.NewFromConfig(s.AWS)
	prefix := "/aws/lambda/" + s.StackName() + "-"
	pages := cloudwatchlogs.NewDescribeLogGroupsPaginator(logs, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: &prefix})
	var names []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the log groups %s*: %w", prefix, err)
		}
		for _, g := range page.LogGroups {
			names = append(names, aws.ToString(g.LogGroupName))
		}
	}
	var lock sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(searches)
	for _, name := range names {
		group.Go(func() error {
			lines, err := o.search(ctx, logs, name)
			lock.Lock()
			defer lock.Unlock()
			for _, line := range lines {
				found = append(found, view{strings.TrimPrefix(name, prefix), json.RawMessage(line)})
			}
			return err
		})
	}
	return found, group.Wait()
}

// search returns the lines of a log group that are about the request.
func (o *options) search(ctx context.Context, logs *cloudwatchlogs.Client, name string) (lines []string, err error) {
	pages := cloudwatchlogs.NewFilterLogEventsPaginator(logs, &cloudwatchlogs.FilterLogEventsInput{
		LogGroupName: &name, FilterPattern: aws.String(fmt.Sprintf(`{ $.request_id = %q }`, o.id)),
		StartTime: aws.Int64(time.Now().Add(-o.since).UnixMilli()),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("search %s: %w", name, err)
		}
		for _, e := range page.Events {
			if line := aws.ToString(e.Message); o.about([]byte(line)) {
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}
