package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/test/must"
)

// docs/decisions/sms.md#refused-fields: the send refuses the names of docs/sms.md, and no others.
func TestRefusedFields(t *testing.T) {
	document, err := os.ReadFile("../../docs/sms.md")
	must.Succeed(t, err)
	_, table, _ := strings.Cut(string(document), "| Meaning | Names |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	documented := map[string]bool{}
	for line := range strings.Lines(table) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(strings.Split(line, "|")[2], -1) {
			documented[strings.ReplaceAll(name[1], "_", "")] = name[1] != "msg_list"
		}
	}
	delete(documented, "msglist")
	for name := range documented {
		if refusedFields[name] == "" {
			t.Errorf("%s is documented only", name)
		}
	}
	if len(documented) != len(refusedFields) || len(documented) < 90 {
		t.Errorf("%d names are documented, %d are refused", len(documented), len(refusedFields))
	}
}

// docs/decisions/sms.md#smart-encoding, docs/decisions/sms.md#phone-numbers
func TestSendWarnings(t *testing.T) {
	typed, same := strings.Repeat("m", 120)+"It’s",
		`"send_method":"bulk_same","recipients":["0731234567","0791234567","+94771234567"]`
	one := `"send_method":"single","to":"0771234567"`
	for _, c := range []struct{ name, body, text, warnings string }{
		{"GSM", one + `,"message":"It's €5"`, "It's €5", ""},
		{"typographic", one + `,"message":"` + typed + `"`, typed, `unicode;n=1;units=1;chars="U+2019"`},
		{"replaced", one + `,"smart_encoding":true,"message":"` + typed + `"`, strings.ReplaceAll(typed, "’", "'"),
			`smart-encoding;n=1;units=1;chars="U+2019"`},
		{"another reason", one + `,"smart_encoding":true,"message":"It’s ක"`, "It’s ක", `unicode;n=2;chars="U+2019 U+0D9A"`},
		{"more units", one + `,"smart_encoding":true,"message":"` + strings.Repeat("…", 60) + `"`, strings.Repeat("…", 60),
			`unicode;n=60;units=2;chars="U+2026"`},
		{"nothing left", one + `,"smart_encoding":true,"message":"\u200b"`, "\u200b", `unicode;n=1;chars="U+200B"`},
		{"five characters", one + `,"message":"😀කඛගඝඞ"`, "😀කඛගඝඞ",
			`unicode;n=6;chars="U+1F600 U+0D9A U+0D9B U+0D9C U+0D9D"`},
		{"one text to many, unassigned", same + `,"message":"a – b"`, "a – b",
			`unicode;n=1;units=1;chars="U+2013", unassigned-prefix;n=2`},
		{"several texts", `"send_method":"bulk_different","smart_encoding":true,"msg_list":[{"to":"0771234567","msg":"–"},` +
			`{"to":"0771234567","msg":"x"},{"to":"0771234567","msg":"ක"},{"to":"0771234567","msg":"“"}]`, "-",
			`unicode;n=1;chars="U+0D9A", smart-encoding;n=2;units=2;chars="U+2013 U+201C"`},
	} {
		in, err := request.ReadInput([]byte("{"+c.body+"}"), nil)
		must.Succeed(t, err)
		r, err := decodeSend(in)
		if got := strings.Join(in.Warnings(), ", "); err != nil || got != c.warnings || r.recipients[0].text != c.text {
			t.Errorf("%s: %v, %q with %s; want %q with %s", c.name, err, r.recipients[0].text, got, c.text, c.warnings)
		}
	}
}

// docs/decisions/sms.md#sender-id: the accounts that list the sender send under it, and the others not at all.
func TestSenderOfRequest(t *testing.T) {
	accounts := []upstream.Account{
		{Endpoint: "a", Settings: map[string]string{vendors.SenderID: "Own"}},
		{Endpoint: "b", Settings: map[string]string{vendors.SenderID: "Own", vendors.SenderIDs: "Acme,Acme Info"}},
		{Endpoint: "c", Settings: map[string]string{vendors.SenderID: "Own", vendors.SenderIDs: "Other"}},
	}
	for sender, want := range map[string]string{
		"": "aOwn bOwn cOwn ", "Acme": "bAcme ", "Acme Info": "bAcme Info ", "Other": "cOther ", "Own": "422", "acme": "422",
		"Acme,Acme Info": "422",
	} {
		got := ""
		allowed, err := (&sendRequest{sender: sender}).from(accounts)
		for _, a := range allowed {
			got += a.Endpoint + a.Settings[vendors.SenderID] + " "
		}
		if refusal, ok := errors.AsType[*request.Error](err); ok {
			got = fmt.Sprint(refusal.Status)
		}
		if got != want || accounts[1].Settings[vendors.SenderID] != "Own" {
			t.Errorf("%q: %s, want %s", sender, got, want)
		}
	}
	b := newFixture(one(accepts))
	_, err := b.prepareSend(t.Context(), b.caller(project.BYOK, nil), sendRequest{method: single, sender: "Acme"})
	if !isError(err, errSender) {
		t.Errorf("prepared: %v", err)
	}
}
