package wallet

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

// The stored items. Attribute names are short, because every write pays for the whole item.
//
//	wallet   pk project; balance; pending {lease: credits}, about 18 bytes for each lease; lent, a bound on the credits
//	         of leases with several slots; fence, the newest lease that the settling function has closed;
//	         alert credits, where an operator set an alert; granted, the sum of all operators' movements, signed
//	ledger   pk project#shard#day; sk key; st state; cr credits; op; un units; rid; env; ven; vid; ref; ts; by actor;
//	         why; uncertain project#shard, on uncertain entries only: the hash key of a sparse index;
//	         expires, on the entries of slots that no request used; sp, what the lower slots of a lease have spent
//
// No function may write the tables of what operators do (docs/decisions/money.md#operator-movements). Both have the
// attributes of the ledger, without uncertain:
//
//	movements    pk project; sk key; of, the key of the refunded charge; and for each refunded charge an item of st
//	             refunded under the key of the charge, so that the charge is refunded once
//	resolutions  pk project; sk the key of the charge, st the verdict; and for each charge that a resolution refunds,
//	             an entry of the refund under a key of its own, with of

// LedgerShards is the number of the ledger's partitions of a project's day. One takes 1,000 write units a second.
const LedgerShards = 16

// ItemKey returns the key of a project's wallet.
func ItemKey(project string) dynamo.Item {
	return dynamo.Item{"pk": dynamo.Text(project)}
}

// EntryKey returns the key of an entry in the ledger.
func EntryKey(project string, key Key) dynamo.Item {
	return dynamo.Item{"pk": dynamo.Text(Partition(project, key)), "sk": dynamo.Text(string(key))}
}

// Shards returns the names of the shards of a project's ledger.
func Shards(project string) []string {
	all := make([]string, LedgerShards)
	for i := range all {
		all[i] = project + "#" + strconv.FormatInt(int64(i), LedgerShards)
	}
	return all
}

// Shard returns the shard of a project's ledger that holds the entries of a lease, by a digest of the lease's key.
func Shard(project string, key Key) string {
	sum := fnv.New32a()
	sum.Write([]byte(key.Lease()))
	return Shards(project)[sum.Sum32()%LedgerShards]
}

// Partition returns the partition of the ledger that holds an entry: its shard and its day.
func Partition(project string, key Key) string { return Shard(project, key) + "#" + key.Day() }

// ProjectOf returns the project of a partition.
func ProjectOf(pk string) string {
	project, _, _ := strings.Cut(pk, "#")
	return project
}

// PendingOf returns a wallet's map of leases; nil where the attribute is no map.
func PendingOf(wallet dynamo.Item) dynamo.Item {
	m, _ := wallet["pending"].(*types.AttributeValueMemberM)
	if m == nil {
		return nil
	}
	return m.Value
}

// nameEncoding keeps the order of the bytes that it encodes.
var nameEncoding = base64.NewEncoding("-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz").
	WithPadding(base64.NoPadding)

// nameLength is the number of characters of a name, without the last one of its encoding, which has no bit of the name.
const nameLength = 14

// nameEpoch is the time from which names of leases count their microseconds, which fit until the year 2042.
var nameEpoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Name returns the name of a lease in its wallet: 14 characters, which encode the time in 49 bits, the number of slots
// less 1 in 7 bits, and the 28 bits of the key's digest. Names sort by time.
func (l Lease) Name() string {
	_, digest, _ := strings.Cut(string(l.Key), "-")
	name, _ := binary.Append(nil, binary.BigEndian, l.Key.Time().Sub(nameEpoch).Microseconds()<<7|int64(l.Slots-1))
	name, _ = hex.AppendDecode(name[1:], []byte(digest+"0"))
	return nameEncoding.EncodeToString(name)[:nameLength]
}

// LeasesOf returns the leases of a wallet, the oldest first, and calls failed for each name that cannot be read.
func LeasesOf(wallet dynamo.Item, failed func(name string, err error)) (leases []Lease) {
	pending := PendingOf(wallet)
	for _, name := range slices.Sorted(maps.Keys(pending)) {
		l, err := decodeLease(dynamo.TextOf(wallet["pk"]), name, pending[name])
		if err != nil {
			failed(name, err)
			continue
		}
		leases = append(leases, l)
	}
	return leases
}

var errNoLease = errors.New("the name is no lease's")

// decodeLease returns the lease that a wallet holds under a name.
func decodeLease(project, name string, v types.AttributeValue) (Lease, error) {
	l := Lease{Project: project}
	credits, err := dynamo.NumberOf(v)
	if b, _ := nameEncoding.DecodeString(name + "-"); err == nil && len(b) == 11 {
		number := binary.BigEndian.Uint64(append([]byte{0}, b...))
		at := nameEpoch.Add(time.Duration(number>>7) * time.Microsecond)
		l.Key = Key(Digits(at) + "-" + hex.EncodeToString(b[7:])[:keyDigest])
		l.Slots, l.Credits = int(number&(mostSlots-1))+1, credits
	}
	if _, invalid := ParseKey(string(l.Key)); err != nil || invalid != nil || l.Name() != name {
		return Lease{}, fmt.Errorf("wallet: lease %s of %s: %w", name, project, cmp.Or(err, errNoLease))
	}
	return l, nil
}

// Above returns the key, or where the fence of a wallet is later the key of the same request just above the fence.
func (k Key) Above(fence string) Key {
	newest, _ := decodeLease("", fence, dynamo.Number(0))
	if next := newest.Key.Time().Add(time.Microsecond); k.Time().Before(next) {
		return k.at(next)
	}
	return k
}

// EncodeEntry completes the key of an entry to the whole item.
func EncodeEntry(item dynamo.Item, e Entry) dynamo.Item {
	item["st"] = dynamo.Text(string(e.State))
	item["cr"] = dynamo.Number(e.Credits)
	item["ts"] = dynamo.Text(e.At.UTC().Format(time.RFC3339Nano))
	for name, value := range map[string]string{
		"op": e.Price, "rid": e.RequestID, "env": e.Environment, "ven": e.Vendor, "vid": e.VendorID, "ref": e.Reference,
		"by": e.Actor, "why": e.Reason, "of": string(e.Refunds),
	} {
		if value != "" {
			item[name] = dynamo.Text(value)
		}
	}
	if e.Units > 0 {
		item["un"] = dynamo.Number(e.Units)
	}
	if e.Spent != nil {
		item["sp"] = dynamo.Number(*e.Spent)
	}
	if e.Unused {
		item["expires"] = dynamo.Number(e.At.Add(unusedLife).Unix())
	}
	if e.Uncertain {
		item["uncertain"] = dynamo.Text(Shard(e.Project, e.Key))
	}
	return item
}

// DecodeEntry returns the entry of an item of the ledger, or of the tables of what operators do.
func DecodeEntry(item dynamo.Item) (Entry, error) {
	e := Entry{
		Key: Key(dynamo.TextOf(item["sk"])), State: State(dynamo.TextOf(item["st"])),
		Project: ProjectOf(dynamo.TextOf(item["pk"])),
		Price:   dynamo.TextOf(item["op"]), RequestID: dynamo.TextOf(item["rid"]), Environment: dynamo.TextOf(item["env"]),
		Vendor: dynamo.TextOf(item["ven"]), VendorID: dynamo.TextOf(item["vid"]), Reference: dynamo.TextOf(item["ref"]),
		Actor: dynamo.TextOf(item["by"]), Reason: dynamo.TextOf(item["why"]),
		Uncertain: item["uncertain"] != nil, Unused: item["expires"] != nil, Refunds: Key(dynamo.TextOf(item["of"])),
	}
	var err error
	e.Credits, err = dynamo.NumberOf(item["cr"])
	if err == nil {
		e.At, err = time.Parse(time.RFC3339Nano, dynamo.TextOf(item["ts"]))
	}
	if err == nil && item["un"] != nil {
		e.Units, err = dynamo.NumberOf(item["un"])
	}
	if err != nil {
		return Entry{}, fmt.Errorf("wallet: ledger entry %s: %w", e.Key, err)
	}
	return e, nil
}

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
	Spent       *int64    `json:"-"` // only written: by lower slots of the lease, where all outcomes are known
}

// unusedLife is the life of an unused slot's entry, which forbids a late capture: a late copy is valid for 15 minutes.
const unusedLife = 24 * time.Hour

// errConflict reports that the condition of the entry's write did not hold.
var errConflict = errors.New("the stored ledger entry forbids the write")

// newEntry returns an entry for the reservation in the given state, with the current time.
func newEntry(r *Reservation, state State) Entry {
	return Entry{
		Key: r.Key, State: state, Credits: r.Credits, Price: r.Price, Units: r.Units,
		RequestID: r.RequestID, Environment: r.Environment, At: time.Now(), Project: r.Project, Spent: r.lease.before(r),
	}
}

// put writes the entry, until ctx ends, if the stored entry's state is among those allowed; "" means no stored entry.
// Where the condition does not hold, put returns errConflict and the stored entry, of an unreadable one only the state.
func (s *Store) put(ctx context.Context, e Entry, allowed ...State) (stored Entry, err error) {
	conditions, values := make([]string, len(allowed)), dynamo.Item{}
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

// slotsQuery returns the query of the entries of a lease, by their slots.
func (s *Store) slotsQuery(l Lease) *dynamodb.QueryInput {
	in := dynamo.Partition(s.tables.Ledger, Partition(l.Project, l.Key))
	*in.KeyConditionExpression += " AND begins_with(sk, :k)"
	in.ExpressionAttributeValues[":k"] = dynamo.Text(string(l.Key))
	return in
}

// slotEntries returns the entries of a lease. An entry that cannot be read is errUnsettled.
func (s *Store) slotEntries(ctx context.Context, l Lease) (map[Key]Entry, error) {
	entries := map[Key]Entry{}
	_, err := dynamo.Query(ctx, s.client, s.slotsQuery(l), func(item dynamo.Item) error {
		e, err := DecodeEntry(item)
		if err != nil {
			return fmt.Errorf("%w: %w", errUnsettled, err)
		}
		entries[e.Key] = e
		return nil
	})
	return entries, err
}
