package credit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
)

// State is what a ledger entry says.
type State string

// The states of a reservation's entry, and the kinds of movement that an operator makes.
const (
	Sending    State = "sending"    // about to be sent; not final
	Captured   State = "captured"   // charged
	Released   State = "released"   // given back; never to be charged
	Granted    State = "grant"      // credits in
	Refunded   State = "refund"     // credits back
	Adjustment State = "adjustment" // signed
)

// Entry is one movement in a project's ledger.
type Entry struct {
	Key         Key
	State       State
	Credits     int64 // signed for an adjustment, above 0 otherwise
	Operation   string
	RequestID   string
	Environment string
	Vendor      string
	At          time.Time  // of the entry; when the request began is the key's time
	Actor       string     // who made it when no request did: "settle", or an operator's ARN
	Reason      string     // of an operator's movement
	Uncertain   bool       // charged, though the outcome at the vendor is not known
	Resolution  Resolution // of a charge that was uncertain; zero: none
	Refunds     Key        // the charge that a refund gives back; empty where it names none
}

// errRefused: the entry's condition did not hold.
var errRefused = errors.New("the ledger entry was refused")

func entryOf(r *Reservation, state State) Entry {
	return Entry{
		Key: r.Key, State: state, Credits: r.Credits, Operation: r.Operation,
		RequestID: r.RequestID, Environment: r.Environment, Vendor: r.Vendor, At: time.Now(),
	}
}

// put writes the entry if the state that stands there is among those allowed; "" is none. Refused,
// it returns errRefused and what stands there.
func (s *Store) put(ctx context.Context, project string, e Entry, allowed ...State) (stands State, err error) {
	condition, values := "", map[string]types.AttributeValue{}
	for i, state := range allowed {
		if i > 0 {
			condition += " OR "
		}
		if state == "" {
			condition += "attribute_not_exists(pk)"
			continue
		}
		name := fmt.Sprintf(":s%d", i)
		condition += "st = " + name
		values[name] = attr.Text(string(state))
	}
	if len(values) == 0 {
		values = nil
	}
	_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                           &s.tables.Ledger,
		Item:                                encodeEntry(project, e),
		ConditionExpression:                 &condition,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if item, refused := attr.Refused(err); refused {
		return State(attr.TextOf(item["st"])), errRefused
	}
	return "", err
}

// entry reads one entry; nil when there is none.
func (s *Store) entry(ctx context.Context, project string, key Key) (*Entry, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &s.tables.Ledger,
		Key:            entryKey(project, key),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil || out.Item == nil {
		return nil, err
	}
	e, err := decodeEntry(out.Item)
	return &e, err
}

// Entries is a project's ledger of one UTC day (2006-01-02), oldest first.
func (s *Store) Entries(ctx context.Context, project, day string) ([]Entry, error) {
	return s.query(ctx, &dynamodb.QueryInput{
		KeyConditionExpression:    aws.String("pk = :p"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": attr.Text(project + "#" + day)},
		ConsistentRead:            aws.Bool(true),
	})
}

// Uncertain is a project's charges that an operator has yet to resolve, oldest first. The newest may
// be missing for a moment.
func (s *Store) Uncertain(ctx context.Context, project string) ([]Entry, error) {
	return s.query(ctx, &dynamodb.QueryInput{
		IndexName:                 aws.String("uncertain"),
		KeyConditionExpression:    aws.String("uncertain = :p"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": attr.Text(project)},
	})
}

func (s *Store) query(ctx context.Context, in *dynamodb.QueryInput) ([]Entry, error) {
	in.TableName = &s.tables.Ledger
	var entries []Entry
	for pages := dynamodb.NewQueryPaginator(s.client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("credit: read the ledger: %w", err)
		}
		for _, item := range page.Items {
			e, err := decodeEntry(item)
			if err != nil {
				return nil, err
			}
			entries = append(entries, e)
		}
	}
	return entries, nil
}
