package rates

import (
	"testing"

	"github.com/go-json-experiment/json"
)

// BenchmarkLatest makes all cross rates of a base, as latest does, for a table of every code of ISO 4217.
func BenchmarkLatest(b *testing.B) {
	table := Table{Base: "USD", Rates: map[string]Decimal{}}
	for code := range names() {
		table.Rates[code] = dec(b, "304.718462")
	}
	table.Rates["USD"] = One()
	b.ReportAllocs()
	for b.Loop() {
		for _, code := range table.Codes() {
			table.Rate("EUR", code)
		}
	}
}

// BenchmarkDecode reads a stored set, as a request on an instance without one does.
func BenchmarkDecode(b *testing.B) {
	set := sample(b)
	for code := range names() {
		set.Rates[code] = dec(b, "304.718462")
	}
	set.Rates["USD"] = One()
	item := encodeSet(set)
	text, _ := json.Marshal(set.Rates)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeSet(item); err != nil {
			b.Fatal(err)
		}
	}
}
