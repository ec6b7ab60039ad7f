package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"svcapi/local/lambda"
	"svcapi/local/template"
	"svcapi/test/must"
)

func extended(f *template.Function) { f.Environment["PROBE_EXTENSION"] = "1" }

// TestExtensionCalls checks what the Extensions API accepts and refuses once the runtime has asked for its first event,
// and what an extension is given (AWS Lambda Developer Guide, Extensions API reference).
func TestExtensionCalls(t *testing.T) {
	type reply struct {
		Status int
		Header http.Header
		Body   map[string]any
	}
	register := func(name, body string) string {
		return fmt.Sprintf(`{"method":"POST","path":"register","header":{"Lambda-Extension-Name":%q},"body":%q}`, name, body)
	}
	next := func(id string) string {
		return fmt.Sprintf(`{"method":"GET","path":"event/next","header":{"Lambda-Extension-Identifier":%q}}`, id)
	}
	host, _ := start(t, 1, extended)
	first := decode[reply](t, invoke(t, host, `{"do":"last"}`)) // the registration, or the first event
	cases := []struct{ call, kind string }{
		{register("", `{"events":["INVOKE"]}`), "Extension.InvalidExtensionName"},
		{register("late", `{"events":["INVOKE"]}`), "Extension.RegistrationClosed"},
		{register("late", `{"events":["SHUTDOWN"]}`), "Extension.InvalidEventType"},
		{register("late", `{"events":["INVOKE","OTHER"]}`), "Extension.InvalidEventType"},
		{register("late", `{"events`), "InvalidRequestFormat"},
		{next(""), "Extension.MissingHeader"},
		{next("3d8f6a3e-0000-4000-8000-000000000000"), "Extension.UnknownExtensionIdentifier"},
	}
	for _, c := range cases {
		got := decode[[]reply](t, invoke(t, host, `{"do":"call","calls":[`+c.call+`]}`))
		if got[0].Status != http.StatusForbidden || got[0].Body["errorType"] != c.kind || got[0].Body["errorMessage"] == "" {
			t.Errorf("%s: %d %v, want 403 %s", c.call, got[0].Status, got[0].Body, c.kind)
		}
	}
	if first.Status != http.StatusOK {
		t.Errorf("the extension got %d %v", first.Status, first.Body)
	}
	must.Succeed(t, host.AwaitIdle(t.Context(), "Probe"))
	// The event before the last has reached the extension before the last one begins.
	before := invoke(t, host, `{"do":"state"}`)
	must.Succeed(t, host.AwaitIdle(t.Context(), "Probe"))
	var event struct {
		EventType, RequestID, InvokedFunctionArn string
		DeadlineMs                               int64
		Tracing                                  struct{ Type, Value string }
	}
	at := time.Now()
	last := invoke(t, host, `{"do":"last"}`)
	got := decode[struct{ Body json.RawMessage }](t, last)
	must.Succeed(t, json.Unmarshal(got.Body, &event))
	left := time.UnixMilli(event.DeadlineMs).Sub(at)
	if event.EventType != "INVOKE" || event.RequestID != before.RequestID && event.RequestID != last.RequestID ||
		event.InvokedFunctionArn != "arn:aws:lambda:eu-west-1:123456789012:function:local-Probe" || left > 16*time.Minute ||
		left < 10*time.Minute ||
		event.Tracing.Type != "X-Amzn-Trace-Id" || !strings.HasPrefix(event.Tracing.Value, "Root=1-") {
		t.Errorf("event %s for requests %s and %s", got.Body, before.RequestID, last.RequestID)
	}
}

// TestWorkAfterResponse checks that the response does not wait for an extension, that a process is neither frozen nor
// given an event before its extensions have asked for the next one, and that the work counts for concurrency and
// timeout.
func TestWorkAfterResponse(t *testing.T) {
	release := make(chan struct{})
	at := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		at <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	event := fmt.Sprintf(`{"do":"state","url":%q}`, server.URL)
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}

	host, _ := start(t, 1, extended)
	before := decode[state](t, invoke(t, host, event))
	<-at
	if err := host.AwaitIdle(soon(), "Probe"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("idle although the extension works: %v", err)
	}
	if _, err := host.Invoke(soon(), "Probe", []byte(`{"do":"state"}`)); !errors.Is(err, lambda.ErrNoneFree) {
		t.Errorf("an event while the extension works: %v", err)
	}
	release <- struct{}{}
	must.Succeed(t, host.AwaitIdle(t.Context(), "Probe"))
	if after := decode[state](t, invoke(t, host, `{"do":"state"}`)); after.ID != before.ID {
		t.Error("another process runs the next event")
	}

	short, log := start(t, 1, func(f *template.Function) {
		extended(f)
		f.Timeout, f.Reserved = 3*time.Second, 1
	})
	before = decode[state](t, invoke(t, short, event))
	<-at
	if _, err := short.Invoke(t.Context(), "Probe", []byte(`{"do":"state"}`)); !errors.Is(err, lambda.ErrThrottled) {
		t.Errorf("concurrency while the extension works: %v", err)
	}
	if err := short.AwaitIdle(t.Context(), "Probe"); err != nil { // ended by the timeout
		t.Fatal(err)
	}
	if after := decode[state](t, invoke(t, short, `{"do":"state"}`)); after.ID == before.ID ||
		!strings.Contains(log(), `"status":"timeout"`) {
		t.Errorf("the timeout does not include the extension:\n%s", log())
	}
}
