package credit

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
)

// The stored items. Attribute names are short, because every write pays for the whole item.
//
//	wallet   pk wallet; balance; pending {key: {c credits, o operation, e environment, r request ID}};
//	         moves, the number of moves of credits between this shard and others;
//	         on the first shard: alert credits, where an operator set an alert; parts, the number of shards
//	ledger   pk wallet#day; sk key; st state; cr credits; op; rid; env; ven; ts; by actor; why;
//	         uncertain wallet, on uncertain entries only: the hash key of a sparse index;
//	         res {v verdict, by actor, why, ts}, on resolved entries; of, the key of the refunded charge
//
// The first shard of a wallet has the name of its project, further shards project#1, project#2 and so on. Entries
// of operators belong to the first shard.

func walletKey(wallet string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": attr.Text(wallet)}
}

func entryKey(wallet string, key Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": attr.Text(wallet + "#" + key.Day()), "sk": attr.Text(string(key))}
}

// walletOf splits the partition key of an entry into the name of the wallet and the day.
func walletOf(entry attr.Item) (wallet, day string) {
	pk := attr.TextOf(entry["pk"])
	if i := strings.LastIndexByte(pk, '#'); i >= 0 {
		return pk[:i], pk[i+1:]
	}
	return pk, ""
}

func encodePending(r *Reservation) types.AttributeValue {
	return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
		"c": attr.Number(r.Credits),
		"o": attr.Text(r.Operation),
		"e": attr.Text(r.Environment),
		"r": attr.Text(r.RequestID),
	}}
}

// pendingOf returns a wallet's map of pending reservations; nil where the attribute is no map.
func pendingOf(wallet map[string]types.AttributeValue) map[string]types.AttributeValue {
	m, _ := wallet["pending"].(*types.AttributeValueMemberM)
	if m == nil {
		return nil
	}
	return m.Value
}

func decodePending(wallet, key string, v types.AttributeValue) (*Reservation, error) {
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok {
		return nil, fmt.Errorf("credit: reservation %s of %s is no map", key, wallet)
	}
	k, err := ParseKey(key)
	if err != nil {
		return nil, fmt.Errorf("credit: reservation %s of %s: %w", key, wallet, err)
	}
	credits, err := attr.NumberOf(m.Value["c"])
	if err != nil {
		return nil, fmt.Errorf("credit: reservation %s of %s: %w", key, wallet, err)
	}
	project, shard, err := parseWallet(wallet)
	if err != nil {
		return nil, err
	}
	return &Reservation{
		Project: project, Shard: shard, Key: k, Credits: credits,
		Operation: attr.TextOf(m.Value["o"]), Environment: attr.TextOf(m.Value["e"]), RequestID: attr.TextOf(m.Value["r"]),
	}, nil
}

func encodeEntry(wallet string, e Entry) map[string]types.AttributeValue {
	item := entryKey(wallet, e.Key)
	item["st"] = attr.Text(string(e.State))
	item["cr"] = attr.Number(e.Credits)
	item["ts"] = attr.Text(e.At.UTC().Format(time.RFC3339Nano))
	for name, value := range map[string]string{
		"op": e.Operation, "rid": e.RequestID, "env": e.Environment, "ven": e.Vendor, "by": e.Actor, "why": e.Reason, "of": string(e.Refunds),
	} {
		if value != "" {
			item[name] = attr.Text(value)
		}
	}
	if e.Uncertain {
		item["uncertain"] = attr.Text(wallet)
	}
	if e.Resolution.Verdict != unresolved {
		item["res"] = encodeResolution(e.Resolution)
	}
	return item
}

func encodeResolution(r Resolution) types.AttributeValue {
	return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
		"v": attr.Text(string(r.Verdict)), "by": attr.Text(r.Actor), "why": attr.Text(r.Reason), "ts": attr.Text(r.At.UTC().Format(time.RFC3339Nano)),
	}}
}

func decodeResolution(v types.AttributeValue) (Resolution, error) {
	m, _ := v.(*types.AttributeValueMemberM)
	if m == nil {
		return Resolution{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, attr.TextOf(m.Value["ts"]))
	return Resolution{Verdict: Verdict(attr.TextOf(m.Value["v"])), Actor: attr.TextOf(m.Value["by"]), Reason: attr.TextOf(m.Value["why"]), At: at}, err
}

func decodeEntry(item map[string]types.AttributeValue) (Entry, error) {
	e := Entry{
		Key: Key(attr.TextOf(item["sk"])), State: State(attr.TextOf(item["st"])),
		Operation: attr.TextOf(item["op"]), RequestID: attr.TextOf(item["rid"]), Environment: attr.TextOf(item["env"]),
		Vendor: attr.TextOf(item["ven"]), Actor: attr.TextOf(item["by"]), Reason: attr.TextOf(item["why"]),
		Uncertain: item["uncertain"] != nil, Refunds: Key(attr.TextOf(item["of"])),
	}
	wallet, _ := walletOf(item)
	var err error
	if _, e.Shard, err = parseWallet(wallet); err == nil {
		e.Credits, err = attr.NumberOf(item["cr"])
	}
	if err == nil {
		e.At, err = time.Parse(time.RFC3339Nano, attr.TextOf(item["ts"]))
	}
	if err == nil {
		e.Resolution, err = decodeResolution(item["res"])
	}
	if err != nil {
		return Entry{}, fmt.Errorf("credit: ledger entry %s: %w", e.Key, err)
	}
	return e, nil
}
