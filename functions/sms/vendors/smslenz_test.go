package vendors

import (
	"testing"

	"svcapi/shared/upstream"
)

func TestSMSLenz(t *testing.T) {
	testResponses(t, "smslenz", []recorded{
		{"sent", "T", 200, `{"success":true,"message":"SMS sent successfully","data":{"campaign_id":123,` +
			`"sms_credit_balance":"98.50"}}`, "", Receipt{Status: "success", ID: "123"}},
		{"sent, without details", "T (a client's test)", 200, `{"success":true,"message":"SMS sent successfully"}`, "",
			Receipt{Status: "success"}},
		{"sent, with a status", "made", 200, `{"success":true,"data":{"campaign_id":"c1","status":"queued"}}`, "",
			Receipt{Status: "queued", ID: "c1"}},
		{"refused, errors by field", "T", 200,
			`{"success":false,"message":"Validation failed","errors":{"contact":["The contact is not valid."]}}`,
			upstream.Rejected, Receipt{}},
		{"refused by status", "T", 422,
			`{"success":false,"message":"Validation failed","errors":{"contact":["The contact is not valid."]}}`,
			upstream.Rejected, Receipt{}},
		{"refused, as status", "T", 200, `{"status":"error","message":"Insufficient balance"}`,
			upstream.AccountRefused, Receipt{}},
		{"key refused with HTTP 200", "made", 200, `{"success":false,"message":"Invalid API key"}`,
			upstream.CredentialsRefused, Receipt{}},
		{"key in the response", "made", 200, `{"success":false,"message":"s3cret-key is blocked"}`,
			upstream.Rejected, Receipt{}},
		{"another vendor's word for a success", "made", 200, `{"status":"success"}`, upstream.Unusable, Receipt{}},
		{"neither", "made", 200, `{"message":"ok"}`, upstream.Unusable, Receipt{}},
	})
	testBalances(t, "smslenz", []balanceCase{
		{"as text", "T", 200, `{"success":true,"data":{"sms_credit_balance":"1,234.50"}}`, "1,234.50", ""},
		{"as number", "T", 200, `{"success":true,"data":{"sms_credit_balance":98.5}}`, "98.5", ""},
		{"without a balance", "made", 200, `{"success":true,"data":{}}`, "", upstream.Unusable},
	})
}
