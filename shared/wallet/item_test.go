package wallet

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/test/itemtest"
)

// TestDecode checks that items which no version wrote give errors. FuzzItems checks that all others read as written.
func TestDecode(t *testing.T) {
	at := time.Date(2026, 11, 21, 1, 2, 3, 4, time.UTC)
	entry := Entry{Key: NewKey(at, "r"), State: Released, Credits: 1, At: at, Project: "p"}
	item := EncodeEntry(EntryKey("p", entry.Key), entry)
	if back, err := DecodeEntry(item); err != nil || back != entry || len(item) != 5 {
		t.Errorf("%+v, %v of %d attributes", back, err, len(item))
	}
	for _, name := range []string{"cr", "ts"} {
		broken := maps.Clone(item)
		broken[name] = dynamo.Text("x")
		if _, err := DecodeEntry(broken); err == nil || !strings.Contains(err.Error(), string(entry.Key)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := Lease{Project: "p", Key: entry.Key, Slots: 64, Credits: 7}
	name := l.Name()
	for name, value := range map[string]types.AttributeValue{
		name: dynamo.Text("x"), name[:13]: dynamo.Number(1), name + "-": dynamo.Number(1), name[:13] +
			"!": dynamo.Number(1), "no key": dynamo.Number(1),
		name[:13] + "\n": dynamo.Number(1), "": dynamo.Number(1),
	} {
		if _, err := decodeLease("p", name, value); err == nil {
			t.Errorf("%s is a lease", name)
		}
	}
}

// TestShards checks that all shards are used, and that the slots of a lease are in one.
func TestShards(t *testing.T) {
	used := map[string]bool{}
	for i := range 500 {
		l := Lease{Key: NewKey(time.Now(), fmt.Sprint(i)), Slots: 64}
		used[Shard("p", l.Key)] = true
		if Shard("p", l.slot(0)) != Shard("p", l.Key) || Shard("p", l.slot(63)) != Shard("p", l.Key) {
			t.Errorf("the slots of %s are in several shards", l.Key)
		}
	}
	if len(used) != LedgerShards {
		t.Errorf("shards %v", used)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567", -1: "-1", -999: "-999", -1000: "-1,000",
		-123456: "-123,456", -1234567: "-1,234,567",
		9223372036854775807: "9,223,372,036,854,775,807", -9223372036854775808: "-9,223,372,036,854,775,808",
	} {
		if got := Grouped(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

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
			Environment: "development", Project: "acme", Vendor: vendor, VendorID: request, Reference: operation,
			Uncertain: uncertain, At: at, Actor: operation, Reason: vendor, Units: int64(seconds), Refunds: Key(request),
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
		if got, err := decodeLease("acme", l.Name(), dynamo.Number(credits)); err != nil || got != l ||
			len(l.Name()) != nameLength {
			t.Errorf("%+v, %v; want %+v", got, err, l)
		}
		if n, err := dynamo.NumberOf(dynamo.Number(credits)); err != nil || n != credits {
			t.Errorf("%d, %v; want %d", n, err, credits)
		}
	})
}
