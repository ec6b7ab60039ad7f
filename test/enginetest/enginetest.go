// Package enginetest gives tests DynamoDB Local with the tables of template.yaml.
package enginetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/local/engine"
	"svcapi/local/template"
	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
)

// Variable names an engine that several test processes share. The tests' own programs and stacks do not use that
// engine, because the names of their tables are fixed.
const Variable = "TEST_DYNAMODB_URL"

// Tables are the names of a test's own tables.
type Tables struct {
	books.Tables
	Projects, Rates, Transient string
}

// running is the test process's only engine, and its free tables.
var running struct {
	engine *engine.Engine // nil before a test has needed an engine

	sync.Mutex
	free []map[string]string // names by logical ID
}

// start starts the engine, once.
var start = sync.OnceValue(func() (err error) {
	if url := os.Getenv(Variable); url != "" {
		running.engine = &engine.Engine{URL: url}
		return nil
	}
	running.engine, err = engine.Start(context.Background(), engine.Options{})
	return err
})

// Main runs a package's tests and ends the engine after them:
//
//	func TestMain(m *testing.M) { enginetest.Main(m) }
func Main(m *testing.M) {
	code := m.Run()
	if running.engine != nil {
		for _, names := range running.free { // another program may run the engine
			if err := engine.DropTables(context.Background(), engine.Client(running.engine.URL), names); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		running.engine.Close()
	}
	os.Exit(code)
}

// URL returns the endpoint of the test process's engine.
func URL(t testing.TB) string {
	t.Helper()
	must.Succeed(t, start())
	return running.engine.URL
}

// Client returns a client and empty tables that only this test uses. The next test reuses the tables, emptied: creating
// tables takes the engine ten times as long.
func Client(t testing.TB) (*dynamodb.Client, Tables) {
	t.Helper()
	client := engine.Client(URL(t))
	from := must.Get(load()).Or(t)
	names := reuse()
	if names == nil {
		names = map[string]string{}
		for _, table := range from.Tables {
			names[table.LogicalID] = "test-" + rand.Text()[:10] + "-" + table.LogicalID
		}
		must.Succeed(t, engine.CreateTables(context.Background(), client, from, names))
	}
	t.Cleanup(func() {
		for _, table := range from.Tables {
			if !empty(client, table, names[table.LogicalID]) {
				if err := engine.DropTables(context.Background(), client, names); err != nil {
					t.Error(err)
				}
				return
			}
		}
		running.Lock()
		defer running.Unlock()
		running.free = append(running.free, names)
	})
	money := books.Tables{Tables: wallet.Tables{Wallets: names["Wallets"], Ledger: names["Ledger"]},
		Movements: names["Movements"], Resolutions: names["Resolutions"]}
	return client, Tables{money, names["Projects"], names["Rates"], names["Transient"]}
}

// Faulty starts a proxy of the engine that decides the fault of each call. The test's end closes the proxy.
func Faulty(t testing.TB, decide func(*faultproxy.Request) faultproxy.Fault) *faultproxy.Proxy {
	t.Helper()
	proxy := must.Get(faultproxy.Start(URL(t), decide)).Or(t)
	t.Cleanup(proxy.Close)
	return proxy
}

// ClientOf returns the client that the functions use, with the endpoint of an engine or of a proxy. No attempt ends by
// time, because the engine of a busy machine may need more than dynamo.AttemptTimeout.
func ClientOf(url string, options ...func(*dynamodb.Options)) *dynamodb.Client {
	o := engine.Client(url).Options()
	unhurried := func(o *dynamodb.Options) { o.HTTPClient = dynamo.HTTPClient(time.Hour) }
	return dynamo.NewClient(aws.Config{Region: o.Region, Credentials: o.Credentials, BaseEndpoint: &url},
		append([]func(*dynamodb.Options){unhurried}, options...)...)
}

func reuse() (names map[string]string) {
	running.Lock()
	defer running.Unlock()
	if last := len(running.free) - 1; last >= 0 {
		names, running.free = running.free[last], running.free[:last]
	}
	return names
}

// few is the number of items up to which deleting the items is faster than deleting their table.
const few = 50

// empty deletes a table's few items, and returns false where there are more or the table has changed.
func empty(client *dynamodb.Client, table template.Table, name string) bool {
	ctx := context.Background()
	page, err := client.Scan(ctx, &dynamodb.ScanInput{TableName: &name, Limit: new(int32(few + 1)),
		ConsistentRead: new(true)})
	if err != nil || len(page.Items) > few || page.LastEvaluatedKey != nil {
		return false
	}
	for _, item := range page.Items {
		key := map[string]types.AttributeValue{}
		for _, k := range table.Keys {
			key[*k.AttributeName] = item[*k.AttributeName]
		}
		if _, err := client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &name, Key: key}); err != nil {
			return false
		}
	}
	return true
}

// load reads template.yaml, once in a test process.
var load = sync.OnceValues(func() (*template.Template, error) { return template.Load(nil) })

// LedgerKey returns the key of a charge's entry in the ledger (shared/wallet/item.go).
func LedgerKey(project string, key wallet.Key) dynamo.Item {
	lease, _, _ := strings.Cut(string(key), ".")
	sum := fnv.New32a()
	sum.Write([]byte(lease))
	return dynamo.Item{"pk": dynamo.Text(fmt.Sprintf("%s#%x#%s", project, sum.Sum32()%16, key.Day())),
		"sk": dynamo.Text(string(key))}
}
