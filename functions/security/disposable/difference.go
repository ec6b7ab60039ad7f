package disposable

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"sync"
)

// maxText bounds an unpacked difference, in bytes.
const maxText = 16 << 20

// Hash returns the SHA-256 hash of the compiled table, to which a difference belongs.
var Hash = sync.OnceValue(func() string {
	hash := sha256.Sum256([]byte(table))
	return hex.EncodeToString(hash[:])
})

// Pack returns a difference to the compiled table: in gzip, the hash of the table, and a line for each domain that was
// added (+) or removed (-).
func Pack(added, removed []string) []byte { return pack(Hash(), added, removed) }

func pack(hash string, added, removed []string) []byte {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level exists
	text := []byte(hash)
	for _, d := range added {
		text = append(append(text, "\n+"...), d...)
	}
	for _, d := range removed {
		text = append(append(text, "\n-"...), d...)
	}
	_, _ = w.Write(text) // into memory
	_ = w.Close()
	return packed.Bytes()
}

// Unpack returns the domains of a packed difference, and none for the difference to another table or for nil.
func Unpack(packed []byte) (added, removed []string, err error) {
	if packed == nil {
		return nil, nil, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil || len(text) > maxText {
		return nil, nil, errors.Join(errors.New("the difference is truncated or too large"), err)
	}
	hash, lines, _ := strings.Cut(string(text), "\n")
	if hash != Hash() || lines == "" {
		return nil, nil, nil
	}
	for line := range strings.SplitSeq(lines, "\n") {
		if domain, ok := strings.CutPrefix(line, "+"); ok {
			added = append(added, domain)
		} else {
			removed = append(removed, strings.TrimPrefix(line, "-"))
		}
	}
	return added, removed, nil
}

// Read returns a packed difference for look-ups, and nil for the difference to another table or for nil.
func Read(packed []byte) (*Difference, error) {
	added, removed, err := Unpack(packed)
	if err != nil || len(added)+len(removed) == 0 {
		return nil, err
	}
	return &Difference{NewTable(added), NewTable(removed)}, nil
}
