package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"svcapi/local/build"
	"svcapi/local/chromium"
	"svcapi/local/events"
	"svcapi/local/jail"
	"svcapi/local/lambda"
	"svcapi/local/stack"
	"svcapi/local/template"
	"svcapi/local/workdir"
)

// invoke runs one event through a compiled function: `go run ./local invoke sms events/sms-send-managed.json`. The
// event is a file, or the name of a case of events/cases.json. The response goes to standard output, what the function
// logs to standard error.
func invoke(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: make invoke FN=<function> EVENT=<file or case>, for example FN=sms " +
			"EVENT=events/sms-send-managed.json")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	demo, err := workdir.Local("demo.json")
	if err != nil {
		return err
	}
	i := invocation{function: args[0], event: args[1], demo: demo, out: os.Stdout, log: os.Stderr}
	return i.run(ctx)
}

// invocation is one event for one function, by its folder or its logical ID.
type invocation struct {
	function, event string
	demo            string // the demo file of a stack that may run
	out, log        io.Writer
	tools           *tools // that several invocations share; nil: this one prepares its own
}

// tools are the compiled functions by logical ID, the jail that they run in, and the variables that name the browser.
type tools struct {
	binaries map[string]string
	jail     *jail.Jail
	browser  map[string]string
}

// prepare builds functions and what they run in.
func prepare(ctx context.Context, functions []template.Function, progress func(string)) (*tools, error) {
	t := &tools{}
	var err error
	if t.binaries, err = build.Functions(ctx, functions); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(functions, func(f template.Function) bool { return f.Folder == "pdfrender" }) {
		if t.browser, err = chromium.Environment(ctx, progress); err != nil {
			return nil, err
		}
	}
	t.jail, err = jail.New(ctx, progress)
	return t, err
}

func (i invocation) run(ctx context.Context) (err error) {
	root, err := workdir.Root()
	if err != nil {
		return err
	}
	overrides, err := running(i.demo)
	if err != nil {
		return err
	}
	product, err := template.Load(overrides)
	if err != nil {
		return err
	}
	event, err := events.Load(product, filepath.Join(root, "events"), i.event)
	if err != nil {
		return err
	}
	logs, err := os.MkdirTemp("", "invoke")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(logs)) }()
	if overrides == nil {
		s, err := stack.Start(ctx, stack.Options{LogDir: filepath.Join(logs, "stack"), Log: i.log, Progress: i.progress})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		product = s.Template
	}
	return i.invoke(ctx, product, event, logs)
}

func (i invocation) progress(step string) { fmt.Fprintln(i.log, step) }

func (i invocation) invoke(ctx context.Context, product *template.Template, event []byte, logs string) error {
	function, ok := product.Function(i.function)
	if !ok {
		return fmt.Errorf("template.yaml has no function %q", i.function)
	}
	with := i.tools
	if with == nil {
		var err error
		if with, err = prepare(ctx, []template.Function{function}, i.progress); err != nil {
			return err
		}
	}
	environment := map[string]string{"SVC_LOCAL": "1"}
	maps.Copy(environment, with.browser)
	options := lambda.Options{LogDir: logs, Jail: with.jail, Concurrency: 1, Environment: environment}
	host, err := lambda.HostOf(options, stack.OnLaptop(function), with.binaries[function.LogicalID])
	if err != nil {
		return err
	}
	defer host.Close()
	result, err := host.Invoke(ctx, function.LogicalID, event)
	if err == nil {
		err = host.AwaitIdle(ctx, function.LogicalID) // the function may work after its response
	}
	if err != nil {
		return err
	}
	log, err := os.ReadFile(filepath.Join(logs, function.Folder+".log"))
	if err != nil {
		return err
	}
	_, logErr := i.log.Write(log)
	payload := result.Payload
	if result.Streamed {
		if payload, err = buffered(payload); err != nil {
			return err
		}
	}
	_, outErr := i.out.Write(append(bytes.TrimRight(payload, "\n"), '\n'))
	if err := errors.Join(logErr, outErr); err != nil {
		return err
	}
	if result.FunctionError != "" {
		return fmt.Errorf("function %s failed", function.LogicalID)
	}
	return nil
}

// buffered returns a streamed response in the form of a response that is not streamed.
func buffered(stream []byte) ([]byte, error) {
	head, body, found := bytes.Cut(stream, make([]byte, 8))
	if !found {
		return nil, errors.New("the stream has no head")
	}
	response := map[string]any{"body": base64.StdEncoding.EncodeToString(body), "isBase64Encoded": true}
	if err := json.Unmarshal(head, &response); err != nil {
		return nil, fmt.Errorf("the head of the stream: %w", err)
	}
	return json.Marshal(response)
}

// running gives the parameters that point a function at the stack of a demo file; nil where none runs.
func running(demoFile string) (map[string]string, error) {
	text, err := os.ReadFile(demoFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var demo stack.Addresses
	if err := json.Unmarshal(text, &demo); err != nil {
		return nil, fmt.Errorf("%s: %w", demoFile, err)
	}
	// A stack that was killed leaves its file.
	at, err := url.Parse(demo.DynamoDBURL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", demoFile, err)
	}
	conn, err := net.DialTimeout("tcp", at.Host, time.Second)
	if err != nil {
		return nil, nil //nolint:nilerr // nothing responds: no stack runs
	}
	return demo.Overrides(), conn.Close()
}
