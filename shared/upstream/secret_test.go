package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go"

	"svcapi/shared/cache"
	"svcapi/shared/project"
	"svcapi/shared/telemetry"
	"svcapi/test/clocktest"
	"svcapi/test/must"
	"svcapi/test/secretstest"
)

const (
	dev  = project.Development
	prod = project.Production
)

// fixture is a cache on an endpoint of its own. The test sets the cache's clock and counts the cache's reads.
type fixture struct {
	*SecretCache
	client *secretsmanager.Client
	stored map[string]SecretAccounts // by owner
	reads  atomic.Int64
	fail   atomic.Pointer[error]
	clock  *clocktest.Clock
	log    strings.Builder
}

func newFixture(t *testing.T) *fixture {
	options := secretstest.Start(t)
	b := &fixture{
		client: secretsmanager.New(options), stored: map[string]SecretAccounts{}, clock: clocktest.New(),
	}
	counted := secretsmanager.New(options, secretstest.Before(func(any) error {
		b.reads.Add(1)
		if err := b.fail.Load(); err != nil {
			return *err
		}
		return nil
	}))
	b.SecretCache = NewSecretCache(counted, "test", SecretConfig{CacheSeconds: 300, StaleSeconds: 3600},
		telemetry.New(&b.log, telemetry.Config{}))
	b.SecretCache.clock = cache.ClockOf(b.clock.Now)
	return b
}

// put stores the fields of an account in place of all others, no fields to remove the account.
func (b *fixture) put(t *testing.T, owner, vendor string, fields map[string]string) {
	t.Helper()
	if b.stored[owner] == nil {
		b.stored[owner] = SecretAccounts{dev: {}, prod: {"v": {"api_key": "of production"}}}
		b.create(t, owner, "{}")
	}
	if b.stored[owner][dev][vendor] = fields; fields == nil {
		delete(b.stored[owner][dev], vendor)
	}
	value := must.Get(json.Marshal(b.stored[owner])).Or(t)
	must.Get(b.client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: new(SecretName("test", project.SMS, owner)), SecretString: new(string(value)),
	})).Or(t)
}

func (b *fixture) create(t *testing.T, owner, value string) {
	t.Helper()
	must.Get(b.client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: new(SecretName("test", project.SMS, owner)), SecretString: &value,
	})).Or(t)
}

// expect reads through the cache and checks the fields and how many reads it took.
func (b *fixture) expect(t *testing.T, what, owner, vendor string, want map[string]string, reads int64) {
	t.Helper()
	before := b.reads.Load()
	got, err := b.Fields(t.Context(), project.SMS, owner, dev, vendor)
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%s: %v, %v", what, got, err)
	}
	if n := b.reads.Load() - before; n != reads {
		t.Errorf("%s: %d reads, want %d", what, n, reads)
	}
}

func TestSecretName(t *testing.T) {
	if project.ValidID(ManagedOwner) {
		t.Error("a project may own the service's own accounts")
	}
	if got := SecretName("prod", project.SMS, Owner(project.Managed, "acme")); got != "svc/prod/sms/managed/accounts" {
		t.Error(got)
	}
	if got := SecretName("dev", project.Location, Owner(project.BYOK, "acme")); got != "svc/dev/location/acme/accounts" {
		t.Error(got)
	}
}

// TestSecretFields: a secret has each vendor, is cached, and may be missing
// (docs/decisions/operating.md#vendor-secrets).
func TestSecretFields(t *testing.T) {
	b := newFixture(t)
	quicksend := map[string]string{"email": "a@example.com", "api_key": "k1"}
	twilio := map[string]string{"auth_token": "t1"}
	b.put(t, "acme", "quicksend", quicksend)
	b.put(t, "acme", "twilio", twilio)
	b.expect(t, "first", "acme", "quicksend", quicksend, 1)
	b.expect(t, "the same secret", "acme", "twilio", twilio, 0)
	if got, err := b.Fields(t.Context(), project.SMS, "acme", prod, "v"); err != nil ||
		got["api_key"] != "of production" ||
		b.reads.Load() != 1 {
		t.Errorf("both environments by one read: %v, %v, %d reads", got, err, b.reads.Load())
	}
	b.expect(t, "a vendor that is not there", "acme", "vonage", nil, 0)
	b.expect(t, "no secret", "nobody", "quicksend", nil, 1)
	b.expect(t, "no secret again", "nobody", "quicksend", nil, 0)

	b.put(t, "nobody", "quicksend", quicksend)
	b.clock.Move(absentFor)
	b.expect(t, "no secret, read again", "nobody", "quicksend", quicksend, 1)

	b.put(t, "acme", "twilio", map[string]string{"auth_token": "t2"})
	b.expect(t, "within the time to live", "acme", "twilio", twilio, 0)
	b.clock.Move(5 * time.Minute)
	b.expect(t, "after the time to live", "acme", "twilio", map[string]string{"auth_token": "t2"}, 1)
	b.expect(t, "the other vendor is as it was", "acme", "quicksend", quicksend, 0)

	b.put(t, "acme", "vonage", quicksend)
	b.expect(t, "an absent account beside others, within its time", "acme", "vonage", nil, 0)
	b.clock.Move(absentFor)
	b.expect(t, "an account that was absent", "acme", "vonage", quicksend, 1)
	b.expect(t, "an account that was absent, again", "acme", "vonage", quicksend, 0)

	b.put(t, "acme", "vonage", twilio)
	b.clock.Move(-time.Hour)
	b.expect(t, "after the clock was set back", "acme", "vonage", twilio, 1)
}

// TestStale checks that a known account outlives its time while Secrets Manager does not respond, for a bounded time,
// with few reads and a metric, and that a secret which Secrets Manager refuses or returns without the account ends at
// once.
func TestStale(t *testing.T) {
	b := newFixture(t)
	fields, rotated := map[string]string{"api_key": "k"}, map[string]string{"api_key": "new"}
	b.put(t, "acme", "v", fields)
	b.put(t, "other", "v", fields)
	b.expect(t, "first", "acme", "v", fields, 1)
	b.expect(t, "first of the other", "other", "v", fields, 1)
	fails := func(what, owner, vendor string) {
		t.Helper()
		if got, err := b.Fields(t.Context(), project.SMS, owner, dev, vendor); err == nil {
			t.Errorf("%s: %v", what, got)
		}
	}
	away := errors.New("no response")
	b.fail.Store(&away)
	b.clock.Move(6 * time.Minute)
	b.expect(t, "Secrets Manager is away", "acme", "v", fields, 1)
	b.expect(t, "at once again", "acme", "v", fields, 0)
	fails("an absent account", "acme", "w")
	fails("a secret that was never read", "new", "v")
	b.clock.Move(retryAfter)
	b.expect(t, "later", "acme", "v", fields, 1)
	if log := b.log.String(); strings.Count(log, `"StaleSecrets":1`) != 2 ||
		strings.Count(log, `"error":"read secret svc/test/sms/acme/accounts`) != 2 {
		t.Errorf("log %s", log)
	}
	for what, refusal := range map[string]error{
		"the role may not read any more":    &smithy.GenericAPIError{Code: "AccessDeniedException"},
		"the key does not decrypt any more": &types.DecryptionFailure{},
	} {
		b.fail.Store(&refusal)
		fails(what, "other", "v")
	}
	b.fail.Store(&away)
	b.clock.Move(time.Hour - time.Minute - retryAfter - time.Second)
	b.expect(t, "just in time", "acme", "v", fields, 1)
	b.clock.Move(time.Second)
	fails("after the bounded time", "acme", "v")
	b.fail.Store(nil)
	b.put(t, "acme", "v", rotated)
	b.expect(t, "back again", "acme", "v", rotated, 1)
}

// TestRefresh: a refused secret is read again at most once a minute, and tried again only if it changed.
func TestRefresh(t *testing.T) {
	b := newFixture(t)
	old, rotated := map[string]string{"api_key": "old"}, map[string]string{"api_key": "new"}
	b.put(t, "acme", "v", old)
	b.expect(t, "first", "acme", "v", old, 1)
	for _, c := range []struct {
		what    string
		wait    time.Duration
		before  func()
		refused map[string]string
		want    map[string]string
		changed bool
		reads   int64
	}{
		{"not rotated", 0, nil, old, old, false, 1},
		{"asked again at once", 0, nil, old, old, false, 0},
		{"rotated within the minute", 30 * time.Second, func() { b.put(t, "acme", "v", rotated) }, old, old, false, 0},
		{"after the minute", 30 * time.Second, nil, old, rotated, true, 1},
		{"another request that was refused with the old one", 0, nil, old, rotated, true, 0},
		{"the new one is refused too", 0, nil, rotated, rotated, false, 0},
		{"removed", time.Minute, func() { b.put(t, "acme", "v", nil) }, rotated, nil, false, 1},
		{"after the clock was set back", -time.Hour, func() { b.put(t, "acme", "v", old) }, nil, old, true, 1},
	} {
		b.clock.Move(c.wait)
		if c.before != nil {
			c.before()
		}
		before := b.reads.Load()
		got, changed, err := b.Refresh(t.Context(), project.SMS, "acme", dev, "v", c.refused)
		if err != nil || changed != c.changed || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, %v", c.what, got, changed, err)
		}
		if n := b.reads.Load() - before; n != c.reads {
			t.Errorf("%s: %d reads, want %d", c.what, n, c.reads)
		}
	}
}

// TestTogether: requests that come at once read a secret once, for its first use and for a refresh.
func TestTogether(t *testing.T) {
	b := newFixture(t)
	fields := map[string]string{"api_key": "k"}
	b.put(t, "acme", "v", fields)
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			got, err := b.Fields(t.Context(), project.SMS, "acme", dev, "v")
			if err != nil || !maps.Equal(got, fields) {
				t.Errorf("%v, %v", got, err)
			}
			if _, changed, err := b.Refresh(t.Context(), project.SMS, "acme", dev, "v", fields); changed || err != nil {
				t.Errorf("refresh: %v, %v", changed, err)
			}
		})
	}
	wait.Wait()
	if n := b.reads.Load(); n != 2 {
		t.Errorf("%d reads, want 2", n)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := must.Get(b.lock(t.Context(), SecretName("test", project.SMS, "acme"))).Or(t)
	defer e.unlock()
	if _, err := b.Fields(ctx, project.SMS, "acme", dev, "v"); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that ended while it waited: %v", err)
	}
}

// TestNothingShows: values appear in no error and in no text.
func TestNothingShows(t *testing.T) {
	b := newFixture(t)
	const value = "hunter2"
	v := SecretValues{"api_key": value}
	encoded := must.Get(json.Marshal(v)).Or(t)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "fields", v)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "fields", v)
	texts := []string{string(encoded), log.String(), fmt.Sprint(map[string]any{"x": v})}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, v), fmt.Sprintf(verb, struct{ V SecretValues }{v}))
	}
	for _, text := range texts {
		if strings.Contains(text, value) || strings.Contains(text, fmt.Sprintf("%x", value)) ||
			!strings.Contains(text, "api_key") {
			t.Errorf("shows %q", text)
		}
	}

	for n, damaged := range []string{value, `["` + value + `"]`, `{"development":"` + value + `"}`,
		`{"v":{"api_key":"` + value + `"}}`, `{"development":{"v":{"api_key":7}}}`, `{"development":{"v":{"api_key":"` +
			value} {
		owner := fmt.Sprint("damaged", n)
		b.create(t, owner, damaged)
		_, err := b.Fields(t.Context(), project.SMS, owner, dev, "v")
		if !errors.Is(err, errFormat) || strings.Contains(err.Error(), value) {
			t.Errorf("%s: %v", damaged, err)
		}
	}

	b.fail.Store(new(errors.New("no response")))
	if _, err := b.Fields(t.Context(), project.SMS, "acme", dev, "v"); err == nil {
		t.Error("a failed read is no error")
	}
	b.fail.Store(nil)
	b.expect(t, "after the failure", "acme", "v", nil, 1)
}
