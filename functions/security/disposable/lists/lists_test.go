package lists

import (
	"slices"
	"testing"
)

// docs/decisions/look-ups.md#disposable-domains: a domain is taken from one list that proves it or from two that do
// not, and from the latter only where its mail servers were not looked for in vain.
func TestKeep(t *testing.T) {
	got, counts := Keep([]List{
		{Collected, []string{"gob.gt", "one.example", "one.example", "two.example", "dead.example", "gmail.com", "-.example"}},
		{Collected, []string{"two.example", "dead.example", "x.alive.example", "hongkong.com"}},
		{Reviewed, []string{"reviewed.example", "silent.example", "mixed.example", "gmail.com"}},
		{Examined, []string{"dead.example", "silent.example", "alive.example", "examined.example", "hongkong.com"}},
		{Alive, []string{"alive.example", "hongkong.com", "b\u00fccher.example"}},
	})
	want := []string{"alive.example", "mixed.example", "reviewed.example", "silent.example", "two.example", "xn--bcher-kva.example"}
	if !slices.Equal(got, want) {
		t.Errorf("%q are kept, not %q", got, want)
	}
	if counts != (Counts{Joined: 14, Malformed: 1, Allowed: 2, Dead: 2, Single: 2, Suffixes: 1}) {
		t.Errorf("%+v", counts)
	}
}
