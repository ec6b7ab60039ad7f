package project

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/singleflight"

	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
)

// Day is the window of the daily limits. Each recipient window divides it, so that one item a day counts all windows.
const Day = 24 * time.Hour

// Store reads projects in the Projects table. The operator's command line changes them (shared/project/admin).
type Store struct {
	db    *dynamodb.Client
	table string
}

// NewStore returns a store on a table with the keys pk and sk.
func NewStore(db *dynamodb.Client, table string) *Store {
	return &Store{db: db, table: table}
}

// Load reads a project with its credentials and integrations, consistently, and returns nil where none exists.
func (s *Store) Load(ctx context.Context, projectID string) (*Record, error) {
	var items []dynamo.Item
	_, err := dynamo.Query(ctx, s.db, dynamo.Partition(s.table, projectID), func(it dynamo.Item) error {
		items = append(items, it)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("project %s: %w", projectID, err)
	}
	return Decode(items)
}

// The items of a project's partition. The partition key is the project ID, and the sort key is one of:
//
//	project
//	credential#<client ID>
//	integration#<environment>#<kind>#<vendor>
//
// The attribute v of an item holds its fields as a JSON object. The attribute version of the project's own item is
// Project.Version.
const (
	SortProject     = "project"
	SortCredential  = "credential#"
	SortIntegration = "integration#"
)

// Fields maps the members of an item's JSON object to pointers to their values.
type Fields map[string]any

// Fields returns the fields of a project's own item.
func (p *Project) Fields() Fields {
	return Fields{
		"name": &p.Name, "paused": &p.Paused, "created": &p.Created, "closed": &p.Closed, "hash_key": &p.HashKey,
		"limit_requests": &p.Limit.Requests, "limit_seconds": &p.Limit.Window, "recipient_limits": &p.Limits.Recipients,
		"daily_credits": &p.Limits.DailyCredits, "daily_units": &p.Limits.DailyUnits,
		"trial": &p.Trial, "trial_destinations": &p.TrialDestinations, "prices": &p.Prices,
	}
}

// Fields returns the fields of a credential's item.
func (c *Credential) Fields() Fields {
	return Fields{"client_id": &c.ClientID, "environment": &c.Environment, "active": &c.Active, "secrets": &c.Secrets}
}

// Fields returns the fields of an integration's item.
func (i *Integration) Fields() Fields {
	return Fields{
		"environment": &i.Environment, "kind": &i.Kind, "vendor": &i.Vendor, "mode": &i.Mode,
		"active": &i.Active, "set_aside": &i.SetAside, "priority": &i.Priority, "settings": &i.Settings,
		"updated": &i.Updated,
	}
}

// Decode returns the record that the items of a project's partition form, or nil without the project's own item.
func Decode(items []dynamo.Item) (rec *Record, err error) {
	var all Record
	for _, it := range items {
		sort := dynamo.TextOf(it["sk"])
		switch {
		case sort == SortProject:
			rec, all.ID = &all, dynamo.TextOf(it["pk"])
			if all.Version, err = dynamo.NumberOf(it["version"]); err == nil {
				err = all.Project.Fields().decode(it)
			}
		case strings.HasPrefix(sort, SortCredential):
			var c Credential
			err = c.Fields().decode(it)
			all.Credentials = append(all.Credentials, c)
		case strings.HasPrefix(sort, SortIntegration):
			var i Integration
			err = i.Fields().decode(it)
			i.ID = IntegrationID(i.Environment, i.Kind, i.Vendor)
			all.Integrations = append(all.Integrations, i)
		}
		if err != nil {
			return nil, fmt.Errorf("item %s of project %s: %w", sort, dynamo.TextOf(it["pk"]), err)
		}
	}
	return rec, nil
}

// format returns the options of the JSON objects. A duration is a number of seconds.
var format = sync.OnceValue(func() json.Options {
	return json.JoinOptions(jsontext.AllowInvalidUTF8(true),
		json.WithUnmarshalers(json.UnmarshalFunc(func(text []byte, d *time.Duration) error {
			n, err := strconv.ParseInt(string(text), 10, 64)
			*d = time.Duration(n) * time.Second
			return err
		})))
})

// decode reads all fields from an item. A missing member, and null, is an error.
func (f Fields) decode(it dynamo.Item) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal([]byte(dynamo.TextOf(it["v"])), &members); err != nil {
		return err
	}
	for name, pointer := range f {
		if members[name].Kind() == 'n' {
			return fmt.Errorf("field %s is null", name)
		}
		if err := json.Unmarshal(members[name], pointer, format()); err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
	}
	return nil
}

var (
	// ErrUnauthorized is the error for credentials that are missing, unknown, wrong, inactive or of another environment,
	// so that the caller cannot distinguish these cases (docs/decisions/requests.md#credentials).
	ErrUnauthorized = errors.New("credentials are missing, invalid, inactive or of another environment")
	// ErrWrongSecret is an active credential's ErrUnauthorized (docs/decisions/requests.md#guessing).
	ErrWrongSecret = fmt.Errorf("%w", ErrUnauthorized)
)

const (
	// maxRecords bounds the records that an instance caches.
	maxRecords = 1000
	// maxUnknown bounds the unknown client IDs that an instance caches.
	maxUnknown = 4000
	// reread is the age from which a record is read again before credentials are refused.
	reread = time.Second
	// readTimeout bounds a read that several requests may wait for.
	readTimeout = 5 * time.Second
)

// Cache finds the project of a request in cached records. Several goroutines may use a Cache.
type Cache struct {
	store *Store
	ttl   time.Duration
	clock cache.Clock

	flights singleflight.Group

	records *cache.Map[string, readRecord]
	unknown *cache.Map[string, time.Time] // when the read began that proved it
}

// readRecord is a record with the time at which its read began; rec is nil where no such project exists.
type readRecord struct {
	rec *Record
	at  time.Time
}

// NewCache returns a cache that uses a record for ttl after the read. A change of a project takes effect within ttl, a
// new credential or secret within about a second (docs/decisions/requests.md#project-records).
func NewCache(store *Store, ttl time.Duration) *Cache {
	return &Cache{
		store:   store,
		ttl:     ttl,
		records: cache.New[string, readRecord](maxRecords),
		unknown: cache.New[string, time.Time](maxUnknown),
	}
}

// Authenticate finds the project and environment of a request from its headers: X-API-KEY, X-API-SECRET and X-ENV as
// the client sent them. Authenticate returns ErrUnauthorized, ErrWrongSecret or the failure of a read. Callers share
// the record and do not change it.
//
// Before a refusal Authenticate reads a record older than a second again, so that a new secret works within about a
// second. A text that cannot be a client ID costs no read, and an unknown client ID at most one while it is cached.
func (c *Cache) Authenticate(ctx context.Context, clientID, secret, env string) (*Record, Environment, error) {
	environment, ok := ParseEnvironment(env)
	if !ok || secret == "" {
		return nil, "", ErrUnauthorized
	}
	projectID, ok := ParseClientID(clientID)
	unknown, known := c.unknown.Get(clientID)
	if !ok || known && c.clock.Fresh(unknown, c.ttl) {
		return nil, "", ErrUnauthorized
	}
	digest, arrived := DigestSecret(secret), c.clock.Now()

	maxAge := c.ttl
	read, found := c.cached(projectID, maxAge)
	if found {
		if read.rec.authenticates(clientID, digest, environment) {
			return read.rec, environment, nil
		}
		maxAge = reread
	}
	if !c.clock.Fresh(read.at, maxAge) {
		var err error
		if read, err = c.read(ctx, projectID, maxAge); err != nil {
			return nil, "", err
		}
		if read.rec.authenticates(clientID, digest, environment) {
			return read.rec, environment, nil
		}
	}
	// Only a read that began after the request arrived proves that the client ID is unknown.
	if !read.at.Before(arrived) && (read.rec == nil || read.rec.Credential(clientID) == nil) {
		c.unknown.Put(clientID, read.at)
	}
	return nil, "", read.rec.refusal(clientID, digest)
}

// refusal returns the error for credentials that do not authenticate.
func (r *Record) refusal(clientID string, digest [32]byte) error {
	if r != nil {
		if c := r.Credential(clientID); c != nil && c.Active && !c.accepts(digest) {
			return ErrWrongSecret
		}
	}
	return ErrUnauthorized
}

// authenticates reports whether these are live credentials of the environment. Unknown ones take the same time.
func (r *Record) authenticates(clientID string, digest [32]byte, env Environment) bool {
	c := &Credential{Secrets: make([]SecretDigest, 1)}
	if r != nil {
		if known := r.Credential(clientID); known != nil {
			c = known
		}
	}
	matches := c.accepts(digest)
	return matches && c.Active && c.Environment == env
}

// cached returns the record of a project when the cache has one younger than maxAge.
func (c *Cache) cached(projectID string, maxAge time.Duration) (read readRecord, found bool) {
	read, _ = c.records.Get(projectID)
	return read, c.clock.Fresh(read.at, maxAge)
}

// read reads a project, once for all requests whose record is as old as maxAge, also those that give up.
func (c *Cache) read(ctx context.Context, projectID string, maxAge time.Duration) (readRecord, error) {
	flight := c.flights.DoChan(projectID, func() (any, error) {
		// The read of another request may have ended since this request looked.
		if read, found := c.cached(projectID, maxAge); found {
			return read, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		read := readRecord{at: c.clock.Now()}
		var err error
		if read.rec, err = c.store.Load(ctx, projectID); err != nil {
			return nil, err
		}
		if read.rec != nil && !read.rec.Closed.IsZero() {
			read.rec = nil // so that its credentials are unknown
		}
		if read.rec == nil {
			c.records.DeleteFunc(projectID, func(readRecord) bool { return true })
		} else {
			c.records.Put(projectID, read)
		}
		return read, nil
	})
	select {
	case done := <-flight:
		read, _ := done.Val.(readRecord)
		return read, done.Err
	case <-ctx.Done():
		return readRecord{}, ctx.Err()
	}
}
