package rates

import (
	"errors"
	"fmt"
	"time"

	"svcapi/shared/dynamo"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
)

// item is an item of the table. Its attribute rates is the JSON of a Set or of a Table: DynamoDB's numbers would lose
// trailing zeros, and a map costs more to read.
type item = dynamo.Item

// jsonText returns an attribute with the JSON of rates or of records. Their codes are those of ISO 4217, and their
// numbers and days are valid, so that JSON can always be written.
func jsonText(v any) types.AttributeValue {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(fmt.Errorf("JSON of rates: %w", err))
	}
	return dynamo.Text(string(text))
}

// decodeSet reads a Set, or a Table as a Set without the central bank's values.
func decodeSet(i item) (*Set, error) {
	var s Set
	if err := json.Unmarshal([]byte(dynamo.TextOf(i["rates"])), &s); err != nil {
		return nil, err
	}
	if s.Rates[s.Base].Cmp(One()) != 0 || s.Date.IsZero() {
		return nil, fmt.Errorf("the item has no valid rates for base %q", s.Base)
	}
	return &s, nil
}

func decodeSource(i item) (s Source, err error) {
	s = Source{
		Fetched: timeOf(i["fetched"]), Failure: dynamo.TextOf(i["failure"]), Tried: timeOf(i["tried"]),
		Failures: int(numberOf(i["failures"])), FetchesToday: int(numberOf(i["fetches_today"])),
	}
	if i["rates"] != nil {
		var set *Set
		if set, err = decodeSet(i); err == nil {
			s.Table = &set.Table
		}
	}
	if bank := dynamo.TextOf(i["bank"]); bank != "" {
		err = errors.Join(err, json.Unmarshal([]byte(bank), &s.Bank))
	}
	return s, err
}

// stamp formats a time for an attribute: in UTC and of one width, so that texts compare as times do.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s) // zero for a text that is not a time
	return t
}

func timeOf(v types.AttributeValue) time.Time { return parseTime(dynamo.TextOf(v)) }

func key(pk, sk string) item { return item{"pk": dynamo.Text(pk), "sk": dynamo.Text(sk)} }

// numberOf returns a number, or 0 for any other value.
func numberOf(v types.AttributeValue) int64 {
	n, _ := dynamo.NumberOf(v)
	return n
}
