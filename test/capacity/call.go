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

func (c *charge) factor() float64 {
	if c.action > 0 {
		return 2
	}
	return 1
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
	TableName, IndexName, KeyConditionExpression string
	Key, Item, ExpressionAttributeValues         item
	ExpressionAttributeNames                     map[string]string
	ReturnValues                                 string
	ReturnValuesOnConditionCheckFailure          string
	TransactItems                                []map[string]request
	RequestItems                                 map[string]struct {
		Keys           []item
		ConsistentRead bool
	}
}

// parse finds out which keys a call touches.
func (m *Model) parse(operation string, body []byte) (*call, error) {
	var in request
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	switch operation {
	case "PutItem", "UpdateItem", "DeleteItem":
		return m.write(operation, in, body)
	case "TransactWriteItems":
		return m.transaction(in, body)
	case "GetItem", "Query":
		return m.read(operation, in, body)
	case "BatchGetItem":
		return m.batch(in, body)
	}
	return nil, errors.New("is not modelled")
}

// asking returns a body with more fields.
func asking(body []byte, more map[string]string) ([]byte, error) {
	var in fields
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	for name, value := range more {
		in[name] = jsontext.Value(`"` + value + `"`)
	}
	return json.Marshal(in)
}

// get decodes one field; one that is absent is the zero value.
func get[T any](in fields, name string) (out T, err error) {
	if raw, ok := in[name]; ok {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

func (m *Model) schema(table string) (*schema, error) {
	if m.schemas[table] == nil {
		return nil, fmt.Errorf("table %q is not known", table)
	}
	return m.schemas[table], nil
}

// one returns the charges of writing one item: the table's first, then one for each index whose key the item is known to
// have.
func (m *Model) one(in request) ([]charge, error) {
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

// consumed is the cost of a call in one table, as the engine reports it.
type consumed struct {
	CapacityUnits          float64
	Table                  struct{ CapacityUnits float64 }
	GlobalSecondaryIndexes map[string]struct{ CapacityUnits float64 }
}

// write asks for more than the client did, to know what the write has cost: the consumed capacity, the item after an
// update, and the stored item that failed a condition.
func (m *Model) write(operation string, in request, body []byte) (*call, error) {
	charges, err := m.one(in)
	if err != nil {
		return nil, err
	}
	c := &call{charges: charges}
	after := operation == "UpdateItem" && in.ReturnValues == ""
	more := map[string]string{"ReturnConsumedCapacity": "INDEXES", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
	if after {
		more["ReturnValues"] = "ALL_NEW"
	}
	if c.forward, err = asking(body, more); err != nil {
		return nil, err
	}
	c.costs = func(status int, response []byte) ([]byte, error) {
		var out fields
		if err := json.Unmarshal(response, &out); err != nil {
			return nil, err
		}
		if status != http.StatusOK {
			return c.refused(status, out, in.ReturnValuesOnConditionCheckFailure == "ALL_OLD")
		}
		spent, err := get[consumed](out, "ConsumedCapacity")
		if err != nil {
			return nil, err
		}
		delete(out, "ConsumedCapacity")
		c.charges[0].cost = spent.Table.CapacityUnits
		if after {
			stored, err := get[item](out, "Attributes")
			if err != nil {
				return nil, err
			}
			c.charges[0].size = sizeOf(stored)
			c.charges = append(c.charges[:1], m.indexed(in.TableName, stored)...)
			delete(out, "Attributes")
		}
		for i := range c.charges[1:] {
			ch := &c.charges[1+i]
			ch.cost = spent.GlobalSecondaryIndexes[ch.key.Index].CapacityUnits
		}
		return json.Marshal(out)
	}
	return c, nil
}

// refused sets the costs of a write that the engine did not do: a failed condition costs the stored item, any other
// failure nothing.
func (c *call) refused(status int, out fields, wantsOld bool) ([]byte, error) {
	for i := range c.charges {
		c.charges[i].cost = 0
	}
	kind, err := get[string](out, "__type")
	if err != nil {
		return nil, err
	}
	if status >= http.StatusInternalServerError {
		return nil, fmt.Errorf("the engine returned %d: %s", status, kind)
	}
	if strings.HasSuffix(kind, "#ConditionalCheckFailedException") {
		stored, err := get[item](out, "Item")
		if err != nil {
			return nil, err
		}
		c.charges[0].cost = units(sizeOf(stored))
	}
	if !wantsOld {
		delete(out, "Item")
	}
	return json.Marshal(out)
}

// transaction charges each item twice, by its size as far as the size is known: the engine reports only the sum of a table.
// A cancelled transaction costs as much.
func (m *Model) transaction(in request, body []byte) (*call, error) {
	c := &call{forward: body, costs: unchanged, actions: len(in.TransactItems)}
	for i, action := range in.TransactItems {
		for _, write := range action {
			charges, err := m.one(write)
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

// unchanged leaves the costs as expected and the response as the engine gave it.
func unchanged(_ int, response []byte) ([]byte, error) { return response, nil }

// read charges a read of one partition key value.
func (m *Model) read(operation string, in request, body []byte) (*call, error) {
	s, err := m.schema(in.TableName)
	if err != nil {
		return nil, err
	}
	key := Key{Table: in.TableName, Value: value(in.Key[s.hash])}
	if operation == "Query" {
		if key, err = queried(in, s); err != nil {
			return nil, err
		}
	}
	c := &call{charges: []charge{{key: key, read: true, least: 0.5, cost: unknown}}}
	if c.forward, err = asking(body, map[string]string{"ReturnConsumedCapacity": "TOTAL"}); err != nil {
		return nil, err
	}
	c.costs = func(status int, response []byte) ([]byte, error) {
		if status != http.StatusOK {
			c.charges[0].cost = 0
			return response, nil
		}
		var out fields
		if err := json.Unmarshal(response, &out); err != nil {
			return nil, err
		}
		spent, err := get[consumed](out, "ConsumedCapacity")
		if err != nil {
			return nil, err
		}
		c.charges[0].cost = spent.CapacityUnits
		delete(out, "ConsumedCapacity")
		return json.Marshal(out)
	}
	return c, nil
}

// queried finds the partition key value in a key condition: "name = :placeholder", and maybe more after AND.
func queried(in request, s *schema) (Key, error) {
	hash := s.hash
	if in.IndexName != "" {
		hash = s.indexes[in.IndexName]
	}
	for clause := range strings.SplitSeq(in.KeyConditionExpression, " AND ") {
		name, placeholder, _ := strings.Cut(clause, " = ")
		if given, ok := in.ExpressionAttributeNames[name]; ok {
			name = given
		}
		if v, ok := in.ExpressionAttributeValues[placeholder]; ok && name == hash {
			return Key{in.TableName, in.IndexName, value(v)}, nil
		}
	}
	return Key{}, fmt.Errorf("no partition key in %q", in.KeyConditionExpression)
}

// batch charges each key of a batch one unit, or a half: the engine reports only the sum of a table.
func (m *Model) batch(in request, body []byte) (*call, error) {
	c := &call{forward: body, costs: unchanged}
	for table, request := range in.RequestItems {
		s, err := m.schema(table)
		if err != nil {
			return nil, err
		}
		cost := 0.5
		if request.ConsistentRead {
			cost = 1
		}
		for _, key := range request.Keys {
			c.charges = append(c.charges, charge{key: Key{Table: table, Value: value(key[s.hash])}, read: true, least: cost, cost: unknown})
		}
	}
	return c, nil
}
