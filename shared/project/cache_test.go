package project_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/test/clocktest"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// fixture is a cache of the project "acme" with a clock that the test sets, and with a count of the reads.
type fixture struct {
	*project.Cache
	store *admin.Store
	reads atomic.Int64
	clock *clocktest.Clock
	fail  atomic.Bool
}

func newFixture(t *testing.T) *fixture {
	client, tables := enginetest.Client(t)
	b := &fixture{clock: clocktest.New()}
	counted := enginetest.ClientOf(enginetest.Faulty(t, func(*faultproxy.Request) faultproxy.Fault {
		if b.reads.Add(1); b.fail.Load() {
			return faultproxy.Refuse
		}
		return faultproxy.Deliver
	}).URL("test"))
	b.store = admin.NewStore(client, tables.Projects)
	b.Cache = project.NewCache(project.NewStore(counted, tables.Projects), 10*time.Second)
	b.Cache.SetClock(b.clock.Now)
	must.Get(b.store.CreateProject(t.Context(), project.Project{ID: "acme", Name: "Test",
		Limit: project.RateLimit{Requests: 5, Window: time.Minute}})).Or(t)
	return b
}

func (b *fixture) issue(t *testing.T, env project.Environment) (clientID, secret string) {
	t.Helper()
	clientID, secret, err := b.store.IssueCredential(t.Context(), "acme", env)
	must.Succeed(t, err)
	return clientID, secret
}

// expect authenticates and checks the outcome and how many reads it took.
func (b *fixture) expect(t *testing.T, what, clientID, secret, env string, want error, reads int64) *project.Record {
	t.Helper()
	before := b.reads.Load()
	rec, _, err := b.Authenticate(t.Context(), clientID, secret, env)
	if !errors.Is(err, want) || (err == nil) != (rec != nil) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
	if got := b.reads.Load() - before; got != reads {
		t.Errorf("%s: %d reads, want %d", what, got, reads)
	}
	return rec
}

// TestAuthenticate checks that credentials which are missing, invalid, inactive or of another environment get one and
// the same error (docs/decisions/requests.md#credentials).
func TestAuthenticate(t *testing.T) {
	b := newFixture(t)
	dev, devSecret := b.issue(t, project.Development)
	prod, prodSecret := b.issue(t, project.Production)
	revoked, revokedSecret := b.issue(t, project.Development)
	must.Succeed(t, b.store.RevokeCredential(t.Context(), revoked))
	for _, c := range []struct {
		what, clientID, secret, env string
		ok                          bool
		reads                       int64
	}{
		{"development by default", dev, devSecret, "", true, 1},
		{"dev", dev, devSecret, "dev", true, 0},
		{"production", prod, prodSecret, "PROD", true, 0},
		{"wrong environment", dev, devSecret, "production", false, 0},
		{"wrong environment", prod, prodSecret, "", false, 0},
		{"no such environment", dev, devSecret, "staging", false, 0},
		{"wrong secret", dev, prodSecret, "", false, 0},
		{"wrong secret in the wrong environment", dev, prodSecret, "production", false, 0},
		{"no secret", dev, "", "", false, 0},
		{"no client ID", "", devSecret, "", false, 0},
		{"nothing", "", "", "", false, 0},
		{"revoked", revoked, revokedSecret, "", false, 0},
		{"no client ID by its form", "acme", devSecret, "", false, 0},
		{"another form", dev + "x", devSecret, "", false, 0},
		{"unknown client of a known project", "svc_acme_aaaaaaaa", devSecret, "", false, 0},
		{"unknown project", "svc_nobody_aaaaaaaa", devSecret, "", false, 1},
		{"unknown project again", "svc_nobody_aaaaaaaa", devSecret, "", false, 0},
	} {
		before := b.reads.Load()
		rec, env, err := b.Authenticate(t.Context(), c.clientID, c.secret, c.env)
		switch {
		case c.ok && (err != nil || rec.ID != "acme"):
			t.Errorf("%s: %v", c.what, err)
		case !c.ok && (!errors.Is(err, project.ErrUnauthorized) || err.Error() != project.ErrUnauthorized.Error() ||
			rec != nil || env != ""):
			t.Errorf("%s: %v, %q, %v", c.what, rec, env, err)
		case errors.Is(err, project.ErrWrongSecret) != strings.HasPrefix(c.what, "wrong secret"):
			t.Errorf("%s: a wrong secret: %t", c.what, errors.Is(err, project.ErrWrongSecret))
		}
		if got := b.reads.Load() - before; got != c.reads {
			t.Errorf("%s: %d reads, want %d", c.what, got, c.reads)
		}
	}
}

// TestChangesTakeEffect checks when a pause and a new secret take effect (docs/decisions/requests.md#project-records).
func TestChangesTakeEffect(t *testing.T) {
	b := newFixture(t)
	id, secret := b.issue(t, project.Development)
	b.expect(t, "first", id, secret, "", nil, 1)

	must.Get(b.store.Update(t.Context(), "acme", func(p *project.Project) { p.Paused = true })).Or(t)
	b.clock.Move(9 * time.Second)
	if rec := b.expect(t, "warm", id, secret, "", nil, 0); rec.Paused {
		t.Error("paused without a read")
	}
	b.clock.Move(time.Second)
	if rec := b.expect(t, "after the time to live", id, secret, "", nil, 1); !rec.Paused {
		t.Error("not paused after the time to live")
	}

	b.clock.Move(2 * time.Second)
	second := must.Get(b.store.RotateCredential(t.Context(), id, false)).Or(t)
	b.expect(t, "a new secret", id, second, "", nil, 1)
	b.expect(t, "the old one beside it", id, secret, "", nil, 0)
	b.expect(t, "a wrong one, the record is fresh", id, "svcs_wrong", "", project.ErrUnauthorized, 0)
	b.clock.Move(2 * time.Second)
	b.expect(t, "a wrong one, the record is older", id, "svcs_wrong", "", project.ErrUnauthorized, 1)

	b.clock.Move(2 * time.Second)
	other, otherSecret := b.issue(t, project.Production)
	b.expect(t, "a new credential", other, otherSecret, "prod", nil, 1)

	must.Succeed(t, b.store.RevokeCredential(t.Context(), id))
	b.clock.Move(10 * time.Second)
	b.expect(t, "revoked", id, secret, "", project.ErrUnauthorized, 1)

	// A clock that is set back keeps no cached state alive.
	other, otherSecret = b.issue(t, project.Development)
	b.clock.Move(time.Second)
	b.expect(t, "a live one", other, otherSecret, "", nil, 1)
	must.Succeed(t, b.store.RevokeCredential(t.Context(), other))
	b.clock.Move(-time.Hour)
	b.expect(t, "revoked, and the clock is set back", other, otherSecret, "", project.ErrUnauthorized, 1)
}

// TestUnknownSince checks that a read which began before a request arrived does not prove that the request's client ID
// is unknown: the credential may be newer than the read.
func TestUnknownSince(t *testing.T) {
	b := newFixture(t)
	id, secret := b.issue(t, project.Development)
	b.expect(t, "first", id, secret, "", nil, 1)
	b.clock.Move(time.Second / 2) // the record is young enough for a refusal
	other, otherSecret := b.issue(t, project.Development)
	b.expect(t, "newer than the record", other, otherSecret, "", project.ErrUnauthorized, 0)
	b.clock.Move(time.Second / 2)
	b.expect(t, "the record is read again", other, otherSecret, "", nil, 1)
}

// TestUnknownClients checks that unknown client IDs cost one read at most.
func TestUnknownClients(t *testing.T) {
	b := newFixture(t)
	id, secret := b.issue(t, project.Development)
	b.expect(t, "known", id, secret, "", nil, 1)
	b.clock.Move(2 * time.Second)
	b.expect(t, "unknown", "svc_acme_aaaaaaaa", "x", "", project.ErrUnauthorized, 1)
	for range 3 {
		b.clock.Move(2 * time.Second)
		b.expect(t, "unknown again", "svc_acme_aaaaaaaa", "x", "", project.ErrUnauthorized, 0)
	}
}

// TestFailedRead checks that a store without a response is no wrong credential.
func TestFailedRead(t *testing.T) {
	b := newFixture(t)
	b.fail.Store(true)
	_, _, err := b.Authenticate(t.Context(), "svc_acme_aaaaaaaa", "x", "")
	if err == nil || errors.Is(err, project.ErrUnauthorized) {
		t.Errorf("%v, want the failure", err)
	}
	b.fail.Store(false)
	b.expect(t, "afterwards", "svc_acme_aaaaaaaa", "x", "", project.ErrUnauthorized, 1)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := b.Authenticate(ctx, "svc_gone_aaaaaaaa", "x", ""); err != nil && !errors.Is(err, context.Canceled) &&
		!errors.Is(err, project.ErrUnauthorized) {
		t.Errorf("a request that ended: %v", err)
	}
}

// TestTogether checks that simultaneous requests read a project once.
func TestTogether(t *testing.T) {
	b := newFixture(t)
	id, secret := b.issue(t, project.Development)
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			if _, _, err := b.Authenticate(t.Context(), id, secret, ""); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if n := b.reads.Load(); n != 1 {
		t.Errorf("%d reads, want 1", n)
	}
}
