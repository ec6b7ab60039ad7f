package acceptance

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"svcapi/local/build"
	"svcapi/local/events"
	"svcapi/local/lambda"
	"svcapi/local/template"
	"svcapi/local/workdir"
	"svcapi/test/insights"
	"svcapi/test/must"
)

// inRoot returns the path of a file of the repository.
func inRoot(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(must.Get(workdir.Root()).Or(t), name)
}

// withVariable returns a function with another value of a variable.
func withVariable(f template.Function, variable, value string) template.Function {
	f.Environment = maps.Clone(f.Environment)
	f.Environment[variable] = value
	return f
}

// TestQueries: each query of docs/runbook.md, of docs/operate.md and of the dashboard finds what it is for in the lines
// of compiled functions and of the platform, and those about failures find nothing where nothing fails. A version's
// failures are also what the alarm of its deployment counts (docs/decisions/operating.md#canary).
func TestQueries(t *testing.T) {
	localParallel(t)
	f, _ := fixture.stack.Template.Function("sms")
	all := must.Get(events.Read(inRoot(t, "events"))).Or(t)
	binaries := must.Get(build.Functions(t.Context(), []template.Function{f})).Or(t)
	run := func(f template.Function, names ...string) []string {
		dir := t.TempDir()
		host := must.Get(lambda.HostOf(lambda.Options{
			LogDir: dir, Jail: fixture.stack.Jail, Concurrency: 1, Environment: map[string]string{"SVC_LOCAL": "1"},
		}, withVariable(f, "AWS_LAMBDA_FUNCTION_VERSION", "7"), binaries[f.LogicalID])).Or(t)
		defer host.Close()
		for _, name := range names {
			_, payload, err := all[name].Event(fixture.stack.Template)
			must.Succeed(t, err)
			must.Get(host.Invoke(t.Context(), f.LogicalID, payload)).Or(t)
			must.Succeed(t, host.AwaitIdle(t.Context(), f.LogicalID))
		}
		return strings.Split(strings.TrimSuffix(readFile(t, filepath.Join(dir, f.Folder+".log")), "\n"), "\n")
	}
	healthy := run(f, "sms-send-unicode", "sms-send-byok")
	lines := slices.Concat(healthy,
		run(withVariable(f, "PROJECTS_TABLE", "svc-local-nothing"), "sms-send-byok"),
		run(withVariable(f, "PROJECT_CACHE_SECONDS", "soon"), "sms-send-byok"),
		run(f, slices.Repeat([]string{"sms-send-unauthorized"}, 101)...),
		run(f, "sms-send-rejected"))
	var first struct {
		RequestID string `json:"request_id"`
	}
	must.Succeed(t, json.Unmarshal([]byte(healthy[0]), &first))
	type wanted struct {
		query string // a part that no other query has
		fails bool
		found []insights.Row
	}
	const fails = true
	cases := []wanted{
		{`request_id = `, !fails, []insights.Row{{"operation": "sms_send", "outcome": "success"}}},
		{`outcome = "error"`, fails, []insights.Row{{"operation": "sms_send", "count()": 1.0}}},
		// local/lambda TestFailures has a run that is out of time.
		{`level = "ERROR"`, fails, []insights.Row{{"record.errorType": "Runtime.ExitError"}, {"message": "start"},
			{"outcome": "error"}}},
		{`ispresent(version)`, fails, []insights.Row{{"version": f.Name + ":7", "operation": "sms_send", "failures": 1.0}}},
		{`["vendor_failed", "unavailable"]`, fails,
			[]insights.Row{{"project": "demo-managed", "vendor": "quicksend", "count()": 1.0}}},
		{`outcome = "unauthorized"`, fails, []insights.Row{{"operation": "sms_send", "count()": 100.0}}},
		{`outcome = "guessed"`, fails, []insights.Row{{"source": "127.0.0.1", "count()": 1.0}}},
		{`count(*) as calls`, !fails, []insights.Row{{"project": "byok", "operation": "sms_send", "calls": 1.0}}},
		{`sum(units)`, !fails, []insights.Row{{"project": "byok", "operation": "sms_send", "units": 1.0}}},
		{`sum(Credits)`, !fails, []insights.Row{{"project": "demo-managed", "credits": 20000.0}}},
		{`"unusual spending"`, fails, nil}, // functions/settle TestSpendingOfWallets
		{`count(*) as requests`, !fails,
			[]insights.Row{{"operation": "sms_send", "outcome": "success"}, {"outcome": "vendor_failed", "requests": 1.0}}},
		{`pct(Duration, 99)`, !fails, []insights.Row{{"operation": "sms_send", "vendor": "quicksend"}}},
	}
	seen := 0
	for _, page := range []string{"docs/runbook.md", "docs/operate.md", "template.yaml"} {
		text := strings.ReplaceAll(readFile(t, inRoot(t, page)), "9ed060e6-...", first.RequestID)
		for _, query := range insights.Queries(text) {
			seen++
			i := slices.IndexFunc(cases, func(c wanted) bool { return strings.Contains(query, c.query) })
			if i < 0 {
				t.Errorf("%s: no case has the query %s", page, query)
				continue
			}
			rows, err := insights.Run(query, lines)
			if err != nil {
				t.Errorf("%s: %s: %v", page, query, err)
			}
			for _, want := range cases[i].found {
				if !slices.ContainsFunc(rows, func(row insights.Row) bool {
					for field, value := range want {
						if row[field] != value {
							return false
						}
					}
					return true
				}) {
					t.Errorf("%s: %s finds no %v in %d rows", page, query, want, len(rows))
				}
			}
			if rows, _ := insights.Run(query, healthy); cases[i].fails && len(rows) > 0 {
				t.Errorf("%s: %s finds in healthy lines %v", page, query, rows)
			}
		}
	}
	if seen != len(cases) {
		t.Errorf("%d queries, want %d", seen, len(cases))
	}
}
