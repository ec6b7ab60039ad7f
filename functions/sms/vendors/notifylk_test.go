package vendors

import (
	"testing"

	"svcapi/shared/upstream"
)

func TestNotifyLK(t *testing.T) {
	testResponses(t, "notifylk", []recorded{
		{"sent", "V", 200, `{"status":"success","data":"Sent"}`, "", Receipt{Status: "Sent"}},
		{"sent, without a word", "made", 200, `{"status":"success"}`, "", Receipt{Status: "success"}},
		{"refused, under message", "T", 200, `{"status":"error","message":"Invalid sender ID"}`, upstream.AccountRefused, Receipt{}},
		{"refused, under data", "T", 200, `{"status":"failed","data":"Not enough balance"}`, upstream.AccountRefused, Receipt{}},
		{"refused, under error", "T", 200, `{"status":"error","error":"Number blocked"}`, upstream.Rejected, Receipt{}},
		{"another status", "V: the document names success alone; T: clients read error and failed as refusals", 200, `{"status":"queued"}`, upstream.Unusable, Receipt{}},
		{"a number as status", "made", 200, `{"status":1}`, upstream.Unusable, Receipt{}},
		{"key refused with HTTP 200", "made", 200, `{"status":"error","message":"Invalid API key"}`, upstream.CredentialsRefused, Receipt{}},
	})
	testBalances(t, "notifylk", []balanceCase{
		{"a balance", "V", 200, `{"status":"success","data":{"active":true,"acc_balance":3500.00}}`, "3500.00", ""},
		{"refused", "made", 401, `{"status":"error","message":"Unauthorized"}`, "", upstream.CredentialsRefused},
		{"without a number", "made", 200, `{"status":"success","data":{}}`, "", upstream.Unusable},
	})
}

// The request is the documented one: a form, the number without "+", and type=unicode for text that is not GSM.
func TestNotifyLKRequest(t *testing.T) {
	request, text := sent(t, "notifylk", `{"status":"success","data":"Sent"}`, message)
	same(t, []string{request.Method, request.URL.String(), text},
		[]string{"POST", "/api/v1/send", "api_key=s3cret-key&message=Hello+%26+good+day&sender_id=MyBrand&to=94771234567&user_id=7"})
	_, text = sent(t, "notifylk", `{"status":"success","data":"Sent"}`, sinhala)
	same(t, []string{text}, []string{"api_key=s3cret-key&message=%E0%B6%86%E0%B6%BA%E0%B7%94%E0%B6%B6%E0%B7%9D%E0%B7%80%E0%B6%B1%E0%B7%8A&sender_id=MyBrand&to=94771234567&type=unicode&user_id=7"})
}
