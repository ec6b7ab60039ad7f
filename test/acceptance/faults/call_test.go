package faults

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"svcapi/test/faultproxy"
)

// step is the purpose of a call of a request, of the settler or of an operator.
type step string

const (
	record        step = "record"         // reads the project's record
	domains       step = "domains"        // reads the project's own domains
	count         step = "count"          // counts the request for the rate limit
	recipient     step = "recipient"      // counts the message to its number
	daily         step = "daily"          // counts the credits or SMS units of the day
	subtract      step = "subtract"       // subtracts what was counted for work that was not done
	alert         step = "alert"          // claims the alert of a daily limit
	claim         step = "claim"          // claims an Idempotency-Key
	keep          step = "keep"           // stores the outcome of the key
	free          step = "free"           // frees the key
	reserve       step = "reserve"        // takes credits out of the balance
	mark          step = "mark"           // writes that irrevocable work begins
	vendor        step = "vendor"         // calls the vendor
	capture       step = "capture"        // charges
	forbidCapture step = "forbid capture" // writes "released", so that a capture fails
	returnCredits step = "return credits" // returns the reserved credits to the balance
	remove        step = "remove"         // removes the key of a captured reservation
	movement      step = "movement"       // an operator's movement or refund
	scan          step = "scan"           // scans the wallets, or the uncertain charges
	look          step = "look"           // reads one entry or wallet
	question      step = "question"       // asks the vendor about a send
	warm          step = "warm"           // opens a connection
	other         step = "other"
)

// changes are the steps of which a late copy may do harm.
var changes = []step{count, recipient, daily, subtract, alert, claim, keep, free, reserve, mark, vendor, capture,
	forbidCapture, returnCredits, remove, movement}

func (s step) writes() bool { return slices.Contains(changes, s) }

// call is a decoded request to DynamoDB.
type call struct {
	step    step
	project string // empty: the call belongs to no single project
}

type value struct{ S, N string }

type target struct {
	TableName, UpdateExpression string
	Key, Item                   map[string]value
	ExpressionAttributeValues   map[string]value
}

func (t target) pk() string {
	for _, v := range []value{t.Key["pk"], t.Item["pk"], t.ExpressionAttributeValues[":pk"],
		t.ExpressionAttributeValues[":p"]} {
		if v.S != "" {
			return v.S
		}
	}
	return ""
}

// decode decodes a request of a function or of svc to DynamoDB.
func decode(r *faultproxy.Request) call {
	var body struct {
		target
		TransactItems []struct{ Put, Update target }
		RequestItems  map[string]struct{ Keys []map[string]value }
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return call{other, ""}
	}
	t := body.target
	if r.Operation == "TransactWriteItems" {
		for _, item := range body.TransactItems {
			for _, write := range []target{item.Put, item.Update} {
				if write.pk() != "" {
					return call{movement, owner(write.pk())}
				}
			}
		}
	}
	for table, keys := range body.RequestItems {
		if (strings.HasSuffix(table, "-wallets") || strings.HasSuffix(table, "-ledger")) && len(keys.Keys) > 0 {
			return call{look, owner(keys.Keys[0]["pk"].S)}
		}
	}
	if t.pk() == "#warm" {
		return call{warm, ""}
	}
	table := t.TableName[strings.LastIndexByte(t.TableName, '-')+1:]
	return call{stepOf(r.Operation, table, t), owner(t.pk())}
}

func stepOf(operation, table string, t target) step {
	switch table + " " + operation {
	case "wallets UpdateItem":
		switch {
		case strings.Contains(t.UpdateExpression, "balance - "):
			return reserve
		case strings.Contains(t.UpdateExpression, "balance + "):
			return returnCredits
		}
		return remove
	case "wallets Scan", "ledger Scan":
		return scan
	case "ledger PutItem":
		return map[string]step{"sending": mark, "captured": capture, "released": forbidCapture}[t.Item["st"].S]
	case "transient PutItem":
		if strings.HasPrefix(t.pk(), "spending#") { // the settling function's, which no request waits for
			return other
		}
		if t.Item["freed"].N != "" {
			return free
		}
		return claim
	case "transient UpdateItem":
		kind, _, _ := strings.Cut(t.pk(), "#")
		by := t.ExpressionAttributeValues[":by"].N
		switch adds := by != "" && by[0] != '-'; {
		case strings.HasPrefix(kind, "subtract"): // the queue of counts, which no request waits for
			return other
		case kind == "rl":
			return count
		case kind == "to" && adds:
			return recipient
		case kind == "day" && adds:
			return daily
		case kind == "day" && strings.Contains(t.UpdateExpression, "alerted"):
			return alert
		case kind == "to", kind == "day":
			return subtract
		}
		return keep
	case "projects Query":
		return record
	case "ledger GetItem", "ledger Query", "movements Query", "resolutions GetItem", "resolutions Query",
		"wallets GetItem":
		return look
	case " BatchGetItem":
		return domains
	}
	return other
}

// owner returns the project of a partition key: project, project#shard#day, or the second part of an item in Transient.
func owner(pk string) string {
	parts := strings.Split(pk, "#")
	if slices.Contains([]string{"idem", "rl", "to", "day"}, parts[0]) && len(parts) > 1 {
		return parts[1]
	}
	return parts[0]
}

// tokens matches the text of a message or the address of a look-up, which identifies the request of a vendor call.
var tokens = regexp.MustCompile(`M\d+R\d+E|112\.134\.\d+\.\d+|45\.83\.0\.7`)

func tokenOf(text string) string { return tokens.FindString(text) }
