// Package books is the operator's side of the money: what operators move, how they resolve uncertain charges, and what
// the ledger says about both. What operators do is recorded in tables of its own, which no function may write but the
// one that resolves uncertain sends (docs/decisions/money.md#operator-movements).
package books

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
)

// Tables names the tables of the money: those of package wallet, and those of what operators do.
type Tables struct {
	wallet.Tables
	Movements, Resolutions string
}

// NamedTables returns the tables whose names the function name derives from short names such as wallets.
func NamedTables(name func(short string) string) Tables {
	return Tables{wallet.Tables{Wallets: name("wallets"), Ledger: name("ledger")}, name("movements"), name("resolutions")}
}

// Prices returns the prices in the parameters of a stack.
func Prices(parameters map[string]string) (wallet.Prices, error) {
	return wallet.ReadPrices(func(p wallet.Price) (string, bool) {
		text, ok := parameters[p.Parameter]
		return text, ok
	})
}

// Store reads and writes what operators do, on top of what requests do. A Store is safe for concurrent use.
type Store struct {
	*wallet.Store

	client *dynamodb.Client
	tables Tables
}

// NewStore returns a store. The client comes from dynamo.NewClient, because the protocol counts its attempts.
func NewStore(client *dynamodb.Client, tables Tables) *Store {
	return &Store{wallet.NewStore(client, tables.Tables), client, tables}
}

// Entry is an entry of a project's ledger, or of the tables of what operators do, with the resolution of an uncertain
// charge where resolutions are read. The JSON form is the output of "svc credit ledger".
type Entry struct {
	wallet.Entry
	Resolution Resolution `json:"resolution,omitzero"`
}

func decode(item dynamo.Item) (Entry, error) {
	e, err := wallet.DecodeEntry(item)
	return Entry{Entry: e}, err
}

// operatorKey returns the key of an entry in the tables of what operators do.
func operatorKey(project string, key wallet.Key) dynamo.Item {
	return dynamo.Item{"pk": dynamo.Text(project), "sk": dynamo.Text(string(key))}
}

// entryTable is a table of entries, by its name in template.yaml.
type entryTable string

// The tables of entries, and who writes them.
const (
	requests    entryTable = "Ledger"      // functions; operators only take a charge off the list of uncertain charges
	movements   entryTable = "Movements"   // operators alone
	resolutions entryTable = "Resolutions" // operators alone
)

// effects are the factors by which entries change what the wallet should hold. One of any other state is forged.
var effects = map[entryTable]map[wallet.State]int64{
	requests: {wallet.Sending: 0, wallet.Captured: -1, wallet.Released: 0},
	movements: {wallet.Granted: 1, wallet.Refunded: 1, wallet.Adjustment: 1, wallet.Repriced: 0,
		wallet.State(VerdictRefunded): 0},
	resolutions: {wallet.Refunded: 1, wallet.State(VerdictConfirmed): 0, wallet.State(VerdictRefunded): 0},
}

func (t entryTable) has(state wallet.State) bool {
	_, known := effects[t][state]
	return known
}

// name returns the stage's name of a table of entries.
func (t Tables) name(of entryTable) string {
	return map[entryTable]string{requests: t.Ledger, movements: t.Movements, resolutions: t.Resolutions}[of]
}

// entry reads one entry, and returns nil where the table has no such entry.
func (s *Store) entry(ctx context.Context, table string, key dynamo.Item) (*Entry, error) {
	item, err := dynamo.Get(ctx, s.client, table, key)
	if err != nil || item == nil {
		return nil, err
	}
	e, err := decode(item)
	return &e, err
}

// charge returns the captured entry of a project under that key with its resolution, or nil where there is none.
func (s *Store) charge(ctx context.Context, project string, key wallet.Key) (*Entry, error) {
	e, err := s.entry(ctx, s.tables.Ledger, wallet.EntryKey(project, key))
	if err != nil || e == nil || e.State != wallet.Captured {
		return nil, err
	}
	// The resolution is read second: one transaction writes it and makes the charge certain.
	r, err := s.entry(ctx, s.tables.Resolutions, operatorKey(project, key))
	if r != nil {
		e.resolve(*r)
	}
	return e, err
}

// Entries returns a project's entries, without forged ones, of the UTC days of first to last, oldest first.
func (s *Store) Entries(ctx context.Context, project string, first, last time.Time) ([]Entry, error) {
	var entries []Entry
	resolved := map[wallet.Key]Entry{}
	err := s.Visit(ctx, &Reading{}, project, first, last, func(e Entry) {
		if e.verdict() != unresolved {
			resolved[e.Key] = e
		} else {
			entries = append(entries, e)
		}
	})
	for i, e := range entries {
		if r, known := resolved[e.Key]; known && e.State == wallet.Captured {
			entries[i].resolve(r)
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	return entries, err
}

// Reading is the size of a read of entries.
type Reading struct {
	Entries int
	Units   float64 // read units of DynamoDB
	// Skip is called for each entry that cannot be read; nil: the first one ends the read.
	Skip func(err error)
}

// Visit calls visit for each entry of a project of the UTC days from that of first to that of last: what operators did
// first, then the charges in any order. Visit omits forged entries, keeps none, and adds to read what Visit has read.
func (s *Store) Visit(ctx context.Context, read *Reading, project string, first, last time.Time,
	visit func(Entry)) (err error) {
	for _, of := range entryTables {
		if err == nil {
			err = s.visit(ctx, read, of, project, midnight(first), midnight(last).AddDate(0, 0, 1), visit)
		}
	}
	return err
}

// midnight returns the begin of the UTC day of a time.
func midnight(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }

// visit calls visit for each entry of a project in one table whose key's time is within [from, to), in any order.
func (s *Store) visit(
	ctx context.Context, read *Reading, of entryTable, project string, from, to time.Time, visit func(Entry),
) error {
	return s.items(ctx, read, of, project, from, to, func(item dynamo.Item) error {
		e, err := decode(item)
		// The movement "refunded" of a charge's key says what the refund says, and keeps the charge from a second one.
		if err == nil && of.has(e.State) && (of == resolutions || e.verdict() == unresolved) {
			visit(e)
		}
		if err != nil && read.Skip != nil {
			read.Skip(err)
			return nil
		}
		return err
	})
}

// items calls each for each item that visit reads, one after another. Several partitions are read at the same time.
func (s *Store) items(ctx context.Context, read *Reading, of entryTable, project string, from, to time.Time,
	each func(dynamo.Item) error) error {
	partitions := []string{project}
	if of == requests {
		partitions = nil
		for day := midnight(from); day.Before(to); day = day.AddDate(0, 0, 1) {
			for _, shard := range wallet.Shards(project) {
				partitions = append(partitions, shard+"#"+day.Format(time.DateOnly))
			}
		}
	}
	var mu sync.Mutex // guards read, and calls of each
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(wallet.LedgerShards)
	for _, pk := range partitions {
		group.Go(func() error {
			in := dynamo.Partition(s.tables.name(of), pk)
			*in.KeyConditionExpression += " AND sk BETWEEN :from AND :to"
			in.ExpressionAttributeValues[":from"] = dynamo.Text(wallet.Digits(from))
			in.ExpressionAttributeValues[":to"] = dynamo.Text(wallet.Digits(to))
			units, err := dynamo.Query(ctx, s.client, in, func(item dynamo.Item) error {
				mu.Lock()
				defer mu.Unlock()
				read.Entries++
				return each(item)
			})
			mu.Lock()
			defer mu.Unlock()
			read.Units += units
			return err
		})
	}
	return group.Wait()
}

// Uncertain returns a project's charges that an operator has yet to resolve, oldest first. The newest charges may
// be missing for a moment, because the index is eventually consistent.
func (s *Store) Uncertain(ctx context.Context, project string) ([]Entry, error) {
	var entries []Entry
	for _, shard := range wallet.Shards(project) {
		_, err := dynamo.Query(ctx, s.client, &dynamodb.QueryInput{
			TableName:                 &s.tables.Ledger,
			IndexName:                 new("uncertain"),
			KeyConditionExpression:    new("uncertain = :p"),
			ExpressionAttributeValues: dynamo.Item{":p": dynamo.Text(shard)},
		}, func(item dynamo.Item) error {
			e, err := decode(item)
			entries = append(entries, e)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	return entries, nil
}

// Resolved returns a project's charges that were uncertain and are resolved, oldest first.
func (s *Store) Resolved(ctx context.Context, project string) (charges []Entry, err error) {
	in := dynamo.Partition(s.tables.Resolutions, project)
	_, err = dynamo.Query(ctx, s.client, in, func(item dynamo.Item) error {
		r, err := decode(item)
		if err != nil || r.verdict() == unresolved { // the entry of a refund
			return err
		}
		e, err := s.charge(ctx, project, r.Key)
		if e != nil {
			charges = append(charges, *e)
		}
		return err
	})
	return charges, err
}

// VisitUncertain calls visit for each charge of any project that is yet to be resolved, in any order, or with the error
// of an entry that cannot be read. The newest charges may be missing, as in Uncertain.
func (s *Store) VisitUncertain(ctx context.Context, visit func(project string, e Entry, err error)) error {
	in := &dynamodb.ScanInput{TableName: &s.tables.Ledger, IndexName: new("uncertain")}
	return dynamo.Scan(ctx, s.client, in, func(item dynamo.Item) error {
		e, err := decode(item)
		visit(wallet.ProjectOf(dynamo.TextOf(item["pk"])), e, err)
		return nil
	})
}

// ErrUnbalanced reports that a wallet does not hold the sum of its entries.
var ErrUnbalanced = errors.New("books: wallet and ledger differ")

// Statement says how a project's credits changed in some days. Its balances include pending reservations.
type Statement struct {
	Opening     int64    `json:"opening_balance"`
	Grants      int64    `json:"grants"`
	Adjustments int64    `json:"adjustments"`
	Charges     []Charge `json:"charges"`
	Refunds     int64    `json:"refunds"`
	Closing     int64    `json:"closing_balance"`
	Prices      []Entry  `json:"prices"` // changes of the project's own prices, oldest first

	from, to time.Time
}

// Charge is what a statement charges for one operation.
type Charge struct {
	Operation string `json:"operation"`
	Credits   int64  `json:"credits"`
}

// add adds an entry that Visit passes.
func (st *Statement) add(e Entry) {
	change := e.Credits
	line := map[wallet.State]*int64{wallet.Granted: &st.Grants, wallet.Adjustment: &st.Adjustments,
		wallet.Refunded: &st.Refunds}[e.State]
	if e.State == wallet.Captured {
		i := slices.IndexFunc(st.Charges, func(c Charge) bool { return c.Operation == e.Price })
		if i < 0 {
			i, st.Charges = len(st.Charges), append(st.Charges, Charge{Operation: e.Price})
		}
		change, line = -e.Credits, &st.Charges[i].Credits
	}
	switch at := e.Key.Time(); {
	case e.State == wallet.Repriced && !at.Before(st.from) && at.Before(st.to):
		st.Prices = append(st.Prices, e)
	case line == nil: // an entry of any other state changes nothing
	case at.Before(st.from):
		st.Opening, st.Closing = st.Opening+change, st.Closing+change
	case at.Before(st.to):
		*line, st.Closing = *line+e.Credits, st.Closing+change
	}
}

// Statement returns the statement of the UTC days from that of first to that of last. Statement reads all entries of
// the project, calls progress for each, and compares their sum with what the wallet holds. A difference is
// ErrUnbalanced. Where requests or operators change the wallet meanwhile, the sum is compared as Verify does.
func (s *Store) Statement(
	ctx context.Context, read *Reading, project string, first, last time.Time, progress func(),
) (*Statement, error) {
	st := &Statement{Charges: []Charge{}, Prices: []Entry{}, from: midnight(first), to: midnight(last).AddDate(0, 0, 1)}
	a := newAccount(project, time.Now())
	a.each = func(e Entry) { progress(); st.add(e) }
	item, err := s.Item(ctx, project)
	if err != nil {
		return nil, err
	}
	a.addWallet(item)
	begin := a.began
	err = s.visit(ctx, read, movements, project, time.Unix(0, 0), begin.AddDate(0, 0, 1), func(e Entry) {
		begin = begin.Add(min(0, e.Key.Time().Sub(begin)))
	})
	if err == nil { // no charge precedes the first movement, but clocks differ
		err = s.visit(ctx, read, requests, project, begin.AddDate(0, 0, -1), a.young(), func(e Entry) {
			if !a.isOpen(e.Key) {
				a.each(e)
				a.charged -= effects[requests][e.State] * e.Credits
			}
		})
	}
	if err != nil {
		return nil, err
	}
	before, after, err := s.readMoving(ctx, read, a)
	if err != nil {
		return nil, err
	}
	if held, sum := a.difference(a.read(before, a.began), a.read(after, a.began)); held != sum {
		return nil, fmt.Errorf("%w: the entries of %s add up to %s credits, the wallet holds %s", ErrUnbalanced, project,
			wallet.Grouped(sum), wallet.Grouped(held))
	}
	st.Charges = slices.DeleteFunc(st.Charges, func(c Charge) bool { return c.Credits == 0 })
	slices.SortFunc(st.Charges, func(a, b Charge) int { return cmp.Compare(a.Operation, b.Operation) })
	slices.SortFunc(st.Prices, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	return st, nil
}
