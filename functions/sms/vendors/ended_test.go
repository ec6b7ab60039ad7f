package vendors

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svcapi/shared/project"
	"svcapi/shared/upstream"
	"svcapi/test/conntest"
)

// A send that ends without a usable response has the same class with a vendor's library as with the adapter's own
// request, whether the connection, the vendor's time or the context of the request ends first.
func TestEndedSends(t *testing.T) {
	firstBytes := func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }
	half := conntest.Respond("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"mess")
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close) // the tests of the table run after this function has returned
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()

	for _, test := range []struct {
		name   string
		scheme string
		serve  func(net.Conn) // what the vendor does with a connection
		holds  bool           // the vendor keeps the connection open afterwards
		ends   bool           // the request's context ends as soon as serve is done
		url    string         // of a server that serve does not emulate
		want   upstream.Class
	}{
		{"no response, the context ends", "http://", conntest.Read, true, true, "", upstream.NoResponse},
		{"no response, the vendor's time ends", "http://", conntest.Read, true, false, "", upstream.NoResponse},
		{"no response, the connection ends", "http://", conntest.Read, false, false, "", upstream.NoResponse},
		{"half a response, the context ends", "http://", half, true, true, "", upstream.NoResponse},
		{"half a response, the vendor's time ends", "http://", half, true, false, "", upstream.NoResponse},
		{"half a response, the connection ends", "http://", half, false, false, "", upstream.Unusable},
		{"unfinished TLS handshake, the context ends", "https://", firstBytes, true, true, "", upstream.NotSent},
		{"unfinished TLS handshake, the vendor's time ends", "https://", firstBytes, true, false, "", upstream.NotSent},
		{"unfinished TLS handshake, the connection ends", "https://", firstBytes, false, false, "", upstream.NotSent},
		{"untrusted certificate", "", nil, false, false, untrusted.URL, upstream.NotSent},
		{"refused connection", "", nil, false, false, closed.URL, upstream.NotSent},
	} {
		for _, name := range []string{"twilio", "aws"} {
			t.Run(test.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				url := test.url
				if url == "" {
					url = test.scheme + conntest.Listen(t, func(c net.Conn) {
						test.serve(c)
						if test.ends {
							cancel()
						}
						if test.holds {
							_, _ = io.Copy(io.Discard, c)
						}
					})
				}
				checkEnded(ctx, t, name, url, test.want)
			})
		}
	}

	// No byte leaves after the end of the context, because the vendor is not called.
	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for reason, ctx := range map[string]context.Context{"expired": expired, "cancelled": cancelled} {
		for _, name := range []string{"twilio", "aws"} {
			t.Run("context "+reason+" before the first byte/"+name, func(t *testing.T) {
				var arrived atomic.Int32
				checkEnded(ctx, t, name, "http://"+conntest.Listen(t, func(c net.Conn) {
					if n, _ := c.Read(make([]byte, 1)); n > 0 {
						arrived.Add(1)
					}
				}), upstream.NotSent)
				if arrived.Load() > 0 {
					t.Error("a byte arrived")
				}
			})
		}
	}
}

// checkEnded sends one message and compares the class of the error.
func checkEnded(ctx context.Context, t *testing.T, name, url string, want upstream.Class) {
	t.Helper()
	receipt, err := adapterAt(t, name, url, upstream.Config{TimeoutSeconds: 1, Local: true}).Send(ctx, message)
	var e *upstream.Error
	if !errors.As(err, &e) || e.Class != want {
		t.Fatalf("got %+v, %v; want %s", receipt, err, want)
	}
	if e.Vendor != name || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error is %v", err)
	}
}

// For every response to every call, an acceptance has a status, a failure has a class, and no error contains a secret.
// An HTTP 5xx is never an acceptance, and its status alone never means that a message was not sent.
func FuzzResponses(f *testing.F) {
	table := overNetwork()
	for v := range table {
		for _, a := range commonResponses {
			f.Add(uint8(v), uint8(0), a.status, a.body)
		}
	}
	for _, body := range []string{
		`{"status":"success","data":{"uid":"u1","campaignId":7}}`, `{"status":"success","token":"s3cret-key",` +
			`"expiration":43200}`,
		`{"status":"failed","errCode":"105","comment":"token s3cret-key"}`, `{"sid":"SM12","status":"queued"}`,
		`{"balance":"0.05","currency":"USD"}`,
		`{"MessageId":"m1"}`, `{"status":"success","campaign_data":{"campaign_total_cost":1.5,"sms_msg_data":[{"msg":"a"}]}}`,
		"1", "0|s3cret-key", "OK",
		`{"success":true,"data":{"campaign_id":1,"sms_credit_balance":"9"}}`, `{"success":false,"message":"s3cret-key",` +
			`"errors":{"contact":["s3cret-key"]}}`,
		`{"accessToken":"s3cret-key-2","expiresIn":60,"serverRef":"r"}`,
	} {
		for v := range table {
			f.Add(uint8(v), uint8(0), 200, body)
			f.Add(uint8(v), uint8(v+1), 200, body)
		}
	}
	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	f.Cleanup(server.Close)
	client := upstream.New(upstream.Config{TimeoutSeconds: 5, Local: true})
	classes := []upstream.Class{upstream.NotSent, upstream.NoResponse, upstream.Unusable, upstream.Rejected,
		upstream.CredentialsRefused, upstream.AccountRefused, upstream.TooFast}
	f.Fuzz(func(t *testing.T, vendor, call uint8, s int, b string) {
		if s < 200 || s > 599 || len(b) > 1<<16 {
			return
		}
		status, body = s, b
		v := overNetwork()[int(vendor)%len(table)] // a new table has no cached tokens
		adapter := v.New(client, upstream.Account{
			Integration: project.Integration{Vendor: v.Name, Mode: project.BYOK, Settings: filled},
			Endpoint:    server.URL, Settings: filled, Secrets: filled,
		})
		check := func(err error, send bool, accepted ...string) {
			t.Helper()
			if err == nil {
				if s >= 500 || slices.Contains(accepted, "") {
					t.Errorf("%s accepts %d %q: %q", v.Name, s, b, accepted)
				}
				return
			}
			var e *upstream.Error
			if !errors.As(err, &e) || !slices.Contains(classes, e.Class) {
				t.Fatalf("%s, %d %q: %v has no class", v.Name, s, b, err)
			}
			if strings.Contains(err.Error(), "s3cret-key") {
				t.Errorf("%s: the error contains a secret: %v", v.Name, err)
			}
			// except for their logins
			if send && s >= 500 && e.Class == upstream.NotSent && v.Name != "dialogv2" && v.Name != "hutch" {
				t.Errorf("%s: %d %q is %s", v.Name, s, b, e.Class)
			}
		}
		switch call % 5 {
		case 0:
			r, err := adapter.Send(t.Context(), message)
			check(err, true, r.Status)
		case 1:
			if a, ok := adapter.(Balancer); ok {
				balance, err := a.Balance(t.Context())
				check(err, false, balance)
			}
		case 2:
			if v.Batch > 1 {
				r, err := adapter.Send(t.Context(), Message{To: []string{message.To[0], "+94771234568"}, Text: message.Text})
				check(err, true, r.Status)
			}
		case 3:
			if a, ok := adapter.(DifferentSender); ok {
				r, err := a.SendDifferent(t.Context(), []Message{message, sinhala})
				check(err, true, r.Status)
			}
		default:
			if a, ok := adapter.(CostChecker); ok {
				_, err := a.CheckCost(t.Context(), message.To, message.Text)
				check(err, false)
			}
		}
	})
}

// docs/decisions/extensions.md#references: a reference opens in its project and environment alone, and reveals nothing.
func TestReferences(t *testing.T) {
	of := func(id string, env project.Environment) Sealer {
		return NewSealer(&project.Project{ID: id}, env)
	}
	own, others := of("acme", project.Production),
		[]Sealer{of("acme", project.Development), of("acme2", project.Production)}
	const number, request = "+94771234567", "7b6f3b0e-6d1c-4f0a-9a53-2c1f0d7b8a11/9999"
	by := upstream.Account{Endpoint: "https://a", Owner: "managed",
		Secrets: map[string]string{"user": "u", "password": "p"}}
	by.Integration.Vendor = "ultimatesms"
	moved, rotated, foreign := by, by, by
	moved.Endpoint, foreign.Owner, rotated.Secrets = "https://b", "acme", map[string]string{"user": "u", "password": "q"}
	key, long := own.Scope+request, strings.Repeat("i", maxID)
	for range 2000 { // one of 64 texts of Base64 begins so, and "svc sms status" would refuse it as a flag
		if text := own.Seal(by, key, "7", number, "text"); text[0] == '-' {
			t.Fatalf("%s begins with a hyphen", text)
		}
	}
	for id, want := range map[string]string{long: long, "": "", long + "i": ""} {
		text := own.Seal(by, key, id, number, "text")
		vendor, send, ok := own.Open(text)
		if !ok || vendor != "ultimatesms" || send.Key != key || send.ID != want ||
			time.Since(send.Ended).Abs() > time.Minute || len(text) > 200 {
			t.Errorf("%s %+v %t, %d characters", vendor, send, ok, len(text))
		}
		if send.IsTo(number, "text") != (want == "") || send.IsTo("+94771234568", "text") || send.IsTo(number, "other") {
			t.Errorf("%+v knows another number or text, or not the own one", send)
		}
		if !send.IsBy(by) || send.IsBy(moved) || send.IsBy(rotated) != (want != "") || send.IsBy(foreign) {
			t.Errorf("%+v knows another account, or not the own one", send)
		}
		if !send.IsOf(by) || !send.IsOf(moved) || !send.IsOf(rotated) || send.IsOf(foreign) {
			t.Errorf("%+v knows another owner, or not the own one", send)
		}
		sealed, _ := base64.RawURLEncoding.DecodeString(text)
		if strings.Contains(string(sealed), request) || own.Seal(by, key, id, number, "text") == text {
			t.Errorf("%q is not encrypted", sealed)
		}
		malformed := []string{"", "A", "....", strings.Repeat("A", 200), text[:50], "+" + text, text + "\n",
			text + "A", text + "="}
		for i := range sealed {
			forged := append([]byte{}, sealed...)
			forged[i] ^= 1
			malformed = append(malformed, base64.RawURLEncoding.EncodeToString(forged))
		}
		for _, forged := range malformed {
			if _, send, ok := own.Open(forged); ok {
				t.Errorf("%q: %+v", forged, send)
			}
		}
		for _, other := range others {
			if _, send, ok := other.Open(text); ok {
				t.Errorf("%s opens a reference of %s: %+v", other.Scope, own.Scope, send)
			}
		}
	}
}
