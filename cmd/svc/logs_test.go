package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/cmd/svc/app"
	"svcapi/test/insights"
	"svcapi/test/must"
)

const (
	loggedID = "9ed060e6-1f0a-4a52-9b3c-0c1a5d7c4e11"
	otherID  = "0ed060e6-1f0a-4a52-9b3c-0c1a5d7c4e11"
)

// loggedLine is the line of a request that failed: of another request by an ID, and with some other values.
func loggedLine(id string, values ...string) string {
	line := fmt.Sprintf(`{"timestamp":%q,"level":"INFO","_aws":{"Timestamp":1},"operation":"sms_send","project":"acme",`+
		`"request_id":%q,"status":422,"code":"http_error","reason":"trial_destination","error":"it was %s with \"quotes\""}`,
		time.Now().UTC().Format(time.RFC3339Nano), id, loggedID)
	return strings.NewReplacer(values...).Replace(line)
}

// TestLogs: svc shows the lines of one request, or those that flags select, from the log files of the local stack: as
// tables at a terminal, and else each as it is (docs/decisions/operating.md#log-lines).
func TestLogs(t *testing.T) {
	f := newFixture(t)
	old := time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339Nano)
	for name, text := range map[string]string{
		"sms.log": "START\n" + loggedLine(otherID, "acme", "globex") + "\nnot JSON " + loggedID + "\n" +
			loggedLine(loggedID) + "\n" +
			loggedLine(strings.Replace(otherID, "0", "1", 1), `"status":422`, `"status":200`) + "\n" +
			loggedLine(strings.Replace(otherID, "0", "2", 1), `"status":422`, `"status":502`, "trial_destination",
				"vendor_unreachable") + "\n" +
			loggedLine(strings.Replace(otherID, "0", "3", 1), "sms_send", "sms_balance", `"reason":"trial_destination",`, "",
				`"timestamp":"20`, `"timestamp":"`+old+`","x":"`),
		"gateway.log": `{"request_id":"5c1c6b5e-0000-4000-8000-000000000001","lambda_request_id":"` + loggedID +
			`","latency_ms":37}`,
		"settle.log": "",
	} {
		f.must(os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
	}
	f.runAll([]call{
		{args: "project create Acme --id acme"},
		misuse("logs 7", "REQUEST_ID is the request_id of a response"),
		misuse("logs "+loggedID+" --last 0s", "--last"),
		misuse("logs --lines 0", "--lines"),
		misuse("logs --reason a\"b", "letters, digits"),
		notFound("logs --project nobody", "project nobody: not found"),
		notFound("logs "+strings.Replace(loggedID, "9", "8", 1),
			"no log lines of request 8ed060e6.*\n.*Functions log no requests"),
		shows("logs "+strings.ToUpper(loggedID), `^function +gateway\nlambda_request_id .*\nlatency_ms +37\nrequest_id .*\n`+
			`\nfunction +sms\n(.|\n)*error +it was .* with "quotes"\n(.|\n)*status +422\ntimestamp +20`).
			typing().without("_aws|START|" + otherID),
		shows("logs "+loggedID+" --output json", `"function": "sms",\n +"line": \{`),
		shows("logs --project acme --failed --last 1h", `^\{.*"request_id":"9e.*\}\n\{.*"request_id":"2ed.*\}\n$`),
		shows("logs --project acme --failed --last 3h --lines 2", `^.*"9ed.*\n.*"2ed.*\n$`).
			notes("^These are the newest 2 lines of more"),
		shows("logs --operation sms~balance",
			`^TIME .* REASON .*\n20\S+ \S+ UTC +sms_balance +422 +http_error +- +- +3ed\S+ +it was.*\n$`).typing(),
		shows("logs --status 502 --output csv", `^TIME,OPERATION,.*\n\S+,sms_send,502,vendor_unreachable,,,2ed.*\n$`),
		shows("logs --reason vendor~unreachable --output json", `^\[\n(.|\n)*"2ed`).
			without("9ed060e6-1f0a-4a52-9b3c-0c1a5d7c4e11\","),
		shows("logs --reason http~error --project acme", `(.*\n){4}`).without("globex"),
		shows("logs --status 500", "^No log lines. Functions log no requests").typing(),
		shows("logs --status 500 --output json", `^\[\]\n$`),
		shows("project show acme", `\n\nFAILED IN THE LAST HOUR +STATUS +REASON +REQUESTS +LAST\nsms_send `+
			`+502 +vendor_unreachable +1 +20.*\nsms_send +422 +trial_destination +1 +20.*\n$`),
		shows("project show acme --output json", `"failures": \[\n +\{\n +"operation": "sms_send",\n +"status": `+
			`502,\n +"reason": "vendor_unreachable",\n +"requests": 1,\n +"last": "20`),
	})
}

// asked is a request to CloudWatch Logs.
type asked struct {
	LogGroupNamePrefix, LogGroupName, FilterPattern, NextToken, QueryString, QueryID string
	LogGroupNames                                                                    []string
	StartTime, EndTime                                                               int64
}

// cloudWatch returns the URL of CloudWatch Logs with two log groups of the stage blue. The test responds to all else.
func cloudWatch(t *testing.T, respond func(w http.ResponseWriter, operation string, in asked)) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		var in asked
		_ = json.NewDecoder(r.Body).Decode(&in) // a request to another service has another form
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation != "DescribeLogGroups" {
			respond(w, operation, in)
			return
		}
		if in.LogGroupNamePrefix != "/aws/lambda/svc-blue-" {
			t.Errorf("prefix %q", in.LogGroupNamePrefix)
		}
		_, _ = io.WriteString(w, `{"logGroups":[{"logGroupName":"/aws/lambda/svc-blue-sms"},`+
			`{"logGroupName":"/aws/lambda/svc-blue-pdfrender","logGroupClass":"INFREQUENT_ACCESS"}]}`)
	})
}

// TestLogsOfStage: svc searches the log group of each function of the stack in CloudWatch, page by page, the newest
// hours first, until it has enough lines or no time.
func TestLogsOfStage(t *testing.T) {
	var searched []string
	pattern, lines, over := "", 1, make(chan struct{})
	defer close(over)
	signIn(t, cloudWatch(t, func(w http.ResponseWriter, _ string, in asked) {
		switch {
		case in.NextToken == "":
			searched = append(searched, fmt.Sprintf("%s %v-%v", in.LogGroupName,
				time.Since(time.UnixMilli(in.EndTime)).Round(time.Minute),
				time.Since(time.UnixMilli(in.StartTime)).Round(time.Minute)))
			pattern = in.FilterPattern
			_, _ = io.WriteString(w, `{"events":[],"nextToken":"2"}`)
		case lines == 0: // no response
			<-over
		default:
			message, _ := json.Marshal(loggedLine(loggedID) + "\n")
			fmt.Fprintf(w, `{"events":[%s]}`,
				strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"message":%s},`, message), lines), ","))
		}
	}))
	for _, c := range []struct {
		args, pattern, searched, errs string
		lines                         int
	}{
		{"logs " + loggedID + " --last 72h",
			`{ ($.request_id = "*") && (($.request_id = "` + loggedID + `") || ($.lambda_request_id = "` + loggedID + `")) }`,
			"0s-10m0s 10m0s-30m0s 30m0s-1h10m0s 1h10m0s-2h30m0s 2h30m0s-5h10m0s 5h10m0s-10h30m0s 10h30m0s-21h10m0s " +
				"21h10m0s-42h30m0s 42h30m0s-72h0m0s", "^$", 1},
		{"logs --operation sms_send --status 422 --failed --reason trial_destination --last 15m",
			`{ ($.operation = "sms_send") && ($.request_id = "*") && ($.status = 422) && ($.status >= 400) && (($.reason = ` +
				`"trial_destination") || ($.code = "trial_destination")) }`,
			"0s-10m0s 10m0s-15m0s", "^$", 1},
		{"logs --lines 3 --last 72h", `{ ($.request_id = "*") }`, "0s-10m0s",
			"^These are the newest 3 lines of more: --lines", 4},
	} {
		searched, lines = nil, c.lines
		shows(strings.ReplaceAll(c.args, "_", "~")+" --stage blue", `^(\{.*"request_id":"`+loggedID+`".*\}\n)+$`).
			notes(c.errs).run(t)
		if got := strings.ReplaceAll(strings.Join(searched, " "), "/aws/lambda/svc-blue-sms ", ""); got != c.searched ||
			pattern != c.pattern {
			t.Errorf("%s: searched %s by %s", c.args, got, pattern)
		}
	}
	t.Setenv("SVC_STAGE", "blue")
	s, err := (&app.App{}).Open(t.Context())
	must.Succeed(t, err)
	lines = 0
	_, missing, err := (&logFilter{Last: time.Hour, Lines: 1, Time: 200 * time.Millisecond}).Search(t.Context(), s)
	if err != nil || !strings.HasPrefix(missing, "The search ended after 200ms") {
		t.Errorf("a search without a response: %q, %v", missing, err)
	}
}

// TestTop: svc project top counts requests, BYOK ones, credits and refusals by project, the same from the log files of
// the local stack and by a query of the stage's log groups but the renderer's.
func TestTop(t *testing.T) {
	var lines []string
	for _, r := range []struct {
		project, mode   string
		status, credits int
	}{{"acme", "managed", 200, 20}, {"acme", "managed", 200, 5}, {"acme", "byok", 200, 0}, {"acme", "", 429, 0},
		{"globex", "managed", 402, 0}, {"globex", "managed", 429, 0}, {"globex", "managed", 502, 0},
		{"initech", "managed", 200, 30}} {
		lines = append(lines, fmt.Sprintf(`{"timestamp":%q,"request_id":"r","project":%q,"mode":%q,"status":%d,"Credits":%d}`,
			time.Now().UTC().Format(time.RFC3339Nano), r.project, r.mode, r.status, r.credits))
	}
	lines = append(lines, `{"request_id":"r","status":401,"Credits":0}`, "START")
	url := cloudWatch(t, func(w http.ResponseWriter, operation string, in asked) {
		switch operation {
		case "StartQuery":
			if fmt.Sprint(in.LogGroupNames) != "[/aws/lambda/svc-blue-sms]" || in.EndTime-in.StartTime != 3600 {
				t.Errorf("query %+v", in)
			}
			fmt.Fprintf(w, `{"queryId":%q}`, in.QueryString)
		case "GetQueryResults":
			rows, err := insights.Run(in.QueryID, lines)
			must.Succeed(t, err)
			results := [][]map[string]string{}
			for _, row := range rows {
				var fields []map[string]string
				for _, name := range []string{"project", "mode", "status", "requests", "credits"} {
					fields = append(fields, map[string]string{"field": name, "value": fmt.Sprint(row[name])})
				}
				results = append(results, fields)
			}
			must.Succeed(t, json.NewEncoder(w).Encode(map[string]any{"status": "Complete", "results": results}))
		}
	})
	f := newFixture(t)
	f.must(os.WriteFile(filepath.Join(f.dir, "sms.log"), []byte(strings.Join(lines, "\n")), 0o600))
	acme, globex, initech := `acme +4 +1 +25 +1 +0\n`, `globex +3 +0 +0 +2 +1\n`, `initech +1 +0 +30 +0 +0\n`
	for _, c := range []call{
		shows("project top", "^PROJECT .*\n"+acme+globex+initech+"$"),
		shows("project top --by credits", "\n"+initech+acme+globex+"$"),
		shows("project top --by refused --lines 1", "\n"+globex+"$"),
		misuse("project top --by name", "one of credits, refused, requests"),
		misuse("project top --last 1s", "--last is a minute or more"),
	} {
		f.run(c)
		signIn(t, url)
		c.args += " --stage blue"
		c.run(t)
	}
}

// TestBrowserOfStage: svc version and svc doctor name the browser of the renderer's newest start and its age, and warn
// from 60 days on, of a stage whose log is in CloudWatch, and of the local stack.
func TestBrowserOfStage(t *testing.T) {
	var started string
	looks := 0
	url := cloudWatch(t, func(w http.ResponseWriter, operation string, in asked) {
		switch {
		case operation == "StartQuery" && fmt.Sprint(in.LogGroupNames) == "[/aws/lambda/svc-blue-pdfrender]" &&
			strings.Contains(in.QueryString, `filter message = "browser started" | sort @timestamp desc | limit 1`):
			_, _ = io.WriteString(w, `{"queryId":"7"}`)
		case operation == "GetQueryResults" && looks == 0:
			looks++
			_, _ = io.WriteString(w, `{"status":"Running","results":[]}`)
		case operation == "GetQueryResults":
			message, _ := json.Marshal(started)
			fmt.Fprintf(w, `{"status":"Complete","results":[[{"field":"@message","value":%s}]]}`, message)
		default:
			refuse(w, "AccessDeniedException")
		}
	})
	f := newFixture(t)
	for _, c := range []struct {
		days         int    // since the release; -1: no date
		age, warning string // of svc version
		severity     app.Severity
	}{
		{59, "HeadlessChrome/153.0.8010.0, released 59 days ago", "^$", app.OK},
		{60, "HeadlessChrome/153.0.8010.0, released 60 days ago",
			"Warning: the browser is old. .*make browser VERSION=.*svc integration disable PROJECT pdf builtin --", app.Warning},
		{-1, "HeadlessChrome/153.0.8010.0, of unknown age", "^$", app.OK},
	} {
		released := ""
		if c.days >= 0 {
			released = time.Now().AddDate(0, 0, -c.days).UTC().Format(time.DateOnly)
		}
		started = fmt.Sprintf(`{"timestamp":%q,"level":"INFO","message":"browser started","milliseconds":90,`+
			`"browser":"HeadlessChrome/153.0.8010.0","released":%q}`, time.Now().UTC().Format(time.RFC3339Nano), released)
		older := strings.Replace(strings.Replace(started, "153.0", "150.0", 1), `"timestamp":"20`, `"timestamp":"1990-`, 1)
		f.must(os.WriteFile(filepath.Join(f.dir, "pdfrender.log"), []byte(older+"\n"+started+"\nSTART\n"), 0o600))
		f.run(shows("version", `Browser +`+c.age).notes(c.warning))
		signIn(t, url)
		shows("version --stage blue", `Browser +`+c.age).notes(c.warning).run(t)
		out, _ := finds("doctor --all --stage blue --output json").run(t)
		found := decodeText[[]app.Finding](t, out)
		at := slices.IndexFunc(found, func(f app.Finding) bool { return f.Check == "browser" })
		if at < 0 || found[at].Severity != c.severity || !strings.HasPrefix(found[at].Detail, c.age) ||
			(found[at].Advice == "") != (c.severity == app.OK) {
			t.Errorf("%d days: %+v, want %s", c.days, found, c.severity)
		}
	}
}
