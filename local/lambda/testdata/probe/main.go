// Command probe is a Lambda function that does what its event says, for the tests of the local stack.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	Do     string          `json:"do"`
	N      int             `json:"n"`      // milliseconds, bytes or an exit status
	Answer json.RawMessage `json:"answer"` // what "answer" returns
	Line   string          `json:"line"`   // what "log" prints
}

type probe struct{ ticks *atomic.Int64 }

func main() {
	switch os.Getenv("PROBE_INIT") {
	case "exit":
		fmt.Println("init failed")
		os.Exit(4)
	case "hang":
		time.Sleep(time.Hour)
	}
	p := probe{new(atomic.Int64)}
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

func stream(context.Context, json.RawMessage) (*events.APIGatewayProxyStreamingResponse, error) {
	return &events.APIGatewayProxyStreamingResponse{
		StatusCode: http.StatusCreated, Headers: map[string]string{"Content-Type": "application/pdf"},
		Body: strings.NewReader(strings.Repeat("x", 7<<20)),
	}, nil
}

// Invoke implements lambda.Handler.
func (p probe) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var event struct {
		command
		Headers map[string]string `json:"headers"`
	}
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, err
	}
	c := event.command
	if header := event.Headers["X-Probe"]; header != "" {
		if err := json.Unmarshal([]byte(header), &c); err != nil {
			return nil, err
		}
	}
	switch c.Do {
	case "answer":
		return c.Answer, nil
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
		return json.Marshal(map[string]int64{"pid": int64(os.Getpid()), "ticks": p.ticks.Load()})
	case "sleep":
		time.Sleep(time.Duration(c.N) * time.Millisecond)
		return json.Marshal(map[string]any{"statusCode": 200, "pid": os.Getpid()})
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
