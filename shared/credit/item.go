package credit

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

// The stored items. Attribute names are short, because every write pays for the whole item.
//
//	wallet   pk wallet; balance; pending {key: credits}, about 29 bytes for each reservation;
//	         moves, the number of moves of credits between this shard and others;
//	         on the first shard: alert credits, where an operator set an alert; shards, the number of shards;
//	         granted, the sum of all operators' movements, signed
//	ledger   pk wallet#day; sk key; st state; cr credits; op; un units; rid; env; ven; vid; ref; ts; by actor; why;
//	         uncertain wallet, on uncertain entries only: the hash key of a sparse index
//
// No function may write the tables of what operators do (docs/decisions/money.md#operator-movements). Both have the
// attributes of the ledger, without uncertain:
//
//	movements    pk project; sk key; of, the key of the refunded charge; and for each refunded charge an item of st refunded
//	             under the key of the charge, so that the charge is refunded once
//	resolutions  pk project; sk the key of the charge, st the verdict; and for each charge that a resolution refunds,
//	             an entry of the refund under a key of its own, with of
//
// A wallet has the name of its project (shards.go names the shards of a wallet that has several).

func walletKey(wallet string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": dynamo.Text(wallet)}
}

func entryKey(wallet string, key Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": dynamo.Text(partition(wallet, key.Day())), "sk": dynamo.Text(string(key))}
}

// operatorKey returns the key of an entry in the tables of what operators do.
func operatorKey(project string, key Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": dynamo.Text(project), "sk": dynamo.Text(string(key))}
}

// partition returns the partition key of a wallet's entries of one UTC day.
func partition(wallet, day string) string { return wallet + "#" + day }

// splitPartition returns the wallet and the day of a partition key; a key without a day is all wallet.
func splitPartition(pk string) (wallet, day string) {
	if i := strings.LastIndexByte(pk, '#'); i >= 0 {
		return pk[:i], pk[i+1:]
	}
	return pk, ""
}

// walletOf splits the partition key of an entry into the name of the wallet and the day.
func walletOf(entry dynamo.Item) (wallet, day string) {
	return splitPartition(dynamo.TextOf(entry["pk"]))
}

// pendingOf returns a wallet's map of pending reservations; nil where the attribute is no map.
func pendingOf(wallet map[string]types.AttributeValue) map[string]types.AttributeValue {
	m, _ := wallet["pending"].(*types.AttributeValueMemberM)
	if m == nil {
		return nil
	}
	return m.Value
}

// decodePending returns the reservation that a wallet holds under a key, without what only its request knows.
func decodePending(wallet, key string, v types.AttributeValue) (*Reservation, error) {
	k, err := ParseKey(key)
	if err != nil {
		return nil, fmt.Errorf("credit: reservation %s of %s: %w", key, wallet, err)
	}
	credits, err := dynamo.NumberOf(v)
	if err != nil {
		return nil, fmt.Errorf("credit: reservation %s of %s: %w", key, wallet, err)
	}
	project, _, err := parseWallet(wallet)
	if err != nil {
		return nil, err
	}
	return &Reservation{Project: project, Wallet: wallet, Key: k, Credits: credits}, nil
}

// encodeEntry completes the key of an entry to the whole item.
func encodeEntry(item map[string]types.AttributeValue, e Entry) map[string]types.AttributeValue {
	item["st"] = dynamo.Text(string(e.State))
	item["cr"] = dynamo.Number(e.Credits)
	item["ts"] = dynamo.Text(e.At.UTC().Format(time.RFC3339Nano))
	for name, value := range map[string]string{
		"op": e.Price, "rid": e.RequestID, "env": e.Environment, "ven": e.Vendor, "vid": e.VendorID, "ref": e.Reference, "by": e.Actor, "why": e.Reason, "of": string(e.Refunds),
	} {
		if value != "" {
			item[name] = dynamo.Text(value)
		}
	}
	if e.Units > 0 {
		item["un"] = dynamo.Number(e.Units)
	}
	if e.Uncertain {
		item["uncertain"] = dynamo.Text(e.Wallet)
	}
	return item
}

func decodeEntry(item map[string]types.AttributeValue) (Entry, error) {
	e := Entry{
		Key: Key(dynamo.TextOf(item["sk"])), State: State(dynamo.TextOf(item["st"])),
		Price: dynamo.TextOf(item["op"]), RequestID: dynamo.TextOf(item["rid"]), Environment: dynamo.TextOf(item["env"]),
		Vendor: dynamo.TextOf(item["ven"]), VendorID: dynamo.TextOf(item["vid"]), Reference: dynamo.TextOf(item["ref"]), Actor: dynamo.TextOf(item["by"]), Reason: dynamo.TextOf(item["why"]),
		Uncertain: item["uncertain"] != nil, Refunds: Key(dynamo.TextOf(item["of"])),
	}
	e.Wallet, _ = walletOf(item)
	_, _, err := parseWallet(e.Wallet)
	if err == nil {
		e.Credits, err = dynamo.NumberOf(item["cr"])
	}
	if err == nil {
		e.At, err = time.Parse(time.RFC3339Nano, dynamo.TextOf(item["ts"]))
	}
	if err == nil && item["un"] != nil {
		e.Units, err = dynamo.NumberOf(item["un"])
	}
	if err != nil {
		return Entry{}, fmt.Errorf("credit: ledger entry %s: %w", e.Key, err)
	}
	return e, nil
}
