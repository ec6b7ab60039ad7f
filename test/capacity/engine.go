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

// engine talks to DynamoDB Local from goroutines outside the bubble, over channels made outside it. Who waits for one of
// them is not durably blocked, as synctest calls it: virtual time stands still until the engine has answered.
type engine struct {
	client *http.Client
	url    string
	free   chan *connection
}

type connection struct {
	calls   chan *http.Request
	answers chan answer
}

type answer struct {
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
		c := &connection{calls: make(chan *http.Request), answers: make(chan answer)}
		go e.serve(c)
		e.free <- c
	}
	return e
}

func (e *engine) serve(c *connection) {
	for r := range c.calls {
		response, err := e.client.Do(r)
		if err != nil {
			c.answers <- answer{err: err}
			continue
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		c.answers <- answer{response.StatusCode, body, err}
	}
}

// send is called inside the bubble. The request has no context of the bubble: what has arrived takes effect.
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
	a := <-c.answers
	e.free <- c
	return a.status, a.body, a.err
}

func (e *engine) close() {
	for range connections {
		close((<-e.free).calls)
	}
	e.client.CloseIdleConnections()
}
