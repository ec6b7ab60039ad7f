package disposable

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"svcapi/shared/dynamo"
	"svcapi/test/must"
)

// Find finds without a difference.
func Find(domain string) (string, bool) { return (*Difference)(nil).Find(domain) }

// naive returns the list as a map, and naiveFind searches the map, with which the table must agree. No listed domain
// has a listed parent.
var naive = sync.OnceValue(newMap)

func newMap() map[string]bool {
	m := map[string]bool{}
	for domain := range Compiled().All {
		m[domain] = true
	}
	return m
}

func naiveFind(domain string) (string, bool) {
	for d := domain; strings.Contains(d, "."); _, d, _ = strings.Cut(d, ".") {
		if naive()[d] {
			return d, true
		}
	}
	return "", false
}

// A domain is disposable where the domain or one of its parents is on a list.
func TestFind(t *testing.T) {
	for _, c := range []struct{ domain, listed string }{
		{"mailinator.com", "mailinator.com"},
		{"a.b.mailinator.com", "mailinator.com"},
		{"yopmail.com", "yopmail.com"},
		{"guerrillamail.com", "guerrillamail.com"},
		{"10minutemail.com", "10minutemail.com"},
		{"xn--gmanet-r9a.example", ""},
		{"no-mailinator-at-all.com", ""},
		{"mailinator.com.example", ""},
		{"gmail.com", ""},
		{"example.com", ""},
		{"com", ""},
		{"", ""},
		{".", ""},
		{"..", ""},
		{".mailinator.com", "mailinator.com"},
		{"\xff.\x00", ""},
		{strings.Repeat("a", 63) + ".mailinator.com", "mailinator.com"},
	} {
		if listed, ok := Find(c.domain); listed != c.listed || ok != (c.listed != "") {
			t.Errorf("Find(%q) = %q, %v; wants %q", c.domain, listed, ok, c.listed)
		}
	}
}

// No ordinary mail provider is on the list or below a listed domain.
func TestOrdinaryProviders(t *testing.T) {
	text, err := os.ReadFile("lists/allow.txt")
	must.Succeed(t, err)
	n := 0
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		for domain := range strings.FieldsSeq(line) {
			n++
			if listed, ok := Find(domain); ok {
				t.Errorf("%s is taken for disposable, by %s", domain, listed)
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d ordinary providers are known", n)
	}
}

// randomDomains returns listed domains, the same with one changed letter, their children and parents, and random
// domains.
func randomDomains(seed uint64, n int) []string {
	r := rand.New(rand.NewPCG(seed, seed))
	listed := slices.Collect(Compiled().All)
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-.\x00\xff"
	word := func(size int) string {
		b := make([]byte, size)
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	domains := make([]string, n)
	for i := range domains {
		base := listed[r.IntN(len(listed))]
		switch r.IntN(6) {
		case 0:
			domains[i] = base
		case 1:
			domains[i] = word(1+r.IntN(8)) + "." + base
		case 2:
			at := r.IntN(len(base))
			domains[i] = base[:at] + word(1) + base[at+1:]
		case 3:
			domains[i] = base[r.IntN(len(base)):]
		case 4:
			domains[i] = word(1+r.IntN(12)) + base
		default:
			domains[i] = word(r.IntN(30)) + ".com"
		}
	}
	return domains
}

// The table agrees with a plain map on 1,000,000 random domains.
func TestFindAgreesWithMap(t *testing.T) {
	found := 0
	for _, domain := range randomDomains(7, 1_000_000) {
		listed, ok := Find(domain)
		if want, wantOK := naiveFind(domain); ok != wantOK || listed != want {
			t.Fatalf("Find(%q) = %q, %v; the map has %q, %v", domain, listed, ok, want, wantOK)
		}
		if ok {
			found++
		}
	}
	if found < 250_000 {
		t.Errorf("only %d of the domains were listed: the test is weak", found)
	}
}

// changes returns each n-th domain of the compiled table as removed, and a child of each as added.
func changes(n int) (added, removed []string) {
	i := 0
	for domain := range Compiled().All {
		if i++; i%n == 0 {
			added, removed = append(added, fmt.Sprintf("added-%d.%s", i, domain)), append(removed, domain)
		}
	}
	return added, removed
}

// docs/decisions/look-ups.md#fresh-lists: with a difference the look-ups agree with a map of the changed list, and
// allocate nothing. The difference to another table is none, and a damaged one an error.
func TestDifference(t *testing.T) {
	added, removed := changes(7)
	packed := Pack(added, removed)
	d, err := Read(packed)
	must.Succeed(t, err)
	want := maps.Clone(naive())
	for _, domain := range removed {
		want[domain] = false
	}
	for _, domain := range added {
		want[domain] = true
	}
	for domain, listed := range want {
		for _, below := range []string{domain, "x." + domain, "x.y." + domain} {
			if found, ok := d.Find(below); ok != listed || ok && found != domain {
				t.Fatalf("Find(%q) = %q, %v; want %v", below, found, ok, listed)
			}
			if found, ok := Find(below); naive()[domain] && (!ok || found != domain) {
				t.Fatalf("without a difference Find(%q) = %q, %v", below, found, ok)
			}
		}
	}
	for _, domain := range []string{"mailinator.com", added[0], "a.b.c." + removed[0], "gmail.com"} {
		if n := testing.AllocsPerRun(100, func() { d.Find(domain); Find(domain) }); n != 0 {
			t.Errorf("Find(%q) allocates %v times", domain, n)
		}
	}
	if len(want) < 23_000 || len(packed) > 70_000 {
		t.Errorf("%d domains in %d bytes", len(want), len(packed))
	}
	for about, c := range map[string]struct {
		packed []byte
		fails  bool
	}{
		"nothing stored": {nil, false}, "no change": {Pack(nil, nil), false},
		"another table": {dynamo.Pack([]byte("other\n+new.example")), false}, "cut": {packed[:len(packed)/2], true},
		"no gzip": {[]byte("x"), true}, "too large": {dynamo.Pack(make([]byte, maxText+1)), true},
	} {
		if d, err := Read(c.packed); d != nil || (err != nil) != c.fails {
			t.Errorf("%s: a difference: %v, %v", about, d != nil, err)
		}
	}
}

// BenchmarkFind compares the table with the map, both with the search of the parents, and with a difference of a fifth.
func BenchmarkFind(b *testing.B) {
	domains := randomDomains(11, 1<<16)
	difference, err := Read(Pack(changes(10)))
	must.Succeed(b, err)
	walks := map[string]func(string) (string, bool){"table": Find, "difference": difference.Find, "map": naiveFind}
	for _, name := range []string{"table", "difference", "map"} {
		b.Run(name, func(b *testing.B) {
			find := walks[name]
			naive()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				find(domains[i&(1<<16-1)])
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M/s")
		})
	}
}

// BenchmarkStart measures the work of a process before its first look-up.
func BenchmarkStart(b *testing.B) {
	b.Run("table", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			Find("example.com")
		}
	})
	b.Run("map", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			newMap()
		}
	})
}
