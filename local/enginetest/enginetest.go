// Package enginetest gives tests DynamoDB Local with the tables of template.yaml.
package enginetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/local/engine"
	"svcapi/local/template"
	"svcapi/local/workdir"
)

// Tables are the names of a test's own tables.
type Tables struct{ Projects, Wallets, Ledger, Rates, Transient string }

// running is the test process's one engine, started when a test first asks for it.
var running struct {
	sync.Mutex
	engine *engine.Engine
	err    error
}

// Main runs a package's tests and ends the engine after them:
//
//	func TestMain(m *testing.M) { enginetest.Main(m) }
func Main(m *testing.M) {
	code := m.Run()
	if running.engine != nil {
		running.engine.Close()
	}
	os.Exit(code)
}

// URL is the endpoint of the test process's engine.
func URL(t testing.TB) string {
	t.Helper()
	running.Lock()
	defer running.Unlock()
	if running.engine == nil && running.err == nil {
		running.engine, running.err = engine.Start(context.Background(), engine.Options{})
	}
	if running.err != nil {
		t.Fatal(running.err)
	}
	return running.engine.URL
}

// Client gives a client and fresh tables that only this test uses. They are deleted when it ends.
func Client(t testing.TB) (*dynamodb.Client, Tables) {
	t.Helper()
	client := engine.Client(URL(t))
	from := load(t)
	names := map[string]string{}
	for _, table := range from.Tables {
		names[table.LogicalID] = "test-" + rand.Text()[:10] + "-" + table.LogicalID
	}
	if err := engine.CreateTables(context.Background(), client, from, names); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, name := range names {
			if _, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
				t.Error(fmt.Errorf("delete %s: %w", name, err))
			}
		}
	})
	return client, Tables{
		Projects: names["Projects"], Wallets: names["Wallets"], Ledger: names["Ledger"],
		Rates: names["Rates"], Transient: names["Transient"],
	}
}

func load(t testing.TB) *template.Template {
	t.Helper()
	root, err := workdir.Root()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := template.Load(filepath.Join(root, "template.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}
