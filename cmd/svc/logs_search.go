package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"golang.org/x/sync/errgroup"

	"svcapi/cmd/svc/app"
)

// logLine is one log line of a request.
type logLine struct {
	Function string                     `json:"function"`
	Text     json.RawMessage            `json:"line"`
	At       time.Time                  `json:"-"` // zero where the line has no time
	fields   map[string]json.RawMessage // without the declaration of the line's metrics
}

// Field returns the value of a field as text, and "" for none.
func (l logLine) Field(name string) string {
	text := string(l.fields[name])
	_ = json.Unmarshal(l.fields[name], &text) // all but a text stays as it is
	return text
}

// Reason returns the reason of an error, or the code of an error without reasons.
func (l logLine) Reason() string { return cmp.Or(l.Field("reason"), l.Field("code")) }

// lambdaID is the field of the gateway's lines with the request ID of the response (template.yaml, AccessLogSetting).
const lambdaID = "lambda_request_id"

// equal returns the values that fields of a line must have, where they are not empty.
func (f *logFilter) equal() map[string]string {
	status := strings.TrimPrefix(strconv.Itoa(f.status), "0")
	return map[string]string{"request_id": f.ID, "project": f.Project, "operation": f.operation, "status": status}
}

// end returns the time of the newest line.
func (f *logFilter) end() time.Time {
	if f.Until.IsZero() {
		return time.Now()
	}
	return f.Until
}

// pattern returns the filter in the syntax of CloudWatch (CloudWatch Logs User Guide, Filter pattern syntax).
func (f *logFilter) pattern() string {
	if f.Term != "" { // a regular expression finds it in a list, too; read applies the other conditions
		return "%" + f.Term + "%"
	}
	terms := []string{`($.request_id = "*")`}
	for name, value := range f.equal() {
		if name != "status" && value != "" {
			value = strconv.Quote(value)
		}
		switch {
		case value == "":
		case name == "request_id": // the gateway's lines have an ID of their own, and Lambda's as another field
			terms = append(terms, fmt.Sprintf(`(($.%s = %[2]s) || ($.%[3]s = %[2]s))`, name, value, lambdaID))
		default:
			terms = append(terms, "($."+name+" = "+value+")")
		}
	}
	if f.reason != "" {
		terms = append(terms, fmt.Sprintf(`(($.reason = %[1]q) || ($.code = %[1]q))`, f.reason))
	}
	if f.Failed {
		terms = append(terms, "($.status >= 400)")
	}
	slices.Sort(terms)
	return "{ " + strings.Join(terms, " && ") + " }"
}

// read decodes a log line, and reports whether the filter selects the line. Lines without a request are the platform's.
func (f *logFilter) read(function string, text []byte) (l logLine, selected bool) {
	l = logLine{Function: function, Text: bytes.TrimSpace(text)}
	if !bytes.Contains(l.Text, []byte(f.Term)) || json.Unmarshal(l.Text, &l.fields) != nil ||
		l.fields["request_id"] == nil {
		return l, false
	}
	delete(l.fields, "_aws")
	l.At, _ = time.Parse(time.RFC3339Nano, l.Field("timestamp")) // the local gateway's lines have no time
	for name, value := range f.equal() {
		if value != "" && value != l.Field(name) && (name != "request_id" || value != l.Field(lambdaID)) {
			return l, false
		}
	}
	status, _ := strconv.Atoi(l.Field("status"))
	return l, (!f.Failed || status >= 400) &&
		(f.reason == "" || f.reason == l.Field("reason") || f.reason == l.Field("code"))
}

// Search returns the newest lines that the filter selects, oldest first, and a sentence for people where lines are
// missing.
func (f *logFilter) Search(ctx context.Context, s *app.Stack) (found []logLine, missing string, err error) {
	limited, cancel := context.WithTimeout(ctx, f.Time)
	defer cancel()
	search := f.cloud
	if s.Local {
		search = f.local
	}
	found, err = search(limited, s)
	slices.SortStableFunc(found, func(a, b logLine) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Function, b.Function))
	})
	if n := len(found) - f.Lines; n > 0 {
		found, missing = found[n:], fmt.Sprintf("These are the newest %d lines of more: --lines shows more of them.", f.Lines)
	}
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return found, "The search ended after " + f.Time.String() +
			", and lines are missing: a shorter --last takes less time.", nil
	}
	return found, missing, err
}

// local searches the log of each function of the local stack.
func (f *logFilter) local(_ context.Context, s *app.Stack) (found []logLine, err error) {
	files, err := filepath.Glob(filepath.Join(s.Running.LogDir, "*.log"))
	if err != nil || s.Running.LogDir == "" {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for text := range bytes.Lines(content) {
			l, selected := f.read(strings.TrimSuffix(filepath.Base(file), ".log"), text)
			if selected && (l.At.IsZero() || f.end().Sub(l.At) < f.Last && !l.At.After(f.end())) {
				found = append(found, l)
			}
		}
	}
	return found, nil
}

// firstSpan is the time that the first search of a log group covers. Each further search goes back twice as far until
// there are enough lines, because a search returns the oldest lines first.
const firstSpan = 10 * time.Minute

// cloud searches the log group of each function of the stack. With an error cloud returns the lines that it has found.
func (f *logFilter) cloud(ctx context.Context, s *app.Stack) (found []logLine, err error) {
	logs := cloudwatchlogs.NewFromConfig(s.AWS)
	prefix := "/aws/lambda/" + s.StackName() + "-"
	names, err := requestGroups(ctx, logs, prefix)
	if err != nil {
		return nil, err
	}
	var lock sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4) // of the log groups at the same time
	for _, name := range names {
		group.Go(func() (err error) {
			end, first, number := f.end(), f.end().Add(-f.Last), 0
			for span := firstSpan; err == nil && number <= f.Lines && end.After(first); span *= 2 {
				begin := end.Add(-min(span, end.Sub(first)))
				var lines []logLine
				lines, err = f.search(ctx, logs, name, strings.TrimPrefix(name, prefix), begin, end)
				end, number = begin, number+len(lines)
				lock.Lock()
				found = append(found, lines...)
				lock.Unlock()
			}
			return err
		})
	}
	err = group.Wait()
	return found, err
}

// requestGroups returns the log groups with a prefix that have lines of requests.
func requestGroups(ctx context.Context, logs *cloudwatchlogs.Client, prefix string) (names []string, err error) {
	pages := cloudwatchlogs.NewDescribeLogGroupsPaginator(logs,
		&cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the log groups %s*: %w", prefix, err)
		}
		for _, g := range page.LogGroups {
			if g.LogGroupClass != types.LogGroupClassInfrequentAccess { // the renderer's
				names = append(names, aws.ToString(g.LogGroupName))
			}
		}
	}
	return names, nil
}

// search returns the newest lines of a log group from one time up to and without another, one more than the filter's
// number.
func (f *logFilter) search(ctx context.Context, logs *cloudwatchlogs.Client, name, function string,
	begin, end time.Time) (lines []logLine, err error) {
	pages := cloudwatchlogs.NewFilterLogEventsPaginator(logs, &cloudwatchlogs.FilterLogEventsInput{
		LogGroupName: &name, FilterPattern: new(f.pattern()),
		StartTime: new(begin.UnixMilli()), EndTime: new(end.UnixMilli() - 1),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return lines, fmt.Errorf("search %s: %w", name, err)
		}
		for _, e := range page.Events {
			if l, selected := f.read(function, []byte(aws.ToString(e.Message))); selected {
				lines = append(lines, l)
			}
		}
		lines = slices.Delete(lines, 0, max(0, len(lines)-f.Lines-1))
	}
	return lines, nil
}

// queryLogs returns the rows of a query of CloudWatch Logs Insights over the time before now.
func queryLogs(ctx context.Context, logs *cloudwatchlogs.Client, groups []string, last time.Duration,
	text string) ([][]types.ResultField, error) {
	now := time.Now()
	query, err := logs.StartQuery(ctx, &cloudwatchlogs.StartQueryInput{
		LogGroupNames: groups, StartTime: new(now.Add(-last).Unix()), EndTime: new(now.Unix()), QueryString: &text,
	})
	if err != nil {
		return nil, fmt.Errorf("query the logs: %w", err)
	}
	for {
		out, err := logs.GetQueryResults(ctx, &cloudwatchlogs.GetQueryResultsInput{QueryId: query.QueryId})
		switch {
		case err != nil:
			return nil, fmt.Errorf("query the logs: %w", err)
		case out.Status == types.QueryStatusComplete:
			return out.Results, nil
		case out.Status != types.QueryStatusRunning && out.Status != types.QueryStatusScheduled:
			return nil, fmt.Errorf("query the logs: the query is %s", out.Status)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// renderBrowser is the browser that renders a stage's PDFs, as the renderer's newest log line of a start names it.
type renderBrowser struct {
	Version  string `json:"version"`  // as the browser reports it, such as HeadlessChrome/153.0.8010.0
	Released string `json:"released"` // the date beside the layer's browser, YYYY-MM-DD; empty for none
	Days     int    `json:"days"`     // since that date
}

// startedBrowser returns the browser of the renderer's newest start in the last 30 days, nil for none. It
// asks nobody but the stage's log.
func startedBrowser(ctx context.Context, s *app.Stack) (*renderBrowser, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	text, err := newestStart(ctx, s)
	if err != nil || text == "" {
		return nil, err
	}
	l := logLine{}
	if err := json.Unmarshal([]byte(text), &l.fields); err != nil {
		return nil, fmt.Errorf("the log line of the browser's start: %w", err)
	}
	b := &renderBrowser{Version: l.Field("browser"), Released: l.Field("released")}
	if at, err := time.Parse(time.DateOnly, b.Released); err == nil {
		b.Days = int(time.Since(at).Hours() / 24)
	}
	return b, nil
}

// browserStarted is the message of the line that the renderer logs at each start of a browser.
const browserStarted = "browser started"

// newestStart returns the newest line, and "" for none. The class of the renderer's log group is Infrequent Access,
// which only queries can read (CloudWatch Logs User Guide, Log classes).
func newestStart(ctx context.Context, s *app.Stack) (newest string, err error) {
	if s.Local {
		content, err := os.ReadFile(filepath.Join(s.Running.LogDir, "pdfrender.log"))
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, `"message":"`+browserStarted+`"`) {
				newest = line
			}
		}
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return newest, err
	}
	group := "/aws/lambda/" + s.StackName() + "-pdfrender"
	rows, err := queryLogs(ctx, cloudwatchlogs.NewFromConfig(s.AWS), []string{group}, 30*24*time.Hour,
		fmt.Sprintf("fields @message | filter message = %q | sort @timestamp desc | limit 1", browserStarted))
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return aws.ToString(rows[0][0].Value), nil
}

// Age returns when the browser was released.
func (b *renderBrowser) Age() string {
	if b.Released == "" {
		return b.Version + ", of unknown age: no layer of this project"
	}
	return fmt.Sprintf("%s, released %d days ago", b.Version, b.Days)
}

// Old reports that the browser is due, 60 days after its release; renewBrowser says what to do about that.
func (b *renderBrowser) Old() bool { return b.Days >= 60 }

// renewBrowser returns the commands that renew a browser, and the one that disables PDFs meanwhile.
func renewBrowser(s *app.Stack) string {
	return "make browser-age names the newest: make browser VERSION=…, then deploy (docs/supply-chain.md, Renew the " +
		"browser). Until then, for documents that you do not trust: " + s.Line("integration disable PROJECT pdf builtin")
}
