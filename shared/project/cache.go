package project

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"

	"svcapi/shared/bounded"
	"svcapi/shared/clock"
)

// ErrUnauthorized is the one answer to credentials that are missing, unknown,
// wrong, inactive or of another environment: the caller cannot tell which.
var ErrUnauthorized = errors.New("credentials are missing, invalid, inactive or of another environment")

const (
	// maxRecords bounds the projects that an instance remembers.
	maxRecords = 1000
	// maxUnknown bounds the client IDs that an instance remembers as unknown.
	maxUnknown = 4000
	// reread is the age from which a record is read again before credentials are refused by it.
	reread = time.Second
	// readTimeout bounds a read that several requests may wait for.
	readTimeout = 5 * time.Second
)

// Cache tells which project a request belongs to, from records that it keeps
// for a while. It may be used by several goroutines.
type Cache struct {
	store *Store
	ttl   time.Duration
	clock clock.Clock

	flights singleflight.Group

	records *bounded.Map[string, readRecord]
	unknown *bounded.Map[string, time.Time] // when the read began that proved it
}

// readRecord is a record with the time at which its read began; rec is nil where no such project exists.
type readRecord struct {
	rec *Record
	at  time.Time
}

// NewCache makes a cache that uses a record for ttl after it was read. A change
// of a project takes effect within ttl; a new credential or secret within about
// a second, as a record that has just been read is not read again.
func NewCache(store *Store, ttl time.Duration) *Cache {
	return &Cache{
		store:   store,
		ttl:     ttl,
		records: bounded.New[string, readRecord](maxRecords),
		unknown: bounded.New[string, time.Time](maxUnknown),
	}
}

// Authenticate finds the project and environment of a request from its headers:
// X-API-KEY, X-API-SECRET and X-ENV as they came. The error is ErrUnauthorized
// or the failure of a read. The record is shared and not to be changed.
//
// Before it refuses, it reads a record older than a second once more, so that a
// new secret works within about a second. What cannot be a client ID is refused without a
// read, an unknown client ID costs at most one read while it is remembered.
func (c *Cache) Authenticate(ctx context.Context, clientID, secret, env string) (*Record, Environment, error) {
	environment, ok := ParseEnvironment(env)
	if !ok || secret == "" {
		return nil, "", ErrUnauthorized
	}
	projectID, ok := ParseClientID(clientID)
	if !ok || c.isUnknown(clientID) {
		return nil, "", ErrUnauthorized
	}
	digest, arrived := DigestSecret(secret), c.clock.Now()

	rec, at, held := c.held(projectID, c.ttl)
	if !held {
		var err error
		if rec, at, err = c.read(ctx, projectID, c.ttl); err != nil {
			return nil, "", err
		}
	}
	if rec.admits(clientID, digest, environment) {
		return rec, environment, nil
	}
	if held && c.clock.Now().Sub(at) >= reread {
		var err error
		if rec, at, err = c.read(ctx, projectID, reread); err != nil {
			return nil, "", err
		}
		if rec.admits(clientID, digest, environment) {
			return rec, environment, nil
		}
	}
	// Only a read that began after the request came proves that the client ID is unknown.
	if !at.Before(arrived) && (rec == nil || rec.Credential(clientID) == nil) {
		c.unknown.Put(clientID, at)
	}
	return nil, "", ErrUnauthorized
}

// admits tells whether these are live credentials of the environment. It
// compares with something also where there is nothing to compare with.
func (r *Record) admits(clientID string, digest [32]byte, env Environment) bool {
	c := &Credential{Secrets: make([]SecretDigest, 1)}
	if r != nil {
		if known := r.Credential(clientID); known != nil {
			c = known
		}
	}
	matches := c.accepts(digest)
	return matches && c.Active && c.Environment == env
}

func (c *Cache) isUnknown(clientID string) bool {
	at, ok := c.unknown.Get(clientID)
	return ok && c.clock.Now().Sub(at) < c.ttl
}

// held gives the record of a project when one younger than maxAge is held.
func (c *Cache) held(projectID string, maxAge time.Duration) (rec *Record, at time.Time, held bool) {
	read, ok := c.records.Get(projectID)
	return read.rec, read.at, ok && c.clock.Now().Sub(read.at) < maxAge
}

// read reads a project, once for all who find their record as old as maxAge. A
// waiting request may give up; the read goes on for the others.
func (c *Cache) read(ctx context.Context, projectID string, maxAge time.Duration) (*Record, time.Time, error) {
	flight := c.flights.DoChan(projectID, func() (any, error) {
		// Somebody else's flight may have landed since this request looked.
		if rec, at, held := c.held(projectID, maxAge); held {
			return readRecord{rec, at}, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		at := c.clock.Now()
		rec, err := c.store.Load(ctx, projectID)
		if err != nil {
			return nil, err
		}
		if rec == nil {
			c.records.DeleteFunc(projectID, func(readRecord) bool { return true })
		} else {
			c.records.Put(projectID, readRecord{rec, at})
		}
		return readRecord{rec, at}, nil
	})
	select {
	case done := <-flight:
		if done.Err != nil {
			return nil, time.Time{}, done.Err
		}
		r := done.Val.(readRecord)
		return r.rec, r.at, nil
	case <-ctx.Done():
		return nil, time.Time{}, ctx.Err()
	}
}
