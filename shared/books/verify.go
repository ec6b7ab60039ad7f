package books

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
)

// Damage is a kind of damage to the money of a project.
type Damage string

// The kinds of damage that Verify finds.
const (
	Unbalanced  Damage = "unbalanced"  // the wallet and its ledger disagree
	Overdrawn   Damage = "overdrawn"   // the balance is below 0
	NoWallet    Damage = "no wallet"   // the ledger has entries, and the project has no wallet
	Unreadable  Damage = "unreadable"  // a wallet, reservation or entry that no version of the product wrote
	Misplaced   Damage = "misplaced"   // an entry in another partition than its own, or a wallet that no request finds
	Overpaid    Damage = "overpaid"    // refunds of a charge that does not exist, or of more than was charged
	Mismatched  Damage = "mismatched"  // entries that charged another amount than was reserved, or resolved
	Unexplained Damage = "unexplained" // an entry without its author, on another list, or resolved where that cannot be
	// an entry in a table that has none of its state, or a refund without its resolution
	Forged Damage = "forged"
	Stuck  Damage = "stuck" // a lease or a mark that the settler should have finished
	Busy   Damage = "busy"  // the wallet changed during all reads: verify the project again
)

// Finding is a damage that Verify found in one place.
type Finding struct {
	Project string     `json:"project_id"`
	Damage  Damage     `json:"damage"`
	Key     wallet.Key `json:"id"` // of the reservation or entry; empty for a damage of the wallet
	Detail  string     `json:"detail"`
}

// Verified is the result of Verify.
type Verified struct {
	Wallets, Entries int
	Findings         []Finding // by project, then by key
}

// stuckAfter is the age from which no lease may be pending.
const stuckAfter = 30 * time.Minute

// skew is the difference of clocks up to which a reservation of the future is none that nothing would ever settle.
const skew = 5 * time.Minute

// account collects from one pass over the tables what belongs to one project.
type account struct {
	wallet     bool                        // the project has a wallet
	balance    int64                       // of the wallet
	lent       int64                       // by the wallet, less that of its leases
	unread     bool                        // a balance that is no number
	beyond     bool                        // an amount or a sum that no wallet has
	sum        int64                       // the credits that the entries add less those that they charge
	granted    int64                       // the credits that the wallet counts as moved by operators
	moved      int64                       // the credits that operators moved
	pending    map[wallet.Key]wallet.Lease // by key
	spent      map[wallet.Key]int64        // captured credits by pending lease
	refunds    map[wallet.Key]int64        // refunded credits by the charge that the refunds name
	returned   map[wallet.Key]int64        // refunded credits by the charge whose resolution refunds them
	resolved   map[wallet.Key]Entry        // resolutions by their charge
	captured   map[wallet.Key]int64        // charges
	marks      map[wallet.Key]bool         // in state sending
	found      map[Finding]bool            // findings of this pass
	partitions map[entryTable]map[string]bool
}

// Verify recomputes every wallet from the ledger: balance + pending without a capture + captures − refunds −
// adjustments = grants, and checks each wallet, reservation and entry. What operators did counts in the tables of
// operators alone, which no function may write. Verify reads all four tables completely and changes nothing. Verify
// reads a project again that changed during the read. Verify calls progress, which may be nil, for each item of the
// first read.
func (s *Store) Verify(ctx context.Context, progress func()) (*Verified, error) {
	accounts := map[string]*account{}
	of := func(project string) *account {
		if accounts[project] == nil {
			accounts[project] = newAccount()
		}
		return accounts[project]
	}
	result := &Verified{}
	scan := func(table string, add func(pk string, item dynamo.Item)) error {
		in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
		return dynamo.Scan(ctx, s.client, in, func(item dynamo.Item) error {
			add(dynamo.TextOf(item["pk"]), item)
			if progress != nil {
				progress()
			}
			return nil
		})
	}
	err := scan(s.tables.Wallets, func(pk string, item dynamo.Item) {
		result.Wallets++
		of(wallet.ProjectOf(pk)).addWallet(pk, item)
	})
	if err != nil {
		return nil, err
	}
	for _, from := range entryTables {
		err = scan(s.tables.name(from), func(pk string, item dynamo.Item) {
			result.Entries++
			of(wallet.ProjectOf(pk)).addEntry(from, item)
		})
		if err != nil {
			return nil, err
		}
	}
	now := time.Now()
	for _, project := range slices.Sorted(maps.Keys(accounts)) {
		findings := accounts[project].assess(project, now)
		if len(findings) > 0 {
			if findings, err = s.verifyAgain(ctx, project, accounts[project]); err != nil {
				return nil, err
			}
		}
		result.Findings = append(result.Findings, findings...)
	}
	return result, nil
}

// verifyAgain reads one project until its wallet is the same before and after the read of its ledger. verifyAgain also
// reads each partition that the first pass saw.
func (s *Store) verifyAgain(ctx context.Context, project string, seen *account) ([]Finding, error) {
	const tries = 3
	for range tries {
		a := newAccount()
		for f := range seen.found {
			a.found[f] = f.Damage == Misplaced && f.Key == "" // a wallet that is not read again
		}
		maps.DeleteFunc(a.found, func(_ Finding, keep bool) bool { return !keep })
		start, err := s.Item(ctx, project)
		if err != nil {
			return nil, err
		}
		if start != nil {
			a.addWallet(project, start)
		}
		for _, from := range entryTables {
			for pk := range seen.again(a, from, project, time.Now()) {
				_, err := dynamo.Query(ctx, s.client, s.partition(from, pk), func(item dynamo.Item) error {
					a.addEntry(from, item)
					return nil
				})
				if err != nil {
					return nil, err
				}
			}
		}
		end, err := s.Item(ctx, project)
		if err != nil {
			return nil, err
		}
		if reflect.DeepEqual(start, end) {
			return a.assess(project, time.Now()), nil
		}
	}
	return []Finding{{Project: project, Damage: Busy, Detail: "the wallet changed while it was read"}}, nil
}

// again returns the partitions of a table that may hold entries when the wallet is read again: those that the account
// has seen, in the ledger also those of today, of yesterday and of the days of both reads' reservations. A forged entry
// of a distant day adds its own partition and no others.
func (a *account) again(second *account, from entryTable, project string, now time.Time) map[string]bool {
	all, days := map[string]bool{project: true}, map[string]bool{}
	maps.Copy(all, a.partitions[from])
	if from != requests {
		return all
	}
	for _, ago := range []int{0, -1} {
		days[now.UTC().AddDate(0, 0, ago).Format(time.DateOnly)] = true
	}
	for _, pending := range []map[wallet.Key]wallet.Lease{a.pending, second.pending} {
		for key := range pending {
			days[key.Day()] = true
		}
	}
	for _, shard := range wallet.Shards(project) {
		for day := range days {
			all[shard+"#"+day] = true
		}
	}
	return all
}

func newAccount() *account {
	return &account{
		partitions: map[entryTable]map[string]bool{requests: {}, movements: {},
			resolutions: {}}, pending: map[wallet.Key]wallet.Lease{}, spent: map[wallet.Key]int64{},
		refunds: map[wallet.Key]int64{}, captured: map[wallet.Key]int64{}, marks: map[wallet.Key]bool{},
		found:    map[Finding]bool{},
		returned: map[wallet.Key]int64{}, resolved: map[wallet.Key]Entry{},
	}
}

func (a *account) report(project string, damage Damage, key wallet.Key, format string, args ...any) {
	a.found[Finding{wallet.ProjectOf(project), damage, key, fmt.Sprintf(format, args...)}] = true
}

func (a *account) addWallet(name string, item dynamo.Item) {
	if name != wallet.ProjectOf(name) {
		a.report(name, Misplaced, "", "no request finds the wallet %s", name)
		return
	}
	balance, err := dynamo.NumberOf(item["balance"])
	lent, invalid := dynamo.NumberOf(item["lent"])
	if err != nil || invalid != nil || dynamo.TextOf(item["fence"]) == "" ||
		item["pending"] != nil && wallet.PendingOf(item) == nil {
		a.report(name, Unreadable, "", "the wallet has no balance, or no leases that can be read")
	}
	a.wallet, a.balance, a.lent, a.unread = true, balance, lent, err != nil
	a.granted, _ = dynamo.NumberOf(item["granted"]) // absent until the first movement
	if balance < 0 {
		a.report(name, Overdrawn, "", "the balance is %d", balance)
	}
	for _, l := range wallet.LeasesOf(item,
		func(lease string, err error) { a.report(name, Unreadable, wallet.Key(lease), "%v", err) }) {
		if l.Credits <= 0 {
			a.report(name, Unreadable, l.Key, "the lease has %d credits", l.Credits)
			continue
		}
		a.pending[l.Key] = l
		a.lent = a.plus(a.lent, -l.Lent(wallet.DefaultLimits.Leasing))
	}
}

// entryTables are the tables of entries in the order in which Verify reads them. The charges come last: a resolution
// that is written in between makes a charge certain, which is no finding, and would not fit a charge that was read
// before.
var entryTables = []entryTable{movements, resolutions, requests}

func (a *account) addEntry(from entryTable, item dynamo.Item) {
	pk := dynamo.TextOf(item["pk"])
	a.partitions[from][pk] = true
	e, err := decode(item)
	if _, keyErr := wallet.ParseKey(string(e.Key)); err != nil || keyErr != nil ||
		e.State != wallet.Adjustment && e.Credits <= 0 {
		a.report(pk, Unreadable, wallet.Key(dynamo.TextOf(item["sk"])), "the entry cannot be read")
		return
	}
	if !from.has(e.State) || from == resolutions && e.State == wallet.Refunded && e.Refunds == "" {
		a.report(pk, Forged, e.Key, "a %s of %d credits in the table %s", e.State, e.Credits, from)
		return
	}
	a.sum = a.plus(a.sum, effects[from][e.State]*e.Credits)
	own := e.Project
	if from == requests {
		own = wallet.Partition(e.Project, e.Key)
	}
	if pk != own {
		a.report(pk, Misplaced, e.Key, "the entry is stored under %s and not under %s", pk, own)
	}
	if from != requests {
		a.addOperators(from, e)
		return
	}
	if listed := dynamo.TextOf(item["uncertain"]); e.Uncertain && listed != wallet.Shard(e.Project, e.Key) {
		a.report(pk, Unexplained, e.Key, "the charge is on the list of %q", listed)
	}
	switch e.State {
	case wallet.Captured:
		a.captured[e.Key] = e.Credits
		if lease := e.Key.Lease(); a.pending[lease].Credits > 0 {
			a.spent[lease] = a.plus(a.spent[lease], e.Credits)
		}
	case wallet.Sending:
		a.marks[e.Key] = true
	}
	_, resolved := a.resolved[e.Key]
	switch {
	case e.Uncertain && e.State != wallet.Captured:
		a.report(pk, Unexplained, e.Key, "a %s entry that is uncertain", e.State)
	case e.Uncertain && resolved:
		a.report(pk, Unexplained, e.Key, "a resolution of a charge that is still uncertain")
	}
}

// plus returns the sum of two amounts. Amounts that a function forged would else overflow, up to a sum that looks
// right.
func (a *account) plus(sum, credits int64) int64 {
	const most = 2 * wallet.MaxBalance
	if credits > wallet.MaxBalance || credits < -wallet.MaxBalance || sum+credits > most || sum+credits < -most {
		a.beyond = true
		return sum
	}
	return sum + credits
}

func (a *account) addOperators(from entryTable, e Entry) {
	if e.Actor == "" || e.Reason == "" {
		a.report(e.Project, Unexplained, e.Key, "a %s without its actor and reason", e.State)
	}
	a.moved += effects[from][e.State] * e.Credits
	switch {
	case from == resolutions && e.State != wallet.Refunded:
		a.resolved[e.Key] = e
	case e.Refunds != "":
		a.refunds[e.Refunds] += e.Credits
		if from == resolutions {
			a.returned[e.Refunds] += e.Credits
		}
	}
}

// assess returns the findings once all items have been added.
func (a *account) assess(project string, now time.Time) []Finding {
	held := a.plus(0, a.balance)
	for key, l := range a.pending {
		spent := a.spent[key]
		charged := l.Slots == 1 && spent > 0
		if !charged {
			held = a.plus(held, l.Credits-spent)
		}
		if spent > l.Credits || charged && spent != l.Credits {
			a.report(project, Mismatched, key, "%d credits were reserved, %d were charged", l.Credits, spent)
		}
		if age := now.Sub(key.Time()); age > stuckAfter || age < -skew {
			a.report(project, Stuck, key, "%d credits are reserved for %s", l.Credits, age.Round(time.Minute))
		}
	}
	for key := range a.marks {
		age := now.Sub(key.Time())
		if _, pending := a.pending[key.Lease()]; !pending && (age > stuckAfter || age < -skew) {
			a.report(project, Stuck, key, "marked as about to be sent, and no lease")
		}
	}
	if a.lent != 0 {
		a.report(project, Unbalanced, "", "the wallet counts %d for leases beyond those that it has", a.lent)
	}
	for charge, credits := range a.refunds {
		if credits > a.captured[charge] {
			a.report(project, Overpaid, charge, "%d credits were refunded of %d charged", credits, a.captured[charge])
		}
	}
	for charge, e := range a.resolved {
		if e.Credits != a.captured[charge] {
			a.report(project, Mismatched, charge, "%d credits are charged, %d were when it was resolved",
				a.captured[charge], e.Credits)
		}
		if e.verdict() == VerdictRefunded && a.returned[charge] != e.Credits {
			a.report(project, Overpaid, charge, "%d credits were resolved as refunded, %d were", e.Credits, a.returned[charge])
		}
	}
	for charge, credits := range a.returned {
		if by := a.resolved[charge]; by.verdict() != VerdictRefunded {
			a.report(project, Forged, charge, "a refund of %d credits by no resolution", credits)
		}
	}
	if a.wallet && a.granted != a.moved {
		a.report(project, Unbalanced, "", "the wallet says %d credits by operators, their entries %d", a.granted, a.moved)
	}
	if a.beyond {
		a.report(project, Unbalanced, "", "an amount, or a sum of amounts, is beyond the largest balance")
	}
	switch {
	case !a.wallet && a.sum != 0:
		a.report(project, NoWallet, "", "the ledger says %d credits", a.sum)
	case !a.unread && held != a.sum:
		a.report(project, Unbalanced, "", "the wallet holds %d credits, the ledger says %d: %+d", held, a.sum, held-a.sum)
	}
	return slices.SortedFunc(maps.Keys(a.found), func(x, y Finding) int {
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Damage, y.Damage), cmp.Compare(x.Detail, y.Detail))
	})
}
