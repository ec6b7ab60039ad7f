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
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"svcapi/shared/cache"
	"svcapi/shared/project"
	"svcapi/test/clocktest"
	"svcapi/test/conntest"
	"svcapi/test/must"
)

const key = "k3y/with+signs"

// raw is a server that treats each connection as the case says.
func raw(t *testing.T, serve func(net.Conn)) string { return "http://" + conntest.Listen(t, serve) }

func closedPort(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0")).Or(t)
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

// A circuit opens after consecutive failures and stays open for a while. Then the circuit is half-open: it permits one
// call at a time, and a success closes it.
func TestBreakers(t *testing.T) {
	const open, almost = openFor + time.Nanosecond, openFor - time.Nanosecond
	type step struct {
		after  time.Duration
		class  Class // of the call's error; empty for a success
		made   bool  // the call, as the circuit lets it through
		closed bool  // the circuit, before the call
	}
	failed := []step{{0, NotSent, true, true}, {0, NotSent, true, true}, {0, NotSent, true, true}}
	for _, c := range []struct {
		name  string
		steps []step // after those of failed
	}{
		{"left alone", []step{{0, "", false, false}, {almost, "", false, false}}},
		{"up again", []step{{open, "", true, false}, {0, NotSent, true, true},
			{0, NotSent, true, true}, {0, "", true, true}}},
		{"a response closes", []step{{open, Rejected, true, false}, {0, "", true, true}}},
		{"an uncertain outcome closes", []step{{open, NoResponse, true, false}, {0, "", true, true}}},
		{"still down", []step{{open, NotSent, true, false}, {almost, "", false, false},
			{open, "", true, false}, {0, "", true, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, account := NewBreakers(), Account{Project: "p", Integration: project.Integration{ID: "i", Vendor: "v"}}
				for i, s := range append(failed[:3:3], c.steps...) {
					time.Sleep(s.after)
					if got := b.Closed(account); got != s.closed {
						t.Errorf("step %d: closed %t", i, got)
					}
					made := false
					_, err := Call(t.Context(), b, nil, account, func(Account) (int, error) {
						made = true
						if s.class != "" {
							return 0, &Error{Class: s.class, Vendor: "v"}
						}
						return 1, nil
					})
					if made != s.made || errors.Is(err, ErrOpen) == s.made || !s.made && ClassOf(err) != NotSent {
						t.Errorf("step %d: made %t, %v", i, made, err)
					}
				}
				other, moved, region := account, account, account
				other.Owner, moved.Endpoint, region.Settings = "q", "https://other.example",
					map[string]string{"region": "eu-west-1"}
				for _, a := range []Account{other, moved, region} {
					if !b.Closed(a) {
						t.Errorf("the circuit of %s at %q %v has another one's failures", a.Owner, a.Endpoint, a.Settings)
					}
				}
			})
		})
	}
}

// docs/decisions/sms.md#pace: a refusal for pace opens the circuit for the named pause, or for a doubled one.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, account := NewBreakers(), Account{Project: "p", Integration: project.Integration{ID: "i", Vendor: "v"}}
		began := time.Now()
		for i, step := range []struct {
			named, want time.Duration // the pause; 0: the call succeeds
		}{{0, time.Second}, {0, 2 * time.Second}, {0, 4 * time.Second}, {7 * time.Second, 7 * time.Second}, {0,
			16 * time.Second}, {0, 16 * time.Second}, {}, {0, time.Second}, {time.Hour, openFor}} {
			var failed error
			if step.want > 0 {
				failed = &Error{Class: TooFast, Vendor: "v", Pause: step.named}
			}
			var calls sync.WaitGroup
			for range 2 { // of a burst the first refusal alone counts
				calls.Go(func() {
					_, err := Call(t.Context(), b, nil, account,
						func(Account) (int, error) { time.Sleep(time.Millisecond); return 0, failed })
					if !errors.Is(err, failed) {
						t.Errorf("step %d after %v: %v", i, time.Since(began), err)
					}
				})
			}
			calls.Wait()
			_, err := Call(t.Context(), b, nil, account, func(Account) (int, error) { return 0, failed })
			if left := b.Pause(account, nil); left != step.want || errors.Is(err, ErrPaused) != (step.want > 0) ||
				step.want > 0 && ClassOf(err) != NotSent {
				t.Errorf("step %d: paused for %v, %v", i, left, err)
			}
			time.Sleep(step.want)
		}
	})
}

// A half-open circuit permits one call and forbids another one at the same time.
func TestOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, account := NewBreakers(), Account{Project: "p", Integration: project.Integration{ID: "i", Vendor: "v"}}
		call := func(err error) error {
			_, err = Call(t.Context(), b, nil, account, func(Account) (int, error) {
				time.Sleep(time.Second)
				return 0, err
			})
			return err
		}
		for range tripAfter {
			_ = call(&Error{Class: NotSent})
		}
		time.Sleep(openFor + time.Nanosecond)
		probe := make(chan error)
		go func() { probe <- call(nil) }()
		synctest.Wait()
		if err := call(nil); !errors.Is(err, ErrOpen) || b.Closed(account) {
			t.Errorf("beside the probe: %v, closed %t", err, b.Closed(account))
		}
		if err := <-probe; err != nil || !b.Closed(account) || call(nil) != nil {
			t.Errorf("the probe: %v, closed %t", err, b.Closed(account))
		}
	})
}

// A circuit stays open for its time by the wall clock: a vendor that failed before a freeze is called after the freeze.
func TestBreakersFreeze(t *testing.T) {
	frozen := clocktest.New()
	b := NewBreakers()
	b.clock = cache.ClockOf(frozen.Now)
	refused := &Error{Class: NotSent}
	asked := func(err error) bool {
		made := false
		_, _ = Call(t.Context(), b, nil, Account{Project: "p"}, func(Account) (int, error) {
			made = true
			return 0, err
		})
		return made
	}
	for range tripAfter {
		if !asked(refused) {
			t.Fatal("the circuit opens too soon")
		}
	}
	for _, step := range []struct {
		frozen time.Duration
		result error
		asked  bool
		closed bool // afterwards
	}{
		{0, nil, false, false}, {openFor - time.Second, nil, false, false},
		{time.Hour, refused, true, false}, {0, nil, false, false}, // one call, which opens it again
		{time.Hour, nil, true, true},
	} {
		frozen.Move(step.frozen)
		if made := asked(step.result); made != step.asked || b.Closed(Account{Project: "p"}) != step.closed {
			t.Errorf("%v: a call was made: %v, closed: %v", step, made, !step.closed)
		}
	}
	// A clock that is set back does not keep the circuit open.
	for range tripAfter {
		asked(refused)
	}
	frozen.Move(-time.Hour)
	if !asked(nil) {
		t.Error("a clock that was set back keeps the circuit open")
	}
}

// A call that began before a change of the circuit has no effect, and a panic is an error without a class.
func TestBreakersLate(t *testing.T) {
	b, account := NewBreakers(), Account{Project: "p"}
	fail := func(Account) (int, error) { return 0, &Error{Class: NotSent} }
	// a success that ends after the circuit has opened
	_, _ = Call(t.Context(), b, nil, account, func(Account) (int, error) {
		for range tripAfter {
			_, _ = Call(t.Context(), b, nil, account, fail)
		}
		return 1, nil
	})
	if b.Closed(account) {
		t.Error("a call from before closes an open circuit")
	}
	// A failure that ends after the circuit has closed again opens no circuit of later calls.
	clock := clocktest.New()
	b = NewBreakers()
	b.clock = cache.ClockOf(clock.Now)
	succeed := func(Account) (int, error) { return 1, nil }
	_, _ = Call(t.Context(), b, nil, account, func(Account) (int, error) {
		for range tripAfter {
			_, _ = Call(t.Context(), b, nil, account, fail)
		}
		clock.Move(openFor + time.Second)
		_, _ = Call(t.Context(), b, nil, account, succeed)
		for range tripAfter - 1 {
			_, _ = Call(t.Context(), b, nil, account, fail)
		}
		return 0, &Error{Class: NotSent}
	})
	if !b.Closed(account) {
		t.Error("a call from before opens a closed circuit")
	}
	for breakers, closed := range map[*Breakers]bool{
		NewBreakers(): true, NewBreakersOn(func(error) bool { return true }): false,
	} {
		for range tripAfter {
			func() {
				defer func() { _ = recover() }()
				_, _ = Call(t.Context(), breakers, nil, account, func(Account) (int, error) { panic("broken") })
			}()
		}
		if breakers.Closed(account) != closed || !breakers.Closed(Account{Project: "q"}) {
			t.Errorf("after panics: closed %v, for another project %v", !closed, breakers.Closed(Account{Project: "q"}))
		}
	}
}
