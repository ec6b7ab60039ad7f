package credit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

// TestDecode checks that items which no version wrote give errors, and that an entry reads as it was written.
func TestDecode(t *testing.T) {
	at := time.Date(2026, 11, 21, 1, 2, 3, 4, time.UTC)
	entry := Entry{
		Key: NewKey(at, "r"), State: Captured, Credits: 5, Price: SMS, RequestID: "r", Environment: "e", Vendor: "v", At: at,
		Project: "p",
		Actor:   "a", Reason: "w", Units: 6, Uncertain: true, Refunds: "of",
	}
	item := encodeEntry(entryKey("p", entry.Key), entry)
	if got, err := decodeEntry(item); err != nil || got != entry {
		t.Errorf("%+v, %v", got, err)
	}
	plain := Entry{Key: entry.Key, State: Released, Credits: 1, At: at, Project: "p"}
	if got := encodeEntry(operatorKey("p", plain.Key), plain); len(got) != 5 {
		t.Errorf("%d attributes for %+v", len(got), plain)
	} else if back, err := decodeEntry(got); err != nil || back != plain {
		t.Errorf("%+v, %v", back, err)
	}
	for _, name := range []string{"cr", "ts"} {
		broken := maps.Clone(item)
		broken[name] = dynamo.Text("x")
		if _, err := decodeEntry(broken); err == nil || !strings.Contains(err.Error(), string(entry.Key)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := Lease{Project: "p", Key: entry.Key, Slots: 64, Credits: 7}
	if got, err := decodeLease("p", l.Name(), dynamo.Number(7)); err != nil || got != l {
		t.Errorf("%+v, %v", got, err)
	}
	name := l.Name()
	if len(name) != nameLength {
		t.Errorf("the name %s has %d bytes", name, len(name))
	}
	for name, value := range map[string]types.AttributeValue{
		name: dynamo.Text("x"), name[:13]: dynamo.Number(1), name + "-": dynamo.Number(1), name[:13] +
			"!": dynamo.Number(1), "no key": dynamo.Number(1),
		name[:13] + "\n": dynamo.Number(1), "": dynamo.Number(1),
	} {
		if _, err := decodeLease("p", name, value); err == nil {
			t.Errorf("%s is a lease", name)
		}
	}
}

// TestAssess checks that only reservations older than any living one are stuck, and that the difference has its sign.
func TestAssess(t *testing.T) {
	now := time.Now().Truncate(time.Microsecond) // as keys have it
	for _, test := range []struct {
		name string
		a    func(*account)
		want string
	}{
		{"too much", func(a *account) { a.wallet, a.balance, a.sum = true, 5, 3 },
			"unbalanced: the wallet holds 5 credits, the ledger says 3: +2"},
		{"too little", func(a *account) { a.wallet, a.balance, a.sum = true, 3, 5 },
			"unbalanced: the wallet holds 3 credits, the ledger says 5: -2"},
		{"a reservation that may live", func(a *account) {
			a.balance, a.pending[NewKey(now.Add(-stuckAfter), "r")] = -1, Lease{Slots: 1, Credits: 1}
		}, ""},
		{"a reservation that is older", func(a *account) {
			a.balance, a.pending[NewKey(now.Add(-stuckAfter-time.Microsecond), "r")] = -1, Lease{Slots: 1, Credits: 1}
		}, "stuck: 1 credits are reserved for 30m0s"},
		{"a mark that may live", func(a *account) { a.marks[NewKey(now.Add(-stuckAfter), "r")] = true }, ""},
		{"a mark that is older", func(a *account) {
			a.marks[NewKey(now.Add(-stuckAfter-time.Microsecond), "r")] = true
		}, "stuck: marked as about to be sent, and no lease"},
	} {
		a := newAccount()
		test.a(a)
		var got []string
		for _, f := range a.assess("p", now) {
			got = append(got, fmt.Sprintf("%s: %s", f.Damage, f.Detail))
		}
		if strings.Join(got, "\n") != test.want {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// TestPartitions checks that the second read of a project reads each partition that was seen, and those of the days on
// which entries may have come: no more, whatever day a forged entry names.
func TestPartitions(t *testing.T) {
	now := time.Date(2026, 3, 3, 13, 0, 0, 0, time.FixedZone("", 14*60*60)) // 2 March, 23:00 UTC
	recent := []string{"p"}
	for _, shard := range shards("p") {
		recent = append(recent, shard+"#2026-03-01", shard+"#2026-03-02")
	}
	for _, test := range []struct {
		from       entryTable
		seen, more []string
	}{
		{requests, nil, recent},
		{requests, []string{"p#0001-01-01", "p#1#2026-03-01", "p#unreadable", "p#5#2026-03-09"}, recent},
		{movements, []string{"p", "p#1"}, []string{"p"}},
	} {
		a := newAccount()
		for _, pk := range test.seen {
			a.partitions[test.from][pk] = true
		}
		want := slices.Compact(slices.Sorted(slices.Values(slices.Concat(test.seen, test.more))))
		if got := slices.Sorted(maps.Keys(a.again(newAccount(), test.from, "p", now))); !slices.Equal(got, want) {
			t.Fatalf("seen %q: %q, want %q", test.seen, got, want)
		}
	}
	used := map[string]bool{}
	for i := range 500 { // all shards are used, and the slots of a lease are in one
		l := Lease{Key: NewKey(now, fmt.Sprint(i)), Slots: 64}
		used[shard("p", l.Key)] = true
		if shard("p", l.slot(0)) != shard("p", l.Key) || shard("p", l.slot(63)) != shard("p", l.Key) {
			t.Errorf("the slots of %s are in several shards", l.Key)
		}
	}
	if len(used) != ledgerShards {
		t.Errorf("shards %v", used)
	}
}
