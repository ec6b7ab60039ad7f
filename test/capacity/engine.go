package capacity

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

// connections is how many calls are in the engine at once.
const connections = 16

// engine calls DynamoDB Local from goroutines outside the bubble, over channels made outside the bubble. A goroutine that
// waits for such a channel is not durably blocked, so virtual time pauses until the engine has responded.
type engine struct {
	client *http.Client
	url    string
	free   chan *connection
}

type connection struct {
	calls     chan *http.Request
	responses chan response
}

type response struct {
	status int
	body   []byte
	err    error
}

func connect(url string) *engine {
	e := &engine{
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}, Timeout: time.Minute},
		url:    url, free: make(chan *connection, connections),
	}
	for range connections {
		c := &connection{calls: make(chan *http.Request), responses: make(chan response)}
		go e.serve(c)
		e.free <- c
	}
	return e
}

func (e *engine) serve(c *connection) {
	for r := range c.calls {
		out, err := e.client.Do(r)
		if err != nil {
			c.responses <- response{err: err}
			continue
		}
		body, err := io.ReadAll(out.Body)
		out.Body.Close()
		c.responses <- response{out.StatusCode, body, err}
	}
}

// send makes a call from inside the bubble. The request has no context of the bubble: a call that has arrived takes effect.
func (e *engine) send(header http.Header, body []byte) (int, []byte, error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for _, name := range []string{"Authorization", "Content-Type", "X-Amz-Date", "X-Amz-Target"} {
		r.Header.Set(name, header.Get(name))
	}
	c := <-e.free
	c.calls <- r
	a := <-c.responses
	e.free <- c
	return a.status, a.body, a.err
}

func (e *engine) close() {
	for range connections {
		close((<-e.free).calls)
	}
	e.client.CloseIdleConnections()
}
