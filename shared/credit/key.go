package credit

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Key names one reservation or movement. A key consists of its time in microseconds since 1970 with 16 digits, "-",
// and 8 characters of the request ID's digest. Keys sort by time.
type Key string

const (
	keyDigits = 16
	keyDigest = 8
)

var keyEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewKey returns the key of a request that began at that time. The same request ID at another time names
// another reservation, because events are replayed from files.
func NewKey(at time.Time, requestID string) Key {
	digest := sha256.Sum256([]byte(requestID))
	return Key(digits(at) + "-" + keyEncoding.EncodeToString(digest[:])[:keyDigest])
}

// digits returns the digits with which all keys of that time begin.
func digits(at time.Time) string { return fmt.Sprintf("%0*d", keyDigits, at.UnixMicro()) }

// ParseKey returns the key that a text is, or an error for a text that NewKey does not produce.
func ParseKey(s string) (Key, error) {
	number, digest, ok := strings.Cut(s, "-")
	_, err := strconv.ParseUint(number, 10, 63)
	if !ok || err != nil || len(number) != keyDigits || len(digest) != keyDigest || strings.Trim(digest, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return "", fmt.Errorf("credit: %q is no key", s)
	}
	return Key(s), nil
}

// Time returns when the reservation began, in UTC; the zero time for a text that is no key.
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
