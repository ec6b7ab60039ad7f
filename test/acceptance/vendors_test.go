package acceptance

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
)

// vendors are the SMS vendors' names.
var vendors = []string{"quicksend", "notifylk", "textlk", "ultimatesms", "smslenz", "dialog", "dialogv2", "hutch", "twilio", "aws"}

// docs/decisions.md#phone-numbers, docs/decisions.md#acceptance: the provider gets what its own interface asks for, as
// the sandbox's list of calls shows it, and provider_response has status, id and vendor.
func TestVendorsFormats(t *testing.T) {
	local(t)
	t.Parallel()
	const text, unicode = "Hello & good day", "ආයුබෝවන්"
	for _, c := range []struct {
		vendor string
		method string
		path   string // a part of it
		plain  string // parts of path and body, for the GSM text and for the Unicode text
		uni    string
		header string // one that shows the credentials' place, masked
		id     bool   // the vendor names the message
	}{
		{"quicksend", "POST", "?FUN=SEND_SINGLE", `"senderID":"SVCTest" "to":"0NINE" "msg":"Hello & good day"`, `"msg":"ආයුබෝවන්"`, "Basic ***", true},
		{"notifylk", "", "/api/v1/send", `94NINE SVCTest Hello`, `unicode`, "", false},
		{"textlk", "POST", "/api/v3/sms/send", `"recipient":"94NINE" "sender_id":"SVCTest" "type":"plain" "message":"Hello & good day"`, `"type":"unicode" "message":"ආයුබෝවන්"`, "Bearer ***", true},
		{"ultimatesms", "POST", "/sms/send", `"recipient":"94NINE" "sender_id":"SVCTest" "type":"plain" "message":"Hello & good day"`, `"type":"unicode" "message":"ආයුබෝවන්"`, "Bearer ***", true},
		{"smslenz", "POST", "/send-sms", `"user_id":"***" "api_key":"***" "sender_id":"SVCTest" "contact":"+94NINE" "message":"Hello & good day"`, `"message":"ආයුබෝවන්"`, "", true},
		{"hutch", "POST", "/api/sendsms", `"campaignName":"SMS" "mask":"SVCTest" "numbers":"94NINE" "content":"Hello & good day"`, `"content":"ආයුබෝවන්"`, "Bearer ***", true},
		{"dialog", "GET", "/api/v1/message-via-url/create/url-campaign?", `esmsqk=*** list=0NINE source_address=SVCTest message=Hello`, `message=%E0%B6%86`, "", false},
		{"dialogv2", "POST", "/api/v2/sms", `"msisdn":[{"mobile":"NINE"}] "sourceAddress":"SVCTest" "message":"Hello & good day" "transaction_id":`, `"message":"ආයුබෝවන්"`, "Bearer ***", true},
		{"twilio", "POST", "/2010-04-01/Accounts/***/Messages.json", `To=%2B94NINE From=SVCTest Body=Hello+%26+good+day`, `Body=%E0%B6%86`, "Basic ***", true},
		{"aws", "POST", "", `"DestinationPhoneNumber":"+94NINE" "OriginationIdentity":"SVCTest" "MessageType":"TRANSACTIONAL"`, `"MessageBody":"ආයුබෝවන්"`, "AWS4-HMAC-SHA256 ***", true},
	} {
		p := plan{integrations: []integration{{vendor: c.vendor, mode: project.BYOK}}}.make(t)
		for message, parts := range map[string]string{text: c.plain, unicode: c.uni} {
			to := number()
			a := request{path: send, body: single(to, message), as: p.dev}.do(t)
			if a == nil {
				continue
			}
			provider := a.provider(t)
			if !a.is(200, "") || provider.Status == "" || provider.Vendor != c.vendor || (provider.ID != "") != c.id || a.Data.CreditsCharged != 0 || a.Data.MessageCount != 1 {
				t.Errorf("%s: %d %s", c.vendor, a.status, a.body)
			}
			calls := shown(t, to)
			if len(calls) != 1 {
				t.Errorf("%s: %d calls", c.vendor, len(calls))
				continue
			}
			call := calls[0]
			if call.Vendor != c.vendor || call.Operation != "send" || c.method != "" && call.Method != c.method || !strings.Contains(call.Path, c.path) || c.header != "" && call.Headers["Authorization"] != c.header {
				t.Errorf("%s: call %+v", c.vendor, call)
			}
			for part := range strings.SplitSeq(strings.ReplaceAll(parts, "Hello & good day", "Hello\x00&\x00good\x00day"), " ") {
				part = strings.ReplaceAll(strings.ReplaceAll(part, "NINE", to[1:]), "\x00", " ")
				if !strings.Contains(call.Path+"\n"+call.Body, part) {
					t.Errorf("%s: no %s in %s %s", c.vendor, part, call.Path, call.Body)
				}
			}
		}
	}
}

// shown are the sends to a number, as GET /_sandbox/calls shows them.
func shown(t *testing.T, to string) (calls []sandbox.Call) {
	t.Helper()
	in, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fixture.stack.SandboxURL+"/_sandbox/calls", nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.Do(in)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	var all []sandbox.Call
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range vendorKeys() {
		if strings.Contains(string(text), key) {
			t.Errorf("the list of calls shows the key %.8s…", key)
		}
	}
	for _, c := range all {
		if c.Operation == "send" && len(c.To) == 1 && strings.HasSuffix(c.To[0], to[1:]) {
			calls = append(calls, c)
		}
	}
	return calls
}
