package capacity

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/test/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

const latency = 4 * time.Millisecond

// bench is a model over tables of its own, with a client through it that tries once.
type bench struct {
	*Model
	db, direct *dynamodb.Client
	tables     enginetest.Tables
}

func build(t *testing.T) *bench {
	t.Helper()
	b := &bench{}
	b.direct, b.tables = enginetest.Client(t)
	var err error
	tables := []string{b.tables.Wallets, b.tables.Ledger}
	if b.Model, err = New(t.Context(), b.direct, enginetest.URL(t), tables, 1); err != nil {
		t.Fatal(err)
	}
	b.latency = func(*rand.Rand) time.Duration { return latency }
	t.Cleanup(func() {
		b.Close()
		if err := b.Err(); err != nil {
			t.Error(err)
		}
	})
	b.db = dynamodb.New(b.direct.Options(),
		func(o *dynamodb.Options) { o.HTTPClient, o.Retryer = b.Model, aws.NopRetryer{} })
	return b
}

// at the next whole second, so that the seconds of a test are those of the model.
func onTheSecond() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) }

// offer makes so many calls, spread evenly over a span, and counts their outcomes.
func offer(calls int, span time.Duration, call func(i int) error) (done, failed, refused int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			time.Sleep(span * time.Duration(i) / time.Duration(calls))
			err := call(i)
			mu.Lock()
			defer mu.Unlock()
			var throttled *types.ProvisionedThroughputExceededException
			switch {
			case err == nil:
				done++
			case errors.As(err, &throttled):
				refused++
			default:
				failed++
			}
		})
	}
	all.Wait()
	return done, failed, refused
}

// What is within the limit of a key passes, the rest is refused and has no effect.
func TestLimit(t *testing.T) {
	text := func(bytes int) types.AttributeValue { return dynamo.Text(strings.Repeat("x", bytes)) }
	for _, c := range []struct {
		about                 string
		bytes                 int // of the item
		items                 []string
		condition             string
		rate, seconds         int // calls in a second
		done, failed, refused int
	}{
		{"items up to 1 KB: 1,000 writes a second", 1000, []string{"a"}, "", 1050, 1, 1000, 0, 50},
		// 334 × 3 units in the first second: the two that are too many are missing in the second one.
		{"items of 3 KB: 333 writes a second", 2500, []string{"a"}, "", 400, 2, 334 + 333, 0, 133},
		{"a failed condition costs the item", 2500, []string{"a"}, "attribute_not_exists(pk)", 400, 1, 0, 334, 66},
		{"a failed condition without a stored item costs one unit", 0, []string{"a"},
			"attribute_exists(pk)", 1050, 1, 0, 1000, 50},
		{"two partition keys do not share", 2500, []string{"a", "b"}, "", 600, 1, 600, 0, 0},
		{"two items under one partition key share", 2500, []string{"a#1", "a#2"}, "", 400, 1, 334, 0, 66},
	} {
		t.Run(c.about, func(t *testing.T) {
			b := build(t)
			key := func(i int) dynamo.Item {
				pk, sk, _ := strings.Cut(c.items[i%len(c.items)], "#")
				return dynamo.Item{"pk": dynamo.Text(pk), "sk": dynamo.Text(sk + "-")}
			}
			for i := range c.items {
				if c.bytes == 0 {
					continue
				}
				item := key(i)
				item["n"], item["pad"] = dynamo.Number(0), text(c.bytes-20)
				if _, err := b.direct.PutItem(t.Context(),
					&dynamodb.PutItemInput{TableName: &b.tables.Ledger, Item: item}); err != nil {
					t.Fatal(err)
				}
			}
			var done, failed, refused int
			synctest.Test(t, func(t *testing.T) {
				onTheSecond()
				done, failed, refused = offer(c.rate*c.seconds, time.Duration(c.seconds)*time.Second-2*latency, func(i int) error {
					in := &dynamodb.UpdateItemInput{
						TableName: &b.tables.Ledger, Key: key(i), UpdateExpression: aws.String("ADD n :one"),
						ExpressionAttributeValues: dynamo.Item{":one": dynamo.Number(1)},
					}
					if c.condition != "" {
						in.ConditionExpression = &c.condition
					}
					_, err := b.db.UpdateItem(t.Context(), in)
					return err
				})
			})
			if done != c.done || failed != c.failed || refused != c.refused {
				t.Errorf("%d done, %d failed, %d refused; want %d, %d, %d", done, failed, refused, c.done, c.failed, c.refused)
			}
			effects := int64(0)
			for i := range c.items {
				out, err := b.direct.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &b.tables.Ledger, Key: key(i)})
				if err != nil {
					t.Fatal(err)
				}
				if out.Item != nil {
					n, _ := dynamo.NumberOf(out.Item["n"])
					effects += n
				}
			}
			if effects != int64(done) {
				t.Errorf("%d writes took effect, %d were done", effects, done)
			}
		})
	}
}

// A call takes its latency in virtual time, to the nanosecond, however long the engine takes.
func TestVirtualTime(t *testing.T) {
	b := build(t)
	synctest.Test(t, func(t *testing.T) {
		onTheSecond()
		for range 20 {
			began := time.Now()
			if err := b.put(t.Context(), "a", 10); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != latency {
				t.Fatalf("a call took %s, want %s", took, latency)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), latency*3/4)
		defer cancel()
		if err := b.put(ctx, "late", 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that was given up has %v", err)
		}
	})
	out, err := b.direct.GetItem(t.Context(),
		&dynamodb.GetItemInput{TableName: &b.tables.Wallets, Key: dynamo.Item{"pk": dynamo.Text("late")}})
	if err != nil || out.Item == nil {
		t.Errorf("a call that was given up after it had arrived took no effect: %v", err)
	}
}

// put writes a wallet's item with a text of so many bytes.
func (b *bench) put(ctx context.Context, pk string, bytes int) error {
	item := dynamo.Item{"pk": dynamo.Text(pk), "pad": dynamo.Text(strings.Repeat("x", bytes))}
	_, err := b.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &b.tables.Wallets, Item: item})
	return err
}

// What calls cost, and which keys.
func TestUnits(t *testing.T) {
	b := build(t)
	pk := func(s string) dynamo.Item { return dynamo.Item{"pk": dynamo.Text(s)} }
	entry := dynamo.Item{"pk": dynamo.Text("e"), "sk": dynamo.Text("1"), "pad": dynamo.Text(strings.Repeat("x", 1500))}
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		put := func(s string, bytes int) func() error { return func() error { return b.put(ctx, s, bytes) } }
		for _, c := range []struct {
			about        string
			call         func() error
			table, value string
			units        float64
		}{
			{"1 KB", put("a", 1024-7), "Wallets", "a", 1}, // the names pk and pad, the value a, the text
			{"one byte more", put("b", 1024-5), "Wallets", "b", 2},
			{"an item that shrinks costs what it was", put("b", 1), "Wallets", "b", 2},
			{"and then what it is", put("b", 2), "Wallets", "b", 1},
			{"2 KB", put("large", 1500), "Wallets", "large", 2},
			{"a transaction costs twice, of an item of 2 KB four units", func() error {
				_, err := b.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
					{Put: &types.Put{TableName: &b.tables.Wallets, Item: pk("t")}},
					{Update: &types.Update{
						TableName: &b.tables.Wallets, Key: pk("large"), UpdateExpression: aws.String("SET n = :n"),
						ExpressionAttributeValues: dynamo.Item{":n": dynamo.Number(1)},
					}},
				}})
				return err
			}, "Wallets", "large", 4},
			{"an entry", func() error {
				_, err := b.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &b.tables.Ledger, Item: entry})
				return err
			}, "Ledger", "e", 2},
			{"a consistent read of 1 KB", func() error {
				_, err := b.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &b.tables.Wallets, Key: pk("a"),
					ConsistentRead: aws.Bool(true)})
				return err
			}, "Wallets", "a", 1},
			{"a query that is not consistent", func() error {
				_, err := b.db.Query(ctx, &dynamodb.QueryInput{
					TableName: &b.tables.Ledger, KeyConditionExpression: aws.String("pk = :p AND sk > :s"),
					ExpressionAttributeValues: dynamo.Item{":p": dynamo.Text("e"), ":s": dynamo.Text("0")},
				})
				return err
			}, "Ledger", "e", 0.5},
		} {
			b.Reset()
			if err := c.call(); err != nil {
				t.Fatalf("%s: %v", c.about, err)
			}
			table := map[string]string{"Wallets": b.tables.Wallets, "Ledger": b.tables.Ledger}[c.table]
			found := 0.0
			for _, l := range b.Loads() {
				if l.Key == (Key{table, `{"S":"` + c.value + `"}`}) {
					found = l.Writes + l.Reads
				}
			}
			if found != c.units {
				t.Errorf("%s: %v units, want %v", c.about, found, c.units)
			}
		}
	})
}

// A write of an index makes the results void, because the model does not know what the index gives.
func TestIndex(t *testing.T) {
	b := build(t)
	synctest.Test(t, func(t *testing.T) {
		_, err := b.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.tables.Ledger, Item: dynamo.Item{
			"pk": dynamo.Text("f"), "sk": dynamo.Text("1"), "uncertain": dynamo.Text("acme"),
		}})
		if err == nil || b.Err() == nil {
			t.Errorf("%v, %v", err, b.Err())
		}
	})
	b.err = nil // the cleanup of build finds no other failure
}
