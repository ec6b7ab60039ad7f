package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	api "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"svcapi/local/lambda"
	"svcapi/local/template"
	"svcapi/test/must"
)

// wholeBody sends the body of a request from memory. The SDK closes the body when the head of the response has come,
// and a transport that still looks for the body's end then closes the response's stream, too (aws/aws-sdk-go-v2#2737).
type wholeBody struct{ *http.Client }

// Do implements aws.HTTPClient.
func (c wholeBody) Do(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		if err = errors.Join(err, request.Body.Close()); err != nil {
			return nil, err
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	return c.Client.Do(request)
}

// client returns a client of the host's Lambda API, as the SDK makes it.
func client(t *testing.T, host *lambda.Host) *api.Client {
	server := httptest.NewServer(host.API())
	t.Cleanup(server.Close)
	return api.New(api.Options{
		Region: template.Region, BaseEndpoint: &server.URL, Retryer: aws.NopRetryer{},
		HTTPClient:  wholeBody{http.DefaultClient},
		Credentials: credentials.NewStaticCredentialsProvider("LOCALPROBE", "local", ""),
	})
}

// TestAPI checks the Lambda API against AWS's own client.
func TestAPI(t *testing.T) {
	host, _ := start(t, 1, func(f *template.Function) { f.Reserved = 1 })
	calls := client(t, host)
	const arn = "arn:aws:lambda:" + template.Region + ":" + template.AccountID + ":function:local-Probe"
	for _, c := range []struct {
		name, qualifier, event string
		kind                   types.InvocationType
		status                 int32
		failure                string // of the function
		refused                string // the code of the API's error
	}{
		{name: "local-Probe", event: `{"do":"state"}`, status: 200},
		{name: "Probe", status: 200},
		{name: "local-Probe:live", event: `{"do":"state"}`, status: 200},
		{name: arn + ":live", status: 200},
		{name: arn, qualifier: "$LATEST", status: 200},
		{name: "local-Probe", event: `{"do":"error"}`, status: 200, failure: "Unhandled"},
		{name: "local-Probe", event: `{"do":"exit","n":3}`, status: 200, failure: "Unhandled"},
		{name: "local-Probe", kind: types.InvocationTypeEvent, refused: "InvalidParameterValueException"},
		{name: "other", refused: "ResourceNotFoundException"},
		{name: "local-Probe:dead", refused: "ResourceNotFoundException"},
		{name: "local-Probe", event: "{", refused: "InvalidRequestContentException"},
		{name: "local-Probe", event: `"` + strings.Repeat("x", 6<<20) + `"`, refused: "RequestTooLargeException"},
	} {
		in := &api.InvokeInput{FunctionName: &c.name, Payload: []byte(c.event), InvocationType: c.kind}
		if c.qualifier != "" {
			in.Qualifier = &c.qualifier
		}
		out, err := calls.Invoke(t.Context(), in)
		if c.refused != "" {
			if refused, ok := errors.AsType[smithy.APIError](err); !ok || refused.ErrorCode() != c.refused {
				t.Errorf("%s %.20s: %v, want %s", c.name, c.event, err, c.refused)
			}
			continue
		}
		if err != nil || out.StatusCode != c.status || aws.ToString(out.FunctionError) != c.failure {
			t.Errorf("%s %.20s: %+v, %v", c.name, c.event, out, err)
		}
	}
	event, begun, _ := held(t)
	go func() { _, _ = host.Invoke(t.Context(), "Probe", []byte(event)) }() // has the function's only place
	<-begun
	_, err := calls.InvokeWithResponseStream(t.Context(), &api.InvokeWithResponseStreamInput{FunctionName: new("Probe")})
	if _, throttled := errors.AsType[*types.TooManyRequestsException](err); !throttled {
		t.Errorf("beside an event in the only place: %v", err)
	}
}

// TestTenants checks that a function with tenant isolation has processes for each tenant, and what Lambda refuses
// (docs/decisions/pdf.md#pdf-isolation).
func TestTenants(t *testing.T) {
	plain, _ := start(t, 1, nil)
	isolated, _ := start(t, 1, func(f *template.Function) { f.Isolation = "PER_TENANT" })
	processes := map[string]string{}
	for _, c := range []struct {
		host    *lambda.Host
		tenant  string
		refused bool
	}{
		{plain, "", false}, {plain, "a", true}, {isolated, "", true}, {isolated, "a%b", true}, {isolated,
			strings.Repeat("a", 257), true},
		{isolated, "a", false}, {isolated, "B-._:/=+@ 2", false}, {isolated, strings.Repeat("a", 256),
			false}, {isolated, "a", false},
	} {
		in := &api.InvokeInput{FunctionName: new("Probe:live"), Payload: []byte(`{"do":"state"}`)}
		if c.tenant != "" {
			in.TenantId = &c.tenant
		}
		out, err := client(t, c.host).Invoke(t.Context(), in)
		if _, refused := errors.AsType[*types.InvalidParameterValueException](err); refused != c.refused ||
			err != nil && !refused {
			t.Errorf("tenant %.9q: %v", c.tenant, err)
		}
		if err != nil {
			continue
		}
		id := decode[state](t, lambda.Result{Payload: out.Payload}).ID
		if before := processes[c.tenant]; before != "" && before != id {
			t.Errorf("tenant %.9q: process %s, then %s", c.tenant, before, id)
		}
		processes[c.tenant] = id
	}
	if ids := slices.Compact(slices.Sorted(maps.Values(processes))); len(ids) != 4 ||
		len(isolated.Processes("Probe")) != 3 {
		t.Errorf("processes %v, %v", processes, isolated.Processes("Probe"))
	}
}

// collect reads a stream to its end.
func collect(stream *api.InvokeWithResponseStreamEventStream) (payload []byte, code string, err error) {
	defer stream.Close()
	for e := range stream.Events() {
		switch e := e.(type) {
		case *types.InvokeWithResponseStreamResponseEventMemberPayloadChunk:
			payload = append(payload, e.Value.Payload...)
		case *types.InvokeWithResponseStreamResponseEventMemberInvokeComplete:
			code = aws.ToString(e.Value.ErrorCode)
		}
	}
	return payload, code, stream.Err()
}

// TestStreamAPI checks that a response streams while the function sends it, to its end or to the function's, and that a
// function that does not stream has one chunk.
func TestStreamAPI(t *testing.T) {
	host, _ := start(t, 1, func(f *template.Function) { f.Environment["PROBE_STREAM"] = "1" })
	calls := client(t, host)
	read := make(chan struct{})
	half := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-read }))
	defer half.Close()
	const prelude = `{"statusCode":201,"headers":{"Content-Type":"application/pdf"}}` + "\x00\x00\x00\x00\x00\x00\x00\x00"
	for _, c := range []struct {
		event string
		whole bool
		code  string
	}{
		{`{"url":"` + half.URL + `"}`, true, ""}, {`{}`, true, ""},
		{`{"do":"exit","n":3,"url":"` + half.URL + `"}`, false, "Runtime.ExitError"},
		{`{"do":"fail","url":"` + half.URL + `"}`, false, "errorString"}, {`{}`, true, ""},
	} {
		out := must.Get(calls.InvokeWithResponseStream(t.Context(),
			&api.InvokeWithResponseStreamInput{FunctionName: new("Probe:live"), Payload: []byte(c.event)})).Or(t)
		stream, first := out.GetStream(), []byte(nil)
		if strings.Contains(c.event, "url") { // the first byte comes before the function sends the rest
			for !bytes.HasSuffix(first, []byte("\x00x")) {
				first = append(first, (<-stream.Events()).(*types.InvokeWithResponseStreamResponseEventMemberPayloadChunk).Value.Payload...)
			}
			read <- struct{}{}
		}
		payload, code, err := collect(stream)
		payload = append(first, payload...)
		if err != nil || code != c.code || !bytes.HasPrefix(payload, []byte(prelude+"x")) ||
			(len(payload) == len(prelude)+7<<20) != c.whole {
			t.Errorf("%s: %d bytes, %s, %v", c.event, len(payload), code, err)
		}
	}
	buffered, _ := start(t, 1, nil)
	for event, want := range map[string]string{`{"do":"respond","response":{"a":1}}`: "", `{"do":"error"}`: "Unhandled"} {
		out := must.Get(client(t, buffered).InvokeWithResponseStream(t.Context(),
			&api.InvokeWithResponseStreamInput{FunctionName: new("Probe"), Payload: []byte(event)})).Or(t)
		if payload, code, err := collect(out.GetStream()); err != nil || code != want ||
			want == "" && string(payload) != `{"a":1}` {
			t.Errorf("%s: %s, %s, %v", event, payload, code, err)
		}
	}
}

// TestStreamWithoutReader checks that a function ends its stream, and takes the next event, where the caller has gone.
func TestStreamWithoutReader(t *testing.T) {
	host, _ := start(t, 1, func(f *template.Function) { f.Environment["PROBE_STREAM"] = "1" })
	for range 2 {
		result, err := host.InvokeStream(t.Context(), "Probe", []byte("{}"))
		if err != nil || !result.Streamed || result.Stream == nil || len(result.Payload) > 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		must.Succeed(t, host.AwaitIdle(t.Context(), "Probe"))
	}
}

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
	must.Succeed(t, short.AwaitIdle(t.Context(), "Probe")) // ended by the timeout
	if after := decode[state](t, invoke(t, short, `{"do":"state"}`)); after.ID == before.ID ||
		!strings.Contains(log(), `"status":"timeout"`) {
		t.Errorf("the timeout does not include the extension:\n%s", log())
	}
}
