package capacity

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// item is an item in the wire format, or its key.
type item map[string]jsontext.Value

// request is what the model reads of a call's body, or of one action of a transaction.
type request struct {
	TableName, KeyConditionExpression    string
	Key, Item, ExpressionAttributeValues item
	ReturnValuesOnConditionCheckFailure  string
	TransactItems                        []map[string]request
}

// charge is what one call costs one key.
type charge struct {
	key   Key
	item  string // that is written, by table and key; empty: a read
	times float64
	cost  float64 // taken by admit, then corrected by settle
}

// call is one operation with the keys that it touches.
type call struct {
	request
	charges []charge
	body    []byte // for the engine
}

// parse finds out which keys a call touches. The call asks for more than the client did, to know what the call has
// cost: the consumed capacity, and the stored item that failed a condition.
func (m *Model) parse(operation string, body []byte) (c *call, err error) {
	c = &call{body: body}
	var all map[string]jsontext.Value
	if err := errors.Join(json.Unmarshal(body, &c.request), json.Unmarshal(body, &all)); err != nil {
		return nil, err
	}
	switch operation {
	case "GetItem", "Query":
		err = m.reads(c)
	case "PutItem", "UpdateItem", "DeleteItem":
		err = m.writes(c, c.request, 1)
		all["ReturnValuesOnConditionCheckFailure"] = jsontext.Value(`"ALL_OLD"`)
	case "TransactWriteItems": // a transaction costs twice, also a cancelled one
		for _, action := range c.TransactItems {
			for _, write := range action {
				err = errors.Join(err, m.writes(c, write, 2))
			}
		}
		return c, err // the engine reports only the sum of a table
	default:
		err = errors.New("is not modelled")
	}
	if err != nil {
		return nil, err
	}
	all["ReturnConsumedCapacity"] = jsontext.Value(`"INDEXES"`)
	c.body, err = json.Marshal(all)
	return c, err
}

// writes adds the charge of writing one item.
func (m *Model) writes(c *call, in request, times float64) error {
	s, ok := m.schemas[in.TableName]
	if !ok {
		return fmt.Errorf("table %q is not known", in.TableName)
	}
	key := in.Key
	if in.Item != nil {
		key = in.Item
	}
	hash := string(key[s.hash])
	name := strings.Join([]string{in.TableName, hash, string(key[s.sort])}, "\x00")
	c.charges = append(c.charges, charge{key: Key{in.TableName, hash}, item: name, times: times})
	return nil
}

// reads adds the charge of reading one partition key value: that of a key, or that of a condition "pk = :p AND …".
func (m *Model) reads(c *call) error {
	hash, ok := c.Key[m.schemas[c.TableName].hash]
	if !ok {
		clause, _, _ := strings.Cut(c.KeyConditionExpression, " AND ")
		name, placeholder, _ := strings.Cut(clause, " = ")
		if hash, ok = c.ExpressionAttributeValues[placeholder]; !ok || name != m.schemas[c.TableName].hash {
			return fmt.Errorf("no partition key in %q", c.KeyConditionExpression)
		}
	}
	c.charges = []charge{{key: Key{c.TableName, string(hash)}, times: 1}}
	return nil
}

const tooMuch = "The level of configured provisioned throughput for the table was exceeded."

// throttled returns the response to a call that some of its charges have no capacity for, by their indexes.
func (c *call) throttled(refused []int) []byte {
	if c.TransactItems == nil {
		operation := "Write"
		if c.charges[0].item == "" {
			operation = "Read"
		}
		return fmt.Appendf(nil, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",`+
			`"message":%q,`+
			`"ThrottlingReasons":[{"reason":"Table%sKeyRangeThroughputExceeded","resource":%q}]}`, tooMuch, operation, c.TableName)
	}
	reasons := slices.Repeat([]string{`{"Code":"None"}`}, len(c.charges))
	for _, i := range refused {
		reasons[i] = fmt.Sprintf(`{"Code":"ProvisionedThroughputExceeded","Message":%q}`, tooMuch)
	}
	return fmt.Appendf(nil, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException",`+
		`"Message":"Transaction cancelled","CancellationReasons":[%s]}`,
		strings.Join(reasons, ","))
}

// reply is what the model reads of the engine's response.
type reply struct {
	Kind             string `json:"__type"` // of a failure
	ConsumedCapacity struct {
		Table                  struct{ CapacityUnits float64 }
		GlobalSecondaryIndexes map[string]any
	}
	Item jsontext.Value
}

// examine sets what a call of one item has cost, and returns the response that the client asked for. A failed condition
// costs the stored item, whose text is longer than its size, and any other failure costs nothing.
func (c *call) examine(status int, response []byte) ([]byte, error) {
	var known reply
	if err := json.Unmarshal(response, &known); err != nil {
		return nil, err
	}
	switch {
	case len(known.ConsumedCapacity.GlobalSecondaryIndexes) > 0:
		return nil, errors.New("a write of an index is not modelled")
	case status == http.StatusOK:
		c.charges[0].cost = known.ConsumedCapacity.Table.CapacityUnits
		return response, nil
	case status >= http.StatusInternalServerError:
		return nil, fmt.Errorf("the engine returned %d: %s", status, known.Kind)
	}
	c.charges[0].cost = 0
	if strings.HasSuffix(known.Kind, "#ConditionalCheckFailedException") {
		c.charges[0].cost = max(1, math.Ceil(float64(len(known.Item))/1024))
	}
	if c.ReturnValuesOnConditionCheckFailure == "ALL_OLD" {
		return response, nil
	}
	var out map[string]jsontext.Value
	err := json.Unmarshal(response, &out)
	delete(out, "Item")
	response, marshalErr := json.Marshal(out)
	return response, errors.Join(err, marshalErr)
}
