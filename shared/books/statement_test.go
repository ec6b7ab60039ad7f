package books_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
)

// TestStatement checks that a statement adds up to ledger and wallet in any days, and
// that a changed wallet and a lost charge are an error with both sums (docs/decisions/money.md#usage).
func TestStatement(t *testing.T) {
	t.Parallel()
	b := newAccount(t)
	ago := func(days int) time.Time { return time.Now().AddDate(0, 0, -days) }
	charged := []books.Charge{{Operation: wallet.Barcode, Credits: 90}, {Operation: wallet.SMS, Credits: 30}}
	for _, test := range []struct {
		first, last int
		want        books.Statement
	}{
		{60, 0, books.Statement{Grants: 1000, Adjustments: -50, Charges: charged, Refunds: 60, Closing: 890}},
		{40, 3, books.Statement{Grants: 1000, Charges: []books.Charge{}, Closing: 1000}},
		{39, 2, books.Statement{Opening: 1000, Adjustments: -50, Charges: []books.Charge{}, Closing: 950}},
		{1, 0, books.Statement{Opening: 950, Charges: charged, Refunds: 60, Closing: 890}},
		{90, 80, books.Statement{Charges: []books.Charge{}}},
	} {
		read := books.Reading{}
		st, err := b.Statement(t.Context(), &read, "p", ago(test.first), ago(test.last), func() {})
		b.Must(err)
		if got := (books.Statement{Opening: st.Opening, Grants: st.Grants, Adjustments: st.Adjustments, Charges: st.Charges,
			Refunds: st.Refunds, Closing: st.Closing}); !reflect.DeepEqual(got, test.want) || read.Entries < 6 ||
			read.Units <= 0 {
			t.Errorf("from %d to %d days ago: %+v by %+v, want %+v", test.first, test.last, got, read, test.want)
		}
	}
	for name, plant := range map[string]func(by int64){
		"a wallet": func(by int64) { b.wallet("SET balance = balance + :v", dynamo.Item{":v": dynamo.Number(by)}) },
		"a charge": func(by int64) { b.change("captured", "SET cr = cr + :v", dynamo.Item{":v": dynamo.Number(by)}) },
	} {
		sound, err := b.Statement(t.Context(), &books.Reading{}, "p", ago(0), ago(0), func() {})
		b.Must(err)
		plant(1)
		_, err = b.Statement(t.Context(), &books.Reading{}, "p", ago(0), ago(0), func() {})
		if !errors.Is(err, books.ErrUnbalanced) || strings.Count(err.Error(), wallet.Grouped(sound.Closing)) != 1 {
			t.Errorf("%s of one credit more: %v", name, err)
		}
		plant(-1)
	}
}
