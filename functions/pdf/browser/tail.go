package browser

import (
	"os"
	"strings"
	"sync"
)

// tailSize is how much of the browser's messages is kept.
const tailSize = 4 << 10

// tail keeps the end of what the browser writes to standard error until it is closed. From then on messages are read
// and dropped: they may hold words of documents.
type tail struct {
	mu     sync.Mutex
	text   []byte
	closed bool
	ended  chan struct{} // closed when nothing can write any more
}

// keepTail reads from a file to its end and closes it.
func keepTail(file *os.File) *tail {
	t := &tail{ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		defer file.Close()
		part := make([]byte, tailSize)
		for {
			n, err := file.Read(part)
			t.keep(part[:n])
			if err != nil {
				return
			}
		}
	}()
	return t
}

func (t *tail) keep(part []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.text = append(t.text, part...)
		t.text = t.text[max(0, len(t.text)-tailSize):]
	}
}

// close stops keeping.
func (t *tail) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// String is what was kept, on one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.text), "?")), " ")
}
