package credit_test

import (
	"crypto/rand"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
)

// TestStatement checks that a statement adds up to ledger and wallet in any days, also while requests are charged, and
// that a changed wallet and a lost charge are an error with both sums (docs/decisions/money.md#usage).
func TestStatement(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	ago := func(days int) time.Time { return time.Now().AddDate(0, 0, -days) }
	charged := []credit.Charge{{Operation: credit.Barcode, Credits: 90}, {Operation: credit.SMS, Credits: 30}}
	for _, test := range []struct {
		first, last int
		want        credit.Statement
	}{
		{60, 0, credit.Statement{Grants: 1000, Adjustments: -50, Charges: charged, Refunds: 60, Closing: 890}},
		{40, 3, credit.Statement{Grants: 1000, Charges: []credit.Charge{}, Closing: 1000}},
		{39, 2, credit.Statement{Opening: 1000, Adjustments: -50, Charges: []credit.Charge{}, Closing: 950}},
		{1, 0, credit.Statement{Opening: 950, Charges: charged, Refunds: 60, Closing: 890}},
		{90, 80, credit.Statement{Charges: []credit.Charge{}}},
	} {
		read := credit.Reading{}
		st, err := b.Statement(t.Context(), &read, "p", ago(test.first), ago(test.last), func() {})
		b.must(err)
		if got := (credit.Statement{Opening: st.Opening, Grants: st.Grants, Adjustments: st.Adjustments, Charges: st.Charges,
			Refunds: st.Refunds, Closing: st.Closing}); !reflect.DeepEqual(got, test.want) || read.Entries < 6 ||
			read.Units <= 0 {
			t.Errorf("from %d to %d days ago: %+v by %+v, want %+v", test.first, test.last, got, read, test.want)
		}
	}
	b.must(b.Grant(t.Context(), movementOf("p", time.Now(), "more", 100_000)))
	var queries atomic.Int64
	during := b.over(&faults{before: func(operation string) {
		if operation == "Query" && queries.Add(1)%8 == 0 {
			r := request(30, rand.Text())
			b.must(b.Reserve(t.Context(), r))
			b.must(b.Capture(t.Context(), r, credit.Outcome{}))
			b.Remove(t.Context(), r)
		}
	}})
	if st, err := during.Statement(t.Context(), &credit.Reading{}, "p", ago(0), ago(0), func() {}); err != nil ||
		st.Charges[0].Credits <= 120 {
		t.Errorf("while requests are charged: %+v, %v", st, err)
	}
	wantSound(t, b.Store)
	for name, plant := range map[string]func(by int64){
		"a wallet": func(by int64) { b.wallet("SET balance = balance + :v", dynamo.Item{":v": dynamo.Number(by)}) },
		"a charge": func(by int64) { b.change("captured", "SET cr = cr + :v", dynamo.Item{":v": dynamo.Number(by)}) },
	} {
		sound, err := b.Statement(t.Context(), &credit.Reading{}, "p", ago(0), ago(0), func() {})
		b.must(err)
		plant(1)
		_, err = b.Statement(t.Context(), &credit.Reading{}, "p", ago(0), ago(0), func() {})
		if !errors.Is(err, credit.ErrUnbalanced) || strings.Count(err.Error(), credit.Grouped(sound.Closing)) != 1 {
			t.Errorf("%s of one credit more: %v", name, err)
		}
		plant(-1)
	}
}
