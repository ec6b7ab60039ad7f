package vendors

import (
	"testing"

	"svcapi/shared/upstream"
)

func TestNotifyLK(t *testing.T) {
	testResponses(t, "notifylk", []recorded{
		{"sent", "V", 200, `{"status":"success","data":"Sent"}`, "", Receipt{Status: "Sent"}},
		{"sent, without a word", "made", 200, `{"status":"success"}`, "", Receipt{Status: "success"}},
		{"refused, under message", "T", 200, `{"status":"error","message":"Invalid sender ID"}`,
			upstream.AccountRefused, Receipt{}},
		{"refused, under data", "T", 200, `{"status":"failed","data":"Not enough balance"}`,
			upstream.AccountRefused, Receipt{}},
		{"refused, under error", "T", 200, `{"status":"error","error":"Number blocked"}`, upstream.Rejected, Receipt{}},
		{"another status", "V: the document names success alone; T: clients read error and failed as refusals", 200,
			`{"status":"queued"}`, upstream.Unusable, Receipt{}},
		{"another vendor's member", "made", 200, `{"success":true}`, upstream.Unusable, Receipt{}},
		{"a number as status", "made", 200, `{"status":1}`, upstream.Unusable, Receipt{}},
		{"key refused with HTTP 200", "made", 200, `{"status":"error","message":"Invalid API key"}`,
			upstream.CredentialsRefused, Receipt{}},
	})
	testBalances(t, "notifylk", []balanceCase{
		{"a balance", "V", 200, `{"status":"success","data":{"active":true,"acc_balance":3500.00}}`, "3500.00", ""},
		{"without a number", "made", 200, `{"status":"success","data":{}}`, "", upstream.Unusable},
	})
}
