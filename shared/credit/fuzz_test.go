package credit

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"svcapi/shared/dynamo"
	"svcapi/test/itemtest"
)

// A key matches one pattern, holds its time, and sorts by that time.
func FuzzKey(f *testing.F) {
	f.Add("1700000000000000-abcdefgh", int64(1_700_000_000_000_000), "request")
	f.Add("-100000000000000-abcdefgh", int64(0), "")
	f.Add("+100000000000000-abcdefgh", int64(1)<<62, "\xff")
	f.Add("9999999999999999-ABCDEFGH", int64(-1), "é")
	f.Fuzz(func(t *testing.T, text string, micros int64, request string) {
		if key, err := ParseKey(text); err == nil {
			if string(key) != text || len(text) != keyDigits+1+keyDigest || key.Time().UnixMicro() < 0 {
				t.Errorf("%q is taken for the key %q of %v", text, key, key.Time())
			}
			if day, err := time.Parse(time.DateOnly, key.Day()); err != nil || key.Time().Sub(day) < 0 || key.Time().Sub(day) >= 24*time.Hour {
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
	names := []string{"shards", "moves", "pk", "sk", "st", "cr", "op", "un", "rid", "env", "ven", "vid", "ref", "ts", "by", "why", "uncertain", "of", "v", "balance", "pending"}
	f.Fuzz(func(t *testing.T, data []byte, credits int64, operation, request, vendor string, uncertain bool, seconds uint32) {
		strange := itemtest.Item(data, names...)
		if e, err := decodeEntry(strange); err != nil && e != (Entry{}) {
			t.Errorf("%+v beside %v", e, err)
		}
		for key, v := range pendingOf(strange) {
			if r, err := decodePending("acme", key, v); (err == nil) != (r != nil) {
				t.Errorf("%+v beside %v", r, err)
			}
		}
		at := time.Unix(int64(seconds), 123_456_789).UTC()
		want := Entry{
			Key: NewKey(at, request), State: State("captured"), Credits: credits, Price: operation, RequestID: request, Environment: "development",
			Wallet: "acme", Vendor: vendor, VendorID: request, Reference: operation, Uncertain: uncertain, At: at, Actor: operation, Reason: vendor,
		}
		if got, err := decodeEntry(encodeEntry(entryKey("acme", want.Key), want)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		shardsIn(strange)
		walletOf(strange)
		r := &Reservation{Project: "acme", Wallet: "acme", Key: want.Key, Credits: credits}
		if got, err := decodePending("acme", string(r.Key), dynamo.Number(credits)); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, %v; want %+v", got, err, r)
		}
		if n, err := dynamo.NumberOf(dynamo.Number(credits)); err != nil || n != credits {
			t.Errorf("%d, %v; want %d", n, err, credits)
		}
	})
}

// A wallet has one name, which holds project and shard. A key selects one of the shards.
func FuzzWallet(f *testing.F) {
	for _, wallet := range []string{"acme", "acme#1", "acme#0", "acme#-1", "acme#01", "acme#+1", "acme#1#2", "#1", "acme#", "acme#99999999999999999999"} {
		f.Add(wallet, "acme", uint16(3))
	}
	f.Fuzz(func(t *testing.T, wallet, project string, shards uint16) {
		if projectOf, shard, err := parseWallet(wallet); err == nil && (walletID(projectOf, shard) != wallet || shard < 0 || strings.Contains(projectOf, "#")) {
			t.Errorf("%q is shard %d of %q", wallet, shard, projectOf)
		}
		if strings.Contains(project, "#") {
			return // no project's name
		}
		r := Reservation{Project: project, Shards: int(shards), Key: NewKey(time.UnixMicro(1), wallet)}
		projectOf, got, err := parseWallet(r.shard())
		if err != nil || projectOf != project || got < 0 || got >= max(1, int(shards)) {
			t.Errorf("shard %q of %d of %q: %q, %d, %v", r.shard(), shards, project, projectOf, got, err)
		}
	})
}
