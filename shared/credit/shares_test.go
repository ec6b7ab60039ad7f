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

func balancesOf(balances ...int64) shardBalances {
	p := make(shardBalances, len(balances))
	for i, balance := range balances {
		p[i].balance = balance
	}
	return p
}

// TestShares checks that credits above an even share go first, and the richest shard's before others'; that shards out of use
// keep nothing; and that no shard gives more than it has, or more than is needed (docs/decisions/money.md#rebalance).
func TestShares(t *testing.T) {
	for _, test := range []struct {
		name string
		of   shardBalances
		m    rebalancing
		want map[int]int64
	}{
		{"an even share", balancesOf(0, 100), rebalancing{to: 0, used: 2, want: 10}, map[int]int64{1: 50}},
		{"the odd credit stays", balancesOf(0, 101), rebalancing{to: 0, used: 2, want: 10}, map[int]int64{1: 50}},
		{"to another shard", balancesOf(100, 0), rebalancing{to: 1, used: 2, want: 10}, map[int]int64{0: 50}},
		{"what is wanted, beyond an even share", balancesOf(10, 90), rebalancing{to: 0, used: 2, want: 80}, map[int]int64{1: 70}},
		{"all", balancesOf(10, 90), rebalancing{to: 0, used: 2, want: 100}, map[int]int64{1: 90}},
		{"more than there is", balancesOf(10, 90), rebalancing{to: 0, used: 2, want: 200}, map[int]int64{1: 90}},
		{"the richest first", balancesOf(0, 60, 90), rebalancing{to: 0, used: 3, want: 10}, map[int]int64{1: 10, 2: 40}},
		{"the richest alone", balancesOf(0, 50, 100), rebalancing{to: 0, used: 3, want: 10}, map[int]int64{2: 50}},
		{"the poorer ones' shares last", balancesOf(0, 50, 100), rebalancing{to: 0, used: 3, want: 120}, map[int]int64{1: 20, 2: 100}},
		{"rebalanced already", balancesOf(50, 50), rebalancing{to: 0, used: 2, want: 10}, map[int]int64{}},
		{"richer than the others", balancesOf(60, 40), rebalancing{to: 0, used: 2, want: 10}, map[int]int64{}},
		{"equal ones in their order", balancesOf(0, 30, 30), rebalancing{to: 0, used: 3, want: 25}, map[int]int64{1: 15, 2: 10}},
		{"shards out of use keep nothing", balancesOf(0, 40, 60), rebalancing{to: 0, used: 2, want: 10}, map[int]int64{2: 50}},
		{"shards out of use, before the shares", balancesOf(0, 50, 10), rebalancing{to: 0, used: 2, want: 10}, map[int]int64{1: 20, 2: 10}},
		{"one shard in use", balancesOf(10, 20), rebalancing{to: 0, used: 1, want: 10}, map[int]int64{1: 20}},
		{"nothing at all", balancesOf(0, 0), rebalancing{to: 0, used: 2, want: 10}, map[int]int64{}},
		{"used in more than there are", balancesOf(0, 100), rebalancing{to: 0, used: 8, want: 10}, map[int]int64{1: 50}},
	} {
		if got := test.m.amounts(test.of); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestGatherIfFew checks that all credits go to the richest shard where an even share is less than wanted.
func TestGatherIfFew(t *testing.T) {
	for _, test := range []struct {
		name     string
		of       shardBalances
		anyShard bool
		used     int
		want     int64
		to       int
		least    int64
	}{
		{"enough for each", balancesOf(0, 20, 10), true, 3, 10, 0, 10},
		{"too little for each", balancesOf(0, 20, 9), true, 3, 10, 1, 29},
		{"the richest is the one", balancesOf(20, 9, 0), true, 3, 10, 0, 29},
		{"the first of equal ones", balancesOf(0, 7, 7), true, 3, 10, 1, 14},
		{"in a shard out of use", balancesOf(1, 1, 8), true, 2, 6, 2, 10},
		{"nowhere else", balancesOf(0, 20, 9), false, 3, 10, 0, 10},
	} {
		got := rebalancing{anyShard: test.anyShard, used: test.used, want: test.want}.gatherIfFew(test.of)
		if got.to != test.to || got.want != test.least || got.used != test.used {
			t.Errorf("%s: %+v, want shard %d with %d", test.name, got, test.to, test.least)
		}
	}
}

func TestUnchanged(t *testing.T) {
	one, other := balancesOf(1, 2), balancesOf(3, 4)
	if !one.unchanged(other) || one.sum() != 3 || other.sum() != 7 {
		t.Errorf("%v and %v", one, other)
	}
	if other[1].moves++; one.unchanged(other) {
		t.Error("credits have moved")
	}
	if one.unchanged(balancesOf(1)) || shardBalances(nil).unchanged(one) {
		t.Error("another shard")
	}
}

// TestWalletNames checks that a shard has exactly one name.
func TestWalletNames(t *testing.T) {
	for _, test := range []struct {
		wallet, project string
		shard           int
	}{{"acme", "acme", 0}, {"acme#1", "acme", 1}, {"acme#63", "acme", 63}} {
		project, shard, err := parseWallet(test.wallet)
		if err != nil || project != test.project || shard != test.shard || walletID(project, shard) != test.wallet {
			t.Errorf("%s: %s, %d, %v", test.wallet, project, shard, err)
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
		if wallet, day := walletOf(dynamo.Item{"pk": dynamo.Text(pk)}); wallet != want[0] || day != want[1] {
			t.Errorf("%s: %s, %s", pk, wallet, day)
		}
	}
}

// TestShardOfKey checks that a reservation's shard exists and is the same each time, and that all shards are used.
func TestShardOfKey(t *testing.T) {
	used := map[string]bool{}
	for i := range 200 {
		r := Reservation{Project: "p", Key: NewKey(time.UnixMicro(int64(i)), fmt.Sprint(i))}
		for r.Shards = range 2 {
			if shard := r.shard(); shard != "p" {
				t.Errorf("shard %s of %d", shard, r.Shards)
			}
		}
		r.Shards = 4
		shard := r.shard()
		if used[shard] = true; !slices.Contains([]string{"p", "p#1", "p#2", "p#3"}, shard) || shard != r.shard() {
			t.Errorf("shard %s of 4", shard)
		}
	}
	if len(used) != 4 {
		t.Errorf("shards %v of 4", used)
	}
	for shards, want := range map[int64]int{-1: 1, 0: 1, 1: 1, 2: 2, 64: 64, 65: 64} {
		if got := shardsIn(dynamo.Item{"shards": dynamo.Number(shards)}); got != want {
			t.Errorf("%d shards count as %d", shards, got)
		}
	}
	if shardsIn(nil) != 1 || shardsIn(dynamo.Item{"shards": dynamo.Text("x")}) != 1 {
		t.Error("a wallet of one item has one shard")
	}
}

// TestDecode checks that items which no version wrote give errors, and that an entry reads as it was written.
func TestDecode(t *testing.T) {
	at := time.Date(2026, 11, 21, 1, 2, 3, 4, time.UTC)
	entry := Entry{
		Key: NewKey(at, "r"), State: Captured, Credits: 5, Price: SMS, RequestID: "r", Environment: "e", Vendor: "v", At: at, Wallet: "p",
		Actor: "a", Reason: "w", Units: 6, Uncertain: true, Refunds: "of",
	}
	item := encodeEntry(entryKey("p", entry.Key), entry)
	if got, err := decodeEntry(item); err != nil || got != entry {
		t.Errorf("%+v, %v", got, err)
	}
	plain := Entry{Key: entry.Key, State: Released, Credits: 1, At: at, Wallet: "p"}
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
	for name, value := range map[string]types.AttributeValue{
		"text": dynamo.Text("x"), "map": &types.AttributeValueMemberM{Value: dynamo.Item{"c": dynamo.Number(7)}},
	} {
		if _, err := decodePending("p", string(entry.Key), value); err == nil {
			t.Errorf("%s is a reservation", name)
		}
	}
	if _, err := decodePending("p", "no key", dynamo.Number(1)); err == nil {
		t.Error("no key is a reservation's")
	}
	want := Reservation{Project: "p", Wallet: "p#2", Key: entry.Key, Credits: 7}
	if r, err := decodePending("p#2", string(entry.Key), dynamo.Number(7)); err != nil || *r != want {
		t.Errorf("%+v, %v", r, err)
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
		{"too much", func(a *account) { a.shards["p"], a.sum = 5, 3 }, "unbalanced: the wallet holds 5 credits, the ledger says 3: +2"},
		{"too little", func(a *account) { a.shards["p"], a.sum = 3, 5 }, "unbalanced: the wallet holds 3 credits, the ledger says 5: -2"},
		{"a reservation that may live", func(a *account) {
			a.shards["p"], a.pending[place{"p", NewKey(now.Add(-stuckAfter), "r")}] = -1, 1
		}, ""},
		{"a reservation that is older", func(a *account) {
			a.shards["p"], a.pending[place{"p", NewKey(now.Add(-stuckAfter-time.Microsecond), "r")}] = -1, 1
		}, "stuck: 1 credits are reserved for 30m0s"},
		{"a mark that may live", func(a *account) { a.marks[place{"p", NewKey(now.Add(-stuckAfter), "r")}] = Entry{} }, ""},
		{"a mark that is older", func(a *account) {
			a.marks[place{"p", NewKey(now.Add(-stuckAfter-time.Microsecond), "r")}] = Entry{}
		}, "stuck: marked as about to be sent, and no reservation"},
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

// TestPartitions checks that the second read of a project reads each partition that was seen, and in each wallet the days on
// which entries may have come: no more, whatever day a forged entry names.
func TestPartitions(t *testing.T) {
	now := time.Date(2026, 3, 3, 13, 0, 0, 0, time.FixedZone("", 14*60*60)) // 2 March, 23:00 UTC
	second := newAccount()
	second.shards = map[string]int64{"p": 0, "p#1": 0}
	recent := []string{"p", "p#2026-03-01", "p#2026-03-02", "p#1#2026-03-01", "p#1#2026-03-02"}
	for _, test := range []struct {
		from       entryTable
		seen, more []string
	}{
		{requests, nil, recent},
		{requests, []string{"p#0001-01-01", "p#2026-03-01", "p#unreadable", "p#5#2026-03-09"}, recent},
		{movements, []string{"p", "p#1"}, []string{"p"}},
	} {
		for range 50 { // the order of a map
			a := newAccount()
			for _, pk := range test.seen {
				a.partitions[test.from][pk] = true
			}
			want := slices.Compact(slices.Sorted(slices.Values(slices.Concat(test.seen, test.more))))
			if got := slices.Sorted(maps.Keys(a.again(second, test.from, "p", now))); !slices.Equal(got, want) {
				t.Fatalf("seen %q: %q, want %q", test.seen, got, want)
			}
		}
	}
}
