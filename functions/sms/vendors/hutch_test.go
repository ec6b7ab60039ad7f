package vendors

import (
	"context"
	"io"
	"net/http"
	"testing"

	"svcapi/shared/upstream"
)

func TestHutch(t *testing.T) {
	testResponses(t, "hutch", []recorded{
		{"accepted", "T", 200, `{"serverRef":"a1b2"}`, "", Receipt{Status: "accepted", ID: "a1b2"}},
		{"accepted, a number", "made", 200, `{"serverRef":4711}`, "", Receipt{Status: "accepted", ID: "4711"}},
		{"without a reference", "T (a client counts it as not accepted)", 200, `{"message":"SMS sent"}`, upstream.Unusable, Receipt{}},
		{"refused", "made", 400, `{"message":"Invalid mask"}`, upstream.AccountRefused, Receipt{}},
		{"token refused, again and again", "T", 401, `{"message":"Bearer t0ken is expired"}`, upstream.CredentialsRefused, Receipt{}},
		{"its token in a page", "made", 500, `<p>Bearer t0ken, s3cret\u002dkey</p>`, upstream.Unusable, Receipt{}},
	})
}

func TestHutchRequest(t *testing.T) {
	request, text := sent(t, "hutch", `{"serverRef":1}`, sinhala)
	same(t, []string{request.Method, request.URL.String(), request.Header.Get("X-API-VERSION"), request.Header.Get("Authorization"), text},
		[]string{"POST", "/api/sendsms", "v1", "Bearer t0ken", `{"campaignName":"SMS","mask":"MyBrand","numbers":"94771234567","content":"ආයුබෝවන්"}`})

	var r http.Request
	adapter := connect(t, "hutch", constantResponse(200, `{"serverRef":1}`, &r, &text)).(SameSender)
	if _, err := adapter.SendSame(context.Background(), []string{"+94771234567", "+94712345678"}, Message{Text: "Hi"}); err != nil {
		t.Fatal(err)
	}
	same(t, []string{text}, []string{`{"campaignName":"SMS","mask":"MyBrand","numbers":"94771234567,94712345678","content":"Hi"}`})
}

// The token is cached between calls, and a refused token is renewed once. After a failed login nothing was sent.
func TestHutchLogin(t *testing.T) {
	for _, c := range []struct {
		name, login   string
		status        int
		refuse        int // sends whose token is refused
		class         upstream.Class
		logins, sends int // of two messages
	}{
		{"cached", `{"accessToken":"t0ken","refreshToken":"r"}`, 200, 0, "", 1, 2},
		{"with a life", `{"accessToken":"t0ken","expiresIn":86400}`, 200, 0, "", 1, 2},
		{"a life that is over", `{"accessToken":"t0ken","expiresIn":1}`, 200, 0, "", 2, 2},
		{"refused once", `{"accessToken":"t0ken"}`, 200, 1, "", 2, 3},
		{"refused by status, remembered", `{"message":"no"}`, 401, 0, upstream.CredentialsRefused, 1, 0},
		{"refused as a bad request", `{"message":"no"}`, 400, 0, upstream.CredentialsRefused, 1, 0},
		{"without a token", `{}`, 200, 0, upstream.AccountRefused, 2, 0},
		{"server error with a token", `{"accessToken":"t0ken"}`, 500, 0, upstream.AccountRefused, 2, 0},
		{"too fast", `{"message":"no"}`, 429, 0, upstream.TooFast, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			logins, sends := 0, 0
			adapter := connect(t, "hutch", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/login" {
					logins++
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.login)
					return
				}
				if sends++; sends <= c.refuse {
					w.WriteHeader(http.StatusUnauthorized)
				}
				_, _ = io.WriteString(w, `{"serverRef":1}`)
			})
			for range 2 {
				receipt, err := adapter.Send(context.Background(), message)
				checkOutcome(t, recorded{class: c.class, want: Receipt{Status: "accepted", ID: "1"}}, receipt, err)
			}
			if logins != c.logins || sends != c.sends {
				t.Errorf("%d logins, %d sends; want %d, %d", logins, sends, c.logins, c.sends)
			}
		})
	}
}
