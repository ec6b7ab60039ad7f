package books

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

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

// account collects what belongs to one project.
type account struct {
	project    string
	began      time.Time            // of the first read
	wallet     dynamo.Item          // as the first read has found it; nil: none
	leases     map[wallet.Key]bool  // of that wallet
	moving     bool                 // the first read has left out entries that may still change
	late       bool                 // the wallet was read: what operators do now may be missing in it
	charged    int64                // credits
	moved      int64                // the credits that operators moved for certain before the wallet was read
	less, more int64                // the sums of late movements below 0, and above 0
	beyond     bool                 // an amount or a sum that no wallet has
	known      map[[3]string]bool   // the entries that may be read again, by table and key
	captured   map[wallet.Key]int64 // charges
	marks      map[wallet.Key]bool  // in state sending
	refunds    map[wallet.Key]int64 // refunded credits by the charge that the refunds name
	returned   map[wallet.Key]int64 // refunded credits by the charge whose resolution refunds them
	resolved   map[wallet.Key]Entry // resolutions by their charge
	resolving  map[wallet.Key]bool  // charges of which only a part of the resolution may have been read
	found      map[Finding]bool     // what no later write explains
	each       func(Entry)          // called for each entry that counts; nil: nothing is
}

// Verify recomputes every wallet from the ledger: balance + pending without a capture + captures − refunds −
// adjustments = grants, and checks each wallet, reservation and entry. What operators did counts in the tables of
// operators alone, which no function may write. Verify reads all four tables completely and changes nothing. Verify
// calls progress, which may be nil, for each item of the first read.
//
// Where requests or operators change a wallet meanwhile, Verify reads again what still changes, and compares the sum of
// the entries with what the wallet held before and after that: a difference within what moved meanwhile is not found.
func (s *Store) Verify(ctx context.Context, progress func()) (*Verified, error) {
	accounts, began := map[string]*account{}, time.Now()
	of := func(pk string) *account {
		project := wallet.ProjectOf(pk)
		if accounts[project] == nil {
			accounts[project] = newAccount(project, began)
		}
		return accounts[project]
	}
	result := &Verified{}
	scan := func(table string, count *int, add func(a *account, item dynamo.Item)) error {
		in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: new(true)}
		return dynamo.Scan(ctx, s.client, in, func(item dynamo.Item) error {
			*count++
			add(of(dynamo.TextOf(item["pk"])), item)
			if progress != nil {
				progress()
			}
			return nil
		})
	}
	err := scan(s.tables.Wallets, &result.Wallets, (*account).addWallet)
	for _, from := range entryTables {
		if err != nil {
			return nil, err
		}
		err = scan(s.tables.name(from), &result.Entries, func(a *account, item dynamo.Item) { a.scan(from, item) })
	}
	if err != nil {
		return nil, err
	}
	for _, project := range slices.Sorted(maps.Keys(accounts)) {
		a := accounts[project]
		findings := a.assess(a.wallet, a.wallet)
		if a.moving || len(findings) > 0 {
			first, last, err := s.readMoving(ctx, &Reading{}, a)
			if err != nil {
				return nil, err
			}
			findings = a.assess(first, last)
		}
		result.Findings = append(result.Findings, findings...)
	}
	return result, nil
}

// readMoving adds what may still change between two reads of the wallet, and what operators did around the first one.
func (s *Store) readMoving(ctx context.Context, read *Reading, a *account) (first, last dynamo.Item, err error) {
	entries := func(of entryTable, from, to time.Time) {
		if err == nil {
			err = s.items(ctx, read, of, a.project, from, to, func(item dynamo.Item) error {
				if of != requests || a.isOpen(wallet.Key(dynamo.TextOf(item["sk"]))) {
					a.addEntry(of, item)
				}
				return nil
			})
		}
	}
	operators := func() {
		entries(movements, time.Unix(0, 0), time.Now().AddDate(0, 0, 1))
		entries(resolutions, time.Unix(0, 0), time.Now().AddDate(0, 0, 1))
	}
	item := func() (found dynamo.Item) {
		if err == nil {
			found, err = s.Item(ctx, a.project)
		}
		return found
	}
	operators()
	first = item()
	a.late = true
	operators()
	for lease := range a.leases {
		if lease.Time().Before(a.young()) {
			entries(requests, lease.Time(), lease.Time().Add(time.Microsecond))
		}
	}
	entries(requests, a.young(), time.Now().Add(skew))
	return first, item(), err
}

func newAccount(project string, began time.Time) *account {
	return &account{
		project: project, began: began, leases: map[wallet.Key]bool{}, known: map[[3]string]bool{},
		captured: map[wallet.Key]int64{}, marks: map[wallet.Key]bool{}, refunds: map[wallet.Key]int64{},
		returned: map[wallet.Key]int64{}, resolved: map[wallet.Key]Entry{}, resolving: map[wallet.Key]bool{},
		found: map[Finding]bool{},
	}
}

// young returns the time from which entries may change, also those of leases that the wallet no longer has.
func (a *account) young() time.Time { return a.began.Add(-stuckAfter) }

// isOpen reports whether an entry of that key may be written, or change, after the begin of the first read.
func (a *account) isOpen(key wallet.Key) bool {
	return a.leases[key.Lease()] || !key.Time().Before(a.young())
}

// scan adds an entry of the first read, unless readMoving reads the entry: an open one in its place.
func (a *account) scan(from entryTable, item dynamo.Item) {
	key, err := wallet.ParseKey(dynamo.TextOf(item["sk"]))
	if from == requests && err == nil && a.isOpen(key) && key.Time().Before(time.Now().Add(skew)) &&
		dynamo.TextOf(item["pk"]) == wallet.Partition(a.project, key) {
		a.moving = true
		return
	}
	a.addEntry(from, item)
}

func (a *account) report(damage Damage, key wallet.Key, format string, args ...any) {
	a.found[Finding{a.project, damage, key, fmt.Sprintf(format, args...)}] = true
}

func (a *account) addWallet(item dynamo.Item) {
	if name := dynamo.TextOf(item["pk"]); name != a.project {
		a.report(Misplaced, "", "no request finds the wallet %s", name)
		return
	}
	a.wallet = item
	for _, l := range wallet.LeasesOf(item, func(string, error) {}) {
		a.leases[l.Key] = true
	}
}

// entryTables are the tables of entries in the order in which Verify reads them. The charges come last: a resolution
// that is written in between would not fit a charge that was read before as uncertain.
var entryTables = []entryTable{movements, resolutions, requests}

func (a *account) addEntry(from entryTable, item dynamo.Item) {
	pk, sk := dynamo.TextOf(item["pk"]), dynamo.TextOf(item["sk"])
	if from != requests || a.isOpen(wallet.Key(sk)) {
		place := [3]string{string(from), pk, sk}
		if a.known[place] {
			return
		}
		a.known[place] = true
	}
	e, err := decode(item)
	amount := e.Credits > 0 || e.State == wallet.Adjustment
	if _, keyErr := wallet.ParseKey(sk); err != nil || keyErr != nil ||
		!amount && (e.State != wallet.Repriced || e.Credits < 0) {
		a.report(Unreadable, wallet.Key(sk), "the entry cannot be read")
		return
	}
	if !from.has(e.State) || from == resolutions && e.State == wallet.Refunded && e.Refunds == "" {
		a.report(Forged, e.Key, "a %s of %d credits in the table %s", e.State, e.Credits, from)
		return
	}
	own := e.Project
	if from == requests {
		own = wallet.Partition(e.Project, e.Key)
	}
	if pk != own {
		a.report(Misplaced, e.Key, "the entry is stored under %s and not under %s", pk, own)
	}
	if a.each != nil {
		a.each(e)
	}
	if from != requests {
		a.addOperators(from, e)
		return
	}
	if listed := dynamo.TextOf(item["uncertain"]); e.Uncertain && listed != wallet.Shard(e.Project, e.Key) {
		a.report(Unexplained, e.Key, "the charge is on the list of %q", listed)
	}
	switch e.State {
	case wallet.Captured:
		a.captured[e.Key], a.charged = e.Credits, a.plus(a.charged, e.Credits)
	case wallet.Sending:
		a.marks[e.Key] = true
	}
	_, resolved := a.resolved[e.Key]
	switch {
	case e.Unused && e.State != wallet.Released:
		a.report(Unexplained, e.Key, "a %s entry that expires", e.State)
	case e.Uncertain && e.State != wallet.Captured:
		a.report(Unexplained, e.Key, "a %s entry that is uncertain", e.State)
	case e.Uncertain && resolved && !a.resolving[e.Key]:
		a.report(Unexplained, e.Key, "a resolution of a charge that is still uncertain")
	}
}

// plus returns the sum of two amounts. Forged ones would else overflow, up to a sum that looks right.
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
		a.report(Unexplained, e.Key, "a %s without its actor and reason", e.State)
	}
	switch credits := effects[from][e.State] * e.Credits; {
	case !a.late:
		a.moved = a.plus(a.moved, credits)
	case credits < 0:
		a.less = a.plus(a.less, credits)
	default:
		a.more = a.plus(a.more, credits)
	}
	if a.late {
		a.resolving[cmp.Or(e.Refunds, e.Key)] = true
	}
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

// state is what one read of a wallet says.
type state struct {
	exists, unread bool // a balance that is no number is unread
	held, granted  int64
	leases         map[wallet.Key]wallet.Lease
}

// read checks one read of the wallet, whose leases may have spent what the entries charge.
func (a *account) read(item dynamo.Item, now time.Time) state {
	w := state{leases: map[wallet.Key]wallet.Lease{}}
	if item == nil {
		return w
	}
	balance, err := dynamo.NumberOf(item["balance"])
	lent, invalid := dynamo.NumberOf(item["lent"])
	if err != nil || invalid != nil || dynamo.TextOf(item["fence"]) == "" ||
		item["pending"] != nil && wallet.PendingOf(item) == nil {
		a.report(Unreadable, "", "the wallet has no balance, or no leases that can be read")
	}
	if balance < 0 {
		a.report(Overdrawn, "", "the balance is %d", balance)
	}
	w.exists, w.unread, w.held = true, err != nil, a.plus(0, balance)
	w.granted, _ = dynamo.NumberOf(item["granted"]) // absent until the first movement
	for _, l := range wallet.LeasesOf(item,
		func(lease string, err error) { a.report(Unreadable, wallet.Key(lease), "%v", err) }) {
		if l.Credits <= 0 {
			a.report(Unreadable, l.Key, "the lease has %d credits", l.Credits)
			continue
		}
		w.leases[l.Key], lent = l, a.plus(lent, -l.Lent(wallet.DefaultLimits.Leasing))
	}
	if lent != 0 {
		a.report(Unbalanced, "", "the wallet counts %d for leases beyond those that it has", lent)
	}
	spent := map[wallet.Key]int64{}
	for key, credits := range a.captured {
		if l, pending := w.leases[key.Lease()]; pending {
			spent[l.Key] = a.plus(spent[l.Key], credits)
		}
	}
	for key, l := range w.leases {
		charged := l.Slots == 1 && spent[key] > 0
		if !charged {
			w.held = a.plus(w.held, l.Credits-spent[key])
		}
		if spent[key] > l.Credits || charged && spent[key] != l.Credits {
			a.report(Mismatched, key, "%d credits were reserved, %d were charged", l.Credits, spent[key])
		}
		if age := now.Sub(key.Time()); isStuck(age) {
			a.report(Stuck, key, "%d credits are reserved for %s", l.Credits, age.Round(time.Minute))
		}
	}
	return w
}

func isStuck(age time.Duration) bool { return age > stuckAfter || age < -skew }

// assess returns the findings once all items have been added.
func (a *account) assess(first, last dynamo.Item) []Finding {
	copied := *a
	a, copied.found = &copied, maps.Clone(a.found)
	now := time.Now()
	before, after := a.read(first, now), a.read(last, now)
	for key := range a.marks {
		if _, pending := before.leases[key.Lease()]; !pending && isStuck(now.Sub(key.Time())) {
			a.report(Stuck, key, "marked as about to be sent, and no lease")
		}
	}
	a.assessOperators()
	if g := before.granted; before.exists && (g < a.moved+a.less || g > a.moved+a.more) {
		a.report(Unbalanced, "", "the wallet says %d credits by operators, their entries %d", g, a.moved)
	}
	switch held, sum := a.difference(before, after); {
	case held == sum:
	case !before.exists && !after.exists:
		a.report(NoWallet, "", "the ledger says %d credits", sum)
	case !before.unread && !after.unread:
		a.report(Unbalanced, "", "the wallet holds %d credits, the ledger says %d: %+d", held, sum, held-sum)
	}
	if a.beyond {
		a.report(Unbalanced, "", "an amount, or a sum of amounts, is beyond the largest balance")
	}
	return slices.SortedFunc(maps.Keys(a.found), func(x, y Finding) int {
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Damage, y.Damage), cmp.Compare(x.Detail, y.Detail))
	})
}

// difference returns what the wallet holds and the sum of the entries, or twice the same where what moved between two
// reads of the wallet explains the difference. The open entries were read in between. A request only lowers what a
// wallet holds, and the wallet itself counts what operators move.
func (a *account) difference(before, after state) (held, sum int64) {
	least := a.plus(a.plus(a.moved, a.less), -a.charged)
	most := a.plus(a.plus(a.plus(a.moved, a.more), -a.charged), after.granted-before.granted)
	switch {
	case before.held < least:
		return before.held, least
	case after.held > most:
		return after.held, most
	}
	return most, most
}

// assessOperators compares refunds and resolutions with the charges, and with each other.
func (a *account) assessOperators() {
	for charge, credits := range a.refunds {
		if credits > a.captured[charge] {
			a.report(Overpaid, charge, "%d credits were refunded of %d charged", credits, a.captured[charge])
		}
	}
	for charge, e := range a.resolved {
		if e.Credits != a.captured[charge] {
			a.report(Mismatched, charge, "%d credits are charged, %d were when it was resolved",
				a.captured[charge], e.Credits)
		}
		if e.verdict() == VerdictRefunded && a.returned[charge] != e.Credits && !a.resolving[charge] {
			a.report(Overpaid, charge, "%d credits were resolved as refunded, %d were", e.Credits, a.returned[charge])
		}
	}
	for charge, credits := range a.returned {
		if by := a.resolved[charge]; by.verdict() != VerdictRefunded && !a.resolving[charge] {
			a.report(Forged, charge, "a refund of %d credits by no resolution", credits)
		}
	}
}
