package vendors

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/go-json-experiment/json"

	"svcapi/shared/upstream"
	"svcapi/test/must"
)

// responses are the recorded responses to a send, beside those of local/sandbox/sms.yaml, which TestDocumentedCodes of
// functions/sms has. The vendor ultimatesms has the adapter of textlk.
var responses = map[string][]recorded{
	// docs/decisions/sms.md#acceptance.
	"quicksend": {
		{"accepted", "T", 200, `{"status":"success","id":"98765"}`, Receipt{Status: "success", ID: "98765"}},
		{"accepted with a number as ID", "made", 200, `{"status":"success","id":98765}`,
			Receipt{Status: "success", ID: "98765"}},
		{"accepted with an empty ID", "made", 200, `{"status":"success","id":""}`, unusable},
		{"rejected, under error", "T", 200, `{"error":"Invalid mobile number"}`, rejected},
		{"rejected, plain text", "T", 200, `Error: invalid sender`, account},
		{"key refused, JSON", "T", 200, `{"status":"error","message":"Unauthorized"}`, keyRefused},
		{"key refused, plain text", "T", 200, `Unauthorized access`, keyRefused},
		{"another status, with a word of refusal", "made", 200, `{"status":"queued","message":"0 failed"}`, unusable},
		{"words without sense", "made", 200, `thank you`, unusable},
		{"another status", "made", 200, `{"status":"queued","id":"1"}`, unusable},
	},
	"notifylk": {
		{"sent", "V", 200, `{"status":"success","data":"Sent"}`, Receipt{Status: "Sent"}},
		{"sent, without a word", "made", 200, `{"status":"success"}`, Receipt{Status: "success"}},
		{"refused, under data", "T", 200, `{"status":"failed","data":"Not enough balance"}`, account},
		{"refused, under error", "T", 200, `{"status":"error","error":"Number blocked"}`, rejected},
		{"another status", "V: the document names success alone; T: clients read error and failed as refusals", 200,
			`{"status":"queued"}`, unusable},
		{"another vendor's member", "made", 200, `{"success":true}`, unusable},
		{"a number as status", "made", 200, `{"status":1}`, unusable},
		{"key refused with HTTP 200", "made", 200, `{"status":"error","message":"Invalid API key"}`, keyRefused},
	},
	"textlk": {
		{"sent", "V, fields T", 200, `{"status":"success","message":"ok","data":{"uid":"606812e63f78b","to":"94771234567",` +
			`"status":"Delivered","cost":"1","sms_count":1}}`, Receipt{Status: "Delivered", ID: "606812e63f78b"}},
		{"sent, without details", "made", 200, `{"status":"success"}`, Receipt{Status: "success"}},
		{"sent, details of another type", "made", 200, `{"status":"success","data":"queued"}`, Receipt{Status: "success"}},
		{"refused", "V", 200, `{"status":"error","message":"A human-readable description"}`, rejected},
		{"token refused with HTTP 200", "made", 200, `{"status":"error","message":"Unauthenticated."}`, keyRefused},
		{"another status", "made", 200, `{"status":"pending"}`, unusable},
		{"another vendor's word for a refusal", "made", 200, `{"status":"failed","message":"no"}`, unusable},
		{"another vendor's member", "made", 200, `{"success":true}`, unusable},
	},
	"smslenz": {
		{"sent", "T", 200, `{"success":true,"message":"SMS sent successfully","data":{"campaign_id":123,` +
			`"sms_credit_balance":"98.50"}}`, Receipt{Status: "success", ID: "123"}},
		{"sent, without details", "T (a client's test)", 200, `{"success":true,"message":"SMS sent successfully"}`,
			Receipt{Status: "success"}},
		{"sent, with a status", "made", 200, `{"success":true,"data":{"campaign_id":"c1","status":"queued"}}`,
			Receipt{Status: "queued", ID: "c1"}},
		{"refused, errors by field", "T", 200,
			`{"success":false,"message":"Validation failed","errors":{"contact":["The contact is not valid."]}}`,
			rejected},
		{"key refused with HTTP 200", "made", 200, `{"success":false,"message":"Invalid API key"}`, keyRefused},
		{"key in the response", "made", 200, `{"success":false,"message":"s3cret-key is blocked"}`, rejected},
		{"another vendor's word for a success", "made", 200, `{"status":"success"}`, unusable},
		{"neither", "made", 200, `{"message":"ok"}`, unusable},
	},
	"dialog": {
		{"accepted", "V", 200, "1", Receipt{Status: "success"}},
		{"accepted, with a line end", "made", 200, "1\r\n", Receipt{Status: "success"}},
		{"another number", "made", 200, "2", unusable},
		{"an unknown code", "made", 200, "2099", unusable},
		{"a code with an HTTP error", "made", 400, "2007", keyRefused},
	},
	"dialogv2": {
		{"accepted", "V", 200, `{"status":"success","comment":"Campaign Created","data":{"campaignId":4711,` +
			`"campaignCost":0.5,"walletBalance":10.0,"userId":1},"errCode":""}`, Receipt{Status: "success", ID: "4711"}},
		{"accepted, with removed recipients", "T", 200,
			`{"status":"success","data":{"campaignId":7,"duplicatesRemoved":"0","invalidNumbers":0,"mask_blocked_numbers":0}}`,
			Receipt{Status: "success", ID: "7"}},
		{"every recipient removed", "made", 200, `{"status":"success","data":{"campaignId":7,"invalidNumbers":1}}`, rejected},
		{"a duplicate removed", "made", 200, `{"status":"success","data":{"campaignId":7,"duplicatesRemoved":1}}`, unusable},
		{"an unknown code", "made", 200, `{"status":"failed","comment":"new","errCode":120}`, unusable},
		{"accepted, without details", "made", 200, `{"status":"success","data":""}`, Receipt{Status: "success"}},
		{"token refused, again and again", "T", 200, `{"status":"failed","comment":"Token","errCode":105}`, keyRefused},
		{"its token in an HTML page", "made", 500, `<p>Bearer t0ken, s3cret\u002dkey</p>`, unusable},
		{"its token without a status", "made", 200, `{"token":"t0ken","comment":"\u0074\u0030ken"}`, unusable},
		{"its token in a refusal", "made", 200, `{"status":"failed","comment":"Bearer t0ken","errCode":105}`, keyRefused},
		{"without an error code", "made", 200, `{"status":"failed","comment":"no"}`, unusable},
	},
	"hutch": {
		{"accepted", "T", 200, `{"serverRef":"a1b2"}`, Receipt{Status: "accepted", ID: "a1b2"}},
		{"accepted, a number", "made", 200, `{"serverRef":4711}`, Receipt{Status: "accepted", ID: "4711"}},
		{"without a reference", "T (a client counts it as not accepted)", 200, `{"message":"SMS sent"}`, unusable},
		{"token refused, again and again", "T", 401, `{"message":"Bearer t0ken is expired"}`, keyRefused},
		{"its token in a page", "made", 500, `<p>Bearer t0ken, s3cret\u002dkey</p>`, unusable},
	},
	"twilio": {
		{"queued", "V", 201, `{"sid":"SM12","account_sid":"AC1","status":"queued","to":"+94771234567","num_segments":"1",` +
			`"price":null,"error_code":null}`, Receipt{Status: "queued", ID: "SM12"}},
		{"accepted", "V", 201, `{"sid":"SM13","status":"accepted"}`, Receipt{Status: "accepted", ID: "SM13"}},
		{"created as failed", "made", 201, `{"sid":"SM14","status":"failed","error_code":30003}`, rejected},
		{"without a sid", "made", 201, `{"status":"queued"}`, unusable},
		{"an error with status 200", "made", 200,
			`{"code":21610,"message":"Attempt to send to unsubscribed recipient","status":400}`, rejected},
		{"unavailable", "V", 503, `{"code":20503,"message":"Service unavailable","status":503}`, unusable},
	},
	"aws": {
		{"accepted", "V", 200, `{"MessageId":"a1b2"}`, Receipt{Status: "accepted", ID: "a1b2"}},
	},
}

func TestResponses(t *testing.T) {
	for vendor, rows := range responses {
		t.Run(vendor, func(t *testing.T) { testResponses(t, vendor, rows) })
	}
}

// balances are the recorded responses to a balance call.
var balances = map[string][]recorded{
	"quicksend": {
		{"as text", "T", 200, "1520.50\n", "1520.50"},
		{"as JSON number", "T", 200, `1520`, "1520"},
		{"as JSON text", "T", 200, `"1,520.50"`, "1,520.50"},
		{"in an object", "T", 200, `{"balance":"12.30"}`, "12.30"},
		{"in an object, as Balance", "T", 200, `{"Balance":12.30}`, "12.30"},
		{"as credit", "T", 200, `{"credit":7}`, "7"},
		{"refused", "T", 200, `Unauthorized`, keyRefused},
		{"without sense", "made", 200, `hello`, unusable},
		{"success without a number", "made", 200, `{"status":"success"}`, unusable},
	},
	"notifylk": {
		{"a balance", "V", 200, `{"status":"success","data":{"active":true,"acc_balance":3500.00}}`, "3500.00"},
		{"without a number", "made", 200, `{"status":"success","data":{}}`, unusable},
	},
	"textlk": {
		{"a balance", "T", 200, `{"status":"success","data":{"remaining_balance":"9","expired_on":"8th Sep 26, 4:44 PM"}}`,
			"9"},
		{"without a balance", "made", 200, `{"status":"success","data":{}}`, unusable},
	},
	"smslenz": {
		{"as text", "T", 200, `{"success":true,"data":{"sms_credit_balance":"1,234.50"}}`, "1,234.50"},
		{"as number", "T", 200, `{"success":true,"data":{"sms_credit_balance":98.5}}`, "98.5"},
		{"without a balance", "made", 200, `{"success":true,"data":{}}`, unusable},
	},
	"dialog": {
		{"a balance", "V", 200, "1|4500.00", "4500.00"},
		{"refused", "V", 200, "2007", keyRefused},
		{"without a number", "made", 200, "1|", unusable},
	},
	"twilio": {
		{"a balance", "V", 200, `{"account_sid":"AC1","balance":"0.05","currency":"USD"}`, "0.05 USD"},
		{"without a number", "made", 200, `{"account_sid":"AC1"}`, unusable},
	},
}

func TestBalances(t *testing.T) {
	for vendor, cases := range balances {
		for _, c := range append(cases, recorded{"HTTP 401", "made", 401, `{"status":"error"}`, keyRefused}) {
			t.Run(vendor+" "+c.name, func(t *testing.T) {
				got := result(connect(t, vendor, responds(c.status, c.body)).(Balancer).Balance(t.Context()))
				if got != c.want {
					t.Errorf("got %v, want %v", got, c.want)
				}
			})
		}
	}
}

// docs/decisions/requests.md#error-reasons: the vendor's own code of a failure, without its text and secrets.
func TestVendorCodes(t *testing.T) {
	for _, c := range []struct {
		vendor string
		status int
		body   string
		code   string
	}{
		{"twilio", 503, `{"code":20503,"message":"Service unavailable"}`, "20503"},
		{"twilio", 200, `{"code":21610,"message":"Unsubscribed"}`, "21610"},
		{"twilio", 201, `{"sid":"SM1","status":"failed","error_code":30003}`, "30003"},
		{"twilio", 201, `{"sid":"SM1","status":"failed"}`, ""},
		{"twilio", 400, `no JSON`, ""},
		{"dialog", 200, "9999", ""},
		{"dialogv2", 400, `{"status":"failed","comment":"new","errCode":"E-999"}`, "E-999"},
		{"dialogv2", 200, `{"status":"failed","errCode":"not a code, but text"}`, ""},
		{"dialogv2", 200, `{"status":"failed","errCode":"s3cret-key"}`, ""},
		{"textlk", 200, `{"status":"error","message":"no balance"}`, ""},
		{"notifylk", 200, `{"status":"error","message":"no balance"}`, ""},
		{"quicksend", 200, `{"status":"error","message":"no balance"}`, ""},
	} {
		_, err := connect(t, c.vendor, responds(c.status, c.body)).Send(t.Context(), message)
		if got := upstream.CodeOf(err); err == nil || got != c.code {
			t.Errorf("%s %d %s: code %q of %v, want %q", c.vendor, c.status, c.body, got, err, c.code)
		}
	}
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
	if upstream.ClassOf(err) != unusable { // one message may have left: the counts may overlap
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

// The pause of a refusal for pace is that of the header Retry-After.
func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "-1": 0,
		"Wed, 21 Oct 2026 07:28:00 GMT": 0} {
		_, err := connect(t, "twilio", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		}).Send(t.Context(), message)
		if e, ok := errors.AsType[*upstream.Error](err); !ok || e.Class != tooFast || e.Pause != want {
			t.Errorf("%q: %+v", header, err)
		}
	}
}

// TestOriginationIdentity: the ARN that the role of the function needs a right on. Sources: AWS End User Messaging SMS
// API reference, SendTextMessage, OriginationIdentity; Service Authorization Reference, the ARNs of resource types.
func TestOriginationIdentity(t *testing.T) {
	role, err := arn.Parse("arn:aws-cn:iam::123456789012:role/svc-prod-SmsRole")
	must.Succeed(t, err)
	for id, want := range map[string]string{
		"Acme":             "arn:aws-cn:sms-voice:eu-west-1:123456789012:sender-id/Acme/LK",
		"phone-0a1b":       "arn:aws-cn:sms-voice:eu-west-1:123456789012:phone-number/phone-0a1b",
		"pool-0a1b":        "arn:aws-cn:sms-voice:eu-west-1:123456789012:pool/pool-0a1b",
		"+94771234567":     "",
		"94771234567":      "",
		"arn:aws:x:y:1:2a": "arn:aws:x:y:1:2a",
	} {
		if got := OriginationIdentity(map[string]string{"sender_id": id}, "eu-west-1", role); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	elsewhere := OriginationIdentity(map[string]string{"sender_id": "Acme", "region": "eu-north-1"}, "eu-west-1", role)
	if want := "arn:aws-cn:sms-voice:eu-north-1:123456789012:sender-id/Acme/LK"; elsewhere != want {
		t.Errorf("%s, want %s", elsewhere, want)
	}
}
