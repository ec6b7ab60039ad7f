package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"svcapi/functions/sms/units"
	"svcapi/functions/sms/vendors"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/test/fuzztest"
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
		if refusedFields()[name] == "" {
			t.Errorf("%s is documented only", name)
		}
	}
	if len(documented) != len(refusedFields()) || len(documented) < 90 {
		t.Errorf("%d names are documented, %d are refused", len(documented), len(refusedFields()))
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
		{"five characters", one + `,"message":"😀කඛගඝඞ"`, "😀කඛගඝඞ", `unicode;n=6;chars="U+1F600 U+0D9A U+0D9B U+0D9C U+0D9D"`},
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

// warningPattern matches the warnings of openapi.yaml#Warnings about a send.
var warningPattern = regexp.MustCompile(
	`^(unassigned-prefix;n=\d+|(unicode|smart-encoding);n=\d+(;units=\d+)?;chars="(U\+[0-9A-F]{4,6} ?){1,5}")$`)

// A body that decodes without a problem is a send of openapi.yaml#sendSms.
func FuzzSendBody(f *testing.F) {
	normal := regexp.MustCompile(`\A\+947[0-9]{8}\z`)
	fuzztest.Bodies(f, decodeSend, func(t *testing.T, in *request.Input, r sendRequest) {
		most := map[string]int{single: 1, bulkSame: 10_000, bulkDifferent: 20}[r.method]
		if n := len(r.recipients); n < 1 || n > most || r.checkCost && r.method != bulkSame {
			t.Fatalf("%+v", r)
		}
		for _, p := range r.recipients {
			count, unicode := units.Count(p.text)
			if !normal.MatchString(p.To) || len(p.given) > 20 || count != p.Units || unicode != p.unicode || count < 1 ||
				!utf8.ValidString(p.text) {
				t.Errorf("%+v", p)
			}
			if r.method != bulkDifferent && !in.Bool("smart_encoding") && utf8.RuneCountInString(p.text) > 4096 {
				t.Errorf("%d characters", utf8.RuneCountInString(p.text))
			}
		}
		for _, warning := range in.Warnings() {
			if !warningPattern.MatchString(warning) {
				t.Errorf("warning %q", warning)
			}
		}
	}, `{"send_method":"single","to":"0771234567","message":"Hello"}`,
		`{"send_method":"bulk_same","recipients":["0771234567","+94771234568"],"message":"ආයුබෝවන්","check_cost":true}`,
		`{"send_method":"bulk_different","msg_list":[{"to":"0771234567","msg":"a"},{"to":"+94771234568","msg":"€"}]}`,
		`{"send_method":"single","to":"0731234567","message":"It’s – “…”\u00a0e\u0301","smart_encoding":true,"sender_id":"A"}`,
		`{"send_method":"single","to":"0771234567\n","message":"\u0000\u202e"}`,
		`{"send_method":"bulk_same","recipients":[],"message":""}`,
		`{"send_method":"bulk_different","msg_list":[1,{},null]}`,
		`{"send_method":["single"],"to":{"a":1},"message":null}`, `{}`)
}

// A cost is the exact product for every price that is a plain decimal, and another price is an error.
func FuzzCost(f *testing.F) {
	f.Add("0.64", "Hello", uint16(2))
	f.Add("999999999.999999", strings.Repeat("ක", 200), uint16(10_000))
	f.Add("1e3", "", uint16(0))
	f.Add("٣", "a", uint16(1))
	f.Fuzz(func(t *testing.T, price, text string, recipients uint16) {
		r := sendRequest{method: bulkSame}
		for range int(recipients)%50 + 1 {
			r.add("0771234567", text)
		}
		campaign, err := computeCost(upstream.Account{Settings: map[string]string{vendors.UnitPrice: price}}, r)
		unit, ok := new(big.Rat).SetString(price)
		if err != nil || !ok {
			if regexp.MustCompile(`\A[0-9]{1,9}(\.[0-9]{1,6})?\z`).MatchString(price) {
				t.Errorf("%q is refused: %v", price, err)
			}
			return
		}
		count, _ := units.Count(text)
		want := unit.Mul(unit, big.NewRat(int64(count*len(r.recipients)), 1))
		if got, ok := new(big.Rat).SetString(campaign.Cost); !ok || got.Cmp(want) != 0 ||
			strings.ContainsAny(campaign.Cost, "eE-") || campaign.Numbers != strconv.Itoa(len(r.recipients)) {
			t.Errorf("%q: %+v, want %s", price, campaign, want.FloatString(6))
		}
		if _, err := json.Marshal(campaign); err != nil {
			t.Error(err)
		}
	})
}
