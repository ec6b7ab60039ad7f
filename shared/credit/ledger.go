package credit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

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

// Entry is one movement in a project's ledger. The JSON form is the output of "svc credit ledger".
type Entry struct {
	Key         Key        `json:"id"`
	State       State      `json:"state"`
	Credits     int64      `json:"credits"`   // signed for an adjustment, above 0 otherwise
	Price       string     `json:"operation"` // as the price list names it
	Units       int64      `json:"units"`     // of a charge: SMS units, 1 for other operations
	Environment string     `json:"environment"`
	Vendor      string     `json:"vendor"`
	VendorID    string     `json:"-"` // of the work
	RequestID   string     `json:"request_id"`
	Reference   string     `json:"-"`                   // of an uncertain send
	At          time.Time  `json:"at"`                  // of the entry; the key's time is the begin of the request
	Uncertain   bool       `json:"uncertain"`           // charged, although the outcome at the vendor is unknown
	Actor       string     `json:"actor"`               // "settle" or an operator's ARN; empty: a request
	Reason      string     `json:"reason"`              // of an operator's movement
	Refunds     Key        `json:"refunds"`             // the charge that a refund returns; empty: none
	Resolution  Resolution `json:"resolution,omitzero"` // of an uncertain charge, where resolutions are read
	Project     string     `json:"-"`
}

// entryTable is a table of entries, by its name in template.yaml.
type entryTable string

// The tables of entries, and who writes them.
const (
	requests    entryTable = "Ledger"      // functions; operators only take a charge off the list of uncertain charges
	movements   entryTable = "Movements"   // operators alone
	resolutions entryTable = "Resolutions" // operators alone
)

// effects are the factors by which the entries of each table change the credits that the wallet should hold, by state.
// An entry of any other state is forged, and has no effect.
var effects = map[entryTable]map[State]int64{
	requests:    {Sending: 0, Captured: -1, Released: 0},
	movements:   {Granted: 1, Refunded: 1, Adjustment: 1, State(VerdictRefunded): 0},
	resolutions: {Refunded: 1, State(VerdictConfirmed): 0, State(VerdictRefunded): 0},
}

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
		Key: r.Key, State: state, Credits: r.Credits, Price: r.Price, Units: r.Units,
		RequestID: r.RequestID, Environment: r.Environment, At: time.Now(), Project: r.Project,
	}
}

// put writes the entry if the state of the stored entry is among those allowed; "" means no stored entry. Where
// DynamoDB refuses the write, put returns errRefused and the stored entry, of an unreadable one only the state. put
// repeats the write until ctx ends.
func (s *Store) put(ctx context.Context, e Entry, allowed ...State) (stored Entry, err error) {
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
		Item:                                encodeEntry(entryKey(e.Project, e.Key), e),
		ConditionExpression:                 aws.String(strings.Join(conditions, " OR ")),
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if item, refused := dynamo.Refused(err); refused {
		stored, _ = decodeEntry(item)
		stored.State = State(dynamo.TextOf(item["st"]))
		return stored, errRefused
	}
	return Entry{}, err
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

func (s *Store) slotEntries(ctx context.Context, l Lease) (map[Key]Entry, error) {
	entries := map[Key]Entry{}
	in := partitionQuery(partition(l.Project, l.Key))
	*in.KeyConditionExpression += " AND begins_with(sk, :k)"
	in.ExpressionAttributeValues[":k"] = dynamo.Text(string(l.Key))
	_, err := s.query(ctx, requests, in, func(item dynamo.Item) error {
		e, err := decodeEntry(item)
		entries[e.Key] = e
		return err
	})
	return entries, err
}

// charge returns the captured entry of a project under that key with its resolution, or nil where there is none.
func (s *Store) charge(ctx context.Context, project string, key Key) (*Entry, error) {
	e, err := s.entry(ctx, s.tables.Ledger, entryKey(project, key))
	if err != nil || e == nil || e.State != Captured {
		return nil, err
	}
	// The resolution is read second: one transaction writes it and makes the charge certain.
	r, err := s.entry(ctx, s.tables.Resolutions, operatorKey(project, key))
	if r != nil {
		e.resolve(*r)
	}
	return e, err
}

// Entries returns a project's entries of the UTC days from that of first to that of last in all tables, oldest first.
// Entries omits forged entries, which Verify reports.
func (s *Store) Entries(ctx context.Context, project string, first, last time.Time) ([]Entry, error) {
	var entries []Entry
	resolved := map[Key]Entry{}
	err := s.Visit(ctx, &Reading{}, project, first, last, func(e Entry) {
		if e.verdict() != unresolved {
			resolved[e.Key] = e
		} else {
			entries = append(entries, e)
		}
	})
	for i, e := range entries {
		if r, known := resolved[e.Key]; known && e.State == Captured {
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

// visit calls visit for each entry of a project in one table whose key's time is from one time up to and without
// another, in any order. Several partitions are read at the same time.
func (s *Store) visit(
	ctx context.Context, read *Reading, of entryTable, project string, from, to time.Time, visit func(Entry),
) error {
	partitions := []string{project}
	if of == requests {
		partitions = nil
		for day := midnight(from); day.Before(to); day = day.AddDate(0, 0, 1) {
			for _, shard := range shards(project) {
				partitions = append(partitions, shard+"#"+day.Format(time.DateOnly))
			}
		}
	}
	var mu sync.Mutex // guards read, and calls of visit
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(ledgerShards)
	for _, pk := range partitions {
		group.Go(func() error {
			in := partitionQuery(pk)
			*in.KeyConditionExpression += " AND sk BETWEEN :from AND :to"
			in.ExpressionAttributeValues[":from"], in.ExpressionAttributeValues[":to"] = dynamo.Text(digits(from)),
				dynamo.Text(digits(to))
			units, err := s.query(ctx, of, in, func(item dynamo.Item) error {
				mu.Lock()
				defer mu.Unlock()
				read.Entries++
				e, err := decodeEntry(item)
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
			mu.Lock()
			defer mu.Unlock()
			read.Units += units
			return err
		})
	}
	return group.Wait()
}

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
	var entries []Entry
	for _, shard := range shards(project) {
		_, err := s.query(ctx, requests, &dynamodb.QueryInput{
			IndexName:                 aws.String("uncertain"),
			KeyConditionExpression:    aws.String("uncertain = :p"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":p": dynamo.Text(shard)},
		}, func(item dynamo.Item) error {
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

// Resolved returns a project's charges that were uncertain and are resolved, oldest first.
func (s *Store) Resolved(ctx context.Context, project string) (charges []Entry, err error) {
	_, err = s.query(ctx, resolutions, partitionQuery(project), func(item dynamo.Item) error {
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

// VisitUncertain calls visit for each charge of any project that is yet to be resolved, in any order, or with the error
// of an entry that cannot be read. The newest charges may be missing, as in Uncertain.
func (s *Store) VisitUncertain(ctx context.Context, visit func(project string, e Entry, err error)) error {
	in := &dynamodb.ScanInput{TableName: &s.tables.Ledger, IndexName: aws.String("uncertain")}
	return s.scan(ctx, in, func(item dynamo.Item) error {
		e, err := decodeEntry(item)
		visit(projectOf(dynamo.TextOf(item["pk"])), e, err)
		return nil
	})
}

// scan calls visit for each item that a scan finds, and stops at the first error of visit.
func (s *Store) scan(ctx context.Context, in *dynamodb.ScanInput, visit func(dynamo.Item) error) error {
	for pages := dynamodb.NewScanPaginator(s.client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("credit: read %s: %w", *in.TableName, err)
		}
		for _, item := range page.Items {
			if err := visit(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// query calls visit for each item that a query of a table of entries finds, and returns the read units of the query.
func (s *Store) query(ctx context.Context, of entryTable, in *dynamodb.QueryInput,
	visit func(dynamo.Item) error) (units float64, err error) {
	in.TableName, in.ReturnConsumedCapacity = aws.String(s.tables.name(of)), types.ReturnConsumedCapacityTotal
	for pages := dynamodb.NewQueryPaginator(s.client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return units, fmt.Errorf("credit: read the ledger: %w", err)
		}
		if page.ConsumedCapacity != nil {
			units += aws.ToFloat64(page.ConsumedCapacity.CapacityUnits)
		}
		for _, item := range page.Items {
			if err := visit(item); err != nil {
				return units, err
			}
		}
	}
	return units, nil
}
