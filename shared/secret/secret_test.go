package secret

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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"svcapi/local/secrets"
	"svcapi/shared/cache"
	"svcapi/shared/project"
	"svcapi/shared/telemetry"
	"svcapi/test/clocktest"
	"svcapi/test/must"
)

const (
	dev  = project.Development
	prod = project.Production
)

// fixture is a cache and a writer on an endpoint of their own; the test sets the
// cache's clock and counts its reads.
type fixture struct {
	*Cache
	*Writer
	client *secretsmanager.Client
	reads  atomic.Int64
	fail   atomic.Pointer[error]
	clock  *clocktest.Clock
	log    strings.Builder
}

func newFixture(t *testing.T) *fixture {
	server, err := secrets.Start()
	must.Succeed(t, err)
	t.Cleanup(func() { _ = server.Close() })
	options := secretsmanager.Options{
		Region:           "us-east-1",
		BaseEndpoint:     &server.URL,
		Credentials:      credentials.NewStaticCredentialsProvider("test", "test", ""),
		RetryMaxAttempts: 1,
	}
	b := &fixture{client: secretsmanager.New(options), clock: clocktest.New()}
	counted := secretsmanager.New(options, initialize(func(any) error {
		b.reads.Add(1)
		if err := b.fail.Load(); err != nil {
			return *err
		}
		return nil
	}))
	b.Writer = NewWriter(b.client, "test")
	b.Cache = New(counted, "test", Config{CacheSeconds: 300, StaleSeconds: 3600},
		telemetry.New(&b.log, telemetry.Config{}))
	b.Cache.clock = cache.ClockOf(b.clock.Now)
	return b
}

// initialize runs a function before each call, with the input of the call. Its error ends the call.
func initialize(before func(in any) error) func(*secretsmanager.Options) {
	return func(o *secretsmanager.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("before",
				func(ctx context.Context, in middleware.InitializeInput,
					next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
					if err := before(in.Parameters); err != nil {
						return middleware.InitializeOutput{}, middleware.Metadata{}, err
					}
					return next.HandleInitialize(ctx, in)
				}), middleware.Before)
		})
	}
}

// put stores the fields of an account in place of all others, no fields to remove the account.
func (b *fixture) put(t *testing.T, owner, vendor string, fields map[string]string) {
	t.Helper()
	before, err := b.Writer.Fields(t.Context(), project.SMS, owner, dev, vendor)
	if err == nil {
		err = b.Put(t.Context(), project.SMS, owner, Change{dev, vendor, before, fields})
	}
	must.Succeed(t, err)
}

// expect reads through the cache and checks the fields and how many reads it took.
func (b *fixture) expect(t *testing.T, what, owner, vendor string, want map[string]string, reads int64) {
	t.Helper()
	before := b.reads.Load()
	got, err := b.Cache.Fields(t.Context(), project.SMS, owner, dev, vendor)
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%s: %v, %v", what, got, err)
	}
	if n := b.reads.Load() - before; n != reads {
		t.Errorf("%s: %d reads, want %d", what, n, reads)
	}
}

func TestName(t *testing.T) {
	if project.ValidID(Managed) {
		t.Error("a project may own the service's own accounts")
	}
	if got := Name("prod", project.SMS, Owner(project.Managed, "acme")); got != "svc/prod/sms/managed/accounts" {
		t.Error(got)
	}
	if got := Name("dev", project.Location, Owner(project.BYOK, "acme")); got != "svc/dev/location/acme/accounts" {
		t.Error(got)
	}
}

// TestFields: a secret has each vendor, is cached, and may be missing (docs/decisions/operating.md#vendor-secrets).
func TestFields(t *testing.T) {
	b := newFixture(t)
	quicksend := map[string]string{"email": "a@example.com", "api_key": "k1"}
	twilio := map[string]string{"auth_token": "t1"}
	b.put(t, "acme", "quicksend", quicksend)
	b.put(t, "acme", "twilio", twilio)
	b.expect(t, "first", "acme", "quicksend", quicksend, 1)
	b.expect(t, "the same secret", "acme", "twilio", twilio, 0)
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
		if got, err := b.Cache.Fields(t.Context(), project.SMS, owner, dev, vendor); err == nil {
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
			got, err := b.Cache.Fields(t.Context(), project.SMS, "acme", dev, "v")
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
	e, err := b.lock(t.Context(), Name("test", project.SMS, "acme"))
	must.Succeed(t, err)
	defer e.unlock()
	if _, err := b.Cache.Fields(ctx, project.SMS, "acme", dev, "v"); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that ended while it waited: %v", err)
	}
}

// TestWriter: vendors of one secret come and go on their own, and a write keeps what it does not change.
func TestWriter(t *testing.T) {
	b := newFixture(t)
	one, two := map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "3"}
	write := func(want error, changes ...Change) {
		t.Helper()
		if err := b.Put(t.Context(), project.SMS, "acme", changes...); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	check := func(what string, env project.Environment, vendor string, want map[string]string) {
		t.Helper()
		got, err := b.Writer.Fields(t.Context(), project.SMS, "acme", env, vendor)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	write(nil, Change{dev, "x", nil, one}, Change{dev, "y", nil, two})
	check("first", dev, "x", one)
	check("the other environment has no account", prod, "x", nil)
	write(nil, Change{dev, "x", one, two}, Change{prod, "x", nil, one})
	check("a removed field", dev, "x", two)
	b.expect(t, "both environments by one read", "acme", "x", two, 1)
	if got, err := b.Cache.Fields(t.Context(), project.SMS, "acme", prod, "x"); err != nil || !maps.Equal(got, one) ||
		b.reads.Load() != 1 {
		t.Errorf("both environments by one read: %v, %v, %d reads", got, err, b.reads.Load())
	}
	write(nil, Change{dev, "x", two, nil})
	check("removed", dev, "x", nil)
	check("the other stays", dev, "y", two)
	check("the other environment stays", prod, "x", one)
	for _, c := range []struct {
		before, after map[string]string // of the stored {a: 1, b: 2}
		want          map[string]string // nil: ErrChanged
	}{
		{map[string]string{"a": "0"}, map[string]string{"a": "5"}, nil},
		{nil, map[string]string{"a": "5"}, nil},
		{map[string]string{"a": "1", "c": "3"}, map[string]string{"a": "5", "c": "3"}, nil}, // c has gone
		{map[string]string{"a": "0", "b": "0"}, map[string]string{"a": "1", "b": "0"}, one}, // as another operator has done
		{map[string]string{"a": "1", "b": "0"}, map[string]string{"a": "5", "b": "0"}, map[string]string{"a": "5", "b": "2"}},
		{map[string]string{"a": "1"}, nil, map[string]string{"b": "2"}},
	} {
		b.put(t, "acme", "y", nil)
		b.put(t, "acme", "x", one)
		if c.want == nil { // and no other change of the command
			write(ErrChanged, Change{dev, "y", nil, two}, Change{dev, "x", c.before, c.after})
			check("another account", dev, "y", nil)
			c.want = one
		} else {
			write(nil, Change{dev, "x", c.before, c.after})
		}
		check(fmt.Sprint(c), dev, "x", c.want)
	}
}

// TestWritersTogether: of 32 writers, whose first writes all follow the same version, none loses a field, whatever the
// state of the secret. Of writers with random tokens all but one lose theirs
// (docs/decisions/operating.md#secret-writers).
func TestWritersTogether(t *testing.T) {
	const writers = 32
	ctx, name := t.Context(), aws.String(Name("test", project.SMS, "acme"))
	var b *fixture // of the row
	deleteSecret := func() error {
		_, err := b.client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: name})
		return err
	}
	rollBack := func() error {
		first, _, err := Next(ctx, b.client, *name)
		b.put(t, "acme", "old", map[string]string{"old": "2"})
		second, _, nextErr := Next(ctx, b.client, *name)
		_, moveErr := b.client.UpdateSecretVersionStage(ctx, &secretsmanager.UpdateSecretVersionStageInput{
			SecretId: name, VersionStage: aws.String("AWSCURRENT"), MoveToVersionId: first.VersionId,
			RemoveFromVersionId: second.VersionId,
		})
		return errors.Join(err, nextErr, moveErr)
	}
	nothing := func() error { return nil }
	for _, c := range []struct {
		name   string
		begin  func() error // after the first version of a secret; nil: there is no secret
		beside func() error // runs when all writers have read the secret
		random bool
		old    string // the account of the first version, afterwards
		want   int
	}{
		{"no secret", nil, nothing, false, "", writers},
		{"a secret", nothing, nothing, false, "1", writers},
		{"rolled back by hand", rollBack, nothing, false, "1", writers},
		{"scheduled for deletion", deleteSecret, nothing, false, "", writers},
		// a write can follow another's restoration
		{"deleted beside the writes", nothing, deleteSecret, false, "any", writers},
		{"random tokens", nothing, nothing, true, "1", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if b = newFixture(t); c.begin != nil {
				b.put(t, "acme", "old", map[string]string{"old": "1"})
				must.Succeed(t, c.begin())
			}
			var ready, wait sync.WaitGroup
			ready.Add(writers)
			beside := sync.OnceValue(c.beside)
			for n := range writers {
				first := sync.OnceValue(func() error { ready.Done(); ready.Wait(); return beside() })
				writer := NewWriter(secretsmanager.New(b.client.Options(), initialize(func(in any) error {
					switch in := in.(type) {
					case *secretsmanager.PutSecretValueInput:
						if c.random {
							in.ClientRequestToken = nil // the SDK makes one
						}
						return first()
					case *secretsmanager.CreateSecretInput, *secretsmanager.RestoreSecretInput:
						return first()
					}
					return nil
				})), "test")
				wait.Go(func() {
					own := map[string]string{fmt.Sprint("field", n): "v"}
					if err := writer.Put(ctx, project.SMS, "acme", Change{dev, "x", nil, own}); err != nil {
						t.Error(err)
					}
				})
			}
			wait.Wait()
			got, err := b.Writer.Fields(ctx, project.SMS, "acme", dev, "x")
			old, oldErr := b.Writer.Fields(ctx, project.SMS, "acme", dev, "old")
			if err = errors.Join(err, oldErr); err != nil || len(got) != c.want || c.old != "any" && old["old"] != c.old {
				t.Errorf("%d fields, want %d; the old account has %q: %v", len(got), c.want, old["old"], err)
			}
		})
	}
}

// TestWriterRefused: Put repeats a refused write a bounded number of times. The accounts of a deleted secret do not
// return with a write that succeeds, and the error names them where the write fails after the secret was restored.
func TestWriterRefused(t *testing.T) {
	name, value, ctx := Name("test", project.SMS, "acme"), aws.String(`{"development":{"old":{"a":"1"}}}`), t.Context()
	overtaken, invalid, denied := &types.ResourceExistsException{}, &types.InvalidRequestException{},
		&smithy.GenericAPIError{Code: "Denied"}
	for _, c := range []struct {
		value        *string // nil: the secret has none
		deleted      bool
		call         string
		refusal      error
		times, calls int    // how often the call is refused and made
		err          string // the begin of the error
	}{
		{nil, false, "CreateSecret", nil, 0, 1, "secret " + name + " has no current version"},
		{value, false, "PutSecretValue", overtaken, 99, 50, "write"},
		{value, true, "RestoreSecret", denied, 1, 1, "write"},
		{value, true, "PutSecretValue", denied, 1, 1, "secret " + name + " was restored"},
		{value, true, "PutSecretValue", invalid, 99, 3, "secret " + name + " was restored"},
		{value, true, "PutSecretValue", invalid, 1, 2, "<nil>"},
	} {
		b, calls := newFixture(t), 0
		_, err := b.client.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: &name, SecretString: c.value})
		if c.deleted && err == nil {
			_, err = b.client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: &name})
		}
		writer := NewWriter(secretsmanager.New(b.client.Options(), initialize(func(in any) error {
			if calls += strings.Count(fmt.Sprintf("%T", in), c.call); strings.Contains(fmt.Sprintf("%T", in), c.call) &&
				calls <= c.times {
				return c.refusal
			}
			return nil
		})), "test")
		putErr := writer.Put(ctx, project.SMS, "acme", Change{dev, "x", nil, map[string]string{"a": "2"}})
		old, oldErr := b.Writer.Fields(ctx, project.SMS, "acme", dev, "old")
		err = errors.Join(err, oldErr)
		if !strings.HasPrefix(fmt.Sprint(putErr), c.err) || calls != c.calls || putErr == nil && len(old) > 0 || err != nil {
			t.Errorf("%+v: %d calls, the old account has %v: %v, %v", c, calls, old, putErr, err)
		}
	}
}

// TestNothingShows: values appear in no error and in no text.
func TestNothingShows(t *testing.T) {
	b := newFixture(t)
	const value = "hunter2"
	v := Values{"api_key": value}
	encoded, err := json.Marshal(v)
	must.Succeed(t, err)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "fields", v)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "fields", v)
	texts := []string{string(encoded), log.String(), fmt.Sprint(map[string]any{"x": v})}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, v), fmt.Sprintf(verb, struct{ V Values }{v}))
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
		in := &secretsmanager.CreateSecretInput{Name: aws.String(Name("test", project.SMS, owner)), SecretString: &damaged}
		if _, err := b.client.CreateSecret(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		_, readErr := b.Cache.Fields(t.Context(), project.SMS, owner, dev, "v")
		putErr := b.Put(t.Context(), project.SMS, owner, Change{dev, "v", nil, map[string]string{"api_key": value}})
		for _, err := range []error{readErr, putErr} {
			if !errors.Is(err, errFormat) || strings.Contains(err.Error(), value) {
				t.Errorf("%s: %v", damaged, err)
			}
		}
	}

	b.fail.Store(new(errors.New("no response")))
	if _, err := b.Cache.Fields(t.Context(), project.SMS, "acme", dev, "v"); err == nil {
		t.Error("a failed read is no error")
	}
	b.fail.Store(nil)
	b.expect(t, "after the failure", "acme", "v", nil, 1)
}
