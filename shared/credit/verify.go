package credit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
)

// Damage is what can be wrong with the money of a project.
type Damage string

// The kinds of damage that Verify finds.
const (
	Unbalanced  Damage = "unbalanced"  // the wallet is not what its ledger says
	Overdrawn   Damage = "overdrawn"   // the balance is below 0
	NoWallet    Damage = "no wallet"   // the ledger has entries, there is no wallet
	Unreadable  Damage = "unreadable"  // a wallet, reservation or entry that no version of the product wrote
	Misplaced   Damage = "misplaced"   // an entry that does not lie under its own day
	Overpaid    Damage = "overpaid"    // refunds of a charge that is not there, or of more than it was
	Mismatched  Damage = "mismatched"  // an entry that charged another amount than was reserved
	Unexplained Damage = "unexplained" // an entry that lacks who made it, or has a resolution it cannot have
	Stuck       Damage = "stuck"       // a reservation or a mark that the settler should have finished
	Busy        Damage = "busy"        // the wallet changed throughout: verify it again
)

// Finding is one thing that is wrong.
type Finding struct {
	Project string
	Damage  Damage
	Key     Key // of the reservation or entry; empty where it is about the wallet
	Detail  string
}

// Verified is the result of Verify.
type Verified struct {
	Wallets, Entries int
	Findings         []Finding // by project, then by key
}

// stuckAfter is the age at which nothing is in flight any more, captured reservations included.
const stuckAfter = 30 * time.Minute

// account is what one pass over the tables says of a project.
type account struct {
	parts    map[string]int64 // balance of each part of its wallet
	unread   bool             // a balance that is no number
	first    string
	sum      int64            // what the ledger says was given and not charged
	entries  map[place]Entry  // of pending keys, refunded charges and the like
	pending  map[place]int64  // reserved
	refunds  map[Key]int64    // by the charge that they name
	captured map[Key]int64    // charges
	marks    map[place]Entry  // in state sending
	found    map[Finding]bool // findings of this pass
}

// place is where a reservation is and its entry lies.
type place struct {
	wallet string
	key    Key
}

// Verify recomputes every wallet from the ledger: balance + pending without a capture + captures −
// refunds − adjustments = grants, and looks at each wallet, reservation and entry. It reads both
// tables whole and changes nothing. A project that moves meanwhile is looked at again. Progress is
// told how many items were read; it may be nil.
func (s *Store) Verify(ctx context.Context, progress func(items int)) (*Verified, error) {
	accounts := map[string]*account{}
	of := func(project string) *account {
		if accounts[project] == nil {
			accounts[project] = newAccount()
		}
		return accounts[project]
	}
	result := &Verified{}
	read := func() {
		if progress != nil {
			progress(result.Wallets + result.Entries)
		}
	}
	err := s.scan(ctx, s.tables.Wallets, func(item attr.Item) {
		result.Wallets++
		wallet := attr.TextOf(item["pk"])
		of(owner(wallet)).open(wallet, item)
		read()
	})
	if err != nil {
		return nil, err
	}
	err = s.scan(ctx, s.tables.Ledger, func(item attr.Item) {
		result.Entries++
		wallet, day := walletOf(item)
		of(owner(wallet)).post(wallet, day, item)
		read()
	})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, project := range slices.Sorted(maps.Keys(accounts)) {
		findings := accounts[project].judge(project, now)
		if len(findings) > 0 {
			if findings, err = s.again(ctx, project, accounts[project].first, findings); err != nil {
				return nil, err
			}
		}
		result.Findings = append(result.Findings, findings...)
	}
	return result, nil
}

func (s *Store) scan(ctx context.Context, table string, visit func(attr.Item)) error {
	pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("credit: read %s: %w", table, err)
		}
		for _, item := range page.Items {
			visit(item)
		}
	}
	return nil
}

// owner is the project of a wallet.
func owner(wallet string) string {
	project, _, _ := strings.Cut(wallet, "#")
	return project
}

// again reads one project until its wallet stays the same while its ledger is read.
func (s *Store) again(ctx context.Context, project, first string, before []Finding) ([]Finding, error) {
	const tries = 3
	if first == "" {
		first = time.Now().UTC().Format(time.DateOnly)
	}
	for range tries {
		a := newAccount()
		start, err := s.partItems(ctx, project)
		if err != nil {
			return nil, err
		}
		for wallet, item := range start {
			a.open(wallet, item)
		}
		from, unreadable := time.Parse(time.DateOnly, first)
		if unreadable != nil {
			return before, nil //nolint:nilerr // its partition key is damaged: there is nothing to read by day
		}
		for day := from; !day.After(time.Now()); day = day.AddDate(0, 0, 1) {
			if err := s.postDay(ctx, start, project, day.Format(time.DateOnly), a); err != nil {
				return nil, err
			}
		}
		end, err := s.partItems(ctx, project)
		if err != nil {
			return nil, err
		}
		if maps.EqualFunc(start, end, same) {
			return a.judge(project, time.Now()), nil
		}
	}
	return []Finding{{Project: project, Damage: Busy, Detail: "the wallet changed while it was read"}}, nil
}

func (s *Store) walletItem(ctx context.Context, project string) (attr.Item, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.tables.Wallets, Key: walletKey(project), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, fmt.Errorf("credit: read the wallet: %w", err)
	}
	return out.Item, nil
}

// partItems reads every part of a project's wallet that is there.
func (s *Store) partItems(ctx context.Context, project string) (map[string]attr.Item, error) {
	wallets, err := s.wallets(ctx, project)
	if err != nil {
		return nil, err
	}
	items := map[string]attr.Item{}
	for _, wallet := range wallets {
		item, err := s.walletItem(ctx, wallet)
		if err != nil {
			return nil, err
		}
		if item != nil {
			items[wallet] = item
		}
	}
	return items, nil
}

// postDay takes a day's entries in, of a project that may have lost its wallet.
func (s *Store) postDay(ctx context.Context, wallets map[string]attr.Item, project, day string, into *account) error {
	names := slices.Collect(maps.Keys(wallets))
	if wallets[project] == nil {
		names = append(names, project)
	}
	for _, wallet := range names {
		err := s.query(ctx, entriesOf(wallet, day), func(item attr.Item) error {
			into.post(wallet, day, item)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// same compares two states of a wallet.
func same(a, b attr.Item) bool {
	if len(a) != len(b) || len(pendingOf(a)) != len(pendingOf(b)) {
		return false
	}
	for key := range pendingOf(a) {
		if pendingOf(b)[key] == nil {
			return false
		}
	}
	before, _ := a["balance"].(*types.AttributeValueMemberN)
	after, _ := b["balance"].(*types.AttributeValueMemberN)
	return before == nil && after == nil || before != nil && after != nil && before.Value == after.Value
}

func newAccount() *account {
	return &account{
		parts: map[string]int64{}, entries: map[place]Entry{}, pending: map[place]int64{},
		refunds: map[Key]int64{}, captured: map[Key]int64{}, marks: map[place]Entry{}, found: map[Finding]bool{},
	}
}

func (a *account) find(wallet string, damage Damage, key Key, format string, args ...any) {
	a.found[Finding{owner(wallet), damage, key, fmt.Sprintf(format, args...)}] = true
}

// open takes a wallet, or a part of one, in.
func (a *account) open(wallet string, item attr.Item) {
	balance, err := attr.NumberOf(item["balance"])
	if err != nil || item["pending"] != nil && pendingOf(item) == nil {
		a.find(wallet, Unreadable, "", "the wallet has no balance, or no reservations that can be read")
	}
	a.parts[wallet] = balance
	a.unread = a.unread || err != nil
	if balance < 0 {
		a.find(wallet, Overdrawn, "", "the balance is %d", balance)
	}
	pending := pendingOf(item)
	for _, key := range slices.Sorted(maps.Keys(pending)) {
		r, err := decodePending(wallet, key, pending[key])
		if err != nil || r.Credits <= 0 {
			a.find(wallet, Unreadable, Key(key), "the reservation cannot be read")
			continue
		}
		a.pending[place{wallet, r.Key}] = r.Credits
	}
}

// effects are what an entry of each state adds to what the wallet should hold.
var effects = map[State]int64{Sending: 0, Captured: -1, Released: 0, Granted: 1, Refunded: 1, Adjustment: 1}

// post takes an entry in.
func (a *account) post(wallet, day string, item attr.Item) {
	a.first = min(cmp.Or(a.first, day), day)
	e, err := decodeEntry(item)
	effect, known := effects[e.State]
	if _, keyErr := ParseKey(string(e.Key)); err != nil || keyErr != nil || !known || e.State != Adjustment && e.Credits <= 0 {
		a.find(wallet, Unreadable, Key(attr.TextOf(item["sk"])), "the entry cannot be read")
		return
	}
	if e.Key.Day() != day {
		a.find(wallet, Misplaced, e.Key, "the entry of %s lies under %s", e.Key.Day(), day)
	}
	a.sum += effect * e.Credits
	switch e.State {
	case Captured:
		a.captured[e.Key] = e.Credits
	case Sending:
		a.marks[place{wallet, e.Key}] = e
	case Refunded:
		if e.Refunds != "" {
			a.refunds[e.Refunds] += e.Credits
		}
	}
	byOperator := e.State == Granted || e.State == Refunded || e.State == Adjustment
	switch {
	case byOperator && (e.Actor == "" || e.Reason == ""):
		a.find(wallet, Unexplained, e.Key, "a %s without its actor and reason", e.State)
	case e.State != Captured && (e.Uncertain || e.Resolution.Verdict != unresolved):
		a.find(wallet, Unexplained, e.Key, "a %s entry that is uncertain or resolved", e.State)
	case e.Resolution.Verdict != unresolved && (e.Resolution.Actor == "" || e.Uncertain):
		a.find(wallet, Unexplained, e.Key, "a resolution without its actor, or of a charge that is still uncertain")
	}
	at := place{wallet, e.Key}
	if _, pending := a.pending[at]; pending || e.Resolution.Verdict == GivenBack {
		a.entries[at] = e
	}
}

// judge says what is wrong once all is taken in.
func (a *account) judge(project string, now time.Time) []Finding {
	var held int64
	for _, balance := range a.parts {
		held += balance
	}
	for at, credits := range a.pending {
		entry, written := a.entries[at]
		if written && entry.State == Captured {
			if entry.Credits != credits {
				a.find(project, Mismatched, at.key, "%d credits were reserved, %d were charged", credits, entry.Credits)
			}
		} else {
			held += credits
		}
		if age := now.Sub(at.key.Time()); age > stuckAfter {
			a.find(project, Stuck, at.key, "%d credits are reserved for %s", credits, age.Round(time.Minute))
		}
	}
	for at := range a.marks {
		if _, pending := a.pending[at]; !pending && now.Sub(at.key.Time()) > stuckAfter {
			a.find(project, Stuck, at.key, "marked as about to be sent, and no reservation")
		}
	}
	for charge, credits := range a.refunds {
		if credits > a.captured[charge] {
			a.find(project, Overpaid, charge, "%d credits were refunded of %d charged", credits, a.captured[charge])
		}
	}
	for at, e := range a.entries {
		if e.Resolution.Verdict == GivenBack && a.refunds[at.key] == 0 {
			a.find(project, Overpaid, at.key, "resolved as refunded, and no refund")
		}
	}
	switch {
	case len(a.parts) == 0 && a.sum != 0:
		a.find(project, NoWallet, "", "the ledger says %d credits", a.sum)
	case !a.unread && held != a.sum:
		a.find(project, Unbalanced, "", "the wallet holds %d credits, the ledger says %d: %+d", held, a.sum, held-a.sum)
	}
	return slices.SortedFunc(maps.Keys(a.found), func(x, y Finding) int {
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Damage, y.Damage), cmp.Compare(x.Detail, y.Detail))
	})
}
