package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"svcapi/functions/pdf/render/event"
	"svcapi/shared/project"
)

// reply is one response of the Lambda API.
type reply func(w http.ResponseWriter, r *http.Request)

func status(code int, kind string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-ErrorType", kind)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "{}")
	}
}

// streamed is a response that streams a result up to a number of bytes, and completes with an error of the function
// unless that is empty.
func streamed(result event.Result, bytes int, failure string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		response, err := result.Response()
		if err != nil {
			panic(err)
		}
		text, _ := io.ReadAll(response)
		text = text[:min(len(text), bytes)]
		complete, _ := json.Marshal(map[string]string{"ErrorCode": failure, "ErrorDetails": "details"})
		for _, m := range []struct {
			kind string
			body []byte
		}{{"PayloadChunk", text[:len(text)/2]}, {"PayloadChunk", text[len(text)/2:]}, {"InvokeComplete", complete}} {
			message := eventstream.Message{Payload: m.body}
			message.Headers.Set(":message-type", eventstream.StringValue("event"))
			message.Headers.Set(":event-type", eventstream.StringValue(m.kind))
			if err := eventstream.NewEncoder().Encode(w, message); err != nil {
				return
			}
		}
	}
}

// broken closes the connection without a response.
func broken(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// silent sends nothing until the caller goes.
func silent(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// docs/decisions/pdf.md#pdf-renderer: a dead renderer is replaced once, a throttled one is not asked again,
// and a silent one is given up in time. Each call has the project's tenant ID in the mode project, and else none.
func TestRenderer(t *testing.T) {
	pdf := event.Result{PDF: []byte(strings.Repeat("%PDF-1.4 ", 1000))}
	whole := streamed(pdf, 1<<20, "")
	rejection := streamed(event.Result{Rejection: &event.RejectionError{Message: "no", ExceedsLimit: true}}, 1<<20, "")
	for _, c := range []struct {
		name    string
		replies []reply
		failure string // empty: a result
	}{
		{"PDF", []reply{whole}, ""},
		{"rejection", []reply{rejection}, ""},
		{"PDF, and an error after it", []reply{streamed(pdf, 1<<20, "Sandbox.Timedout")}, ""},
		{"throttled", []reply{status(429, "TooManyRequestsException")}, "TooManyRequests"},
		{"no such function", []reply{status(404, "ResourceNotFoundException")}, "ResourceNotFound"},
		{"not permitted", []reply{status(403, "AccessDeniedException")}, "AccessDenied"},
		{"Lambda fails once", []reply{status(500, "ServiceException"), whole}, ""},
		{"Lambda fails", []reply{status(500, "ServiceException"), status(502, "EC2UnexpectedException")}, "EC2Unexpected"},
		{"dies once", []reply{streamed(event.Result{}, 0, "Runtime.ExitError"), whole}, ""},
		{"dies in the midst of its result", []reply{streamed(pdf, 500, "Runtime.ExitError"), whole}, ""},
		{"ends in the midst of its result", []reply{streamed(pdf, 500, ""), rejection}, ""},
		{"dies", []reply{streamed(event.Result{}, 0, "Runtime.ExitError"), streamed(pdf, 500, "Sandbox.Timedout")},
			"Sandbox.Timedout: details"},
		{"broken connection", []reply{broken, whole}, ""},
		{"broken connections", []reply{broken, broken}, "EOF"},
		{"dies, then no room", []reply{broken, status(429, "TooManyRequestsException")}, "TooManyRequests"},
		{"silent", []reply{silent}, "deadline"},
	} {
		for isolation, tenant := range map[string]string{sharedIsolation: "",
			projectIsolation: (&project.Project{ID: "p"}).TenantID()} {
			t.Run(c.name+", "+isolation, func(t *testing.T) {
				var calls atomic.Int64
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					n := int(calls.Add(1))
					body, _ := io.ReadAll(r.Body)
					e, err := event.Parse(body)
					if err != nil || e.Deadline == 0 || time.Until(time.UnixMilli(e.Deadline)) > 10*time.Second ||
						r.URL.Path != "/2021-11-15/functions/render:live/response-streaming-invocations" {
						t.Errorf("%s: %+v, %v", r.URL.Path, e, err)
					}
					if got := r.Header.Values("X-Amz-Tenant-Id"); strings.Join(got, ", ") != tenant || len(got) > 0 && tenant == "" {
						t.Errorf("call %d has the tenant %q, want %q", n, got, tenant)
					}
					if n > len(c.replies) {
						t.Errorf("call %d", n)
						n = len(c.replies)
					}
					c.replies[n-1](w, r)
				}))
				defer server.Close()
				ended := 0
				r := newRenderer(aws.Config{
					Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b",
						""),
				}, config{Renderer: "render:live", Isolation: isolation},
					func(ctx context.Context, _ string, work func(context.Context) error) {
						ended++
						if err := work(ctx); err != nil && !strings.Contains(err.Error(), "Sandbox.Timedout") {
							t.Error(err)
						}
					})
				wait := 10 * time.Second
				if c.name == "silent" {
					wait = 500 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				got, err := r.render(ctx, &project.Project{ID: "p"},
					event.Event{MaxBytes: 1 << 20, HTML: []byte("x"), PageSize: "A4"})
				switch {
				case c.failure == "" && (err != nil || len(got.PDF) != len(pdf.PDF) && got.Rejection == nil || ended != 1):
					t.Errorf("%d bytes, %v, %v", len(got.PDF), got.Rejection, err)
				case c.failure != "" && (err == nil || !strings.Contains(err.Error(), c.failure) || ended != 0):
					t.Errorf("got %v, want %s", err, c.failure)
				case c.failure == "deadline" && !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("got %v", err)
				}
				if int(calls.Load()) != len(c.replies) {
					t.Errorf("%d calls, want %d", calls.Load(), len(c.replies))
				}
			})
		}
	}
}
