package books

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
)

// TestAssess checks that the difference has its sign, and how much of it is explained by what moved meanwhile.
func TestAssess(t *testing.T) {
	held := func(balance, granted int64) dynamo.Item {
		return dynamo.Item{"balance": dynamo.Number(balance), "granted": dynamo.Number(granted), "lent": dynamo.Number(0),
			"fence": dynamo.Text("0")}
	}
	for _, test := range []struct {
		name        string
		a           account
		first, last dynamo.Item
		want        string
	}{
		{"too much", account{moved: 3}, held(5, 3), held(5, 3),
			"unbalanced: the wallet holds 5 credits, the ledger says 3: +2"},
		{"too little", account{moved: 5}, held(3, 5), held(3, 5),
			"unbalanced: the wallet holds 3 credits, the ledger says 5: -2"},
		{"a charge meanwhile", account{moved: 5, charged: 1}, held(5, 5), held(3, 5), ""},
		{"a charge that the first read should have", account{moved: 5}, held(4, 5), held(3, 5),
			"unbalanced: the wallet holds 4 credits, the ledger says 5: -1"},
		{"a charge that the last read should have", account{moved: 5, charged: 2}, held(5, 5), held(4, 5),
			"unbalanced: the wallet holds 4 credits, the ledger says 3: +1"},
		{"movements meanwhile", account{moved: 5, less: -2, more: 4}, held(3, 3), held(7, 7), ""},
		{"movements before the first read", account{moved: 5, less: -2, more: 4}, held(7, 7), held(7, 7), ""},
		{"more than moved meanwhile", account{moved: 5, less: -2, more: 4}, held(10, 10), held(10, 10),
			"unbalanced: the wallet holds 10 credits, the ledger says 9: +1\n" +
				"unbalanced: the wallet says 10 credits by operators, their entries 5"},
		{"less than moved meanwhile", account{moved: 5, less: -2, more: 4}, held(2, 2), held(9, 9),
			"unbalanced: the wallet holds 2 credits, the ledger says 3: -1\n" +
				"unbalanced: the wallet says 2 credits by operators, their entries 5"},
		{"a resolution of which half is read", account{
			resolved:  map[wallet.Key]Entry{"k": {Entry: wallet.Entry{State: wallet.State(VerdictRefunded), Credits: 5}}},
			returned:  map[wallet.Key]int64{"l": 5},
			captured:  map[wallet.Key]int64{"k": 5},
			resolving: map[wallet.Key]bool{"k": true, "l": true},
		}, held(0, 0), held(0, 0), ""},
		{"no wallet until now", account{more: 5}, nil, held(5, 5), ""},
		{"no wallet", account{moved: 5}, nil, nil, "no wallet: the ledger says 5 credits"},
	} {
		var got []string
		test.a.found = map[Finding]bool{}
		for _, f := range test.a.assess(test.first, test.last) {
			got = append(got, fmt.Sprintf("%s: %s", f.Damage, f.Detail))
		}
		if strings.Join(got, "\n") != test.want {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// TestIsStuck checks that an entry is stuck where it is older than any living lease, or where its time is later than
// the difference of two clocks explains, and that no other entry is.
func TestIsStuck(t *testing.T) {
	for age, want := range map[time.Duration]bool{stuckAfter: false, stuckAfter + 1: true, -skew: false, -skew - 1: true} {
		if isStuck(age) != want {
			t.Errorf("%s: %t", age, !want)
		}
	}
}
