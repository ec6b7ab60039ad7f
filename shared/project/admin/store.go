// Package admin changes the projects in the Projects table, as operators do; no Lambda function does.
package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

// The reasons to refuse a change, which errors of a Store wrap.
var (
	ErrNotFound   = errors.New("not found")
	ErrExists     = errors.New("exists already")
	ErrInvalid    = errors.New("not valid")
	ErrMixedModes = errors.New("the active integrations of one kind and environment share one mode")
	ErrBusy       = errors.New("another operator is changing the project")
	ErrRotating   = errors.New("a rotation is open")
	ErrClosed     = errors.New("the project is closed")
)

// maxLive is the largest number of live secrets of a credential: two, during a rotation.
const maxLive = 2

// Store reads and changes projects in the Projects table.
type Store struct {
	*project.Store

	db    *dynamodb.Client
	table string
}

// NewStore returns a store on a table with the keys pk and sk.
func NewStore(db *dynamodb.Client, table string) *Store {
	return &Store{project.NewStore(db, table), db, table}
}

// ListProjects scans the table and returns every project, without credentials and integrations, by ID.
func (s *Store) ListProjects(ctx context.Context) ([]project.Project, error) {
	var projects []project.Project
	err := dynamo.Scan(ctx, s.db, &dynamodb.ScanInput{
		TableName:                 &s.table,
		FilterExpression:          new("sk = :project"),
		ExpressionAttributeValues: item{":project": dynamo.Text(project.SortProject)},
	}, func(it item) error {
		rec, err := project.Decode([]item{it})
		if err == nil {
			projects = append(projects, rec.Project)
		}
		return err
	})
	slices.SortFunc(projects, func(a, b project.Project) int { return cmp.Compare(a.ID, b.ID) })
	return projects, err
}

// CreateProject stores a new project with its integrations and the current time, and with a random ID where the ID is
// empty. CreateProject returns the stored project. The caller validates the vendors' settings.
func (s *Store) CreateProject(ctx context.Context, p project.Project,
	integrations ...project.Integration) (project.Project, error) {
	p.ID = cmp.Or(p.ID, NewID())
	if !project.ValidID(p.ID) {
		return project.Project{}, fmt.Errorf("project ID %q (3 to 32 of a-z, 0-9 and -, not %s): %w", p.ID,
			strings.Join(project.Reserved(), ", "), ErrInvalid)
	}
	p.Created = now()
	p.Version = 1
	p.HashKey = make([]byte, hashKeySize)
	rand.Read(p.HashKey) // documented never to fail
	p, err := validated(p)
	if err != nil {
		return project.Project{}, err
	}
	items, err := put(&project.Record{Project: p}, integrations)
	if err != nil {
		return project.Project{}, err
	}
	err = s.transact(ctx, s.puts(types.Put{
		Item:                projectItem(&p),
		ConditionExpression: new("attribute_not_exists(pk)"),
	}, items...))
	if overtaken(err) {
		return project.Project{}, fmt.Errorf("project %s: %w", p.ID, ErrExists)
	}
	if err != nil {
		return project.Project{}, fmt.Errorf("create project %s: %w", p.ID, err)
	}
	return p, nil
}

// Update changes the name, the pause, the limits or the trial of a project that is not closed, and returns the project.
func (s *Store) Update(ctx context.Context, projectID string,
	edit func(*project.Project)) (changed project.Project, err error) {
	err = s.change(ctx, projectID, func(rec *project.Record) ([]item, error) {
		edit(&rec.Project)
		changed, err = validated(rec.Project)
		rec.Project = changed
		return nil, err
	})
	return changed, err
}

// Reprice changes a project's own prices and puts the entry that edit returns for the change, both or neither.
func (s *Store) Reprice(ctx context.Context, projectID string,
	edit func(*project.Project) (*types.Put, error)) error {
	var entry *types.Put
	return s.change(ctx, projectID, func(rec *project.Record) (items []item, err error) {
		if entry, err = edit(&rec.Project); err == nil {
			rec.Project, err = validated(rec.Project)
		}
		return nil, err
	}, func() *types.Put { return entry })
}

// AddCredential stores credentials, all or none, usually those of NewCredential.
func (s *Store) AddCredential(ctx context.Context, projectID string, credentials ...project.Credential) error {
	return s.change(ctx, projectID, func(rec *project.Record) (items []item, err error) {
		for _, c := range credentials {
			if owner, ok := project.ParseClientID(c.ClientID); !ok || owner != projectID {
				return nil, fmt.Errorf("client ID %s: %w for project %s", c.ClientID, ErrInvalid, projectID)
			}
			if !slices.Contains(Environments(), c.Environment) {
				return nil, fmt.Errorf("environment %q: %w", c.Environment, ErrInvalid)
			}
			if n := len(c.Secrets); n == 0 || n > maxLive {
				return nil, fmt.Errorf("%d live secrets: %w", n, ErrInvalid)
			}
			if rec.Credential(c.ClientID) != nil {
				return nil, fmt.Errorf("credential %s: %w", c.ClientID, ErrExists)
			}
			items = append(items, credentialItem(projectID, &c))
		}
		return items, nil
	})
}

// NewCredential returns a credential for AddCredential, and its secret, which is not stored and cannot be shown again.
func NewCredential(projectID string, env project.Environment) (c project.Credential, secret string) {
	secret = newSecret()
	digests := []project.SecretDigest{{Digest: project.DigestSecret(secret), Created: now()}}
	return project.Credential{ClientID: newClientID(projectID), Environment: env, Active: true, Secrets: digests}, secret
}

// IssueCredential creates and stores a credential.
func (s *Store) IssueCredential(ctx context.Context, projectID string,
	env project.Environment) (clientID, secret string, err error) {
	c, secret := NewCredential(projectID, env)
	return c.ClientID, secret, s.AddCredential(ctx, projectID, c)
}

// RotateCredential adds a second live secret to a credential and returns that secret. RotateCredential returns
// ErrRotating for a credential with two live secrets, because the client may use the older one; with replace, the new
// secret takes the place of the newer of the two.
func (s *Store) RotateCredential(ctx context.Context, clientID string, replace bool) (secret string, err error) {
	secret = newSecret()
	added := project.SecretDigest{Digest: project.DigestSecret(secret), Created: now()}
	err = s.changeCredential(ctx, clientID, func(c *project.Credential) error {
		if !c.Active {
			return fmt.Errorf("credential %s is revoked: %w", clientID, ErrInvalid)
		}
		if n := len(c.Secrets); n == maxLive {
			if !replace {
				return fmt.Errorf("credential %s has %d live secrets: %w", clientID, n, ErrRotating)
			}
			c.Secrets = c.Secrets[:n-1]
		}
		c.Secrets = append(slices.Clone(c.Secrets), added)
		return nil
	})
	return secret, err
}

// FinishRotation ends all live secrets of a credential but the newest.
func (s *Store) FinishRotation(ctx context.Context, clientID string) error {
	return s.changeCredential(ctx, clientID, func(c *project.Credential) error {
		c.Secrets = slices.Clone(c.Secrets[max(0, len(c.Secrets)-1):])
		return nil
	})
}

// RevokeCredential ends a credential for good, with its secrets.
func (s *Store) RevokeCredential(ctx context.Context, clientID string) error {
	return s.changeCredential(ctx, clientID, func(c *project.Credential) error {
		c.Active, c.Secrets = false, nil
		return nil
	})
}

// PutIntegration stores or replaces complete integrations, all or none. The caller validates the vendors' settings.
func (s *Store) PutIntegration(ctx context.Context, projectID string, integrations ...project.Integration) error {
	return s.EditIntegrations(ctx, projectID,
		func(*project.Record) ([]project.Integration, error) { return integrations, nil })
}

// EditIntegrations stores or replaces the integrations that edit returns for the project's record, all or none. Where
// another change of the project comes first, EditIntegrations calls edit again with the new record.
func (s *Store) EditIntegrations(ctx context.Context, projectID string,
	edit func(*project.Record) ([]project.Integration, error)) error {
	return s.change(ctx, projectID, func(rec *project.Record) ([]item, error) {
		integrations, err := edit(rec)
		if err != nil {
			return nil, err
		}
		return put(rec, integrations)
	})
}

// ValidateIntegrations returns the reason why PutIntegration would refuse the integrations.
func ValidateIntegrations(r *project.Record, integrations ...project.Integration) error {
	if err := RefuseClosed(&r.Project); err != nil {
		return err
	}
	c := project.Record{Project: r.Project, Integrations: slices.Clone(r.Integrations)}
	_, err := put(&c, integrations)
	return err
}

// put validates integrations, stores them in the record with the current time, and returns their items. Of two
// integrations with one ID the second is stored.
func put(r *project.Record, integrations []project.Integration) ([]item, error) {
	items := map[string]item{}
	for _, i := range integrations {
		i.ID = project.IntegrationID(i.Environment, i.Kind, i.Vendor)
		i.Updated = now()
		i.Settings = maps.Clone(i.Settings)
		if err := validateIntegration(&i); err != nil {
			return nil, err
		}
		if err := validateModes(r, &i); err != nil {
			return nil, err
		}
		r.Integrations = slices.DeleteFunc(r.Integrations, func(other project.Integration) bool { return other.ID == i.ID })
		r.Integrations = append(r.Integrations, i)
		items[i.ID] = integrationItem(r.ID, &i)
	}
	return slices.Collect(maps.Values(items)), nil
}

// validateModes refuses active integrations of different modes (docs/decisions/money.md#modes).
func validateModes(r *project.Record, i *project.Integration) error {
	if !i.Active {
		return nil
	}
	for _, other := range r.Active(i.Kind, i.Environment) {
		if other.Vendor != i.Vendor && other.Mode != i.Mode {
			return fmt.Errorf("%s would be %s, but %s is active and %s: %w", i.ID, i.Mode, other.ID, other.Mode, ErrMixedModes)
		}
	}
	return nil
}

func (s *Store) changeCredential(ctx context.Context, clientID string, edit func(*project.Credential) error) error {
	projectID, ok := project.ParseClientID(clientID)
	if !ok {
		return fmt.Errorf("client ID %q: %w", clientID, ErrInvalid)
	}
	return s.change(ctx, projectID, func(rec *project.Record) ([]item, error) {
		c := rec.Credential(clientID)
		if c == nil {
			return nil, fmt.Errorf("credential %s: %w", clientID, ErrNotFound)
		}
		if err := edit(c); err != nil {
			return nil, err
		}
		return []item{credentialItem(projectID, c)}, nil
	})
}

// ReopenFor is the time after its closing in which a project can be reopened.
const ReopenFor = 30 * 24 * time.Hour

// maxChanges bounds the items of one change: DynamoDB accepts 100 in a transaction, with that of the project.
const maxChanges = 99

// Close ends all access of a project: no credentials authenticate, the credentials are revoked, and the integrations
// are inactive and without settings. The trial destinations are removed. The record stays, so that no other project
// gets the ID. Close may be repeated: the time of the first closing stays.
func (s *Store) Close(ctx context.Context, projectID string) (closed project.Project, err error) {
	for more := true; more && err == nil; {
		err = s.rewrite(ctx, projectID, func(rec *project.Record) (items []item, err error) {
			if rec.Closed.IsZero() {
				rec.Closed = now()
			}
			rec.TrialDestinations, closed = nil, rec.Project
			for _, c := range rec.Credentials {
				if c.Active || len(c.Secrets) > 0 {
					c.Active, c.Secrets = false, nil
					items = append(items, credentialItem(projectID, &c))
				}
			}
			for _, i := range rec.Integrations {
				if i.Active || len(i.Settings) > 0 {
					i.Active, i.Settings, i.Updated = false, nil, now()
					items = append(items, integrationItem(projectID, &i))
				}
			}
			more = len(items) > maxChanges
			return items[:min(len(items), maxChanges)], nil
		})
	}
	return closed, err
}

// Reopen ends the closing of a project, and returns ErrClosed for a project that was closed more than ReopenFor ago.
// The credentials stay revoked, and the integrations inactive.
func (s *Store) Reopen(ctx context.Context, projectID string) (open project.Project, err error) {
	err = s.rewrite(ctx, projectID, func(rec *project.Record) ([]item, error) {
		if until := rec.Closed.Add(ReopenFor); !rec.Closed.IsZero() && now().After(until) {
			return nil, fmt.Errorf("project %s: %w for good since %s", projectID, ErrClosed, until.Format(time.DateOnly))
		}
		rec.Closed = time.Time{}
		open = rec.Project
		return nil, nil
	})
	return open, err
}

// RefuseClosed returns ErrClosed for a closed project.
func RefuseClosed(p *project.Project) error {
	if p.Closed.IsZero() {
		return nil
	}
	return fmt.Errorf("project %s: %w", p.ID, ErrClosed)
}

// change is rewrite for a project that is not closed.
func (s *Store) change(ctx context.Context, projectID string, edit func(rec *project.Record) ([]item, error),
	beside ...func() *types.Put) error {
	return s.rewrite(ctx, projectID, func(rec *project.Record) ([]item, error) {
		if err := RefuseClosed(&rec.Project); err != nil {
			return nil, err
		}
		return edit(rec)
	}, beside...)
}

// rewrite edits a project's record. The function edit may change rec.Project, and returns other items to put; beside
// is of other tables. The version must be the one that edit saw, so that rules over several items hold.
func (s *Store) rewrite(ctx context.Context, projectID string, edit func(rec *project.Record) ([]item, error),
	beside ...func() *types.Put) error {
	const tries = 5
	for range tries {
		rec, err := s.Load(ctx, projectID)
		if err != nil {
			return err
		}
		if rec == nil {
			return fmt.Errorf("project %s: %w", projectID, ErrNotFound)
		}
		seen := rec.Version
		more, err := edit(rec)
		if err != nil {
			return err
		}
		rec.Version = seen + 1
		writes := s.puts(types.Put{
			Item:                      projectItem(&rec.Project),
			ConditionExpression:       new("version = :seen"),
			ExpressionAttributeValues: item{":seen": dynamo.Number(seen)},
		}, more...)
		for _, put := range beside {
			if entry := put(); entry != nil {
				writes = append(writes, types.TransactWriteItem{Put: entry})
			}
		}
		err = s.transact(ctx, writes)
		if overtaken(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("change project %s: %w", projectID, err)
		}
		return nil
	}
	return fmt.Errorf("project %s: %w; try again", projectID, ErrBusy)
}

// puts returns the writes of the first item and the others.
func (s *Store) puts(first types.Put, others ...item) []types.TransactWriteItem {
	first.TableName = &s.table
	writes := []types.TransactWriteItem{{Put: &first}}
	for _, it := range others {
		writes = append(writes, types.TransactWriteItem{Put: &types.Put{TableName: &s.table, Item: it}})
	}
	return writes
}

// transact writes all or nothing. Even one item goes in a transaction: the SDK gives each call a token, so that a retry
// of a call that took effect is neither a second write nor a refusal.
func (s *Store) transact(ctx context.Context, writes []types.TransactWriteItem) error {
	_, err := s.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
	return err
}

// overtaken reports whether a transaction was cancelled because another change of the record came first.
func overtaken(err error) bool {
	return dynamo.Cancelled(err, "ConditionalCheckFailed", "TransactionConflict")
}
