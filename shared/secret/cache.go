package secret

import (
	"context"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"svcapi/shared/cache"
	"svcapi/shared/project"
)

const (
	maxSecrets   = 1000             // in the cache of an instance
	absentFor    = 10 * time.Second // the life of an absent account in the cache
	refreshEvery = time.Minute      // the shortest time between two reads after refusals of a vendor
)

// Cache reads and caches secrets. A Cache is safe for concurrent use; one goroutine at a time reads a secret.
type Cache struct {
	client *secretsmanager.Client
	stage  string
	ttl    time.Duration
	clock  cache.Clock
	byName *cache.Map[string, *entry]
}

// entry is one cached secret. The lock guards the other fields.
type entry struct {
	locked    chan struct{}
	value     accounts
	readAt    time.Time
	refreshed time.Time // the last read after a refusal
}

// New returns a cache of a stage's secrets that uses a secret for ttl after its read.
func New(client *secretsmanager.Client, stage string, ttl time.Duration) *Cache {
	return &Cache{client: client, stage: stage, ttl: ttl, byName: cache.New[string, *entry](maxSecrets)}
}

// Fields returns the secret fields of a vendor account, and empty values for an absent account. Fields looks for an absent
// account again after absentFor, because an operator may add the account while another environment's account is cached.
func (c *Cache) Fields(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string) (Values, error) {
	name := Name(c.stage, kind, owner)
	e, err := c.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer e.unlock()
	life := c.ttl
	if len(e.value[env][vendor]) == 0 {
		life = min(life, absentFor)
	}
	if !c.clock.Now().Before(e.readAt.Add(life)) {
		if err := c.read(ctx, name, e); err != nil {
			return nil, err
		}
	}
	return Values(e.value[env][vendor]), nil
}

// Refresh returns the current fields after a vendor has refused fields. Refresh reports whether the fields have changed, as
// after a rotation, so that the caller can repeat the call. Refresh reads a secret at most once a minute.
func (c *Cache) Refresh(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string, refused map[string]string) (fields Values, changed bool, err error) {
	name := Name(c.stage, kind, owner)
	e, err := c.lock(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer e.unlock()
	same := func() bool { return maps.Equal(e.value[env][vendor], refused) }
	if same() && c.clock.Now().Sub(e.refreshed) >= refreshEvery {
		e.refreshed = c.clock.Now()
		if err := c.read(ctx, name, e); err != nil {
			return nil, false, err
		}
	}
	return Values(e.value[env][vendor]), !same() && len(e.value[env][vendor]) > 0, nil
}

func (c *Cache) read(ctx context.Context, name string, e *entry) error {
	at := c.clock.Now()
	value, _, err := read(ctx, c.client, name)
	if err != nil {
		return err
	}
	e.value, e.readAt = value, at
	return nil
}

// lock waits for the lock of a secret.
func (c *Cache) lock(ctx context.Context, name string) (*entry, error) {
	e := c.byName.GetOrPut(name, &entry{locked: make(chan struct{}, 1)})
	select {
	case e.locked <- struct{}{}:
		return e, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *entry) unlock() { <-e.locked }
