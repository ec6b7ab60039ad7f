// Command probe is a Lambda function that does what its event says, for the tests of the local stack.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// command is the event itself, or the header X-Probe of a proxy event.
type command struct {
	Do       string          `json:"do"`
	N        int             `json:"n"`        // milliseconds, bytes or an exit status
	Response json.RawMessage `json:"response"` // the response of "respond" and "wait"
	Line     string          `json:"line"`     // what "log" prints
	Calls    []call          `json:"calls"`    // what "call" asks of the Extensions API
	URL      string          `json:"url"`      // what "wait" requests, or the extension after the response
}

type probe struct {
	id    string
	ticks *atomic.Int64
	after chan string // URLs for the extension
	last  chan reply  // the extension's last event
}

func main() {
	switch os.Getenv("PROBE_INIT") {
	case "exit":
		fmt.Println("init failed")
		os.Exit(4)
	case "hang":
		time.Sleep(time.Hour)
	}
	p := probe{rand.Text(), new(atomic.Int64), make(chan string, 1), make(chan reply, 1)}
	if os.Getenv("PROBE_EXTENSION") != "" {
		p.extend()
	}
	go func() {
		for range time.Tick(time.Millisecond) {
			p.ticks.Add(1)
		}
	}()
	if os.Getenv("PROBE_STREAM") != "" {
		lambda.Start(stream)
	}
	lambda.Start(p)
}

// stream streams 7 MiB. Where the event has a URL, stream requests the URL after the first byte; "exit" and "fail" end
// the stream then.
func stream(_ context.Context, payload json.RawMessage) (*events.APIGatewayProxyStreamingResponse, error) {
	event, err := commandOf(payload)
	if err != nil {
		return nil, err
	}
	body := io.MultiReader(strings.NewReader("x"), readerFunc(func() error {
		if event.URL != "" {
			if _, err := http.Get(event.URL); err != nil {
				return err
			}
		}
		switch event.Do {
		case "exit":
			os.Exit(event.N)
		case "fail":
			return errors.New("it went wrong")
		}
		return io.EOF
	}), strings.NewReader(strings.Repeat("x", 7<<20-1)))
	return &events.APIGatewayProxyStreamingResponse{
		StatusCode: http.StatusCreated, Headers: map[string]string{"Content-Type": "application/pdf"}, Body: body,
	}, nil
}

// readerFunc is a reader without bytes.
type readerFunc func() error

func (f readerFunc) Read([]byte) (int, error) { return 0, f() }

// call is a request to the Extensions API.
type call struct {
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
}

// reply is the response to a call.
type reply struct {
	Status int             `json:"status"`
	Header http.Header     `json:"header"`
	Body   json.RawMessage `json:"body"`
}

func (c call) do() reply {
	request, err := http.NewRequest(c.Method,
		"http://"+os.Getenv("AWS_LAMBDA_RUNTIME_API")+"/2020-01-01/extension/"+c.Path, strings.NewReader(c.Body))
	if err != nil {
		panic(err)
	}
	for name, value := range c.Header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	r := reply{Status: response.StatusCode, Header: response.Header}
	if err := json.NewDecoder(response.Body).Decode(&r.Body); err != nil {
		panic(err)
	}
	return r
}

// extend makes the process an internal extension that requests the event's URL after the response.
func (p probe) extend() {
	registered := call{"POST", "register", map[string]string{"Lambda-Extension-Name": "probe"},
		`{"events":["INVOKE"]}`}.do()
	silent := call{"POST", "register", map[string]string{"Lambda-Extension-Name": "silent"}, `{"events":[]}`}.do()
	next := func(r reply) call {
		return call{"GET", "event/next",
			map[string]string{"Lambda-Extension-Identifier": r.Header.Get("Lambda-Extension-Identifier")}, ""}
	}
	go next(silent).do()
	p.last <- registered
	go func() {
		for {
			event := next(registered).do()
			<-p.last
			p.last <- event
			if url := <-p.after; url != "" {
				if _, err := http.Get(url); err != nil {
					fmt.Println(err)
				}
			}
		}
	}()
}

// commandOf returns the command of an event.
func commandOf(payload []byte) (command, error) {
	var event struct {
		command
		Headers map[string]string `json:"headers"`
	}
	err := json.Unmarshal(payload, &event)
	if header := event.Headers["X-Probe"]; err == nil && header != "" {
		err = json.Unmarshal([]byte(header), &event.command)
	}
	return event.command, err
}

// Invoke implements lambda.Handler.
func (p probe) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	c, err := commandOf(payload)
	if err != nil {
		return nil, err
	}
	select {
	case p.after <- c.URL:
	default: // no extension, or none that was given the last event
	}
	switch c.Do {
	case "call":
		var replies []reply
		for _, call := range c.Calls {
			replies = append(replies, call.do())
		}
		return json.Marshal(replies)
	case "last":
		last := <-p.last
		p.last <- last
		return json.Marshal(last)
	case "respond":
		return c.Response, nil
	case "env":
		env := map[string]string{}
		for _, variable := range os.Environ() {
			name, v, _ := strings.Cut(variable, "=")
			env[name] = v
		}
		return json.Marshal(env)
	case "context":
		deadline, _ := ctx.Deadline()
		about, _ := lambdacontext.FromContext(ctx)
		return json.Marshal(map[string]any{
			"request_id": about.AwsRequestID, "arn": about.InvokedFunctionArn,
			"left_ms": time.Until(deadline).Milliseconds(), "trace": os.Getenv("_X_AMZN_TRACE_ID"),
		})
	case "state":
		return json.Marshal(map[string]any{"id": p.id, "ticks": p.ticks.Load()})
	case "sleep":
		time.Sleep(time.Duration(c.N) * time.Millisecond)
		return json.Marshal(map[string]any{"statusCode": 200, "id": p.id})
	case "wait":
		if _, err := http.Get(c.URL); err != nil {
			return nil, err
		}
		if c.Response != nil {
			return c.Response, nil
		}
		return json.Marshal(map[string]any{"id": p.id})
	case "log":
		fmt.Println(cmp.Or(c.Line, "the function's line"))
		return []byte(`{}`), nil
	case "error":
		return nil, errors.New("it went wrong")
	case "panic":
		panic("it broke")
	case "exit":
		os.Exit(c.N)
	case "big":
		return json.Marshal(map[string]any{"statusCode": 200, "body": strings.Repeat("x", c.N)})
	}
	return json.Marshal(map[string]any{ // the event comes back as the body
		"statusCode": 200, "headers": map[string]string{"Content-Type": "application/json"}, "body": string(payload),
	})
}
