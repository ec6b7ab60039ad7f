package capacity

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
)

// connections is how many calls are in the engine at once.
const connections = 16

// engine calls DynamoDB Local. A goroutine of the bubble that waits for the network is not durably blocked, so virtual
// time pauses until the engine has responded. An http.Transport would leave goroutines in the bubble that wait for the
// network between calls, too.
type engine struct {
	url  string
	free chan *connection
}

type connection struct {
	net.Conn
	responses *bufio.Reader
}

func connect(url string) (*engine, error) {
	e := &engine{url: url, free: make(chan *connection, connections)}
	for range connections {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			return nil, err
		}
		e.free <- &connection{conn, bufio.NewReader(conn)}
	}
	return e, nil
}

// send makes a call. The request has no context of the bubble: a call that has arrived takes effect.
func (e *engine) send(header http.Header, body []byte) (int, []byte, error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for _, name := range []string{"Authorization", "Content-Type", "X-Amz-Date", "X-Amz-Target"} {
		r.Header.Set(name, header.Get(name))
	}
	c := <-e.free
	defer func() { e.free <- c }()
	if err := r.Write(c); err != nil {
		return 0, nil, err
	}
	out, err := http.ReadResponse(c.responses, r)
	if err != nil {
		return 0, nil, err
	}
	defer out.Body.Close()
	response, err := io.ReadAll(out.Body)
	return out.StatusCode, response, err
}

func (e *engine) close() {
	for range connections {
		(<-e.free).Close()
	}
}
