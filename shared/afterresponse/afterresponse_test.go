package afterresponse

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"svcapi/shared/telemetry"
	"svcapi/test/must"
)

// TestWork checks that work is awaited up to its deadline, outlives its request, and that failures are logged and end
// neither the process nor the other work (docs/decisions/requests.md#after-response).
func TestWork(t *testing.T) {
	for _, c := range []struct {
		name   string
		work   func(context.Context) error
		logged string // empty: nothing
	}{
		{"success", func(ctx context.Context) error { return ctx.Err() }, ""},
		{"failure", func(context.Context) error { return errors.New("it failed") }, "it failed"},
		{"panic", func(context.Context) error { panic("it broke") }, "panic: it broke"},
		{"heeds the deadline", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "deadline exceeded"},
		{"ignores the deadline", func(context.Context) error { select {} }, "deadline exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			cancel() // as after the handler's return: only the deadline counts
			other := false
			New(telemetry.New(&log, telemetry.Config{})).run(ctx, []Work{
				{"this", "id-1", c.work}, {"other", "id-1", func(context.Context) error { other = true; return nil }},
			})
			line := log.String()
			if !other || strings.Contains(line, `"other"`) || (line != "") != (c.logged != "") ||
				!strings.Contains(line, c.logged) {
				t.Errorf("other work done: %t; log %q", other, line)
			}
			if line != "" && (!strings.Contains(line, `"work":"this"`) || !strings.Contains(line, `"request_id":"id-1"`)) {
				t.Errorf("log %q", line)
			}
		})
	}
}

// TestDeadline checks that work has three seconds at most, and less where the function has less.
func TestDeadline(t *testing.T) {
	for _, left := range []time.Duration{time.Minute, time.Second} {
		ctx, cancel := context.WithTimeout(t.Context(), left)
		defer cancel()
		function, _ := ctx.Deadline()
		bound := func() time.Time {
			if until := time.Now().Add(most); until.Before(function) {
				return until
			}
			return function
		}
		earliest := bound()
		New(telemetry.New(io.Discard, telemetry.Config{})).Do(ctx, Work{Run: func(ctx context.Context) error {
			if until, ok := ctx.Deadline(); !ok || until.Before(earliest) || until.After(bound()) {
				t.Errorf("with %s left the work has %s", left, time.Until(until))
			}
			return nil
		}})
	}
}

// TestOrder checks when work runs: before the response where no Extensions API exists, else after the response has been
// posted, and before the extension asks for the next event.
func TestOrder(t *testing.T) {
	var steps []string
	next := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/2020-01-01/extension/register":
			body, _ := io.ReadAll(r.Body)
			if r.Header.Get("Lambda-Extension-Name") == "" || string(body) != `{"events":["INVOKE"]}` {
				t.Errorf("registered as %v with %s", r.Header, body)
			}
			w.Header().Set("Lambda-Extension-Identifier", "id-7")
		case "/2020-01-01/extension/event/next":
			if r.Header.Get("Lambda-Extension-Identifier") != "id-7" {
				t.Errorf("asked as %v", r.Header)
			}
			select {
			case next <- struct{}{}:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	api := must.Get(register(strings.TrimPrefix(server.URL, "http://"))).Or(t)
	failure := errors.New("it failed")
	for name, c := range map[string]struct {
		api  *extensionsAPI
		fail error
		want string
	}{
		"no Extensions API":          {nil, nil, "handled work posted"},
		"no Extensions API, failure": {nil, failure, "handled work"},
		"extension":                  {api, nil, "handled posted work next"},
		"extension, failure":         {api, failure, "handled work next"},
	} {
		t.Run(name, func(t *testing.T) {
			steps = nil
			r := New(telemetry.New(io.Discard, telemetry.Config{}))
			r.api = c.api
			if r.api != nil {
				go r.extend()
				<-next // the event reaches the extension, also before the runtime
			}
			handler := wrap(r, func(ctx context.Context, in string) (map[string]string, error) {
				r.Do(ctx, Work{Run: func(context.Context) error { steps = append(steps, "work"); return nil }})
				steps = append(steps, "handled")
				return map[string]string{"a": "<" + in}, c.fail
			})
			reply, err := handler(t.Context(), "x")
			if !errors.Is(err, c.fail) {
				t.Fatal(err)
			}
			if err == nil {
				if text, err := io.ReadAll(reply); string(text) != `{"a":"<x"}`+"\n" || err != nil {
					t.Errorf("response %q, %v", text, err)
				}
				steps = append(steps, "posted")
				must.Succeed(t, reply.(io.Closer).Close())
			}
			if r.api != nil {
				<-next
				steps = append(steps, "next")
			}
			if got := strings.Join(steps, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestNoExtensionsAPI checks that an emulator without the API is recognised.
func TestNoExtensionsAPI(t *testing.T) {
	for name, handler := range map[string]http.Handler{
		"not found":     http.NotFoundHandler(),
		"no identifier": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
	} {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		if _, err := register(strings.TrimPrefix(server.URL, "http://")); err == nil {
			t.Errorf("%s: registered", name)
		}
	}
}
