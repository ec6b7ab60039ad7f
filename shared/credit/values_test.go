package credit_test

import (
	"sort"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"

	"svcapi/shared/credit"
)

// TestKeys checks that keys sort by time, distinguish requests and replays, and return their time and day.
func TestKeys(t *testing.T) {
	at := time.Date(2026, 1, 2, 23, 59, 59, 999_999_000, time.UTC)
	keys := []credit.Key{
		credit.NewKey(time.UnixMicro(1), "z"),
		credit.NewKey(at, "a"),
		credit.NewKey(at.Add(time.Microsecond), "a"), // the sameState event replayed
		credit.NewKey(at.AddDate(200, 0, 0), "a"),
	}
	if !sort.SliceIsSorted(keys, func(i, j int) bool { return keys[i] < keys[j] }) {
		t.Errorf("not in order: %v", keys)
	}
	if credit.NewKey(at, "a") == credit.NewKey(at, "b") {
		t.Error("two requests at the same time share a key")
	}
	for i, day := range []string{"1970-01-01", "2026-01-02", "2026-01-03", "2226-01-02"} {
		if keys[i].Day() != day {
			t.Errorf("%s is of %s, want %s", keys[i], keys[i].Day(), day)
		}
		if parsed, err := credit.ParseKey(string(keys[i])); err != nil || parsed != keys[i] {
			t.Errorf("%s: %v", keys[i], err)
		}
	}
	if got := keys[1].Time(); !got.Equal(at) || got.Location() != time.UTC {
		t.Errorf("time %s", got)
	}
	if east := credit.NewKey(at.In(time.FixedZone("", 19800)), "a"); east != keys[1] {
		t.Errorf("the zone changes the key: %s", east)
	}
	for _, bad := range []string{"", "-", "1767398399999999", "1767398399999999-", "176739839999999-aaaaaaaa", "17673983999999999-aaaaaaaa", "1767398399999999-aaaaaaa", "1767398399999999-aaaaaaaaa", "1767398399999999aaaaaaaa", "1767398399999999-aaaaaaa!", "1767398399999999-AAAAAAAA", "x767398399999999-aaaaaaaa", "-767398399999999-aaaaaaaa"} {
		if _, err := credit.ParseKey(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestPrices checks the default price list, which the stack's parameters replace; other operations are free.
func TestPrices(t *testing.T) {
	t.Setenv("PRICE_PDF", "1")
	prices, err := env.ParseAs[credit.Prices]()
	if err != nil {
		t.Fatal(err)
	}
	for operation, want := range map[string]int64{
		credit.SMS: 10_000, credit.VPNShield: 1_000, credit.Location: 500, credit.BurnerEmailShield: 100,
		credit.Barcode: 100, credit.QRCode: 100, credit.PDF: 1, "currency": 0,
	} {
		if got := prices.Of(operation); got != want {
			t.Errorf("%s costs %d, want %d", operation, got, want)
		}
	}
	for _, test := range []struct {
		price int64
		valid bool
	}{{0, true}, {1, true}, {-1, false}, {1_000_000_000_000, true}, {1_000_000_000_001, false}, {1 << 62, false}} {
		prices.Location = test.price
		if err := prices.Validate(); (err == nil) != test.valid {
			t.Errorf("price %d: %v", test.price, err)
		}
	}
}
