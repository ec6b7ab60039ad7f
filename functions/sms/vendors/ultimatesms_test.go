package vendors

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/upstream"
)

func TestUltimateSMS(t *testing.T) {
	testResponses(t, "ultimatesms", []recorded{
		{"sent", "T (a test of a client of app.smspro.africa)", 200, `{"status":"success","data":{"uid":"smspro-msg-123"}}`, "", Receipt{"success", "smspro-msg-123"}},
		{"sent, details as a text", "V (text.lk/docs/send-sms)", 200, `{"status":"success","data":"sms reports with all details"}`, "", Receipt{"success", ""}},
		{"refused", "V (text.lk/docs/send-sms)", 200, `{"status":"error","message":"A human-readable description of the error."}`, upstream.Rejected, Receipt{}},
		{"token refused with HTTP 200", "made", 200, `{"status":"error","message":"Unauthenticated."}`, upstream.CredentialsRefused, Receipt{}},
		{"another status", "made", 200, `{"status":"pending"}`, upstream.Unusable, Receipt{}},
	})
	testBalances(t, "ultimatesms", []balanceCase{
		{"a balance", "T", 200, `{"status":"success","data":{"remaining_balance":"9","expired_on":"8th Sep 26, 4:44 PM"}}`, "9", ""},
		{"without a balance", "made", 200, `{"status":"success","data":{}}`, "", upstream.Unusable},
	})
}

// The endpoint is the gateway's whole API, and an integration without one is incomplete.
func TestUltimateSMSRequest(t *testing.T) {
	var request http.Request
	var text string
	adapter := connectAt(t, "ultimatesms", "/portal/api/v3", constantResponse(200, `{"status":"success"}`, &request, &text))
	if _, err := adapter.Send(context.Background(), sinhala); err != nil {
		t.Fatal(err)
	}
	same(t, []string{request.Method, request.URL.String(), request.Header.Get("Authorization"), text},
		[]string{"POST", "/portal/api/v3/sms/send", "Bearer s3cret-key", `{"recipient":"94771234567","sender_id":"MyBrand","type":"unicode","message":"ආයුබෝවන්"}`})

	spec := NewTable(aws.Config{}).Spec("ultimatesms")
	if missing := upstream.Missing(spec.Settings, map[string]string{"sender_id": "MyBrand"}); spec.Endpoint != "" || len(missing) != 1 || missing[0] != upstream.EndpointSetting {
		t.Errorf("endpoint %q, missing %v", spec.Endpoint, missing)
	}
}
