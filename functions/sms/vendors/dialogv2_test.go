package vendors

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"svcapi/shared/upstream"
)

func TestDialogV2(t *testing.T) {
	testResponses(t, "dialogv2", []recorded{
		{"accepted", "V", 200, `{"status":"success","comment":"Campaign Created","data":{"campaignId":4711,` +
			`"campaignCost":0.5,"walletBalance":10.0,"userId":1},"errCode":""}`, "", Receipt{Status: "success", ID: "4711"}},
		{"accepted, with removed recipients", "T", 200,
			`{"status":"success","data":{"campaignId":7,"duplicatesRemoved":"0","invalidNumbers":0,"mask_blocked_numbers":0}}`,
			"", Receipt{Status: "success", ID: "7"}},
		{"every recipient removed", "made", 200, `{"status":"success","data":{"campaignId":7,"invalidNumbers":1}}`,
			upstream.Rejected, Receipt{}},
		{"a duplicate removed", "made", 200, `{"status":"success","data":{"campaignId":7,"duplicatesRemoved":1}}`,
			upstream.Unusable, Receipt{}},
		{"an unknown code", "made", 200, `{"status":"failed","comment":"new","errCode":120}`, upstream.Unusable, Receipt{}},
		{"accepted, without details", "made", 200, `{"status":"success","data":""}`, "", Receipt{Status: "success"}},
		{"token refused, again and again", "T", 200, `{"status":"failed","comment":"Token","errCode":105}`,
			upstream.CredentialsRefused, Receipt{}},
		{"its token in an HTML page", "made", 500, `<p>Bearer t0ken, s3cret\u002dkey</p>`, upstream.Unusable, Receipt{}},
		{"its token without a status", "made", 200, `{"token":"t0ken","comment":"\u0074\u0030ken"}`,
			upstream.Unusable, Receipt{}},
		{"its token in a refusal", "made", 200, `{"status":"failed","comment":"Bearer t0ken","errCode":105}`,
			upstream.CredentialsRefused, Receipt{}},
		{"without an error code", "made", 200, `{"status":"failed","comment":"no"}`, upstream.Unusable, Receipt{}},
	})
}

// The receipt has the number of removed recipients, and each call has a transaction ID of its own.
func TestDialogV2Removed(t *testing.T) {
	ids := map[uint64]bool{}
	var last struct {
		Recipients    []map[string]string `json:"msisdn"`
		Source        string              `json:"sourceAddress"`
		TransactionID uint64              `json:"transaction_id"`
	}
	accept := responds(200, `{"status":"success","data":{"campaignId":1,"duplicatesRemoved":1,"invalidNumbers":"2",`+
		`"mask_blocked_numbers":3}}`)
	adapter := connect(t, "dialogv2", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &last)
		accept(w, r)
	})
	eight := slices.Repeat([]string{"+94771234567", "+94712345678"}, 4)
	for _, key := range []string{"p/production/r1/0", "p/production/r1/0", "p/production/r1/1000"} {
		receipt, err := adapter.Send(t.Context(), Message{To: eight, Text: "Hi", Key: key})
		if want := (Removed{Duplicates: 1, Invalid: 2, Blocked: 3}); err != nil || receipt.Removed != want {
			t.Fatalf("%+v, %v", receipt, err)
		}
		ids[last.TransactionID] = true
	}
	_, err := adapter.Send(t.Context(), Message{To: eight[:6], Text: "Hi", Key: "k"})
	if upstream.ClassOf(err) != upstream.Unusable { // one message may have left: the counts may overlap
		t.Errorf("6 recipients, 6 removed: %v", err)
	}
	if len(ids) != 2 {
		t.Errorf("transaction IDs %v: a repetition has the same, and another call another one", ids)
	}
	if len(last.Recipients) != 6 || last.Recipients[1]["mobile"] != "712345678" || last.Source != "MyBrand" ||
		last.TransactionID < 1 || last.TransactionID > 999_999_999_999_999_999 {
		t.Errorf("sent %+v", last)
	}
}

// Code 103 proves an absence only in the vendor's own response to the check of the transaction.
func TestDialogV2Absence(t *testing.T) {
	const absent = `{"status":"failed","comment":"none","errCode":103}`
	for _, c := range []struct {
		login, check string
		status       int // of the response to the check
		absent       bool
	}{
		{"", absent, 200, true},
		{"", absent, 404, true},
		{"", absent, 500, false},
		{"", `{"errCode":103}`, 404, false},
		{"", `{"status":"success","data":{},"errCode":103}`, 200, false},
		{absent, absent, 200, false},
	} {
		adapter := connect(t, "dialogv2", func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/login") {
				_, _ = io.WriteString(w, cmp.Or(c.login, logins[r.URL.Path]))
				return
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.check)
		})
		got, err := adapter.(StatusChecker).CheckStatus(t.Context(), PastSend{Key: "k"})
		if (err == nil) != c.absent || (got == Status{State: StateNotFound, Word: "103"}) != c.absent {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}
