package vendors

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"svcapi/shared/upstream"
)

// The requests are those of the vendors' documents and clients. A case without a message is a balance call.
func TestRequests(t *testing.T) {
	two := Message{To: []string{"+94771234567", "+94712345678"}, Text: "Hi & bye"}
	const (
		json, form = " application/json", " application/x-www-form-urlencoded"
		success    = `{"status":"success","id":"1","success":true,"data":{"sms_credit_balance":1}}`
		quickSend  = "Basic bWVAZXhhbXBsZS5jb206czNjcmV0LWtleQ==" + json // me@example.com:s3cret-key
	)
	for _, c := range []struct {
		vendor, path string // path of the endpoint
		m            Message
		response     string
		method, url  string
		header       string // Authorization and Content-Type
		body         string
	}{
		{"quicksend", "", message, success, "POST", "/Client/api.php?FUN=SEND_SINGLE", quickSend,
			`{"msg":"Hello & good day","senderID":"MyBrand","to":"0771234567"}`},
		{"quicksend", "/Client/api.php", two, success, "POST", "/Client/api.php?FUN=SEND_BULK_SAME", quickSend,
			`{"msg":"Hi & bye","senderID":"MyBrand","to":["0771234567","0712345678"]}`},
		{"quicksend", "/label", message, success, "POST", "/label?FUN=SEND_SINGLE", quickSend,
			`{"msg":"Hello & good day","senderID":"MyBrand","to":"0771234567"}`},
		{"notifylk", "", message, success, "POST", "/api/v1/send", form,
			"api_key=s3cret-key&message=Hello+%26+good+day&sender_id=MyBrand&to=94771234567&user_id=7"},
		{"notifylk", "", sinhala, success, "POST", "/api/v1/send", form,
			"api_key=s3cret-key&message=%E0%B6%86%E0%B6%BA%E0%B7%94%E0%B6%B6%E0%B7%9D%E0%B7%80%E0%B6%B1%E0%B7%8A&" +
				"sender_id=MyBrand&to=94771234567&type=unicode&user_id=7"},
		{"textlk", "", sinhala, success, "POST", "/api/v3/sms/send", "Bearer s3cret-key" + json,
			`{"message":"ආයුබෝවන්","recipient":"94771234567","sender_id":"MyBrand","type":"unicode"}`},
		{"ultimatesms", "/portal/v3", two, success, "POST", "/portal/v3/sms/send", "Bearer s3cret-key" + json,
			`{"message":"Hi & bye","recipient":"94771234567,94712345678","sender_id":"MyBrand","type":"plain"}`},
		{"smslenz", "", sinhala, success, "POST", "/send-sms", json,
			`{"api_key":"s3cret-key","contact":"+94771234567","message":"ආයුබෝවන්","sender_id":"MyBrand","user_id":"7"}`},
		{"smslenz", "", two, success, "POST", "/send-bulk-sms", json,
			`{"api_key":"s3cret-key","contacts":["+94771234567","+94712345678"],"message":"Hi & bye","sender_id":"MyBrand",` +
				`"user_id":"7"}`},
		{"smslenz", "", Message{}, success, "POST", "/account-status", json, `{"api_key":"s3cret-key","user_id":"7"}`},
		{"dialog", "", two, "1", "GET",
			"/api/v1/message-via-url/create/url-campaign?esmsqk=s3cret-key&list=0771234567%2C0712345678&message=Hi+%26+bye&" +
				"source_address=MyBrand", "", ""},
		{"hutch", "", two, `{"serverRef":1}`, "POST", "/api/sendsms", "Bearer t0ken" + json + " v1",
			`{"campaignName":"SMS","content":"Hi & bye","mask":"MyBrand","numbers":"94771234567,94712345678"}`},
		{"twilio", "", message, `{"sid":"SM1","status":"queued"}`, "POST", "/2010-04-01/Accounts/AC1/Messages.json",
			"Basic QUMxOnMzY3JldC1rZXk=" + form, "Body=Hello+%26+good+day&From=MyBrand&To=%2B94771234567"},
		{"aws", "", message, `{"MessageId":"1"}`, "POST", "/",
			"AWS4-HMAC-SHA256 Credential=AKIA1/eu-west-1/sms-voice/aws4_request application/x-amz-json-1.0 " +
				"PinpointSMSVoiceV2.SendTextMessage", `{"DestinationPhoneNumber":"+94771234567","MessageBody":"Hello & good day",` +
				`"MessageType":"TRANSACTIONAL","OriginationIdentity":"MyBrand"}`},
	} {
		got := make([]string, 4)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			authorization := r.Header.Get("Authorization")
			if scope, _, signed := strings.Cut(authorization, ", SignedHeaders"); signed { // without the day
				key, rest, _ := strings.Cut(scope, "/")
				authorization = key + rest[len("20260102"):]
			}
			header := []string{authorization, r.Header.Get("Content-Type"),
				r.Header.Get("X-Api-Version") + r.Header.Get("X-Amz-Target")}
			got = []string{r.Method, r.URL.String(), strings.TrimRight(strings.Join(header, " "), " "), string(body)}
			responds(200, c.response)(w, r)
		}))
		adapter := adapterAt(t, c.vendor, server.URL+c.path, upstream.Config{TimeoutSeconds: 2, Local: true})
		var err error
		if c.m.To != nil {
			_, err = adapter.Send(t.Context(), c.m)
		} else {
			_, err = adapter.(Balancer).Balance(t.Context())
		}
		server.Close()
		for i, want := range []string{c.method, c.url, c.header, c.body} {
			if err != nil || got[i] != want {
				t.Errorf("%s: %v\n got %q\nwant %q", c.vendor, err, got[i], want)
			}
		}
	}
}
