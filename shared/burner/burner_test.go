package burner

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"svcapi/test/enginetest"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// docs/decisions/look-ups.md#disposable-domains: the judgement about the domain or its nearest judged parent counts.
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
		s.Put(ctx, "one", Disposable, "a.example", "b.c.example"),
		s.Put(ctx, "one", Disposable, "a.example"), // again
		s.Put(ctx, "one", Disposable, many...),
		s.Put(ctx, "one", Allowed, "y.a.example", "fine.example"),
		s.Put(ctx, "one", Disposable, "z.y.a.example"),
		s.Put(ctx, "one", Disposable),
		s.Put(ctx, "two", Disposable, "deep.example", "gone.example"),
		s.Put(ctx, Stage, Allowed, "c.example"),
		s.Remove(ctx, "two", "gone.example", "never.example"),
	} {
		if change != nil {
			t.Fatal(change)
		}
	}
	for _, c := range []struct {
		project, domain string
		want            Judgement
	}{
		{"one", "a.example", Disposable},
		{"one", "x.a.example", Disposable},
		{"one", "x.y.a.example", Allowed}, // the nearest parent counts
		{"one", "x.z.y.a.example", Disposable},
		{"one", "fine.example", Allowed},
		{Stage, "c.example", Allowed},
		{"one", "c.example", None},
		{"one", "b.c.example", Disposable},
		{"one", "ba.example", None},
		{"one", "example", None},
		{"one", "many-119.example", Disposable},
		{"one", "deep.example", None},
		{"two", "a.example", None},
		{"two", "gone.example", None},
		{"two", deep, Disposable},
		{"three", "a.example", None},
	} {
		if got, err := s.Find(ctx, c.project, c.domain); err != nil || got != c.want {
			t.Errorf("%q judges %.40s: %v, %v; want %v", c.project, c.domain, got, err, c.want)
		}
	}
	want := Domains{
		Disposable: append(append([]string{"a.example", "b.c.example"}, many...), "z.y.a.example"),
		Allowed:    []string{"fine.example", "y.a.example"},
	}
	if got, err := s.List(ctx, "one"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("list is %v, %v", got, err)
	}
	if got, err := s.List(ctx, "three"); err != nil ||
		!reflect.DeepEqual(got, Domains{Disposable: []string{}, Allowed: []string{}}) {
		t.Errorf("empty list is %v, %v", got, err)
	}
	// A failed fetch keeps the packed domains.
	good := Difference{Outcome{Fetched: time.Unix(1, 0).UTC(), Sources: map[string]int{"x": 1}}, []byte("packed")}
	failed := Difference{Outcome: Outcome{Fetched: good.Fetched, Failure: "none"}}
	must.Succeed(t, errors.Join(s.PutDifference(ctx, good), s.PutDifference(ctx, failed)))
	failed.Packed = good.Packed
	got, err := s.List(ctx, Stage)
	if err != nil || !reflect.DeepEqual(got, Domains{[]string{}, []string{"c.example"}, failed}) ||
		got.Difference.Age(time.Unix(61, 0)) != time.Minute {
		t.Errorf("%+v, %v", got, err)
	}
}
