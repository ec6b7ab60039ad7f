package burner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"svcapi/test/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// The e-mail shield: is_disposable says that the domain or a parent domain is listed.
func TestStore(t *testing.T) {
	db, tables := enginetest.Client(t)
	s := NewStore(db, tables.Projects)
	ctx := t.Context()
	deep := strings.Repeat("a.", 118) + "deep.example"

	many := make([]string, 120)
	for i := range many {
		many[i] = fmt.Sprintf("many-%03d.example", i)
	}
	for _, change := range []error{
		s.Add(ctx, "one", "a.example", "b.c.example"),
		s.Add(ctx, "one", "a.example"), // again
		s.Add(ctx, "one", many...),
		s.Add(ctx, "one"),
		s.Add(ctx, "two", "deep.example", "gone.example"),
		s.Remove(ctx, "two", "gone.example", "never.example"),
	} {
		if change != nil {
			t.Fatal(change)
		}
	}
	for _, c := range []struct {
		project, domain string
		want            bool
	}{
		{"one", "a.example", true},
		{"one", "x.y.a.example", true},
		{"one", "c.example", false},
		{"one", "b.c.example", true},
		{"one", "ba.example", false},
		{"one", "example", false},
		{"one", "many-119.example", true},
		{"one", "deep.example", false},
		{"two", "a.example", false},
		{"two", "gone.example", false},
		{"two", deep, true},
		{"three", "a.example", false},
	} {
		if got, err := s.Lists(ctx, c.project, c.domain); err != nil || got != c.want {
			t.Errorf("%s lists %.40s: %v, %v; want %v", c.project, c.domain, got, err, c.want)
		}
	}
	want := append([]string{"a.example", "b.c.example"}, many...)
	if got, err := s.List(ctx, "one"); err != nil || !slices.Equal(got, want) {
		t.Errorf("list is %v, %v", got, err)
	}
	if got, err := s.List(ctx, "three"); err != nil || got == nil || len(got) != 0 {
		t.Errorf("empty list is %v, %v", got, err)
	}
}
