package browser

import (
	"bytes"
	"encoding/json"
	"testing"
)

// The pipe returns only JSON objects and an error at the end, for all bytes that a browser can write.
func FuzzPipe(f *testing.F) {
	f.Add([]byte("{\"id\":1}\x00{}\x00"))
	f.Add([]byte("\x00\x00"))
	f.Add([]byte("[1]\x00{"))
	f.Add(append(bytes.Repeat([]byte(" "), 70_000), "{}\x00"...))
	f.Fuzz(func(t *testing.T, written []byte) {
		var sent bytes.Buffer
		p := newPipe(bytes.NewReader(written), &sent)
		for range bytes.Count(written, []byte{0}) + 1 {
			message, err := p.Read()
			if err != nil {
				return
			}
			if message[0] != '{' || !json.Valid(message) {
				t.Fatalf("%q", message)
			}
			if err := p.Send(message); err != nil || !bytes.HasSuffix(sent.Bytes(), append(message, 0)) {
				t.Fatalf("%v, %q", err, sent.Bytes())
			}
		}
		t.Errorf("%q does not end", written)
	})
}
