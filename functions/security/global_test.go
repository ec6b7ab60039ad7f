package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"svcapi/functions/security/disposable"
	"svcapi/shared/burner"
	"svcapi/shared/cache"
	"svcapi/shared/request"
	"svcapi/test/clocktest"
	"svcapi/test/enginetest"
	"svcapi/test/fuzztest"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// docs/decisions/look-ups.md#disposable-domains, docs/decisions/look-ups.md#fresh-lists: domains that an operator
// allows for the stage, and changes of the published lists, are in force within ten minutes. An instance reads at most
// every nine minutes, a failed read changes nothing and is repeated after a minute.
func TestGlobalList(t *testing.T) {
	db, tables := enginetest.Client(t)
	ctx, clock := t.Context(), clocktest.New()
	store := burner.NewStore(db, tables.Projects)
	g := newGlobalList(store, cache.ClockOf(clock.Now))
	step := func(after time.Duration, due bool) (err error) {
		t.Helper()
		clock.Move(after)
		if g.due() != due {
			t.Fatalf("a read is due: %v", !due)
		}
		if due {
			err = g.refresh(ctx)
		}
		return err
	}
	is := func(want map[string]bool) {
		t.Helper()
		for domain, listed := range want {
			if g.has(domain) != listed {
				t.Errorf("%s is listed: %v", domain, !listed)
			}
		}
	}
	listed := map[string]bool{"mailinator.com": true, "a.b.mailinator.com": true, "yopmail.com": true,
		"example.com": false, "new.example": false, "guerrillamail.com": true}
	is(listed)
	must.Succeed(t, step(0, true))
	must.Succeed(t, store.Put(ctx, burner.Stage, burner.Allowed, "b.mailinator.com", "yopmail.com", "fine.new.example"))
	difference := func(packed []byte) {
		t.Helper()
		must.Succeed(t, store.PutDifference(ctx, burner.Difference{Packed: packed}))
	}
	difference(disposable.Pack([]string{"new.example"}, []string{"guerrillamail.com"}))
	_ = step(globalLife-time.Second, false)
	is(listed)
	must.Succeed(t, step(time.Second, true))
	allowed := map[string]bool{"mailinator.com": true, "a.b.mailinator.com": false, "yopmail.com": false,
		"x.new.example": true, "x.fine.new.example": false, "guerrillamail.com": false}
	is(allowed)
	g.store = burner.NewStore(db, "no-such-table")
	if step(globalLife, true) == nil {
		t.Error("no table, no error")
	}
	is(allowed)
	_ = step(globalPause-time.Second, false)
	g.store = store
	difference([]byte("damaged"))
	must.Succeed(t, store.Remove(ctx, burner.Stage, "yopmail.com"))
	allowed["yopmail.com"] = true // the rest is in force
	for _, after := range []time.Duration{time.Second, globalPause} {
		if step(after, true) == nil {
			t.Error("a damaged difference, no error")
		}
		is(allowed)
	}
	difference(disposable.Pack(nil, nil))
	must.Succeed(t, store.Remove(ctx, burner.Stage, "b.mailinator.com"))
	clock.Move(globalPause - time.Second)
	must.Succeed(t, step(time.Second, true))
	is(listed)
}

// A body that decodes without a problem names an e-mail address of one form. The decoder of IP addresses is that of
// functions/location, whose FuzzBody has it.
func FuzzEmail(f *testing.F) {
	fuzztest.Bodies(f, decodeEmail, func(t *testing.T, _ *request.Input, r emailRequest) {
		if utf8.RuneCountInString(r.email) > maxEmail || r.domain != strings.ToLower(r.domain) || len(r.domain) > 253 ||
			!strings.Contains(r.domain, ".") || !strings.Contains(r.email, "@") {
			t.Errorf("%+v", r)
		}
		(*disposable.Difference)(nil).Find(r.domain)
	}, `{"email":"a@example.com"}`, `{"email":"а@еxample.com"}`, `{"email":"\"a b\"@bücher.example"}`,
		`{"email":"a@[127.0.0.1]"}`, `{"email":"a@xn--bcher-kva.example"}`, `{"email":"a@ex\u200bample.com"}`,
		`{"email":null}`, `{"email":"a@example.com\u0000"}`, `{"email":"a@e\u0301xample.com"}`,
		`{"email":"a@\u202eexample.com"}`)
}
