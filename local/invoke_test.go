package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"svcapi/local/events"
	"svcapi/local/stack"
	"svcapi/local/workdir"
	"svcapi/test/logtest"
	"svcapi/test/must"
)

// TestEvents runs every event of the folder events through its compiled function, against a stack that runs, and
// compares the response with the expected one.
func TestEvents(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(must.Get(workdir.Root()).Or(t), "events")
	all, err := events.Read(folder)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d events: %v", len(all), err)
	}
	demo := filepath.Join(t.TempDir(), "demo.json")
	s := must.Get(stack.Start(t.Context(), stack.Options{LogDir: t.TempDir(), DemoFile: demo})).Or(t)
	t.Cleanup(func() { must.Succeed(t, s.Close()) })
	for name, c := range all {
		event, want, host := name, c.Expected, s.Host
		if name == "pdf-render.json" {
			host = nil // of the invocation itself, with the browser
		}
		for _, field := range want.Varies {
			want.Body.(map[string]any)["data"].(map[string]any)[field] = "#"
		}
		if events.IsFile(name) {
			event = filepath.Join(folder, name)
		}
		t.Run(name, func(t *testing.T) {
			var out, log bytes.Buffer
			i := invocation{c.Function, event, demo, &out, &log, host}
			if err := i.run(t.Context()); err != nil {
				t.Fatalf("%v\n%s%s", err, out.Bytes(), log.Bytes())
			}
			if want.Status == 0 {
				var got any
				if err := json.Unmarshal(out.Bytes(), &got); err != nil || !matches(want.Result, got) {
					t.Errorf("%s, %v, want %v", out.Bytes(), err, want.Result)
				}
				return
			}
			var got struct {
				StatusCode        int
				MultiValueHeaders map[string][]string
				Body              string
				IsBase64Encoded   bool
			}
			must.Succeed(t, json.Unmarshal(out.Bytes(), &got))
			body := []byte(got.Body)
			if got.IsBase64Encoded {
				if body, err = base64.StdEncoding.DecodeString(got.Body); err != nil {
					t.Fatal(err)
				}
			}
			var content any = string(body) // of a picture
			if want.Headers["Content-Type"] == "" {
				err = json.Unmarshal(body, &content)
			}
			if envelope, ok := content.(map[string]any); ok &&
				envelope["request_id"] != strings.Join(got.MultiValueHeaders["X-SVC-Request-ID"], ",") {
				t.Errorf("request_id is %v, X-SVC-Request-ID is %v", envelope["request_id"],
					got.MultiValueHeaders["X-SVC-Request-ID"])
			}
			if err != nil || got.StatusCode != want.Status || !matches(want.Body, content) {
				t.Errorf("%d %s, want %d %v", got.StatusCode, body, want.Status, want.Body)
			}
			for header, v := range want.Headers {
				if strings.Join(got.MultiValueHeaders[header], ",") != v {
					t.Errorf("header %s is %v, want %s", header, got.MultiValueHeaders[header], v)
				}
			}
		})
	}
}

// matches compares what JSON holds, field by field: "*" matches any text, "#" any number.
func matches(want, got any) bool {
	switch want := want.(type) {
	case string:
		_, isText := got.(string)
		_, isNumber := got.(float64)
		return isText && want == "*" || isNumber && want == "#" || want == got
	case map[string]any:
		fields, ok := got.(map[string]any)
		if !ok || len(fields) != len(want) {
			return false
		}
		for name, v := range want {
			if field, ok := fields[name]; !ok || !matches(v, field) {
				return false
			}
		}
		return true
	case []any:
		items, ok := got.([]any)
		return ok && slices.EqualFunc(want, items, matches)
	}
	return reflect.DeepEqual(want, got)
}

// TestInvokeAlone checks that an event finds a stack of its own where none runs, also where one was killed and left its
// demo file.
func TestInvokeAlone(t *testing.T) {
	t.Parallel()
	root := must.Get(workdir.Root()).Or(t)
	demo := filepath.Join(t.TempDir(), "demo.json")
	must.Succeed(t, os.WriteFile(demo, []byte(`{"dynamodb_url":"http://127.0.0.1:1"}`), 0o600))
	var out bytes.Buffer
	var log logtest.Buffer // written by the stack and by its children, as standard error is
	i := invocation{"sms", filepath.Join(root, "events", "sms-balance-managed.json"), demo, &out, &log, nil}
	if err := i.run(t.Context()); err != nil || !strings.Contains(out.String(), `"statusCode":200`) {
		t.Errorf("%v\n%s%s", err, out.Bytes(), log.String())
	}
}

// TestInvokeMistakes checks what is said where there is nothing to run.
func TestInvokeMistakes(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.json")
	must.Succeed(t, os.WriteFile(broken, []byte("{"), 0o600))
	if err := invoke(nil); err == nil || !strings.Contains(err.Error(), "usage:") {
		t.Error(err)
	}
	for _, event := range []string{broken, filepath.Join(t.TempDir(), "absent.json"), "no-such-case"} {
		i := invocation{function: "sms", event: event, out: &bytes.Buffer{}, log: &bytes.Buffer{}}
		if err := i.run(context.Background()); err == nil {
			t.Errorf("%s: no error", event)
		}
	}
}
