package main

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"svcapi/functions/sms/units"
	"svcapi/functions/sms/vendors"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/test/fuzztest"
)

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
		sum := 0
		for _, p := range r.recipients {
			count, unicode := units.Count(p.text)
			sum += count
			if !normal.MatchString(p.To) || len(p.given) > 20 || count != p.Units || unicode != p.unicode || count < 1 ||
				!utf8.ValidString(p.text) {
				t.Errorf("%+v", p)
			}
			if r.method != bulkDifferent && !in.Bool("smart_encoding") && utf8.RuneCountInString(p.text) > 4096 {
				t.Errorf("%d characters", utf8.RuneCountInString(p.text))
			}
		}
		if got := requestedUnits(r.recipients); got != sum {
			t.Errorf("%d units, want %d", got, sum)
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
