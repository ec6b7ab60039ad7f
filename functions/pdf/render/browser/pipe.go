package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// maxMessage bounds one message, so that a faulty browser cannot fill the memory. Regular messages have up to 1 MiB.
const maxMessage = 16 << 20

var errMessage = errors.New("browser: message is malformed or too long")

// pipe carries the DevTools protocol over two file descriptors. A message is one JSON text with a NUL byte at its end
// (Chromium's --remote-debugging-pipe). No port listens.
type pipe struct {
	in  *bufio.Reader
	out io.Writer
	mu  sync.Mutex
}

func newPipe(in io.Reader, out io.Writer) *pipe {
	return &pipe{in: bufio.NewReaderSize(in, 64<<10), out: out}
}

// Send writes one message.
func (p *pipe) Send(data []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.out.Write(append(data, 0))
	return err
}

// Read returns the next message, and an error for a message that is no JSON object: the client would panic on it.
func (p *pipe) Read() ([]byte, error) {
	var message []byte
	for {
		part, err := p.in.ReadSlice(0)
		message = append(message, part...)
		switch {
		case len(message) > maxMessage:
			return nil, errMessage
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		}
		message = bytes.TrimSuffix(message, []byte{0})
		if !json.Valid(message) || message[0] != '{' {
			return nil, errMessage
		}
		return message, nil
	}
}
