package wallet

import (
	"context"
	"errors"
	"fmt"
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
	Repriced   State = "price"      // no credits: the project's own price has changed
)

// Entry is one movement in a project's ledger.
type Entry struct {
	Key         Key       `json:"id"`
	State       State     `json:"state"`
	Credits     int64     `json:"credits"`   // signed for an adjustment, 0 for a price, above 0 otherwise
	Price       string    `json:"operation"` // as the price list names it
	Units       int64     `json:"units"`     // of a charge: SMS units, 1 for other operations
	Environment string    `json:"environment"`
	Vendor      string    `json:"vendor"`
	VendorID    string    `json:"vendor_id"` // of the work
	RequestID   string    `json:"request_id"`
	Reference   string    `json:"reference"` // of an uncertain send
	At          time.Time `json:"at"`        // of the entry; the key's time is the begin of the request
	Uncertain   bool      `json:"uncertain"` // charged, although the outcome at the vendor is unknown
	Actor       string    `json:"actor"`     // "settle" or an operator's ARN; empty: a request
	Reason      string    `json:"reason"`    // of an operator's movement
	Refunds     Key       `json:"refunds"`   // the charge that a refund returns; empty: none
	Project     string    `json:"-"`
	Unused      bool      `json:"-"` // of a slot that no request used: the entry expires after a day
}

// unusedLife is how long the entry of a slot that no request used forbids a late capture. The signature of a late copy
// lapses after 15 minutes.
const unusedLife = 24 * time.Hour

// errConflict reports that the condition of the entry's write did not hold.
var errConflict = errors.New("the stored ledger entry forbids the write")

// newEntry returns an entry for the reservation in the given state, with the current time.
func newEntry(r *Reservation, state State) Entry {
	return Entry{
		Key: r.Key, State: state, Credits: r.Credits, Price: r.Price, Units: r.Units,
		RequestID: r.RequestID, Environment: r.Environment, At: time.Now(), Project: r.Project,
	}
}

// put writes the entry if the state of the stored entry is among those allowed; "" means no stored entry. Where
// the condition does not hold, put returns errConflict and the stored entry, of an unreadable one only the state. put
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
		Item:                                EncodeEntry(EntryKey(e.Project, e.Key), e),
		ConditionExpression:                 aws.String(strings.Join(conditions, " OR ")),
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if item, conflict := dynamo.ConditionFailed(err); conflict {
		stored, _ = DecodeEntry(item)
		stored.State = State(dynamo.TextOf(item["st"]))
		return stored, errConflict
	}
	return Entry{}, err
}

// slotEntries returns the entries of a lease. An entry that cannot be read is errUnsettled.
func (s *Store) slotEntries(ctx context.Context, l Lease) (map[Key]Entry, error) {
	entries := map[Key]Entry{}
	in := dynamo.Partition(Partition(l.Project, l.Key))
	in.TableName = &s.tables.Ledger
	*in.KeyConditionExpression += " AND begins_with(sk, :k)"
	in.ExpressionAttributeValues[":k"] = dynamo.Text(string(l.Key))
	_, err := dynamo.Query(ctx, s.client, in, func(item dynamo.Item) error {
		e, err := DecodeEntry(item)
		if err != nil {
			return fmt.Errorf("%w: %w", errUnsettled, err)
		}
		entries[e.Key] = e
		return nil
	})
	return entries, err
}
