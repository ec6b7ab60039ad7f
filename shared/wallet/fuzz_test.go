package wallet

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"svcapi/shared/dynamo"
	"svcapi/test/itemtest"
)

// A key matches one pattern, holds its time, and sorts by that time.
func FuzzKey(f *testing.F) {
	f.Add("1700000000000000-abcdef0", int64(1_700_000_000_000_000), "request")
	f.Add("-100000000000000-abcdef0", int64(0), "")
	f.Add("+100000000000000-abcdef0", int64(1)<<62, "\xff")
	f.Add("1700000000000000-abcdef0.63", int64(1), "request")
	f.Add("9999999999999999-ABCDEF0", int64(-1), "é")
	f.Fuzz(func(t *testing.T, text string, micros int64, request string) {
		if key, err := ParseKey(text); err == nil {
			if string(key) != text || len(key.Lease()) != keyDigits+1+keyDigest || key.Time().UnixMicro() < 0 {
				t.Errorf("%q is taken for the key %q of %v", text, key, key.Time())
			}
			if day, err := time.Parse(time.DateOnly, key.Day()); err != nil || key.Time().Sub(day) < 0 ||
				key.Time().Sub(day) >= 24*time.Hour {
				t.Errorf("%q is of the day %q", text, key.Day())
			}
		}
		if micros < 0 || micros >= 9_999_999_999_999_999 {
			return
		}
		made, later := NewKey(time.UnixMicro(micros), request), NewKey(time.UnixMicro(micros+1), request)
		parsed, err := ParseKey(string(made))
		if err != nil || parsed != made || made.Time().UnixMicro() != micros || made >= later {
			t.Errorf("%d, %q: %q, %v", micros, request, made, err)
		}
	})
}

// Entries and reservations read as they were written. Items that the product never wrote give an error or a value.
func FuzzItems(f *testing.F) {
	f.Add([]byte("captured"), int64(100), "sms", "request", "v", true, uint32(1))
	f.Add(bytes.Repeat([]byte{0, 1, 9, 7, 2, 3, 4, 5}, 30), int64(-5), "", "\xff", "", false, uint32(0))
	names := []string{"lent", "fence", "pk", "sk", "st", "cr", "op", "un", "rid", "env", "ven", "vid", "ref", "ts", "by",
		"why", "uncertain", "of", "v", "balance", "pending"}
	f.Fuzz(func(t *testing.T, data []byte, credits int64, operation, request, vendor string,
		uncertain bool, seconds uint32) {
		strange := itemtest.Item(data, names...)
		if e, err := DecodeEntry(strange); err != nil && e != (Entry{}) {
			t.Errorf("%+v beside %v", e, err)
		}
		for _, l := range LeasesOf(strange, func(string, error) {}) {
			if _, err := ParseKey(string(l.Key)); err != nil || l.Slots < 1 || l.Slots > mostSlots {
				t.Errorf("%+v, %v", l, err)
			}
		}
		at := time.Unix(int64(seconds), 123_456_789).UTC()
		want := Entry{
			Key: NewKey(at, request), State: State("captured"), Credits: credits, Price: operation, RequestID: request,
			Environment: "development",
			Project:     "acme", Vendor: vendor, VendorID: request, Reference: operation, Uncertain: uncertain, At: at,
			Actor: operation, Reason: vendor,
		}
		if got, err := DecodeEntry(EncodeEntry(EntryKey("acme", want.Key), want)); err != nil ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		begin := nameEpoch.Add(time.Duration(seconds%1e9) * time.Second)
		l := Lease{Project: "acme", Key: NewKey(begin, request), Slots: 1 + int(seconds%mostSlots), Credits: credits}
		if later := (Lease{Key: NewKey(begin.Add(time.Microsecond), vendor), Slots: 1}); l.Name() >= later.Name() {
			t.Errorf("%s sorts after %s", l.Name(), later.Name())
		}
		if got, err := decodeLease("acme", l.Name(), dynamo.Number(credits)); err != nil || got != l {
			t.Errorf("%+v, %v; want %+v", got, err, l)
		}
		if n, err := dynamo.NumberOf(dynamo.Number(credits)); err != nil || n != credits {
			t.Errorf("%d, %v; want %d", n, err, credits)
		}
	})
}
