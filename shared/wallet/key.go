package wallet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"svcapi/shared/pattern"
)

// Key names one lease, the charge of one request, or one movement. A key consists of its time in microseconds since
// 1970 with 16 digits, "-", and 28 bits of the request ID's digest with 7 hexadecimal digits: the wallet pays for each
// byte. The key of a request in a lease with several slots has the lease's key, "." and the number of the slot with two
// hexadecimal digits. Keys sort by time.
type Key string

const (
	keyDigits = 16
	keyDigest = 7
)

// NewKey returns the key of a request that began at that time. The same request ID at another time names
// another reservation, because events are replayed from files.
func NewKey(at time.Time, requestID string) Key {
	digest := sha256.Sum256([]byte(requestID))
	return Key(Digits(at) + "-" + hex.EncodeToString(digest[:])[:keyDigest])
}

// Digits returns the digits with which all keys of that time begin.
func Digits(at time.Time) string { return fmt.Sprintf("%0*d", keyDigits, at.UnixMicro()) }

var keyPattern = pattern.New(`^\d{16}-[0-9a-f]{7}(\.[0-7][0-9a-f])?$`)

// ParseKey returns the key that a text is, or an error for a text that is no key.
func ParseKey(s string) (Key, error) {
	if !keyPattern().MatchString(s) {
		return "", fmt.Errorf("wallet: %q is no key", s)
	}
	return Key(s), nil
}

// Lease returns the key of the lease that a key belongs to.
func (k Key) Lease() Key {
	base, _, _ := strings.Cut(string(k), ".")
	return Key(base)
}

// at returns the key of the same request at another time.
func (k Key) at(t time.Time) Key {
	_, digest, _ := strings.Cut(string(k.Lease()), "-")
	return Key(Digits(t) + "-" + digest)
}

// Time returns when the lease or the movement began, in UTC; the zero time for a text that is no key.
func (k Key) Time() time.Time {
	number, _, _ := strings.Cut(string(k), "-")
	micros, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// Day returns the UTC date of the key, 2006-01-02, which names the ledger's partition within a project.
func (k Key) Day() string { return k.Time().Format(time.DateOnly) }
