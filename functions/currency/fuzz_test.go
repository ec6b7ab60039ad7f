package main

import (
	"errors"
	"math/big"
	"regexp"
	"testing"

	"svcapi/shared/request"
)

// A path whose parameters decode is one of openapi.yaml#convertPairRate, and its amount is the number that was sent.
func FuzzParameters(f *testing.F) {
	for _, p := range [][3]string{
		{"USD", "LKR", "1"}, {"usd", "LKR-BUY", "000000000000001.50000000"}, {"LKR-SELL", "USD", "1"}, {"USD", "lkr-buy",
			"0"}, {"US\u212a", "ſKR", "٣"},
		{"USD\n", "LKR", "1\n"}, {"USD", "LKR", "1e3"}, {"USD", "LKR", "-1"}, {"USD", "LKR", "+1"}, {"USD", "LKR",
			"0.00000000"}, {"USD", "LKR", "1."}, {"%00", "..", "1/2"},
	} {
		f.Add(p[0], p[1], p[2])
	}
	base, target := regexp.MustCompile(`\A[A-Za-z]{3}\z`),
		regexp.MustCompile(`\A([A-Za-z]{3}|LKR-SELL|LKR-BUY|LKR-CENTRAL)\z`)
	number := regexp.MustCompile(`\A[0-9]{1,15}(\.[0-9]{1,8})?\z`)
	f.Fuzz(func(t *testing.T, b, to, amount string) {
		in, err := request.ReadInput(nil, map[string]string{"base": b, "target": to, "amount": amount})
		if err != nil {
			t.Fatal(err)
		}
		r, err := decodeConversion(in)
		var refused *request.Error
		if err != nil {
			if !errors.As(err, &refused) || refused.Status != 400 || base.MatchString(b) && target.MatchString(to) {
				t.Errorf("%q, %q: %v", b, to, err)
			}
			return
		}
		sent, _ := new(big.Rat).SetString(amount)
		good := number.MatchString(amount) && sent.Sign() > 0
		if !base.MatchString(b) || !target.MatchString(to) || good != (len(in.Problems()) == 0) {
			t.Errorf("%q, %q, %q: %+v, %v", b, to, amount, r, in.Problems())
		}
		if got, ok := new(big.Rat).SetString(r.amount.String()); good && (!ok || got.Cmp(sent) != 0) {
			t.Errorf("%q is %s", amount, r.amount)
		}
	})
}
