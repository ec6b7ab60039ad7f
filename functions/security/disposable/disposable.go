// Package disposable finds the domains of disposable mail. The command build derives the table from published lists
// (lists/sources.json, NOTICE.md). The table is used as it is in the program, so a start needs no work, and Find
// allocates nothing. A Difference changes the table by the domains that the lists have added and removed since.
package disposable

import (
	"crypto/sha256"
	_ "embed" // the table
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/bits"
	"strings"
	"sync"

	"svcapi/shared/dynamo"
)

//go:embed table.bin
var table string

// Table holds domains by bucket. Layout of its data:
//
//	(buckets+1) x 4 bytes   little-endian offset of each bucket's first entry, and of the end
//	entries                 one byte of length, then the domain's bytes
//
// The number of buckets is a power of two, with up to one domain in each on average.
type Table struct {
	data string
	bits int // of the number of buckets
}

// Compiled returns the table in the program.
func Compiled() Table { return Table{table, compiledBits} }

const (
	compiledBits = 15
	spread       = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio: mixes the low bits into the high bits
)

// NewTable returns a table of domains with at most 255 bytes each.
func NewTable(domains []string) Table {
	t := Table{bits: bits.Len(uint(len(domains)))}
	buckets := make([][]string, 1<<t.bits)
	for _, d := range domains {
		hash := uint64(0)
		for i := len(d) - 1; i >= 0; i-- {
			hash = step(hash, d[i])
		}
		b := t.bucket(hash)
		buckets[b] = append(buckets[b], d)
	}
	var index, entries []byte
	start := 4 * (len(buckets) + 1)
	for _, bucket := range buckets {
		index = binary.LittleEndian.AppendUint32(index, uint32(start+len(entries)))
		for _, d := range bucket {
			entries = append(append(entries, byte(len(d))), d...)
		}
	}
	index = binary.LittleEndian.AppendUint32(index, uint32(start+len(entries)))
	t.data = string(append(index, entries...))
	return t
}

// Bytes returns the data of the table.
func (t Table) Bytes() []byte { return []byte(t.data) }

// All iterates over the domains in the order of the table.
func (t Table) All(yield func(domain string) bool) {
	for at := t.offset(0); at < len(t.data); at += 1 + int(t.data[at]) {
		if !yield(t.data[at+1 : at+1+int(t.data[at])]) {
			return
		}
	}
}

// Difference is what the published lists have added to the compiled table and removed from it; nil is no difference.
type Difference struct{ added, removed Table }

// Find returns the shortest listed domain among a domain and its parents with at least two labels. The domain must be
// lower-case ASCII.
func (d *Difference) Find(domain string) (listed string, ok bool) {
	hash, labels := uint64(0), 1
	for i := len(domain) - 1; i >= 0; i-- {
		if domain[i] == '.' {
			if labels > 1 && d.has(domain[i+1:], hash) {
				return domain[i+1:], true
			}
			labels++
		}
		hash = step(hash, domain[i])
	}
	if labels > 1 && d.has(domain, hash) {
		return domain, true
	}
	return "", false
}

func (d *Difference) has(domain string, hash uint64) bool {
	listed := Compiled().has(domain, hash)
	if d == nil {
		return listed
	}
	return listed && !d.removed.has(domain, hash) || !listed && d.added.has(domain, hash)
}

// step returns the hash of a domain with one more byte before it. Without a multiplication it is the faster part of a
// look-up; bucket spreads the bits.
func step(hash uint64, b byte) uint64 { return bits.RotateLeft64(hash, 5) ^ uint64(b) }

// bucket returns the bucket of a domain by its hash, which step makes from the domain's end.
func (t Table) bucket(hash uint64) int { return int(hash * spread >> (64 - t.bits)) }

func (t Table) has(domain string, hash uint64) bool {
	b := t.bucket(hash)
	for at, end := t.offset(b), t.offset(b+1); at < end; at += 1 + int(t.data[at]) {
		if int(t.data[at]) == len(domain) && t.data[at+1:at+1+len(domain)] == domain {
			return true
		}
	}
	return false
}

func (t Table) offset(b int) int {
	at := t.data[4*b : 4*b+4]
	return int(uint32(at[0]) | uint32(at[1])<<8 | uint32(at[2])<<16 | uint32(at[3])<<24)
}

// maxText bounds an unpacked difference, in bytes.
const maxText = 16 << 20

// Hash returns the SHA-256 hash of the compiled table, to which a difference belongs.
var Hash = sync.OnceValue(func() string {
	hash := sha256.Sum256([]byte(table))
	return hex.EncodeToString(hash[:])
})

// Pack returns a difference to the compiled table, compressed: the hash of the table, and a line for each domain that
// was added (+) or removed (-).
func Pack(added, removed []string) []byte {
	text := []byte(Hash())
	for _, d := range added {
		text = append(append(text, "\n+"...), d...)
	}
	for _, d := range removed {
		text = append(append(text, "\n-"...), d...)
	}
	return dynamo.Pack(text)
}

// Unpack returns the domains of a packed difference, and none for the difference to another table or for nil.
func Unpack(packed []byte) (added, removed []string, err error) {
	if packed == nil {
		return nil, nil, nil
	}
	text, err := dynamo.Unpack(packed, maxText+1)
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
