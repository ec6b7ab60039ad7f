package secret

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go"

	"svcapi/shared/project"
	"svcapi/shared/upstream"
	"svcapi/test/must"
	"svcapi/test/secretstest"
)

const (
	dev  = project.Development
	prod = project.Production
)

// fixture is a writer on an endpoint of its own.
type fixture struct {
	*Writer
	client *secretsmanager.Client
}

func newFixture(t *testing.T) *fixture {
	client := secretsmanager.New(secretstest.Start(t))
	return &fixture{Writer: NewWriter(client, "test"), client: client}
}

// put stores the fields of an account in place of all others, no fields to remove the account.
func (b *fixture) put(t *testing.T, owner, vendor string, fields map[string]string) {
	t.Helper()
	before := must.Get(b.Fields(t.Context(), project.SMS, owner, dev, vendor)).Or(t)
	must.Succeed(t, b.Put(t.Context(), project.SMS, owner, Change{dev, vendor, before, fields}))
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
		got, err := b.Fields(t.Context(), project.SMS, "acme", env, vendor)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	write(nil, Change{dev, "x", nil, one}, Change{dev, "y", nil, two})
	check("first", dev, "x", one)
	check("the other environment has no account", prod, "x", nil)
	write(nil, Change{dev, "x", one, two}, Change{prod, "x", nil, one})
	check("a removed field", dev, "x", two)
	check("both environments", prod, "x", one)
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
	ctx, name := t.Context(), new(upstream.SecretName("test", project.SMS, "acme"))
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
			SecretId: name, VersionStage: new("AWSCURRENT"), MoveToVersionId: first.VersionId,
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
				writer := NewWriter(secretsmanager.New(b.client.Options(), secretstest.Before(func(in any) error {
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
			got, err := b.Fields(ctx, project.SMS, "acme", dev, "x")
			old, oldErr := b.Fields(ctx, project.SMS, "acme", dev, "old")
			if err = errors.Join(err, oldErr); err != nil || len(got) != c.want || c.old != "any" && old["old"] != c.old {
				t.Errorf("%d fields, want %d; the old account has %q: %v", len(got), c.want, old["old"], err)
			}
		})
	}
}

// TestWriterRefused: Put repeats a refused write a bounded number of times. The accounts of a deleted secret do not
// return with a write that succeeds, and the error names them where the write fails after the secret was restored.
func TestWriterRefused(t *testing.T) {
	name, value, ctx := upstream.SecretName("test", project.SMS, "acme"), new(`{"development":{"old":{"a":"1"}}}`),
		t.Context()
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
		writer := NewWriter(secretsmanager.New(b.client.Options(), secretstest.Before(func(in any) error {
			if calls += strings.Count(fmt.Sprintf("%T", in), c.call); strings.Contains(fmt.Sprintf("%T", in), c.call) &&
				calls <= c.times {
				return c.refusal
			}
			return nil
		})), "test")
		putErr := writer.Put(ctx, project.SMS, "acme", Change{dev, "x", nil, map[string]string{"a": "2"}})
		old, oldErr := b.Fields(ctx, project.SMS, "acme", dev, "old")
		err = errors.Join(err, oldErr)
		if !strings.HasPrefix(fmt.Sprint(putErr), c.err) || calls != c.calls || putErr == nil && len(old) > 0 || err != nil {
			t.Errorf("%+v: %d calls, the old account has %v: %v, %v", c, calls, old, putErr, err)
		}
	}
}

// TestDamaged checks that Put changes no secret that is not of its form, and shows nothing of the value.
func TestDamaged(t *testing.T) {
	b := newFixture(t)
	in := &secretsmanager.CreateSecretInput{
		Name:         new(upstream.SecretName("test", project.SMS, "acme")),
		SecretString: new(`{"v":{"api_key":"hunter2"}}`),
	}
	must.Get(b.client.CreateSecret(t.Context(), in)).Or(t)
	err := b.Put(t.Context(), project.SMS, "acme", Change{dev, "v", nil, map[string]string{"api_key": "hunter2"}})
	if err == nil || !strings.Contains(err.Error(), "not a JSON object") || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}
