package vendors

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"svcapi/shared/upstream"
)

func TestTwilio(t *testing.T) {
	testResponses(t, "twilio", []recorded{
		{"queued", "V", 201, `{"sid":"SM12","account_sid":"AC1","status":"queued","to":"+94771234567","num_segments":"1",` +
			`"price":null,"error_code":null}`, "", Receipt{Status: "queued", ID: "SM12"}},
		{"accepted", "V", 201, `{"sid":"SM13","status":"accepted"}`, "", Receipt{Status: "accepted", ID: "SM13"}},
		{"created as failed", "made", 201, `{"sid":"SM14","status":"failed","error_code":30003}`,
			upstream.Rejected, Receipt{}},
		{"without a sid", "made", 201, `{"status":"queued"}`, upstream.Unusable, Receipt{}},
		{"an error with status 200", "made", 200,
			`{"code":21610,"message":"Attempt to send to unsubscribed recipient","status":400}`, upstream.Rejected, Receipt{}},
		{"unavailable", "V", 503, `{"code":20503,"message":"Service unavailable","status":503}`,
			upstream.Unusable, Receipt{}},
	})
	testBalances(t, "twilio", []balanceCase{
		{"a balance", "V", 200, `{"account_sid":"AC1","balance":"0.05","currency":"USD"}`, "0.05 USD", ""},
		{"without a number", "made", 200, `{"account_sid":"AC1"}`, "", upstream.Unusable},
	})
}

// The pause of a refusal for pace is that of the header Retry-After.
func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "-1": 0,
		"Wed, 21 Oct 2026 07:28:00 GMT": 0} {
		_, err := connect(t, "twilio", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		}).Send(t.Context(), message)
		if e, ok := errors.AsType[*upstream.Error](err); !ok || e.Class != upstream.TooFast || e.Pause != want {
			t.Errorf("%q: %+v", header, err)
		}
	}
}
