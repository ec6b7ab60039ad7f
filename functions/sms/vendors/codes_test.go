package vendors

import (
	"net/http"
	"testing"

	"svcapi/shared/upstream"
)

// docs/decisions.md#error-reasons: the vendor's own code of a failure, without text of the vendor and without secrets.
func TestVendorCodes(t *testing.T) {
	for _, c := range []struct {
		vendor string
		status int
		body   string
		code   string
	}{
		{"twilio", 400, `{"code":21211,"message":"The 'To' number is not valid."}`, "21211"},
		{"twilio", 401, `{"code":20003,"message":"Authenticate"}`, "20003"},
		{"twilio", 503, `{"code":20503,"message":"Service unavailable"}`, "20503"},
		{"twilio", 200, `{"code":21610,"message":"Unsubscribed"}`, "21610"},
		{"twilio", 201, `{"sid":"SM1","status":"failed","error_code":30003}`, "30003"},
		{"twilio", 201, `{"sid":"SM1","status":"failed"}`, ""},
		{"twilio", 400, `no JSON`, ""},
		{"dialog", 200, "2008", "2008"},
		{"dialog", 200, "9999", ""},
		{"dialogv2", 200, `{"status":"failed","comment":"Mask","errCode":108}`, "108"},
		{"dialogv2", 400, `{"status":"failed","comment":"new","errCode":"E-999"}`, "E-999"},
		{"dialogv2", 200, `{"status":"failed","comment":"Token","errCode":105}`, "105"},
		{"dialogv2", 200, `{"status":"failed","errCode":"not a code, but text"}`, ""},
		{"dialogv2", 200, `{"status":"failed","errCode":"s3cret-key"}`, ""},
		{"aws", 400, `{"__type":"ValidationException","message":"no"}`, "ValidationException"},
		{"textlk", 200, `{"status":"error","message":"no balance"}`, ""},
		{"notifylk", 200, `{"status":"error","message":"no balance"}`, ""},
		{"quicksend", 200, `{"status":"error","message":"no balance"}`, ""},
	} {
		var request http.Request
		var text string
		_, err := connect(t, c.vendor, constantResponse(c.status, c.body, &request, &text)).Send(t.Context(), message)
		if got := upstream.CodeOf(err); err == nil || got != c.code {
			t.Errorf("%s %d %s: code %q of %v, want %q", c.vendor, c.status, c.body, got, err, c.code)
		}
	}
}
