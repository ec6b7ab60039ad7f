package vendors

import (
	"testing"

	"svcapi/shared/upstream"
)

// docs/decisions/requests.md#error-reasons: the vendor's own code of a failure, without its text and secrets.
func TestVendorCodes(t *testing.T) {
	for _, c := range []struct {
		vendor string
		status int
		body   string
		code   string
	}{
		{"twilio", 503, `{"code":20503,"message":"Service unavailable"}`, "20503"},
		{"twilio", 200, `{"code":21610,"message":"Unsubscribed"}`, "21610"},
		{"twilio", 201, `{"sid":"SM1","status":"failed","error_code":30003}`, "30003"},
		{"twilio", 201, `{"sid":"SM1","status":"failed"}`, ""},
		{"twilio", 400, `no JSON`, ""},
		{"dialog", 200, "9999", ""},
		{"dialogv2", 400, `{"status":"failed","comment":"new","errCode":"E-999"}`, "E-999"},
		{"dialogv2", 200, `{"status":"failed","errCode":"not a code, but text"}`, ""},
		{"dialogv2", 200, `{"status":"failed","errCode":"s3cret-key"}`, ""},
		{"textlk", 200, `{"status":"error","message":"no balance"}`, ""},
		{"notifylk", 200, `{"status":"error","message":"no balance"}`, ""},
		{"quicksend", 200, `{"status":"error","message":"no balance"}`, ""},
	} {
		_, err := connect(t, c.vendor, responds(c.status, c.body)).Send(t.Context(), message)
		if got := upstream.CodeOf(err); err == nil || got != c.code {
			t.Errorf("%s %d %s: code %q of %v, want %q", c.vendor, c.status, c.body, got, err, c.code)
		}
	}
}
