package credit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

// State is the state of a reservation, or the kind of a movement, in a ledger entry.
type State string

// The states of a reservation's entry, and the kinds of movement that an operator makes.
const (
	Sending    State = "sending"    // irrevocable work is about to begin; not final
	Captured   State = "captured"   // charged
	Released   State = "released"   // returned to the balance; a capture is forbidden
	Granted    State = "grant"      // credits added
	Refunded   State = "refund"     // captured credits returned
	Adjustment State = "adjustment" // signed
)

// Entry is one movement in a project's ledger.
type Entry struct {
	Key         Key
	State       State
	Credits     int64  // signed for an adjustment, above 0 otherwise
	Price       string // of the operation, as the price list names it
	RequestID   string
	Environment string
	Vendor      string
	VendorID    string     // of the work
	Reference   string     // of an uncertain send
	At          time.Time  // of the entry; the key's time is the begin of the request
	Actor       string     // author of an entry that no request wrote: "settle", or an operator's ARN
	Reason      string     // of an operator's movement
	Uncertain   bool       // charged, although the outcome at the vendor is unknown
	Resolution  Resolution // of a charge that was uncertain, where the method reads resolutions; zero: none
	Refunds     Key        // the charge that a refund returns; empty where the refund names no charge
	Wallet      string     // the wallet's item that the entry belongs to
}

// entryTable is a table of entries, by its name in template.yaml.
type entryTable string

// The tables of entries, and who writes them.
const (
	requests    entryTable = "Ledger"      // functions; operators only take a charge off the list of uncertain charges
	movements   entryTable = "Movements"   // operators alone
	resolutions entryTable = "Resolutions" // operators alone
)

// effects are the factors by which the entries of each table change the credits that the wallet should hold, by state. An
// entry of any other state is forged, and has no effect.
var effects = map[entryTable]map[State]int64{
	requests:    {Sending: 0, Captured: -1, Released: 0},
	movements:   {Granted: 1, Refunded: 1, Adjustment: 1},
	resolutions: {Refunded: 1, State(VerdictConfirmed): 0, State(VerdictRefunded): 0},
}

// has reports whether entries of the table can have that state.
func (t entryTable) has(state State) bool {
	_, known := effects[t][state]
	return known
}

// name returns the stage's name of a table of entries.
func (t Tables) name(of entryTable) string {
	return map[entryTable]string{requests: t.Ledger, movements: t.Movements, resolutions: t.Resolutions}[of]
}

// errRefused reports that the condition of the entry's write did not hold.
var errRefused = errors.New("the ledger entry was refused")

// newEntry returns an entry for the reservation in the given state, with the current time.
func newEntry(r *Reservation, state State) Entry {
	return Entry{
		Key: r.Key, State: state, Credits: r.Credits, Price: r.Price,
		RequestID: r.RequestID, Environment: r.Environment, At: time.Now(), Wallet: r.Wallet,
	}
}

// put writes the entry if the state of the stored entry is among those allowed; "" means no stored entry. Where DynamoDB
// refuses the write, put returns errRefused and the stored state. put repeats the write until ctx ends.
func (s *Store) put(ctx context.Context, e Entry, allowed ...State) (stored State, err error) {
	conditions, values := make([]string, len(allowed)), map[string]types.AttributeValue{}
	for i, state := range allowed {
		conditions[i] = "attribute_not_exists(pk)"
		if state != "" {
			name := fmt.Sprintf(":s%d", i)
			conditions[i], values[name] = "st = "+name, dynamo.Text(string(state))
		}
	}
	if len(values) == 0 {
		values = nil
	}
	_, _, err = dynamo.Write(ctx, s.client.PutItem, &dynamodb.PutItemInput{
		TableName:                           &s.tables.Ledger,
		Item:                                encodeEntry(entryKey(e.Wallet, e.Key), e),
		ConditionExpression:                 aws.String(strings.Join(conditions, " OR ")),
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if item, refused := dynamo.Refused(err); refused {
		return State(dynamo.TextOf(item["st"])), errRefused
	}
	return "", err
}

// entry reads one entry, and returns nil where the table has no such entry.
func (s *Store) entry(ctx context.Context, table string, key map[string]types.AttributeValue) (*Entry, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil || out.Item == nil {
		return nil, err
	}
	e, err := decodeEntry(out.Item)
	return &e, err
}

// entriesOf reads the entries of reservations in one wallet, by their keys.
func (s *Store) entriesOf(ctx context.Context, reservations []*Reservation) (map[Key]dynamo.Item, error) {
	const batch = 100 // keys of one call
	entries := map[Key]dynamo.Item{}
	for some := range slices.Chunk(reservations, batch) {
		keys := make([]map[string]types.AttributeValue, len(some))
		for i, r := range some {
			keys[i] = entryKey(r.Wallet, r.Key)
		}
		items, err := s.batchGet(ctx, s.tables.Ledger, types.KeysAndAttributes{Keys: keys})
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			entries[Key(dynamo.TextOf(item["sk"]))] = item
		}
	}
	return entries, nil
}

// batchGet reads the items of up to 100 keys consistently, in any order.
func (s *Store) batchGet(ctx context.Context, table string, read types.KeysAndAttributes) (items []dynamo.Item, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Write)
	defer cancel()
	read.ConsistentRead = aws.Bool(true)
	for {
		out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: read}})
		if err != nil {
			return nil, err
		}
		items = append(items, out.Responses[table]...)
		if read.Keys = out.UnprocessedKeys[table].Keys; len(read.Keys) == 0 {
			return items, nil
		}
		if err := pause(ctx); err != nil { // DynamoDB lacked capacity for the other keys
			return nil, err
		}
	}
}

// charge returns the captured entry of a project under that key, in any shard, with its resolution, or nil where there is
// none. Other shards may hold released entries of that key: those of late copies that arrived after another shard had taken
// over.
func (s *Store) charge(ctx context.Context, project string, key Key) (*Entry, error) {
	wallets, err := s.wallets(ctx, project)
	if err != nil {
		return nil, err
	}
	for _, wallet := range wallets {
		e, err := s.entry(ctx, s.tables.Ledger, entryKey(wallet, key))
		if err != nil {
			return nil, err
		}
		if e != nil && e.State == Captured {
			// The resolution is read second: one transaction writes it and makes the charge certain.
			r, err := s.entry(ctx, s.tables.Resolutions, operatorKey(project, key))
			if r != nil {
				e.resolve(*r)
			}
			return e, err
		}
	}
	return nil, nil
}

// Entries returns a project's entries of one UTC day (2006-01-02) in all tables, oldest first. Entries omits forged entries,
// which Verify reports.
func (s *Store) Entries(ctx context.Context, project, day string) ([]Entry, error) {
	read, err := s.queries(ctx, project, func(wallet string) *dynamodb.QueryInput { return partitionQuery(partition(wallet, day)) })
	if err != nil {
		return nil, err
	}
	entries := slices.DeleteFunc(read, func(e Entry) bool { return !requests.has(e.State) })
	from, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return nil, fmt.Errorf("credit: %w", err)
	}
	resolved := map[Key]Entry{}
	for _, of := range []entryTable{movements, resolutions} {
		in := partitionQuery(project)
		*in.KeyConditionExpression += " AND sk BETWEEN :from AND :to"
		in.ExpressionAttributeValues[":from"] = dynamo.Text(digits(from))
		in.ExpressionAttributeValues[":to"] = dynamo.Text(digits(from.AddDate(0, 0, 1)))
		err := s.query(ctx, of, in, func(item dynamo.Item) error {
			e, err := decodeEntry(item)
			switch {
			case e.verdict() != unresolved && of == resolutions:
				resolved[e.Key] = e
			case of.has(e.State):
				entries = append(entries, e)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for i, e := range entries {
		if r, known := resolved[e.Key]; known && e.State == Captured {
			entries[i].resolve(r)
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	return entries, nil
}

// partitionQuery returns the query for all entries of one partition.
func partitionQuery(pk string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		KeyConditionExpression:    aws.String("pk = :p"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": dynamo.Text(pk)},
		ConsistentRead:            aws.Bool(true),
	}
}

// Uncertain returns a project's charges that an operator has yet to resolve, oldest first. The newest charges may
// be missing for a moment, because the index is eventually consistent.
func (s *Store) Uncertain(ctx context.Context, project string) ([]Entry, error) {
	return s.queries(ctx, project, func(wallet string) *dynamodb.QueryInput {
		return &dynamodb.QueryInput{
			IndexName:                 aws.String("uncertain"),
			KeyConditionExpression:    aws.String("uncertain = :p"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":p": dynamo.Text(wallet)},
		}
	})
}

// Resolved returns a project's charges that were uncertain and are resolved, oldest first.
func (s *Store) Resolved(ctx context.Context, project string) (charges []Entry, err error) {
	err = s.query(ctx, resolutions, partitionQuery(project), func(item dynamo.Item) error {
		r, err := decodeEntry(item)
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

// VisitUncertain calls visit for each charge of any project that is yet to be resolved, in any order, or with the error of an
// entry that cannot be read. The newest charges may be missing, as in Uncertain.
func (s *Store) VisitUncertain(ctx context.Context, visit func(project string, e Entry, err error)) error {
	pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{TableName: &s.tables.Ledger, IndexName: aws.String("uncertain")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("credit: read the uncertain charges: %w", err)
		}
		for _, item := range page.Items {
			e, err := decodeEntry(item)
			visit(projectOf(dynamo.TextOf(item["uncertain"])), e, err)
		}
	}
	return nil
}

// queries returns the entries of all shards, in the order of their keys.
func (s *Store) queries(ctx context.Context, project string, of func(wallet string) *dynamodb.QueryInput) ([]Entry, error) {
	wallets, err := s.wallets(ctx, project)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, wallet := range wallets {
		err := s.query(ctx, requests, of(wallet), func(item dynamo.Item) error {
			e, err := decodeEntry(item)
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

// query calls visit for each item that a query of a table of entries finds.
func (s *Store) query(ctx context.Context, of entryTable, in *dynamodb.QueryInput, visit func(dynamo.Item) error) error {
	in.TableName = aws.String(s.tables.name(of))
	for pages := dynamodb.NewQueryPaginator(s.client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("credit: read the ledger: %w", err)
		}
		for _, item := range page.Items {
			if err := visit(item); err != nil {
				return err
			}
		}
	}
	return nil
}
