package lambda

import "sync"

// stream carries a streamed response from the process of a function to the caller of the event. A stream keeps what the
// caller has not read: Lambda takes a function's response to its end, also where the caller has gone.
type stream struct {
	mu    sync.Mutex
	more  sync.Cond
	bytes []byte
	ended error // io.EOF after a complete response; nil: more may come
}

func newStream() *stream {
	s := &stream{}
	s.more.L = &s.mu
	return s
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes = append(s.bytes, p...)
	s.more.Signal()
	return len(p), nil
}

// end ends the stream with an error, or with io.EOF. The stream may be nil.
func (s *stream) end(err error) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = err
	s.more.Signal()
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.bytes) == 0 {
		if s.ended != nil {
			return 0, s.ended
		}
		s.more.Wait()
	}
	n := copy(p, s.bytes)
	s.bytes = s.bytes[n:]
	return n, nil
}

// FunctionError is the error at which a streamed response breaks off.
type FunctionError struct {
	Kind    string // as Lambda names it
	Message string
}

// Error implements error.
func (e *FunctionError) Error() string { return e.Kind + ": " + e.Message }
