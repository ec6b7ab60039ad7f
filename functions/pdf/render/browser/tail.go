package browser

import (
	"strings"
	"sync"
)

// tailSize is the number of bytes of the browser's standard error that a tail keeps.
const tailSize = 4 << 10

// tail keeps the end of a text until it is closed, because later messages may contain text of documents.
type tail struct {
	mu     sync.Mutex
	text   []byte
	closed bool
}

// Write implements io.Writer.
func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.text = append(t.text, text...)
		t.text = t.text[max(0, len(t.text)-tailSize):]
	}
	return len(text), nil
}

func (t *tail) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// String returns the kept text on one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.text), "?")), " ")
}
