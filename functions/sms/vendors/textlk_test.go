package vendors

import (
	"context"
	"net/http"
	"testing"

	"svcapi/shared/upstream"
)

func TestTextLK(t *testing.T) {
	testResponses(t, "textlk", []recorded{
		{"sent", "V, fields T", 200, `{"status":"success","message":"ok","data":{"uid":"606812e63f78b","to":"94771234567","status":"Delivered","cost":"1","sms_count":1}}`, "", Receipt{Status: "Delivered", ID: "606812e63f78b"}},
		{"sent, without details", "made", 200, `{"status":"success"}`, "", Receipt{Status: "success"}},
		{"sent, details of another type", "made", 200, `{"status":"success","data":"queued"}`, "", Receipt{Status: "success"}},
		{"refused", "V", 200, `{"status":"error","message":"A human-readable description"}`, upstream.Rejected, Receipt{}},
		{"token refused with HTTP 200", "made", 200, `{"status":"error","message":"Unauthenticated."}`, upstream.CredentialsRefused, Receipt{}},
		{"another status", "made", 200, `{"status":"pending"}`, upstream.Unusable, Receipt{}},
	})
	testBalances(t, "textlk", []balanceCase{
		{"a balance", "T", 200, `{"status":"success","data":{"remaining_balance":"9","expired_on":"8th Sep 26, 4:44 PM"}}`, "9", ""},
		{"refused", "made", 401, `{"status":"error","message":"Unauthenticated."}`, "", upstream.CredentialsRefused},
		{"without a balance", "made", 200, `{"status":"success","data":{}}`, "", upstream.Unusable},
	})
}

// The request is the documented one, with commas between recipients.
func TestTextLKRequest(t *testing.T) {
	request, text := sent(t, "textlk", `{"status":"success"}`, sinhala)
	same(t, []string{request.Method, request.URL.String(), request.Header.Get("Authorization"), text},
		[]string{"POST", "/api/v3/sms/send", "Bearer s3cret-key", `{"recipient":"94771234567","sender_id":"MyBrand","type":"unicode","message":"ආයුබෝවන්"}`})

	var r http.Request
	adapter := connect(t, "textlk", constantResponse(200, `{"status":"success"}`, &r, &text)).(SameSender)
	if _, err := adapter.SendSame(context.Background(), []string{"+94771234567", "+94712345678"}, Message{Text: "Hi"}); err != nil {
		t.Fatal(err)
	}
	same(t, []string{text}, []string{`{"recipient":"94771234567,94712345678","sender_id":"MyBrand","type":"plain","message":"Hi"}`})
}
