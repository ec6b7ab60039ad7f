// Package acceptance tests openapi.yaml and docs/decisions over HTTP, through the whole stack: gateway, compiled
// functions, DynamoDB Local and the vendor sandbox. The compiled svc creates the projects, as an operator does. With
// BASE_URL and STAGE the tests run against a deployed stack. Tests that need the sandbox, the logs or the tables are
// then listed as not run, and tests send an SMS only with ACCEPT_SENDS=1.
package acceptance

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"golang.org/x/sync/semaphore"

	"svcapi"
	"svcapi/local/build"
	"svcapi/local/stack"
	"svcapi/local/workdir"
	"svcapi/test/mmdbtest"
)

// playgroundOrigin is the origin of the documentation page that the stack under test knows.
const playgroundOrigin = "https://docs.example.com"

// system is the stack that the tests run against.
type system struct {
	baseURL    string // up to /api/v1
	spec       *openapi3.T
	svc        string       // the compiled command line
	dir        string       // its working directory
	flags      []string     // of every command
	stack      *stack.Stack // nil: a deployed one
	oneProcess *oneProcess
	witness    *witness
	browser    browser

	mu       sync.Mutex
	secrets  []string         // client secrets that svc has printed
	payloads *payloads        // of all requests
	projects []string         // created by tests
	notRun   []string         // tests that need a local stack
	images   *httptest.Server // a host of images that the functions treat as public
}

// fixture is the system under test. TestMain sets it once.
var fixture *system

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests wait for vendors more than they compute.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	if logs := os.Getenv("LEAKS"); logs != "" {
		os.Exit(failed(searchRun(logs)))
	}
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "acceptance")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	fixture = &system{dir: dir, payloads: newPayloads(svcapi.OpenAPI),
		browser: browser{held: semaphore.NewWeighted(2)}}
	if err := fixture.start(context.Background()); err != nil {
		return failed(err)
	}
	code = m.Run()
	if fixture.stack == nil {
		for _, id := range fixture.projects { // a deployed stack keeps them, and no client can use them
			_, err := fixture.command(context.Background(), "", "project", "pause", id)
			code = max(code, failed(err))
		}
		slices.Sort(fixture.notRun)
		fmt.Printf("not run, as they need the sandbox, the logs or the tables of a local stack, or leave to send:\n  %s\n",
			strings.Join(fixture.notRun, "\n  "))
		return code
	}
	if flag.Lookup("test.run").Value.String() == "" { // only a run of all tests shows which permissions are unused
		code = max(code, failed(fixture.audit(context.Background())))
	}
	return max(code, failed(fixture.close()))
}

func failed(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func (s *system) start(ctx context.Context) error {
	root, err := workdir.Root()
	if err != nil {
		return err
	}
	if s.spec, err = openapi3.NewLoader().LoadFromFile(filepath.Join(root, "openapi.yaml")); err != nil {
		return err
	}
	if s.svc, err = build.Program(ctx, "./cmd/svc"); err != nil {
		return err
	}
	if deployed := os.Getenv("BASE_URL"); deployed != "" {
		s.baseURL = strings.TrimRight(deployed, "/")
		s.flags = []string{"--stage", cmp.Or(os.Getenv("STAGE"), "dev")}
		return nil
	}
	s.flags = []string{"--local"}
	if err := os.Mkdir(filepath.Join(s.dir, ".local"), 0o700); err != nil {
		return err
	}
	databases := filepath.Join(s.dir, "mmdb")
	if err := errors.Join(os.Mkdir(databases, 0o755), mmdbtest.Write(databases)); err != nil {
		return err
	}
	environment, err := s.serveImages()
	if err != nil {
		return err
	}
	s.witness = &witness{seen: map[deed]int{}}
	s.stack, err = stack.Start(ctx, stack.Options{
		Through: s.witness.through(nil),
		LogDir:  filepath.Join(s.dir, ".local", "logs"), DemoFile: filepath.Join(s.dir, ".local", "demo.json"),
		Concurrency: 32, Environment: environment,
		Parameters: map[string]string{
			"ProjectCacheSeconds": "1", "PlaygroundOrigin": playgroundOrigin, "MmdbDirectory": databases,
			"LogPayloads": "masked",
		},
	})
	if err != nil {
		return err
	}
	s.baseURL = s.stack.BaseURL
	s.oneProcess, err = startOneProcess(ctx, s)
	return err
}

// close ends the stacks and searches their logs for secrets.
func (s *system) close() error {
	var errs []error
	for _, running := range []*stack.Stack{s.oneProcess.stack, s.stack} {
		found, err := s.leaks(running.LogDir)
		for _, leak := range found {
			errs = append(errs, errors.New(leak))
		}
		errs = append(errs, err, running.Close())
	}
	s.witness.close()
	s.images.Close()
	if s.browser.end != nil {
		s.browser.end()
	}
	return errors.Join(errs...)
}

// local leaves a test that needs the sandbox, the logs or the tables, where the stack is a deployed one.
func local(t *testing.T) {
	t.Helper()
	if fixture.stack == nil {
		leave(t, "")
	}
}

// localParallel is local, for a test that runs beside others.
func localParallel(t *testing.T) {
	t.Helper()
	local(t)
	t.Parallel()
}

// leave lists a test as not run on a deployed stack.
func leave(t *testing.T, why string) {
	t.Helper()
	fixture.mu.Lock()
	fixture.notRun = append(fixture.notRun, t.Name()+why)
	fixture.mu.Unlock()
	t.SkipNow()
}

// command runs svc and returns what it prints.
func (s *system) command(ctx context.Context, input string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.svc, slices.Concat(args, s.flags, []string{"--output", "json"})...)
	cmd.Dir, cmd.Stdin = s.dir, strings.NewReader(input)
	output, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("svc %s: %w\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	return output, err
}
