package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svcapi/shared/project"
	"svcapi/test/conntest"
	"svcapi/test/must"
)

const key = "k3y/with+signs"

// raw is a server that treats each connection as the case says.
func raw(t *testing.T, serve func(net.Conn)) string { return "http://" + conntest.Listen(t, serve) }

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer l.Close()
	return "http://" + l.Addr().String()
}

// TestDoClassifies: a failure before the first byte is certain, a request without a usable response is uncertain
// (docs/decisions/sms.md#vendor-outcomes).
func TestDoClassifies(t *testing.T) {
	tls := httptest.NewTLSServer(http.NotFoundHandler()) // an untrusted certificate
	defer tls.Close()
	respond := func(text string) string { return raw(t, conntest.Respond(text)) }
	for _, c := range []struct {
		name string
		url  string
		want Class // empty for a response
	}{
		{"refused connection", closedPort(t), NotSent},
		{"no such name", "http://no-such-name.invalid", NotSent},
		{"TLS failure", tls.URL, NotSent},
		{"TLS to a plain port", strings.Replace(respond("HTTP/1.1 400 Bad Request\r\n\r\n"), "http:", "https:", 1),
			NotSent},
		{"closed after the request", raw(t, conntest.Read), NoResponse},
		{"no response", raw(t, func(c net.Conn) { conntest.Read(c); _, _ = io.Copy(io.Discard, c) }), NoResponse},
		{"truncated response", respond("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"), Unusable},
		{"no HTTP", respond("hello\r\n\r\n"), NoResponse},
		{"response too large", respond("HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" +
			strings.Repeat("x", 2_000_000)), Unusable},
		{"response", respond("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), ""},
		{"a redirect is a response", respond("HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"), ""},
		{"HTTP 500 is a response", respond("HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nok"), ""},
	} {
		for _, send := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				client := New(Config{TimeoutSeconds: 1, Local: true})
				_, err := client.Do(t.Context(), "vendor",
					&Request{Method: "POST", URL: c.url + "/?key=" + key, Body: []byte("x"), Redact: []string{key}, Send: send})
				if c.want == "" {
					must.Succeed(t, err)
					return
				}
				if e, ok := errors.AsType[*Error](err); !ok || e.Class != c.want {
					t.Fatalf("send %v: got %v, want %s", send, err, c.want)
				}
				if strings.Contains(err.Error(), "key=") || strings.Contains(err.Error(), key) {
					t.Errorf("the error contains the key: %v", err)
				}
			})
		}
	}
}

// The failure of a send whose time ends before the first byte is certain.
func TestDoWithoutTimeIsCertain(t *testing.T) {
	var arrived atomic.Int32
	url := raw(t, func(c net.Conn) { conntest.Read(c); arrived.Add(1) })
	ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	_, err := New(Config{TimeoutSeconds: 1, Local: true}).Do(ctx, "vendor", &Request{Method: "POST", URL: url, Send: true})
	if ClassOf(err) != NotSent || arrived.Load() != 0 {
		t.Errorf("got %v with %d arrivals", err, arrived.Load())
	}
}

// TestSendIsNeverRepeated: net/http repeats a GET after the end of a kept-alive connection, but no send
// (docs/decisions/sms.md#sends-are-not-repeated).
func TestSendIsNeverRepeated(t *testing.T) {
	var arrived atomic.Int32
	url := raw(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if arrived.Add(1) > 1 {
				return // the second request is read, and the connection dies
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	client := New(Config{TimeoutSeconds: 1, Local: true})
	request := func() error {
		_, err := client.Do(t.Context(), "vendor",
			&Request{Method: "GET", URL: url, Send: true, Header: http.Header{"Idempotency-Key": {"1"}}})
		return err
	}
	must.Succeed(t, request())
	if err := request(); ClassOf(err) != NoResponse {
		t.Fatalf("got %v", err)
	}
	if n := arrived.Load(); n != 2 {
		t.Errorf("%d requests arrived, want 2", n)
	}
}

// The first byte and a certain failure exclude each other (docs/decisions/sms.md#first-byte).
func TestFirstByteGuard(t *testing.T) {
	for range 2000 {
		g := new(firstByteGuard)
		var allows, blocks atomic.Bool
		done := make(chan struct{})
		go func() { allows.Store(g.decide(allowed)); close(done) }()
		blocks.Store(g.decide(blocked))
		<-done
		if allows.Load() == blocks.Load() {
			t.Fatalf("allowed %v, blocked %v", allows.Load(), blocks.Load())
		}
	}
}

type fields map[string]string

func (f fields) Fields(context.Context, project.Kind, string, project.Environment, string) (SecretValues, error) {
	return SecretValues(f), nil
}

// docs/decisions/operating.md#vendor-endpoints.
func TestResolve(t *testing.T) {
	spec := &Spec{
		Name: "v", Endpoint: "https://vendor.example/",
		Settings: []Field{{Name: "sender_id", Required: true}}, Secrets: []Field{{Name: "key", Required: true},
			{Name: "region"}},
	}
	full := map[string]string{"sender_id": "me"}
	for _, c := range []struct {
		name     string
		settings map[string]string
		secrets  fields
		local    bool
		want     string // part of the error, empty: none
	}{
		{"complete", full, fields{"key": "k"}, false, ""},
		{"without its secret", full, nil, false, "[key]"},
		{"without a setting", nil, fields{"key": "k"}, false, "[sender_id]"},
		{"https endpoint", map[string]string{"sender_id": "me", "endpoint": "https://other.example"},
			fields{"key": "k"}, false, ""},
		{"http endpoint", map[string]string{"sender_id": "me", "endpoint": "http://other.example"},
			fields{"key": "k"}, false, "not https"},
		{"http endpoint on the local stack", map[string]string{"sender_id": "me", "endpoint": "http://127.0.0.1:1"},
			fields{"key": "k"}, true, ""},
		{"endpoint with a user", map[string]string{"sender_id": "me", "endpoint": "https://u:p@other.example"},
			fields{"key": "k"}, false, "not a plain URL"},
		{"endpoint with a query", map[string]string{"sender_id": "me", "endpoint": "https://other.example?x=1"},
			fields{"key": "k"}, false, "not a plain URL"},
		{"endpoint of another scheme", map[string]string{"sender_id": "me", "endpoint": "file:///etc/passwd"},
			fields{"key": "k"}, true, "not a plain URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := New(Config{TimeoutSeconds: 1, Local: c.local})
			in := project.Integration{Kind: project.SMS, Vendor: "v", Mode: project.BYOK, Settings: c.settings}
			account, err := client.Resolve(t.Context(), "p", in, spec, c.secrets)
			if c.want == "" && (err != nil || account.Owner != "p" || strings.HasSuffix(account.Endpoint, "/")) {
				t.Errorf("got %+v, %v", account, err)
			}
			if c.want != "" && (!errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
