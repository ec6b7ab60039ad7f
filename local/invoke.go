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
	host            *lambda.Host // that runs the function; nil: the invocation compiles the function and has its own host
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
	host := i.host
	if host == nil {
		var err error
		if host, err = i.start(ctx, function, logs); err != nil {
			return err
		}
		defer host.Close()
	}
	result, err := host.Invoke(ctx, function.LogicalID, event)
	if err == nil {
		err = host.AwaitIdle(ctx, function.LogicalID) // the function may work after its response
	}
	if err != nil {
		return err
	}
	log, err := os.ReadFile(filepath.Join(logs, function.Folder+".log"))
	if err != nil && i.host == nil {
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

// start compiles a function and returns a host that has the function.
func (i invocation) start(ctx context.Context, function template.Function, logs string) (*lambda.Host, error) {
	binaries, err := build.Functions(ctx, []template.Function{function})
	if err != nil {
		return nil, err
	}
	options := lambda.Options{LogDir: logs, Concurrency: 1, Environment: map[string]string{"SVC_LOCAL": "1"}}
	if function.Folder == "pdfrender" {
		browser, err := chromium.Environment(ctx, i.progress)
		if err != nil {
			return nil, err
		}
		maps.Copy(options.Environment, browser)
	}
	if options.Jail, err = jail.New(ctx, i.progress); err != nil {
		return nil, err
	}
	return lambda.HostOf(options, stack.OnLaptop(function), binaries[function.LogicalID])
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
