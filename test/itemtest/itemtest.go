// Package itemtest generates DynamoDB items from bytes, so that fuzzing reaches the decoders of items.
package itemtest

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item returns an item with some of the named attributes, each of any type. The same bytes give the same item.
func Item(data []byte, names ...string) map[string]types.AttributeValue {
	r := &reader{data}
	item := map[string]types.AttributeValue{}
	for len(r.rest) > 0 && len(item) < 2*len(names) {
		item[r.name(names)] = r.value(names, 0)
	}
	return item
}

// reader reads values from bytes, and zeros after their end.
type reader struct{ rest []byte }

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) text() string {
	n := min(int(r.byte()), len(r.rest))
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

// name returns mostly one of the names.
func (r *reader) name(names []string) string {
	name := r.text()
	if n := r.byte(); len(names) > 0 && n < 0xf0 {
		return names[int(n)%len(names)]
	}
	return name
}

// words are values that decoders look for.
var words = []string{
	"project", "credential#svc_acme_aaaaaaaa", "integration#development#sms#v", "2006-01-02T15:04:05Z",
	"2006-01-02T15:04:05.999999999+01:00",
	"9223372036854775807", "-1", "0", "1e3", "{}", `{"USD":1}`, `{"USD":{"buy":{"rate":1,"date":"2006-01-02"}}}`, "USD",
	"0001700000000000-abcdef0",
}

func (r *reader) word() string {
	if n := r.byte(); int(n) < 4*len(words) {
		return words[int(n)%len(words)]
	}
	return r.text()
}

const deepest = 3

func (r *reader) value(names []string, depth int) types.AttributeValue {
	kind := r.byte() % 10
	if depth == deepest {
		kind %= 6
	}
	switch kind {
	case 0, 1:
		return &types.AttributeValueMemberS{Value: r.word()}
	case 2:
		return &types.AttributeValueMemberN{Value: strconv.Itoa(int(r.byte()))}
	case 3:
		return &types.AttributeValueMemberN{Value: r.word()}
	case 4:
		return &types.AttributeValueMemberBOOL{Value: r.byte()%2 == 0}
	case 5:
		return &types.AttributeValueMemberB{Value: []byte(r.text())}
	case 6:
		return &types.AttributeValueMemberNULL{Value: true}
	case 7:
		return nil
	case 8:
		list := &types.AttributeValueMemberL{}
		for range r.byte() % 4 {
			list.Value = append(list.Value, r.value(names, depth+1))
		}
		return list
	}
	m := map[string]types.AttributeValue{}
	for range r.byte() % 8 {
		m[r.name(names)] = r.value(names, depth+1)
	}
	return &types.AttributeValueMemberM{Value: m}
}
