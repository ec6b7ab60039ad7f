// Package disposable knows the domains of throw-away mail. The list is built
// ahead of time from published lists (sources.json, NOTICE.md) into a table that
// is read where it lies in the program: nothing is done at start, and a look-up
// allocates nothing.
package disposable

import _ "embed" // the table

// table holds, bucket by bucket, the listed domains. Layout:
//
//	(Buckets+1) x 4 bytes   little-endian offset of each bucket's first entry, and of the end
//	entries                 one byte of length, then the domain's bytes
//
//go:embed table.bin
var table string

// Buckets is the number of hash buckets of the table: about five domains in each.
const Buckets = 1 << bucketBits

const (
	bucketBits = 15
	// FNV-1a, 64 bits (draft-eastlake-fnv).
	offsetBasis = 14695981039346656037
	prime       = 1099511628211
	spread      = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio: mixes the low bits into the high ones
)

// Find looks for a domain or one of its parents, down to two labels, and
// returns the listed one: the shortest. The domain must be lower-case ASCII.
//
// The domain is read once, from its end: at each dot the hash so far is that of
// a parent.
func Find(domain string) (listed string, ok bool) {
	hash, labels := uint64(offsetBasis), 1
	for i := len(domain) - 1; i >= 0; i-- {
		c := domain[i]
		if c == '.' {
			if labels++; labels > 2 && has(hash, domain[i+1:]) {
				return domain[i+1:], true
			}
		}
		hash = (hash ^ uint64(c)) * prime
	}
	if labels > 1 && has(hash, domain) {
		return domain, true
	}
	return "", false
}

// Bucket is the bucket that a domain belongs to.
func Bucket(domain string) int {
	hash := uint64(offsetBasis)
	for i := len(domain) - 1; i >= 0; i-- {
		hash = (hash ^ uint64(domain[i])) * prime
	}
	return bucket(hash)
}

func bucket(hash uint64) int { return int(hash * spread >> (64 - bucketBits)) }

// has looks for a domain, of this hash, in its bucket.
func has(hash uint64, domain string) bool {
	b := bucket(hash)
	at, end := offset(b), offset(b+1)
	for at < end {
		size := int(table[at])
		if size == len(domain) && table[at+1:at+1+size] == domain {
			return true
		}
		at += 1 + size
	}
	return false
}

func offset(b int) int {
	o := table[4*b : 4*b+4]
	return int(o[0]) | int(o[1])<<8 | int(o[2])<<16 | int(o[3])<<24
}

// All calls f with every listed domain, in the table's order, until f says no.
func All(f func(domain string) bool) {
	for at, end := offset(0), offset(Buckets); at < end; at += 1 + int(table[at]) {
		if !f(table[at+1 : at+1+int(table[at])]) {
			return
		}
	}
}
