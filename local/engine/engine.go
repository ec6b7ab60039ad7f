// Package engine runs DynamoDB Local, AWS's own engine, as a child process.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/local/process"
	"svcapi/local/template"
	"svcapi/local/workdir"
)

// EndpointVariable names an engine that already runs. Start uses it instead of starting one.
const EndpointVariable = "AWS_ENDPOINT_URL_DYNAMODB"

// Options of Start. The zero value is good.
type Options struct {
	Log      io.Writer    // what the engine prints; default nowhere
	Progress func(string) // receives a short text for each slow step
	Port     int          // preferred; another one where this is 0 or taken
}

// Engine is a running engine.
type Engine struct {
	// URL is the endpoint that DynamoDB clients use.
	URL string

	process *process.Process // nil when another program runs the engine
}

// Start fetches the engine if the cache lacks the engine, starts an engine in memory and returns when the engine
// responds.
func Start(ctx context.Context, options Options) (*Engine, error) {
	if url := os.Getenv(EndpointVariable); url != "" {
		return &Engine{URL: url}, nil
	}
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	java, err := Java()
	if err != nil {
		return nil, err
	}
	lib, err := fetch(ctx, options.Progress)
	if err != nil {
		return nil, err
	}
	options.Progress("starting DynamoDB Local")
	// Another program may take the free port first: then the engine ends at once, and Start tries another port.
	for range 3 {
		var e *Engine
		if e, err = launch(ctx, java, lib, options); err == nil {
			return e, nil
		}
		options.Port = 0
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("DynamoDB Local: %w", err)
}

// Java returns the path of the Java that runs the engine, or an error that says what to install. The path is empty
// where another program runs the engine.
func Java() (string, error) {
	if os.Getenv(EndpointVariable) != "" {
		return "", nil
	}
	path, err := exec.LookPath("java")
	if err != nil {
		return "", errors.New("DynamoDB Local needs Java 17 or later, and there is no `java` on the PATH. " +
			"Install a JRE, or set " + EndpointVariable + " to an engine that runs already")
	}
	return path, nil
}

func launch(ctx context.Context, java, lib string, options Options) (*Engine, error) {
	port, err := process.FreePort(options.Port)
	if err != nil {
		return nil, err
	}
	// A large young generation: the engine keeps the items outside the heap, and nearly all of its objects die young.
	// -sharedDb: without it every access key has tables of its own.
	cmd := exec.Command(java, "-Xmx512m", "-Xmn384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Djava.library.path="+lib,
		"-cp", filepath.Join(lib, "*"), "software.amazon.dynamodb.services.local.main.ServerRunner",
		"-inMemory", "-sharedDb", "-disableTelemetry", "-port", strconv.Itoa(port))
	cmd.Dir = filepath.Dir(lib)
	cmd.Stdout, cmd.Stderr = options.Log, options.Log
	child, err := process.Start(cmd)
	if err != nil {
		return nil, err
	}
	e := &Engine{URL: "http://127.0.0.1:" + strconv.Itoa(port), process: child}
	if err := e.ready(ctx); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// errForeign reports that another program took the engine's port.
var errForeign = errors.New("another server has taken its port")

// ready waits until the engine responds or ends, on a busy machine for minutes. DynamoDB's refusal of a request without
// a signature is response enough.
func (e *Engine) ready(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL, nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			if response.Header.Get("X-Amzn-Requestid") == "" {
				err = errForeign
			}
			return errors.Join(err, response.Body.Close())
		}
		select {
		case <-e.process.Done():
			return fmt.Errorf("it ended while starting: %w", e.process.Err())
		case <-ctx.Done():
			return fmt.Errorf("it did not respond: %w", ctx.Err())
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// Close ends the engine. Close may be called more than once.
func (e *Engine) Close() {
	if e.process != nil {
		e.process.Kill()
	}
}

// version is that of pom.xml, whose dependencies are the engine: its jars and native libraries.
const version = "3.1.0"

// fetch returns the folder of the engine's libraries below .local/dynamodb of the module, after downloading them once.
func fetch(ctx context.Context, progress func(string)) (string, error) {
	lib, err := workdir.Local("dynamodb", version)
	if err != nil {
		return "", err
	}
	root, err := workdir.Root()
	if err != nil {
		return "", err
	}
	return lib, workdir.Once(lib, func(partial string) error {
		mvn, err := exec.LookPath("mvn")
		if err != nil {
			return errors.New("DynamoDB Local is fetched with Maven, and there is no `mvn` on the PATH. " +
				"Install Maven, or set " + EndpointVariable + " to an engine that runs already")
		}
		progress("fetching DynamoDB Local " + version + " (48 MB, once)")
		pom := filepath.Join(root, "local", "engine", "pom.xml")
		_, err = workdir.Run(exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "--file", pom,
			"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+partial),
			"fetching DynamoDB Local with Maven failed (is its registry reachable?)")
		return err
	})
}

// Client returns a client of an engine, which accepts any credentials.
func Client(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: &url,
		Region:       template.Region,
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
}

// CreateTables creates the template's tables. names holds names by logical ID; other tables have the template's names.
// The engine knows no tags, no point-in-time recovery and no deletion protection.
func CreateTables(ctx context.Context, client *dynamodb.Client, from *template.Template,
	names map[string]string) error {
	for _, table := range from.Tables {
		name := cmp.Or(names[table.LogicalID], table.Name)
		if err := create(ctx, client, table, name); err != nil {
			return fmt.Errorf("create table %s as %s: %w", table.LogicalID, name, err)
		}
	}
	return nil
}

// DropTables deletes the named tables, of which some may be absent.
func DropTables(ctx context.Context, client *dynamodb.Client, names map[string]string) error {
	var failed []error
	for _, name := range names {
		_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		if _, absent := errors.AsType[*types.ResourceNotFoundException](err); err != nil && !absent {
			failed = append(failed, fmt.Errorf("delete %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

func create(ctx context.Context, client *dynamodb.Client, table template.Table, name string) error {
	input := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: table.Attributes, KeySchema: table.Keys, GlobalSecondaryIndexes: table.Indexes,
	}
	if _, err := client.CreateTable(ctx, input); err != nil {
		return err
	}
	if table.TTL == "" {
		return nil
	}
	_, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: &table.TTL, Enabled: new(true),
		},
	})
	return err
}
