// Package disposable finds the domains of disposable mail. The command build derives the table from published lists
// (sources.json, NOTICE.md). The table is used as it is in the program, so a start needs no work, and Find allocates nothing.
package disposable

import _ "embed" // the table

// table holds the listed domains by bucket. Layout:
//
//	(Buckets+1) x 4 bytes   little-endian offset of each bucket's first entry, and of the end
//	entries                 one byte of length, then the domain's bytes
//
//go:embed table.bin
var table string

// Buckets is the number of hash buckets of the table, with about five domains in each.
const Buckets = 1 << bucketBits

const (
	bucketBits = 15
	// FNV-1a, 64 bits (draft-eastlake-fnv).
	offsetBasis = 14695981039346656037
	prime       = 1099511628211
	spread      = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio: mixes the low bits into the high bits
)

// Find returns the shortest listed domain among a domain and its parents with at least two labels. The domain must be
// lower-case ASCII. Find reads the domain once from its end: at each dot the hash so far is that of a parent.
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

// Bucket returns the bucket of a domain.
func Bucket(domain string) int {
	hash := uint64(offsetBasis)
	for i := len(domain) - 1; i >= 0; i-- {
		hash = (hash ^ uint64(domain[i])) * prime
	}
	return bucket(hash)
}

func bucket(hash uint64) int { return int(hash * spread >> (64 - bucketBits)) }

// has reports whether the bucket of the hash contains the domain.
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
