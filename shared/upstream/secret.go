package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go"

	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
)

// ManagedOwner is the owner of the service's own vendor accounts; any other owner is a project ID.
const ManagedOwner = "managed"

// Owner returns the owner of the account that an integration uses.
func Owner(mode project.Mode, projectID string) string {
	if mode == project.Managed {
		return ManagedOwner
	}
	return projectID
}

// SecretName returns the name of a secret: svc/<stage>/<kind>/<owner>/accounts.
func SecretName(stage string, kind project.Kind, owner string) string {
	return strings.Join([]string{"svc", stage, string(kind), owner, "accounts"}, "/")
}

// SecretValues are the secret fields of a vendor account by name, read-only. Printed, logged or encoded, they show
// names.
type SecretValues map[string]string

// Names returns the sorted names of the fields.
func (v SecretValues) Names() []string { return slices.Sorted(maps.Keys(v)) }

// Format prints the names for every verb, and in texts of package slog.
func (v SecretValues) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, v.Names()) }

// MarshalJSON encodes only the names.
func (v SecretValues) MarshalJSON() ([]byte, error) { return json.Marshal(v.Names()) }

// SecretAccounts is the value of a secret: the fields by environment and vendor.
type SecretAccounts map[project.Environment]map[string]map[string]string

// errFormat has no cause, because an error of the decoder may contain a piece of the value.
var errFormat = errors.New("the value is not a JSON object {environment: {vendor: {field: value}}}")

// ReadSecret reads a version of a secret, nil for the current one. ReadSecret returns an empty value for a secret that
// does not exist or is scheduled for deletion.
func ReadSecret(ctx context.Context, client *secretsmanager.Client, name string,
	version *string) (value SecretAccounts, found SecretState, err error) {
	out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name, VersionId: version})
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return nil, SecretAbsent, nil
	}
	if _, scheduled := errors.AsType[*types.InvalidRequestException](err); scheduled {
		return nil, SecretDeleted, nil
	}
	if err != nil {
		return nil, SecretAbsent, fmt.Errorf("read secret %s: %w", name, err)
	}
	if json.Unmarshal([]byte(aws.ToString(out.SecretString)), &value) != nil {
		return nil, SecretPresent, fmt.Errorf("secret %s: %w", name, errFormat)
	}
	return value, SecretPresent, nil
}

// SecretState is the state of a secret in Secrets Manager.
type SecretState int

// The states of a secret.
const (
	SecretAbsent  SecretState = iota
	SecretDeleted             // scheduled for deletion: svc can restore the secret, and no program can read it
	SecretPresent
)

// NewSecretsClient returns a client for Secrets Manager, which responds more slowly than DynamoDB.
func NewSecretsClient(cfg aws.Config, options ...func(*secretsmanager.Options)) *secretsmanager.Client {
	return secretsmanager.NewFromConfig(cfg, append([]func(*secretsmanager.Options){func(o *secretsmanager.Options) {
		o.HTTPClient = dynamo.HTTPClient(2 * dynamo.AttemptTimeout)
		o.Retryer = dynamo.Retryer(dynamo.Backoff)
		o.RetryMaxAttempts = dynamo.Attempts
	}}, options...)...)
}

// SecretConfig is read once from the environment.
type SecretConfig struct {
	// CacheSeconds is the life of a secret in the instance's cache.
	CacheSeconds int `env:"SECRET_CACHE_SECONDS" envDefault:"300"`
	// StaleSeconds is how much longer the cache serves a secret while Secrets Manager does not respond.
	StaleSeconds int `env:"SECRET_STALE_SECONDS" envDefault:"3600"`
}

// Validate returns the reasons why the configuration is not valid.
func (c SecretConfig) Validate() error {
	return errors.Join(settings.InRange("SECRET_CACHE_SECONDS", c.CacheSeconds, 0, 3600),
		settings.InRange("SECRET_STALE_SECONDS", c.StaleSeconds, 0, 86_400))
}

const (
	maxSecrets   = 1000             // in the cache of an instance
	absentFor    = 10 * time.Second // the life of an absent account in the cache
	retryAfter   = 10 * time.Second // the shortest time between two reads that fail while a stale secret is served
	staleTimeout = 2 * time.Second  // of such a read, which other requests wait for
	refreshEvery = time.Minute      // the shortest time between two reads after refusals of a vendor
)

// SecretCache reads and caches the secrets of accounts. A SecretCache is safe for concurrent use; one goroutine at a
// time reads a secret.
type SecretCache struct {
	client *secretsmanager.Client
	stage  string
	ttl    time.Duration
	stale  time.Duration // after ttl
	log    *telemetry.Logger
	clock  cache.Clock
	byName *cache.Map[string, *cachedSecret]
}

// cachedSecret is one secret of the cache. The lock guards the other fields.
type cachedSecret struct {
	locked    chan struct{}
	value     SecretAccounts
	readAt    time.Time
	refreshed time.Time // the last read after a refusal
	failedAt  time.Time // the last failed read while a stale value is served
}

// NewSecretCache returns a cache of a stage's secrets that logs failed reads while it serves stale secrets.
func NewSecretCache(client *secretsmanager.Client, stage string, cfg SecretConfig, log *telemetry.Logger) *SecretCache {
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	return &SecretCache{
		client: client, stage: stage, ttl: seconds(cfg.CacheSeconds), stale: seconds(cfg.StaleSeconds), log: log,
		byName: cache.New[string, *cachedSecret](maxSecrets),
	}
}

// Fields returns the secret fields of a vendor account, and empty values for an absent account. Fields looks for an
// absent account again after absentFor, because an operator may add the account while another environment's account is
// cached.
func (c *SecretCache) Fields(ctx context.Context, kind project.Kind, owner string, env project.Environment,
	vendor string) (SecretValues, error) {
	name := SecretName(c.stage, kind, owner)
	e, err := c.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer e.unlock()
	life := c.ttl
	if len(e.value[env][vendor]) == 0 {
		life = min(life, absentFor)
	}
	if !c.clock.Fresh(e.readAt, life) {
		if err := c.renew(ctx, name, e, life == c.ttl); err != nil {
			return nil, err
		}
	}
	return SecretValues(e.value[env][vendor]), nil
}

// renew reads a secret whose life has ended. Where Secrets Manager does not respond and the account is known, renew
// leaves the stale value in place for a bounded time, counts the metric StaleSecrets, and reads no sooner again than
// after retryAfter (docs/decisions/operating.md#vendor-secrets).
func (c *SecretCache) renew(ctx context.Context, name string, e *cachedSecret, known bool) error {
	if !known || !c.clock.Fresh(e.readAt, c.ttl+c.stale) {
		return c.read(ctx, name, e)
	}
	if c.clock.Fresh(e.failedAt, retryAfter) {
		return nil
	}
	now := c.clock.Now()
	short, cancel := context.WithTimeout(ctx, staleTimeout)
	defer cancel()
	err := c.read(short, name, e)
	response, named := errors.AsType[smithy.APIError](err)
	refused := named && (response.ErrorFault() == smithy.FaultClient || response.ErrorCode() == "AccessDeniedException")
	if err == nil || refused || errors.Is(err, errFormat) {
		return err
	}
	e.failedAt = now
	c.log.Emit(ctx, telemetry.Event{
		Level: slog.LevelWarn, Message: "secret is stale",
		Metrics:    []telemetry.Metric{{Name: "StaleSecrets", Unit: telemetry.Count, Value: 1}},
		Attributes: []slog.Attr{slog.String("secret", name), slog.String("error", err.Error())},
	})
	return nil
}

// Refresh returns the current fields after a vendor has refused fields. Refresh reports whether the fields have
// changed, as after a rotation, so that the caller can repeat the call. Refresh reads a secret at most once a minute.
func (c *SecretCache) Refresh(ctx context.Context, kind project.Kind, owner string,
	env project.Environment, vendor string,
	refused map[string]string) (fields SecretValues, changed bool, err error) {
	name := SecretName(c.stage, kind, owner)
	e, err := c.lock(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer e.unlock()
	same := func() bool { return maps.Equal(e.value[env][vendor], refused) }
	if same() && !c.clock.Fresh(e.refreshed, refreshEvery) {
		e.refreshed = c.clock.Now()
		if err := c.read(ctx, name, e); err != nil {
			return nil, false, err
		}
	}
	return SecretValues(e.value[env][vendor]), !same() && len(e.value[env][vendor]) > 0, nil
}

func (c *SecretCache) read(ctx context.Context, name string, e *cachedSecret) error {
	at := c.clock.Now()
	value, _, err := ReadSecret(ctx, c.client, name, nil)
	if err != nil {
		return err
	}
	e.value, e.readAt = value, at
	return nil
}

func (c *SecretCache) lock(ctx context.Context, name string) (*cachedSecret, error) {
	e := c.byName.GetOrPut(name, &cachedSecret{locked: make(chan struct{}, 1)})
	select {
	case e.locked <- struct{}{}:
		return e, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *cachedSecret) unlock() { <-e.locked }
