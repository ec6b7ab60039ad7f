package cache

import (
	"sync"
	"testing"
)

// TestMap checks that a full Map keeps the newest value, replaces one in place, and never grows.
func TestMap(t *testing.T) {
	m := New[int, string](3)
	for i := range 100 {
		m.Put(i, "first")
		m.Put(i, "second")
		if got := m.GetOrPut(i, "third"); got != "second" {
			t.Errorf("key %d: %q", i, got)
		}
		if value, ok := m.Get(i); !ok || value != "second" || len(m.values) != min(i+1, 3) {
			t.Errorf("key %d: %q %v, %d values", i, value, ok, len(m.values))
		}
	}
	if got := m.GetOrPut(-1, "new"); got != "new" || len(m.values) != 3 {
		t.Errorf("%q, %d values", got, len(m.values))
	}
	for _, del := range []bool{false, true} {
		m.DeleteFunc(-1, func(value string) bool { return del && value == "new" })
		if _, ok := m.Get(-1); ok == del {
			t.Errorf("deleted: %v, kept: %v", del, ok)
		}
	}
	m.DeleteFunc(-1, func(string) bool { t.Error("called for a key that the Map has not"); return true })
}

// TestMapTogether checks that all who ask for a key at once get the same value.
func TestMapTogether(t *testing.T) {
	m := New[string, *int](1)
	var all sync.WaitGroup
	got := make([]*int, 16)
	for i := range got {
		all.Go(func() { got[i] = m.GetOrPut("key", new(int)) })
	}
	all.Wait()
	for _, value := range got {
		if value != got[0] {
			t.Fatal("two values")
		}
	}
}
