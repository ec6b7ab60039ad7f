package vendors

import (
	"testing"

	"svcapi/shared/upstream"
)

// The vendor ultimatesms has the same adapter.
func TestTextLK(t *testing.T) {
	testResponses(t, "textlk", []recorded{
		{"sent", "V, fields T", 200, `{"status":"success","message":"ok","data":{"uid":"606812e63f78b","to":"94771234567",` +
			`"status":"Delivered","cost":"1","sms_count":1}}`, "", Receipt{Status: "Delivered", ID: "606812e63f78b"}},
		{"sent, without details", "made", 200, `{"status":"success"}`, "", Receipt{Status: "success"}},
		{"sent, details of another type", "made", 200, `{"status":"success","data":"queued"}`, "",
			Receipt{Status: "success"}},
		{"refused", "V", 200, `{"status":"error","message":"A human-readable description"}`, upstream.Rejected, Receipt{}},
		{"token refused with HTTP 200", "made", 200, `{"status":"error","message":"Unauthenticated."}`,
			upstream.CredentialsRefused, Receipt{}},
		{"another status", "made", 200, `{"status":"pending"}`, upstream.Unusable, Receipt{}},
		{"another vendor's word for a refusal", "made", 200, `{"status":"failed","message":"no"}`,
			upstream.Unusable, Receipt{}},
		{"another vendor's member", "made", 200, `{"success":true}`, upstream.Unusable, Receipt{}},
	})
	testBalances(t, "textlk", []balanceCase{
		{"a balance", "T", 200, `{"status":"success","data":{"remaining_balance":"9","expired_on":"8th Sep 26, 4:44 PM"}}`,
			"9", ""},
		{"without a balance", "made", 200, `{"status":"success","data":{}}`, "", upstream.Unusable},
	})
}
