// Package logtest has the log that tests read while several writers still write it.
package logtest

import (
	"bytes"
	"sync"
)

// Buffer is a log in memory for several writers.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds p to the log.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is the log's text until now.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
