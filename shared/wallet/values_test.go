package wallet_test

import (
	"sort"
	"strings"
	"testing"
	"time"

	"svcapi/shared/wallet"
	"svcapi/test/must"
)

// TestKeys checks that keys sort by time, distinguish requests and replays, and return their time and day.
func TestKeys(t *testing.T) {
	at := time.Date(2026, 1, 2, 23, 59, 59, 999_999_000, time.UTC)
	keys := []wallet.Key{
		wallet.NewKey(time.UnixMicro(1), "z"),
		wallet.NewKey(at, "a"),
		wallet.NewKey(at.Add(time.Microsecond), "a"), // the same event replayed
		wallet.NewKey(at.AddDate(200, 0, 0), "a"),
	}
	if !sort.SliceIsSorted(keys, func(i, j int) bool { return keys[i] < keys[j] }) {
		t.Errorf("not in order: %v", keys)
	}
	if wallet.NewKey(at, "a") == wallet.NewKey(at, "b") {
		t.Error("two requests at the same time share a key")
	}
	for i, day := range []string{"1970-01-01", "2026-01-02", "2026-01-03", "2226-01-02"} {
		if keys[i].Day() != day {
			t.Errorf("%s is of %s, want %s", keys[i], keys[i].Day(), day)
		}
		if parsed, err := wallet.ParseKey(string(keys[i])); err != nil || parsed != keys[i] {
			t.Errorf("%s: %v", keys[i], err)
		}
	}
	if got := keys[1].Time(); !got.Equal(at) || got.Location() != time.UTC {
		t.Errorf("time %s", got)
	}
	if east := wallet.NewKey(at.In(time.FixedZone("", 19800)), "a"); east != keys[1] {
		t.Errorf("the zone changes the key: %s", east)
	}
	for _, bad := range []string{
		"", "-", "1767398399999999", "1767398399999999-", "176739839999999-aaaaaaa", "17673983999999999-aaaaaaa",
		"1767398399999999-aaaaaa",
		"1767398399999999-aaaaaaaa", "1767398399999999aaaaaaa", "1767398399999999-aaaaaa!", "1767398399999999-aaaaaag",
		"1767398399999999-AAAAAAA", "x767398399999999-aaaaaaa", "-767398399999999-aaaaaaa",
		"1767398399999999-aaaaaaa.", "1767398399999999-aaaaaaa.7", "1767398399999999-aaaaaaa.80", "1767398399999999-aaaaaaa.7A",
		"1767398399999999-aaaaaaa.007",
	} {
		if _, err := wallet.ParseKey(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestPrices checks that every price has a row with its variable; an operation without a row or a text is free.
func TestPrices(t *testing.T) {
	t.Setenv("PRICE_PDF", "2000")
	t.Setenv("PRICE_BURNER_EMAIL_SHIELD", "100")
	prices, err := wallet.ReadPrices(wallet.FromEnvironment)
	must.Succeed(t, err)
	for operation, want := range map[string]int64{wallet.PDF: 2_000, wallet.BurnerEmailShield: 100,
		wallet.SMS: 0, "currency": 0} {
		if got := prices[operation]; got != want {
			t.Errorf("%s costs %d, want %d", operation, got, want)
		}
	}
	for text, valid := range map[string]bool{
		"0": true, "1": true, "-1": false, "1000000000000": true, "1000000000001": false, "4611686018427387904": false,
		"99999999999999999999": false, "": false, "1.5": false, "1e3": false,
	} {
		for _, row := range wallet.PriceList() {
			prices, err := wallet.ReadPrices(func(p wallet.Price) (string, bool) { return text, p == row })
			if (err == nil) != valid || valid && len(prices) != 1 || err != nil && !strings.Contains(err.Error(), row.Name) {
				t.Errorf("price %q of %s: %v %v", text, row.Name, prices, err)
			}
		}
	}
}
