package credit

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
)

func pursed(balances ...int64) purse {
	p := make(purse, len(balances))
	for i, balance := range balances {
		p[i].balance = balance
	}
	return p
}

// TestShares: what lies above an even share goes first, the richest part's before others'; parts out of use keep
// nothing; no part gives more than it has, and none more than is needed.
func TestShares(t *testing.T) {
	for _, test := range []struct {
		name string
		of   purse
		f    filling
		want map[int]int64
	}{
		{"an even share", pursed(0, 100), filling{to: 0, used: 2, want: 10}, map[int]int64{1: 50}},
		{"the odd credit stays", pursed(0, 101), filling{to: 0, used: 2, want: 10}, map[int]int64{1: 50}},
		{"to another part", pursed(100, 0), filling{to: 1, used: 2, want: 10}, map[int]int64{0: 50}},
		{"what is wanted, beyond an even share", pursed(10, 90), filling{to: 0, used: 2, want: 80}, map[int]int64{1: 70}},
		{"all", pursed(10, 90), filling{to: 0, used: 2, want: 100}, map[int]int64{1: 90}},
		{"more than there is", pursed(10, 90), filling{to: 0, used: 2, want: 200}, map[int]int64{1: 90}},
		{"the richest first", pursed(0, 60, 90), filling{to: 0, used: 3, want: 10}, map[int]int64{1: 10, 2: 40}},
		{"the richest alone", pursed(0, 50, 100), filling{to: 0, used: 3, want: 10}, map[int]int64{2: 50}},
		{"the poorer ones' shares last", pursed(0, 50, 100), filling{to: 0, used: 3, want: 120}, map[int]int64{1: 20, 2: 100}},
		{"filled already", pursed(50, 50), filling{to: 0, used: 2, want: 10}, map[int]int64{}},
		{"richer than the others", pursed(60, 40), filling{to: 0, used: 2, want: 10}, map[int]int64{}},
		{"equal ones in their order", pursed(0, 30, 30), filling{to: 0, used: 3, want: 25}, map[int]int64{1: 15, 2: 10}},
		{"parts out of use keep nothing", pursed(0, 40, 60), filling{to: 0, used: 2, want: 10}, map[int]int64{2: 50}},
		{"parts out of use, before the shares", pursed(0, 50, 10), filling{to: 0, used: 2, want: 10}, map[int]int64{1: 20, 2: 10}},
		{"one part in use", pursed(10, 20), filling{to: 0, used: 1, want: 10}, map[int]int64{1: 20}},
		{"nothing at all", pursed(0, 0), filling{to: 0, used: 2, want: 10}, map[int]int64{}},
		{"used in more than there are", pursed(0, 100), filling{to: 0, used: 8, want: 10}, map[int]int64{1: 50}},
	} {
		if got := test.f.shares(test.of); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestScarce: where there is less for each part than is wanted, all is gathered in the richest part.
func TestScarce(t *testing.T) {
	for _, test := range []struct {
		name     string
		of       purse
		anywhere bool
		used     int
		want     int64
		to       int
		least    int64
	}{
		{"enough for each", pursed(0, 20, 10), true, 3, 10, 0, 10},
		{"too little for each", pursed(0, 20, 9), true, 3, 10, 1, 29},
		{"the richest is the one", pursed(20, 9, 0), true, 3, 10, 0, 29},
		{"the first of equal ones", pursed(0, 7, 7), true, 3, 10, 1, 14},
		{"in a part out of use", pursed(1, 1, 8), true, 2, 6, 2, 10},
		{"nowhere else", pursed(0, 20, 9), false, 3, 10, 0, 10},
	} {
		got := filling{anywhere: test.anywhere, used: test.used, want: test.want}.scarce(test.of)
		if got.to != test.to || got.want != test.least || got.used != test.used {
			t.Errorf("%s: %+v, want part %d with %d", test.name, got, test.to, test.least)
		}
	}
}

func TestSteady(t *testing.T) {
	one, other := pursed(1, 2), pursed(3, 4)
	if !one.steady(other) || one.total() != 3 || other.total() != 7 {
		t.Errorf("%v and %v", one, other)
	}
	if other[1].moves++; one.steady(other) {
		t.Error("credits have moved")
	}
	if one.steady(pursed(1)) || purse(nil).steady(one) {
		t.Error("a part more")
	}
}

// TestWalletNames: a part is named in one way only.
func TestWalletNames(t *testing.T) {
	for _, test := range []struct {
		wallet, project string
		part            int
	}{{"acme", "acme", 0}, {"acme#1", "acme", 1}, {"acme#63", "acme", 63}} {
		project, part, err := parseWallet(test.wallet)
		if err != nil || project != test.project || part != test.part || walletID(project, part) != test.wallet {
			t.Errorf("%s: %s, %d, %v", test.wallet, project, part, err)
		}
	}
	for _, wallet := range []string{"acme#", "acme#0", "acme#01", "acme#+1", "acme#x", "acme#1#2"} {
		if _, _, err := parseWallet(wallet); err == nil {
			t.Errorf("%s is a wallet", wallet)
		}
	}
	for pk, want := range map[string][2]string{
		"acme#2026-11-21": {"acme", "2026-11-21"}, "acme#1#2026-11-21": {"acme#1", "2026-11-21"}, "acme": {"acme", ""}, "#2026-11-21": {"", "2026-11-21"},
	} {
		if wallet, day := walletOf(attr.Item{"pk": attr.Text(pk)}); wallet != want[0] || day != want[1] {
			t.Errorf("%s: %s, %s", pk, wallet, day)
		}
	}
}

// TestPartOfKey: a reservation's part is one of those there are, the same each time, and all are used.
func TestPartOfKey(t *testing.T) {
	used := map[int]bool{}
	for i := range 200 {
		key := NewKey(time.UnixMicro(int64(i)), fmt.Sprint(i))
		for _, parts := range []int{0, 1} {
			if part := key.part(parts); part != 0 {
				t.Errorf("part %d of %d", part, parts)
			}
		}
		part := key.part(4)
		if used[part] = true; part < 0 || part > 3 || part != key.part(4) {
			t.Errorf("part %d of 4", part)
		}
	}
	if len(used) != 4 {
		t.Errorf("parts %v of 4", used)
	}
	for parts, want := range map[int64]int{-1: 1, 0: 1, 1: 1, 2: 2, 64: 64, 65: 64} {
		if got := partsIn(attr.Item{"parts": attr.Number(parts)}); got != want {
			t.Errorf("%d parts count as %d", parts, got)
		}
	}
	if partsIn(nil) != 1 || partsIn(attr.Item{"parts": attr.Text("x")}) != 1 {
		t.Error("a whole wallet has one part")
	}
}

// TestSame: two looks at a wallet are the same where nothing came, went or was paid between them.
func TestSame(t *testing.T) {
	wallet := func(balance int64, keys ...string) attr.Item {
		pending := map[string]types.AttributeValue{}
		for _, key := range keys {
			pending[key] = attr.Number(1)
		}
		return attr.Item{"balance": attr.Number(balance), "pending": &types.AttributeValueMemberM{Value: pending}}
	}
	unread := attr.Item{"balance": attr.Text("x"), "pending": wallet(0)["pending"]}
	for i, test := range []struct {
		a, b attr.Item
		want bool
	}{
		{wallet(1, "k"), wallet(1, "k"), true},
		{wallet(1, "k"), wallet(2, "k"), false},
		{wallet(1, "k"), wallet(1, "l"), false},
		{wallet(1, "k"), wallet(1), false},
		{wallet(1), wallet(1, "k"), false},
		{wallet(1), nil, false},
		{nil, wallet(1), false},
		{nil, nil, true},
		{unread, unread, true},
		{unread, wallet(0), false},
		{wallet(0), unread, false},
	} {
		if got := same(test.a, test.b); got != test.want {
			t.Errorf("case %d: %t", i, got)
		}
	}
}

// TestResolved: only what is uncertain can be resolved, and only once.
func TestResolved(t *testing.T) {
	for _, test := range []struct {
		entry *Entry
		done  bool
		err   error
	}{
		{nil, false, ErrNotUncertain},
		{&Entry{}, false, ErrNotUncertain},
		{&Entry{Uncertain: true}, false, nil},
		{&Entry{Resolution: Resolution{Verdict: Confirmed}}, true, nil},
		{&Entry{Resolution: Resolution{Verdict: GivenBack}}, false, ErrResolved},
		{&Entry{Uncertain: true, Resolution: Resolution{Verdict: Confirmed}}, true, nil},
	} {
		if done, err := test.entry.resolved("k", Confirmed); done != test.done || !errors.Is(err, test.err) {
			t.Errorf("%+v: %t, %v", test.entry, done, err)
		}
	}
}

// TestDecode: items that no version wrote are errors, and an entry reads as it was written.
func TestDecode(t *testing.T) {
	at := time.Date(2026, 11, 21, 1, 2, 3, 4, time.UTC)
	entry := Entry{
		Key: NewKey(at, "r"), State: Captured, Credits: 5, Operation: SMS, RequestID: "r", Environment: "e", Vendor: "v", At: at,
		Actor: "a", Reason: "w", Uncertain: true, Refunds: "of", Resolution: Resolution{Verdict: Confirmed, Actor: "b", Reason: "x", At: at},
	}
	item := encodeEntry("p", entry)
	if got, err := decodeEntry(item); err != nil || got != entry {
		t.Errorf("%+v, %v", got, err)
	}
	plain := Entry{Key: entry.Key, State: Released, Credits: 1, At: at}
	if got := encodeEntry("p", plain); len(got) != 5 {
		t.Errorf("%d attributes for %+v", len(got), plain)
	} else if back, err := decodeEntry(got); err != nil || back != plain {
		t.Errorf("%+v, %v", back, err)
	}
	for _, name := range []string{"cr", "ts"} {
		broken := maps.Clone(item)
		broken[name] = attr.Text("x")
		if _, err := decodeEntry(broken); err == nil || !strings.Contains(err.Error(), string(entry.Key)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := maps.Clone(item)
	broken["res"] = &types.AttributeValueMemberM{Value: attr.Item{"ts": attr.Text("x")}}
	if _, err := decodeEntry(broken); err == nil {
		t.Error("a resolution without its time")
	}
	for name, value := range map[string]types.AttributeValue{
		"no map": attr.Text("x"), "no credits": &types.AttributeValueMemberM{}, "text": &types.AttributeValueMemberM{Value: attr.Item{"c": attr.Text("x")}},
	} {
		if _, err := decodePending("p", string(entry.Key), value); err == nil {
			t.Errorf("%s is a reservation", name)
		}
	}
	if _, err := decodePending("p", "no key", &types.AttributeValueMemberM{Value: attr.Item{"c": attr.Number(1)}}); err == nil {
		t.Error("no key is a reservation's")
	}
}

// TestJudge: what is stuck is older than what may still live, and the difference is told with its sign.
func TestJudge(t *testing.T) {
	now := time.Now().Truncate(time.Microsecond) // as keys have it
	for _, test := range []struct {
		name string
		a    func(*account)
		want string
	}{
		{"too much", func(a *account) { a.parts["p"], a.sum = 5, 3 }, "unbalanced: the wallet holds 5 credits, the ledger says 3: +2"},
		{"too little", func(a *account) { a.parts["p"], a.sum = 3, 5 }, "unbalanced: the wallet holds 3 credits, the ledger says 5: -2"},
		{"a reservation that may live", func(a *account) {
			a.parts["p"], a.pending[place{"p", NewKey(now.Add(-stuckAfter), "r")}] = -1, 1
		}, ""},
		{"a reservation that is older", func(a *account) {
			a.parts["p"], a.pending[place{"p", NewKey(now.Add(-stuckAfter-time.Microsecond), "r")}] = -1, 1
		}, "stuck: 1 credits are reserved for 30m0s"},
		{"a mark that may live", func(a *account) { a.marks[place{"p", NewKey(now.Add(-stuckAfter), "r")}] = Entry{} }, ""},
		{"a mark that is older", func(a *account) {
			a.marks[place{"p", NewKey(now.Add(-stuckAfter-time.Microsecond), "r")}] = Entry{}
		}, "stuck: marked as about to be sent, and no reservation"},
	} {
		a := newAccount()
		test.a(a)
		var got []string
		for _, f := range a.judge("p", now) {
			got = append(got, fmt.Sprintf("%s: %s", f.Damage, f.Detail))
		}
		if strings.Join(got, "\n") != test.want {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}
