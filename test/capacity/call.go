package capacity

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// schema is the keys of a table and of its indexes.
type schema struct {
	hash, sort string
	indexes    map[string]string // the partition key's attribute, by index
}

func schemaOf(d *types.TableDescription) *schema {
	s := &schema{indexes: map[string]string{}}
	for _, k := range d.KeySchema {
		if k.KeyType == types.KeyTypeHash {
			s.hash = aws.ToString(k.AttributeName)
		} else {
			s.sort = aws.ToString(k.AttributeName)
		}
	}
	for _, index := range d.GlobalSecondaryIndexes {
		s.indexes[aws.ToString(index.IndexName)] = aws.ToString(index.KeySchema[0].AttributeName)
	}
	return s
}

// value is a key attribute as text; its type is the schema's.
func value(a attribute) string {
	switch {
	case a.S != nil:
		return *a.S
	case a.N != nil:
		return *a.N
	case a.B != nil:
		return string(*a.B)
	}
	return ""
}

// unknown is a cost that only an estimate is known of.
const unknown = -1

// charge is what one call costs one key.
type charge struct {
	key    Key
	item   string // that is written, by table and key
	read   bool
	action int     // of a transaction, from 1; 0: none
	least  float64 // expected before the item's size is known
	taken  float64 // by admit
	cost   float64
	size   int // of the item after the write, in bytes; 0: not known
}

// call is one operation with the keys that it touches.
type call struct {
	charges []charge
	actions int                               // of a transaction
	forward []byte                            // the body for the engine
	costs   func(int, []byte) ([]byte, error) // sets the charges' costs and returns the client's response
}

const tooMuch = "The level of configured provisioned throughput for the table was exceeded."

// throttled returns the response to a call that some keys have no capacity for.
func (c *call) throttled(refused []*charge) []byte {
	if c.actions == 0 {
		resource, operation := "Table", "Write"
		if refused[0].key.Index != "" {
			resource = "Index"
		}
		if refused[0].read {
			operation = "Read"
		}
		return fmt.Appendf(nil, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":%q,`+
			`"ThrottlingReasons":[{"reason":"%s%sKeyRangeThroughputExceeded","resource":%q}]}`, tooMuch, resource, operation, refused[0].key.Table)
	}
	reasons := slices.Repeat([]string{`{"Code":"None"}`}, c.actions)
	for _, ch := range refused {
		reasons[ch.action-1] = fmt.Sprintf(`{"Code":"ProvisionedThroughputExceeded","Message":%q}`, tooMuch)
	}
	return fmt.Appendf(nil, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"Transaction cancelled","CancellationReasons":[%s]}`,
		strings.Join(reasons, ","))
}

type fields = map[string]jsontext.Value

// request is what the model reads of a call's body, or of one action of a transaction.
type request struct {
	TableName, KeyConditionExpression    string
	Key, Item, ExpressionAttributeValues item
	ReturnValues                         string
	ReturnValuesOnConditionCheckFailure  string
	TransactItems                        []map[string]request
}

// parse finds out which keys a call touches.
func (m *Model) parse(operation string, body []byte) (*call, error) {
	var in request
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	switch operation {
	case "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem":
		return m.single(operation, in, body)
	case "TransactWriteItems":
		return m.transaction(in, body)
	}
	return nil, errors.New("is not modelled")
}

func (m *Model) schema(table string) (*schema, error) {
	if m.schemas[table] == nil {
		return nil, fmt.Errorf("table %q is not known", table)
	}
	return m.schemas[table], nil
}

// written returns the charges of writing one item: the table's first, then one for each index whose key the item is known
// to have.
func (m *Model) written(in request) ([]charge, error) {
	s, err := m.schema(in.TableName)
	if err != nil {
		return nil, err
	}
	key, first := in.Key, charge{least: 1, cost: unknown}
	if in.Item != nil {
		key, first.size = in.Item, sizeOf(in.Item)
		first.least = units(first.size)
	}
	hash := value(key[s.hash])
	first.key = Key{Table: in.TableName, Value: hash}
	first.item = strings.Join([]string{in.TableName, hash, value(key[s.sort])}, "\x00")
	return append([]charge{first}, m.indexed(in.TableName, in.Item)...), nil
}

// read returns the charge of reading one partition key value: that of a key, or that of a condition "pk = :p AND …".
func (m *Model) read(in request) ([]charge, error) {
	s, err := m.schema(in.TableName)
	if err != nil {
		return nil, err
	}
	hash, ok := in.Key[s.hash]
	if !ok {
		clause, _, _ := strings.Cut(in.KeyConditionExpression, " AND ")
		name, placeholder, _ := strings.Cut(clause, " = ")
		if hash, ok = in.ExpressionAttributeValues[placeholder]; !ok || name != s.hash {
			return nil, fmt.Errorf("no partition key in %q", in.KeyConditionExpression)
		}
	}
	return []charge{{key: Key{Table: in.TableName, Value: value(hash)}, read: true, least: 0.5, cost: unknown}}, nil
}

// indexed returns the charges of the indexes that hold the item.
func (m *Model) indexed(table string, it item) []charge {
	var charges []charge
	for index, attribute := range m.schemas[table].indexes {
		if v, ok := it[attribute]; ok {
			charges = append(charges, charge{key: Key{table, index, value(v)}, least: units(sizeOf(it)), cost: unknown})
		}
	}
	return charges
}

// reply is what the model reads of the engine's response.
type reply struct {
	Kind             string `json:"__type"` // of a failure
	ConsumedCapacity struct {
		Table                  struct{ CapacityUnits float64 }
		GlobalSecondaryIndexes map[string]struct{ CapacityUnits float64 }
	}
	Attributes, Item item
}

// single asks for more than the client did, to know what a call has cost: the consumed capacity, the item after an update,
// and the stored item that failed a condition.
func (m *Model) single(operation string, in request, body []byte) (*call, error) {
	charges, more := m.written, map[string]string{"ReturnConsumedCapacity": "INDEXES"}
	after := operation == "UpdateItem"
	switch {
	case operation == "GetItem", operation == "Query":
		charges = m.read
	case after:
		more["ReturnValues"] = "ALL_NEW"
		fallthrough
	default:
		more["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
	}
	c := &call{}
	var asked fields
	var err error
	if c.charges, err = charges(in); err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil {
		return nil, err
	}
	for name, value := range more {
		asked[name] = jsontext.Value(`"` + value + `"`)
	}
	c.costs = func(status int, response []byte) ([]byte, error) {
		var out fields
		var known reply
		if err := errors.Join(json.Unmarshal(response, &out), json.Unmarshal(response, &known)); err != nil {
			return nil, err
		}
		if status != http.StatusOK {
			if in.ReturnValuesOnConditionCheckFailure != "ALL_OLD" {
				delete(out, "Item")
			}
			if err := c.refused(status, known); err != nil {
				return nil, err
			}
			return json.Marshal(out)
		}
		delete(out, "ConsumedCapacity")
		c.charges[0].cost = known.ConsumedCapacity.Table.CapacityUnits
		if after {
			c.charges[0].size = sizeOf(known.Attributes)
			c.charges = append(c.charges[:1], m.indexed(in.TableName, known.Attributes)...)
			if in.ReturnValues == "" {
				delete(out, "Attributes")
			}
		}
		for i := range c.charges[1:] {
			ch := &c.charges[1+i]
			ch.cost = known.ConsumedCapacity.GlobalSecondaryIndexes[ch.key.Index].CapacityUnits
		}
		return json.Marshal(out)
	}
	c.forward, err = json.Marshal(asked)
	return c, err
}

// refused sets the costs of a call that the engine did not do: a failed condition costs the stored item, any other failure
// nothing.
func (c *call) refused(status int, known reply) error {
	for i := range c.charges {
		c.charges[i].cost = 0
	}
	if strings.HasSuffix(known.Kind, "#ConditionalCheckFailedException") {
		c.charges[0].cost = units(sizeOf(known.Item))
	}
	if status >= http.StatusInternalServerError {
		return fmt.Errorf("the engine returned %d: %s", status, known.Kind)
	}
	return nil
}

// transaction charges each item twice, by its size as far as the size is known: the engine reports only the sum of a table.
// A cancelled transaction costs as much.
func (m *Model) transaction(in request, body []byte) (*call, error) {
	unchanged := func(_ int, response []byte) ([]byte, error) { return response, nil }
	c := &call{forward: body, costs: unchanged, actions: len(in.TransactItems)}
	for i, action := range in.TransactItems {
		for _, write := range action {
			charges, err := m.written(write)
			if err != nil {
				return nil, err
			}
			for _, ch := range charges {
				ch.least *= 2
				ch.action = i + 1
				c.charges = append(c.charges, ch)
			}
		}
	}
	return c, nil
}
