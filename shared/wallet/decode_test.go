package wallet

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

// TestDecode checks that items which no version wrote give errors, and that an entry reads as it was written.
func TestDecode(t *testing.T) {
	at := time.Date(2026, 11, 21, 1, 2, 3, 4, time.UTC)
	entry := Entry{
		Key: NewKey(at, "r"), State: Captured, Credits: 5, Price: SMS, RequestID: "r", Environment: "e", Vendor: "v", At: at,
		Project: "p",
		Actor:   "a", Reason: "w", Units: 6, Uncertain: true, Refunds: "of",
	}
	item := EncodeEntry(EntryKey("p", entry.Key), entry)
	if got, err := DecodeEntry(item); err != nil || got != entry {
		t.Errorf("%+v, %v", got, err)
	}
	plain := Entry{Key: entry.Key, State: Released, Credits: 1, At: at, Project: "p"}
	if got := EncodeEntry(EntryKey("p", plain.Key), plain); len(got) != 5 {
		t.Errorf("%d attributes for %+v", len(got), plain)
	} else if back, err := DecodeEntry(got); err != nil || back != plain {
		t.Errorf("%+v, %v", back, err)
	}
	for _, name := range []string{"cr", "ts"} {
		broken := maps.Clone(item)
		broken[name] = dynamo.Text("x")
		if _, err := DecodeEntry(broken); err == nil || !strings.Contains(err.Error(), string(entry.Key)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := Lease{Project: "p", Key: entry.Key, Slots: 64, Credits: 7}
	if got, err := decodeLease("p", l.Name(), dynamo.Number(7)); err != nil || got != l {
		t.Errorf("%+v, %v", got, err)
	}
	name := l.Name()
	if len(name) != nameLength {
		t.Errorf("the name %s has %d bytes", name, len(name))
	}
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
