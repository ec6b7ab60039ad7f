package vendors

import (
	"testing"

	"svcapi/shared/upstream"
)

// docs/decisions/sms.md#acceptance.
func TestQuickSend(t *testing.T) {
	testResponses(t, "quicksend", []recorded{
		{"accepted", "T", 200, `{"status":"success","id":"98765"}`, "", Receipt{Status: "success", ID: "98765"}},
		{"accepted with a number as ID", "made", 200, `{"status":"success","id":98765}`, "",
			Receipt{Status: "success", ID: "98765"}},
		{"accepted without an ID", "T", 200, `{"status":"success"}`, upstream.Unusable, Receipt{}},
		{"accepted with an empty ID", "made", 200, `{"status":"success","id":""}`, upstream.Unusable, Receipt{}},
		{"rejected, under error", "T", 200, `{"error":"Invalid mobile number"}`, upstream.Rejected, Receipt{}},
		{"rejected, under message", "T", 200, `{"status":"failed","message":"insufficient balance"}`,
			upstream.AccountRefused, Receipt{}},
		{"rejected, plain text", "T", 200, `Error: invalid sender`, upstream.AccountRefused, Receipt{}},
		{"key refused, JSON", "T", 200, `{"status":"error","message":"Unauthorized"}`,
			upstream.CredentialsRefused, Receipt{}},
		{"key refused, plain text", "T", 200, `Unauthorized access`, upstream.CredentialsRefused, Receipt{}},
		{"not allowed", "T", 200, `Account not allowed`, upstream.CredentialsRefused, Receipt{}},
		{"another status, with a word of refusal", "made", 200, `{"status":"queued","message":"0 failed"}`,
			upstream.Unusable, Receipt{}},
		{"words without sense", "made", 200, `thank you`, upstream.Unusable, Receipt{}},
		{"another status", "made", 200, `{"status":"queued","id":"1"}`, upstream.Unusable, Receipt{}},
	})
	testBalances(t, "quicksend", []balanceCase{
		{"as text", "T", 200, "1520.50\n", "1520.50", ""},
		{"as JSON number", "T", 200, `1520`, "1520", ""},
		{"as JSON text", "T", 200, `"1,520.50"`, "1,520.50", ""},
		{"in an object", "T", 200, `{"balance":"12.30"}`, "12.30", ""},
		{"in an object, as Balance", "T", 200, `{"Balance":12.30}`, "12.30", ""},
		{"as credit", "T", 200, `{"credit":7}`, "7", ""},
		{"refused", "T", 200, `Unauthorized`, "", upstream.CredentialsRefused},
		{"without sense", "made", 200, `hello`, "", upstream.Unusable},
		{"success without a number", "made", 200, `{"status":"success"}`, "", upstream.Unusable},
	})
}
