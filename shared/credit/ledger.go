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
	At          time.Time  // of the entry; the key's time is the begin of the request
	Actor       string     // author of an entry that no request wrote: "settle", or an operator's ARN
	Reason      string     // of an operator's movement
	Uncertain   bool       // charged, although the outcome at the vendor is unknown
	Resolution  Resolution // of a charge that was uncertain; zero: none
	Refunds     Key        // the charge that a refund returns; empty where the refund names no charge
	Wallet      string     // the wallet's item that the entry belongs to
}

// errRefused reports that the condition of the entry's write did not hold.
var errRefused = errors.New("the ledger entry was refused")

// newEntry returns an entry for the reservation in the given state, with the current time.
func newEntry(r *Reservation, state State) Entry {
	return Entry{
		Key: r.Key, State: state, Credits: r.Credits, Price: r.Price,
		RequestID: r.RequestID, Environment: r.Environment, Vendor: r.Vendor, At: time.Now(),
	}
}

// put writes the entry if the state of the stored entry is among those allowed; "" means no stored entry. Where DynamoDB
// refuses the write, put returns errRefused and the stored state. put repeats the write until ctx ends.
func (s *Store) put(ctx context.Context, wallet string, e Entry, allowed ...State) (stored State, err error) {
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
		Item:                                encodeEntry(wallet, e),
		ConditionExpression:                 aws.String(strings.Join(conditions, " OR ")),
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if item, refused := dynamo.Refused(err); refused {
		return State(dynamo.TextOf(item["st"])), errRefused
	}
	return "", err
}

// entry reads one entry, and returns nil where the ledger has no such entry.
func (s *Store) entry(ctx context.Context, wallet string, key Key) (*Entry, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &s.tables.Ledger,
		Key:            entryKey(wallet, key),
		ConsistentRead: aws.Bool(true),
	})
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

// charge returns the captured entry of a project under that key, in any shard, or nil where there is none. Other
// shards may hold released entries of that key: those of late copies that arrived after another shard had taken over.
func (s *Store) charge(ctx context.Context, project string, key Key) (*Entry, error) {
	wallets, err := s.wallets(ctx, project)
	if err != nil {
		return nil, err
	}
	for _, wallet := range wallets {
		e, err := s.entry(ctx, wallet, key)
		if err != nil || e != nil && e.State == Captured {
			return e, err
		}
	}
	return nil, nil
}

// Entries returns a project's ledger entries of one UTC day (2006-01-02), oldest first.
func (s *Store) Entries(ctx context.Context, project, day string) ([]Entry, error) {
	return s.queries(ctx, project, func(wallet string) *dynamodb.QueryInput { return partitionQuery(partition(wallet, day)) })
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

// queries returns the entries of all shards, in the order of their keys.
func (s *Store) queries(ctx context.Context, project string, of func(wallet string) *dynamodb.QueryInput) ([]Entry, error) {
	wallets, err := s.wallets(ctx, project)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, wallet := range wallets {
		err := s.query(ctx, of(wallet), func(item dynamo.Item) error {
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

// query calls visit for each ledger item that a query finds.
func (s *Store) query(ctx context.Context, in *dynamodb.QueryInput, visit func(dynamo.Item) error) error {
	in.TableName = &s.tables.Ledger
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
