package credit

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
)

// The items. Names are short: every write pays for the whole item.
//
//	wallet   pk project; balance; pending {key: {c credits, o operation, e environment, r request ID}};
//	         alert credits, where an operator set one
//	ledger   pk project#day; sk key; st state; cr credits; op; rid; env; ven; ts; by actor; why;
//	         uncertain project, on uncertain entries only: the hash key of a sparse index;
//	         res {v verdict, by actor, why, ts}, where uncertain once was; of the refunded charge's key

func walletKey(project string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": attr.Text(project)}
}

func entryKey(project string, key Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": attr.Text(project + "#" + key.Day()), "sk": attr.Text(string(key))}
}

func encodePending(r *Reservation) types.AttributeValue {
	return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
		"c": attr.Number(r.Credits),
		"o": attr.Text(r.Operation),
		"e": attr.Text(r.Environment),
		"r": attr.Text(r.RequestID),
	}}
}

// pendingOf is a wallet's map of reservations.
func pendingOf(wallet map[string]types.AttributeValue) map[string]types.AttributeValue {
	m, _ := wallet["pending"].(*types.AttributeValueMemberM)
	if m == nil {
		return nil
	}
	return m.Value
}

func decodePending(project, key string, v types.AttributeValue) (*Reservation, error) {
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok {
		return nil, fmt.Errorf("credit: reservation %s of %s is no map", key, project)
	}
	k, err := ParseKey(key)
	if err != nil {
		return nil, err
	}
	credits, err := attr.NumberOf(m.Value["c"])
	if err != nil {
		return nil, fmt.Errorf("credit: reservation %s of %s: %w", key, project, err)
	}
	return &Reservation{
		Project: project, Key: k, Credits: credits,
		Operation: attr.TextOf(m.Value["o"]), Environment: attr.TextOf(m.Value["e"]), RequestID: attr.TextOf(m.Value["r"]),
	}, nil
}

func encodeEntry(project string, e Entry) map[string]types.AttributeValue {
	item := entryKey(project, e.Key)
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
		item["uncertain"] = attr.Text(project)
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
	var err error
	if e.Credits, err = attr.NumberOf(item["cr"]); err == nil {
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
