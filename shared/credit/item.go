package credit

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The items. Names are short: every write pays for the whole item.
//
//	wallet   pk project; balance; pending {key: {c credits, o operation, e environment, r request ID}}
//	ledger   pk project#day; sk key; st state; cr credits; op; rid; env; ven; ts; by actor; why;
//	         uncertain project, on uncertain entries only: the hash key of a sparse index

func walletKey(project string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": text(project)}
}

func entryKey(project string, key Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": text(project + "#" + key.Day()), "sk": text(string(key))}
}

func encodePending(r *Reservation) types.AttributeValue {
	return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
		"c": number(r.Credits),
		"o": text(r.Operation),
		"e": text(r.Environment),
		"r": text(r.RequestID),
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
	credits, err := numberOf(m.Value["c"])
	if err != nil {
		return nil, fmt.Errorf("credit: reservation %s of %s: %w", key, project, err)
	}
	return &Reservation{
		Project: project, Key: k, Credits: credits,
		Operation: textOf(m.Value["o"]), Environment: textOf(m.Value["e"]), RequestID: textOf(m.Value["r"]),
	}, nil
}

func encodeEntry(project string, e Entry) map[string]types.AttributeValue {
	item := entryKey(project, e.Key)
	item["st"] = text(string(e.State))
	item["cr"] = number(e.Credits)
	item["ts"] = text(e.At.UTC().Format(time.RFC3339Nano))
	for name, value := range map[string]string{
		"op": e.Operation, "rid": e.RequestID, "env": e.Environment, "ven": e.Vendor, "by": e.Actor, "why": e.Reason,
	} {
		if value != "" {
			item[name] = text(value)
		}
	}
	if e.Uncertain {
		item["uncertain"] = text(project)
	}
	return item
}

func decodeEntry(item map[string]types.AttributeValue) (Entry, error) {
	e := Entry{
		Key: Key(textOf(item["sk"])), State: State(textOf(item["st"])),
		Operation: textOf(item["op"]), RequestID: textOf(item["rid"]), Environment: textOf(item["env"]),
		Vendor: textOf(item["ven"]), Actor: textOf(item["by"]), Reason: textOf(item["why"]),
		Uncertain: item["uncertain"] != nil,
	}
	var err error
	if e.Credits, err = numberOf(item["cr"]); err == nil {
		e.At, err = time.Parse(time.RFC3339Nano, textOf(item["ts"]))
	}
	if err != nil {
		return Entry{}, fmt.Errorf("credit: ledger entry %s: %w", e.Key, err)
	}
	return e, nil
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func textOf(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

func numberOf(v types.AttributeValue) (int64, error) {
	n, _ := v.(*types.AttributeValueMemberN)
	if n == nil {
		return 0, fmt.Errorf("no number where one belongs")
	}
	return strconv.ParseInt(n.Value, 10, 64)
}
