package secret

import (
	"context"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"svcapi/shared/bounded"
	"svcapi/shared/clock"
	"svcapi/shared/project"
)

const (
	// maxSecrets bounds the secrets that an instance remembers.
	maxSecrets = 1000
	// absentFor is how long a secret that is not there is not looked for again.
	absentFor = 10 * time.Second
	// refreshEvery is the least time between two reads because a vendor refused the secret.
	refreshEvery = time.Minute
)

// Cache reads secrets and keeps them for a while. It may be used by several
// goroutines; a secret is read by one of them at a time.
type Cache struct {
	client *secretsmanager.Client
	stage  string
	ttl    time.Duration
	clock  clock.Clock
	kept   *bounded.Map[string, *entry]
}

// entry is one remembered secret. The rest belongs to whoever holds its turn.
type entry struct {
	turn      chan struct{}
	value     accounts
	good      time.Time // until when the value is used
	refreshed time.Time // when it was last read because it was refused
}

// New makes a cache of a stage's secrets that uses each for ttl after it was read.
func New(client *secretsmanager.Client, stage string, ttl time.Duration) *Cache {
	return &Cache{client: client, stage: stage, ttl: ttl, kept: bounded.New[string, *entry](maxSecrets)}
}

// Fields gives the secret fields of a vendor account. They are empty, without
// an error, when there is no such secret or nothing of this vendor in it.
func (c *Cache) Fields(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string) (Values, error) {
	name := Name(c.stage, kind, owner, env)
	e, err := c.take(ctx, name)
	if err != nil {
		return nil, err
	}
	defer e.release()
	if !c.clock.Now().Before(e.good) {
		if err := c.read(ctx, name, e); err != nil {
			return nil, err
		}
	}
	return Values(e.value[vendor]), nil
}

// Refresh is for fields that a vendor refused: it looks whether there are others
// by now, which is a rotation. Changed tells that the fields differ from the
// refused ones and are worth another try. The secret is read for this at most
// once a minute.
func (c *Cache) Refresh(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string, refused map[string]string) (fields Values, changed bool, err error) {
	name := Name(c.stage, kind, owner, env)
	e, err := c.take(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer e.release()
	same := func() bool { return maps.Equal(e.value[vendor], refused) }
	if same() && c.clock.Now().Sub(e.refreshed) >= refreshEvery {
		e.refreshed = c.clock.Now()
		if err := c.read(ctx, name, e); err != nil {
			return nil, false, err
		}
	}
	return Values(e.value[vendor]), !same() && len(e.value[vendor]) > 0, nil
}

func (c *Cache) read(ctx context.Context, name string, e *entry) error {
	at := c.clock.Now()
	value, found, err := read(ctx, c.client, name)
	if err != nil {
		return err
	}
	life := c.ttl
	if found != present {
		life = min(life, absentFor)
	}
	e.value, e.good = value, at.Add(life)
	return nil
}

// take waits for the turn at a secret.
func (c *Cache) take(ctx context.Context, name string) (*entry, error) {
	e := c.kept.GetOrPut(name, &entry{turn: make(chan struct{}, 1)})
	select {
	case e.turn <- struct{}{}:
		return e, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *entry) release() { <-e.turn }
