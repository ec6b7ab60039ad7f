package vendors

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/upstream"
)

// The adapter is that of textlk, whose test has the responses. The endpoint is the gateway's whole API, and an integration without one is incomplete.
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
