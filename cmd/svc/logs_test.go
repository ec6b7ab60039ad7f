package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svcapi/cmd/svc/app"
)

const (
	loggedID = "9ed060e6-1f0a-4a52-9b3c-0c1a5d7c4e11"
	otherID  = "0ed060e6-1f0a-4a52-9b3c-0c1a5d7c4e11"
)

func logLine(id string) string {
	return fmt.Sprintf(`{"timestamp":"2026-11-22T08:02:55Z","level":"INFO","_aws":{"Timestamp":1},"outcome":"refused","request_id":%q,"status":422,"error":"another request was %s"}`, id, loggedID)
}

// TestLogs: svc shows the lines of one request from the log files of the local stack.
func TestLogs(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sms.log":     "START\n" + logLine(otherID) + "\nnot JSON " + loggedID + "\n" + logLine(loggedID) + "\n",
		"gateway.log": `{"request_id":"` + loggedID + `","latency_ms":37}`,
		"settle.log":  "",
	} {
		f.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	f.announce(map[string]any{"log_dir": dir})
	f.runAll([]call{
		{args: "logs", exit: app.ExitUsage, errs: []string{"missing REQUEST_ID"}},
		{args: "logs 7", exit: app.ExitUsage, errs: []string{"REQUEST_ID is the request_id of a response"}},
		{args: "logs " + loggedID + " --since 0s", exit: app.ExitUsage, errs: []string{"--since"}},
		{args: "logs " + strings.Replace(loggedID, "9", "8", 1), exit: app.ExitNotFound, errs: []string{"no log lines of request 8ed060e6.*\n +Functions log no requests"}},
		{args: "logs " + strings.ToUpper(loggedID), out: []string{`^function +gateway\nlatency_ms +37\nrequest_id .*\n\nfunction +sms\n(.|\n)*status +422\ntimestamp +2026-11-22T08:02:55Z\n`}, absent: "_aws|START|" + otherID},
		{args: "logs " + loggedID + " --output json", out: []string{`"function": "sms",\n +"line": \{`}},
	})
}

// TestLogsOfStage: svc searches the log group of each function of the stack in CloudWatch, page by page.
func TestLogsOfStage(t *testing.T) {
	var searched []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			LogGroupNamePrefix, LogGroupName, FilterPattern, NextToken string
			StartTime                                                  int64
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &in); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		switch _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); {
		case operation == "DescribeLogGroups":
			if in.LogGroupNamePrefix != "/aws/lambda/svc-blue-" {
				t.Errorf("prefix %q", in.LogGroupNamePrefix)
			}
			_, _ = io.WriteString(w, `{"logGroups":[{"logGroupName":"/aws/lambda/svc-blue-sms"}]}`)
		case in.NextToken == "":
			searched = append(searched, in.LogGroupName)
			age := time.Since(time.UnixMilli(in.StartTime))
			if in.FilterPattern != `{ $.request_id = "`+loggedID+`" }` || age < 72*time.Hour || age > 73*time.Hour {
				t.Errorf("%+v", in)
			}
			_, _ = io.WriteString(w, `{"events":[],"nextToken":"2"}`)
		default:
			message, _ := json.Marshal(logLine(loggedID) + "\n")
			fmt.Fprintf(w, `{"events":[{"message":%s}]}`, message)
		}
	}))
	t.Cleanup(server.Close)
	signIn(t, server.URL)
	call{args: "logs " + loggedID + " --since 72h --stage blue", out: []string{"^function +sms\n"}}.run(t)
	if len(searched) != 1 || searched[0] != "/aws/lambda/svc-blue-sms" {
		t.Errorf("searched %v", searched)
	}
}
