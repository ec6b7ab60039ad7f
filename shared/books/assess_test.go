package books

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/shared/wallet"
)

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
			a.balance, a.pending[wallet.NewKey(now.Add(-stuckAfter), "r")] = -1, wallet.Lease{Slots: 1, Credits: 1}
		}, ""},
		{"a reservation that is older", func(a *account) {
			a.balance, a.pending[wallet.NewKey(now.Add(-stuckAfter-time.Microsecond), "r")] = -1,
				wallet.Lease{Slots: 1, Credits: 1}
		}, "stuck: 1 credits are reserved for 30m0s"},
		{"a mark that may live", func(a *account) { a.marks[wallet.NewKey(now.Add(-stuckAfter), "r")] = true }, ""},
		{"a mark that is older", func(a *account) {
			a.marks[wallet.NewKey(now.Add(-stuckAfter-time.Microsecond), "r")] = true
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
	for _, shard := range wallet.Shards("p") {
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
}
