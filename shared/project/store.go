package project

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
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/pattern"
)

// The reasons to refuse a change. The errors of a Store wrap one of them where it applies, with a text for the
// operator.
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
	db    *dynamodb.Client
	table string
}

// NewStore returns a store on a table with the keys pk and sk.
func NewStore(db *dynamodb.Client, table string) *Store {
	return &Store{db: db, table: table}
}

// Load reads a project with its credentials and integrations, consistently, and returns nil where none exists.
func (s *Store) Load(ctx context.Context, projectID string) (*Record, error) {
	pages := dynamodb.NewQueryPaginator(s.db, &dynamodb.QueryInput{
		TableName:                 &s.table,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    aws.String("pk = :project"),
		ExpressionAttributeValues: item{":project": dynamo.Text(projectID)},
	})
	var items []item
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("read project %s: %w", projectID, err)
		}
		items = append(items, page.Items...)
	}
	return decode(items)
}

// ListProjects scans the table and returns every project, without credentials and integrations, by ID.
func (s *Store) ListProjects(ctx context.Context) ([]Project, error) {
	pages := dynamodb.NewScanPaginator(s.db, &dynamodb.ScanInput{
		TableName:                 &s.table,
		FilterExpression:          aws.String("sk = :project"),
		ExpressionAttributeValues: item{":project": dynamo.Text(sortProject)},
	})
	var projects []Project
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list projects: %w", err)
		}
		for _, it := range page.Items {
			rec, err := decode([]item{it})
			if err != nil {
				return nil, err
			}
			projects = append(projects, rec.Project)
		}
	}
	slices.SortFunc(projects, func(a, b Project) int { return cmp.Compare(a.ID, b.ID) })
	return projects, nil
}

// CreateProject stores a new project with its integrations and the current time, and with a random ID where the ID is
// empty. CreateProject returns the stored project. The caller validates the vendors' settings.
func (s *Store) CreateProject(ctx context.Context, p Project, integrations ...Integration) (Project, error) {
	if p.ID == "" {
		p.ID = NewID()
	}
	if !ValidID(p.ID) {
		return Project{}, fmt.Errorf("project ID %q (3 to 32 of a-z, 0-9 and -, not %s): %w", p.ID,
			strings.Join(reserved, ", "), ErrInvalid)
	}
	p.Created = now()
	p.version = 1
	p.hashKey = make([]byte, hashKeySize)
	rand.Read(p.hashKey) // documented never to fail
	p, err := validated(p)
	if err != nil {
		return Project{}, err
	}
	items, err := (&Record{Project: p}).put(integrations)
	if err != nil {
		return Project{}, err
	}
	err = s.transact(ctx, types.Put{
		Item:                projectItem(&p),
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}, items...)
	if overtaken(err) {
		return Project{}, fmt.Errorf("project %s: %w", p.ID, ErrExists)
	}
	if err != nil {
		return Project{}, fmt.Errorf("create project %s: %w", p.ID, err)
	}
	return p, nil
}

// Update changes a project that is not closed: its name, its pause, its limits or its trial. Update returns the stored
// project.
func (s *Store) Update(ctx context.Context, projectID string, edit func(*Project)) (changed Project, err error) {
	err = s.change(ctx, projectID, func(rec *Record) ([]item, error) {
		edit(&rec.Project)
		changed, err = validated(rec.Project)
		rec.Project = changed
		return nil, err
	})
	return changed, err
}

// AddCredential stores credentials, all or none, usually those of NewCredential.
func (s *Store) AddCredential(ctx context.Context, projectID string, credentials ...Credential) error {
	return s.change(ctx, projectID, func(rec *Record) (items []item, err error) {
		for _, c := range credentials {
			if owner, ok := ParseClientID(c.ClientID); !ok || owner != projectID {
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
func NewCredential(projectID string, env Environment) (c Credential, secret string) {
	secret = newSecret()
	digests := []SecretDigest{{Digest: DigestSecret(secret), Created: now()}}
	return Credential{ClientID: newClientID(projectID), Environment: env, Active: true, Secrets: digests}, secret
}

// IssueCredential creates and stores a credential.
func (s *Store) IssueCredential(ctx context.Context, projectID string,
	env Environment) (clientID, secret string, err error) {
	c, secret := NewCredential(projectID, env)
	return c.ClientID, secret, s.AddCredential(ctx, projectID, c)
}

// RotateCredential adds a second live secret to a credential and returns that secret. RotateCredential returns
// ErrRotating for a credential with two live secrets, because the client may use the older one; with replace, the new
// secret takes the place of the newer of the two.
func (s *Store) RotateCredential(ctx context.Context, clientID string, replace bool) (secret string, err error) {
	secret = newSecret()
	added := SecretDigest{Digest: DigestSecret(secret), Created: now()}
	err = s.changeCredential(ctx, clientID, func(c *Credential) error {
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
	return s.changeCredential(ctx, clientID, func(c *Credential) error {
		c.Secrets = slices.Clone(c.Secrets[max(0, len(c.Secrets)-1):])
		return nil
	})
}

// RevokeCredential ends a credential for good, with its secrets.
func (s *Store) RevokeCredential(ctx context.Context, clientID string) error {
	return s.changeCredential(ctx, clientID, func(c *Credential) error {
		c.Active, c.Secrets = false, nil
		return nil
	})
}

// PutIntegration stores or replaces complete integrations, all or none. The caller validates the vendors' settings.
func (s *Store) PutIntegration(ctx context.Context, projectID string, integrations ...Integration) error {
	return s.EditIntegrations(ctx, projectID, func(*Record) ([]Integration, error) { return integrations, nil })
}

// EditIntegrations stores or replaces the integrations that edit returns for the project's record, all or none. Where
// another change of the project comes first, EditIntegrations calls edit again with the new record.
func (s *Store) EditIntegrations(ctx context.Context, projectID string,
	edit func(*Record) ([]Integration, error)) error {
	return s.change(ctx, projectID, func(rec *Record) ([]item, error) {
		integrations, err := edit(rec)
		if err != nil {
			return nil, err
		}
		return rec.put(integrations)
	})
}

// ValidateIntegrations returns the reason why PutIntegration would refuse the integrations.
func (r *Record) ValidateIntegrations(integrations ...Integration) error {
	if err := r.RefuseClosed(); err != nil {
		return err
	}
	c := Record{Project: r.Project, Integrations: slices.Clone(r.Integrations)}
	_, err := c.put(integrations)
	return err
}

// put validates integrations, stores them in the record with the current time, and returns their items. Of two
// integrations with one ID the second is stored.
func (r *Record) put(integrations []Integration) ([]item, error) {
	items := map[string]item{}
	for _, i := range integrations {
		i.ID = IntegrationID(i.Environment, i.Kind, i.Vendor)
		i.Updated = now()
		i.Settings = maps.Clone(i.Settings)
		if err := validateIntegration(&i); err != nil {
			return nil, err
		}
		if err := r.validateModes(&i); err != nil {
			return nil, err
		}
		r.Integrations = slices.DeleteFunc(r.Integrations, func(other Integration) bool { return other.ID == i.ID })
		r.Integrations = append(r.Integrations, i)
		items[i.ID] = integrationItem(r.ID, &i)
	}
	return slices.Collect(maps.Values(items)), nil
}

// validateModes refuses active integrations of different modes (docs/decisions/money.md#modes).
func (r *Record) validateModes(i *Integration) error {
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

func (s *Store) changeCredential(ctx context.Context, clientID string, edit func(*Credential) error) error {
	projectID, ok := ParseClientID(clientID)
	if !ok {
		return fmt.Errorf("client ID %q: %w", clientID, ErrInvalid)
	}
	return s.change(ctx, projectID, func(rec *Record) ([]item, error) {
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
func (s *Store) Close(ctx context.Context, projectID string) (closed Project, err error) {
	for more := true; more && err == nil; {
		err = s.rewrite(ctx, projectID, func(rec *Record) (items []item, err error) {
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
func (s *Store) Reopen(ctx context.Context, projectID string) (open Project, err error) {
	err = s.rewrite(ctx, projectID, func(rec *Record) ([]item, error) {
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
func (p *Project) RefuseClosed() error {
	if p.Closed.IsZero() {
		return nil
	}
	return fmt.Errorf("project %s: %w", p.ID, ErrClosed)
}

// change is rewrite for a project that is not closed.
func (s *Store) change(ctx context.Context, projectID string, edit func(rec *Record) ([]item, error)) error {
	return s.rewrite(ctx, projectID, func(rec *Record) ([]item, error) {
		if err := rec.RefuseClosed(); err != nil {
			return nil, err
		}
		return edit(rec)
	})
}

// rewrite edits a project's record. The function edit sees the whole record, may change rec.Project, and returns
// the other items to put. The version must be the one that edit saw, so that rules over several items hold.
func (s *Store) rewrite(ctx context.Context, projectID string, edit func(rec *Record) ([]item, error)) error {
	const tries = 5
	for range tries {
		rec, err := s.Load(ctx, projectID)
		if err != nil {
			return err
		}
		if rec == nil {
			return fmt.Errorf("project %s: %w", projectID, ErrNotFound)
		}
		seen := rec.version
		more, err := edit(rec)
		if err != nil {
			return err
		}
		rec.version = seen + 1
		err = s.transact(ctx, types.Put{
			Item:                      projectItem(&rec.Project),
			ConditionExpression:       aws.String("version = :seen"),
			ExpressionAttributeValues: item{":seen": dynamo.Number(seen)},
		}, more...)
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

// transact puts the first item and the others, or none. Even one item goes in a transaction: the SDK gives each call a
// token, so that a retry of a call that took effect is neither a second write nor a refusal.
func (s *Store) transact(ctx context.Context, first types.Put, others ...item) error {
	first.TableName = &s.table
	writes := []types.TransactWriteItem{{Put: &first}}
	for _, it := range others {
		writes = append(writes, types.TransactWriteItem{Put: &types.Put{TableName: &s.table, Item: it}})
	}
	_, err := s.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
	return err
}

// overtaken reports whether a transaction was cancelled because another change of the record came first.
func overtaken(err error) bool {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	return ok && slices.ContainsFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
		return aws.ToString(r.Code) == "ConditionalCheckFailed" || aws.ToString(r.Code) == "TransactionConflict"
	})
}

// The limits of a record's fields, so that one small query reads a project.
const (
	maxName         = 100
	maxDestinations = 100
	MaxRequests     = 10_000_000 // in a window
	maxWindow       = Day
	MaxPriority     = 1000 // of an integration
	maxSettings     = 32
	maxSetting      = 1024
	longestName     = 50 // of a vendor or a setting, in bytes
	maxRecipients   = 5  // windows of messages to one number
	maxMessages     = 1_000_000
	maxDaily        = 1_000_000_000_000_000

	// Day is the window of the daily limits. Each recipient window divides a day, so that one item a day counts all
	// windows.
	Day = 24 * time.Hour
	// leastRecipientWindow bounds the counters of a number's item, one for each window of a day: 1,440 are some 20 KB. A
	// write costs by the size of its item, which must not reach 400 KB.
	leastRecipientWindow = time.Minute
	// hashKeySize is the length of a hashKey, that of a SHA-256 (RFC 2104, section 3).
	hashKeySize = 32
)

var (
	vendorPattern  = pattern.New(`^[A-Za-z0-9_-]+$`)
	settingPattern = pattern.New(`^[a-z0-9_]+$`)
)

// validated validates a project, except for its ID, and returns the project with its destinations in their normal
// format.
func validated(p Project) (Project, error) {
	switch {
	case p.Name == "" || len(p.Name) > maxName || strings.ContainsFunc(p.Name, unprintable):
		return Project{}, invalid("project name %q (1 to %d bytes, printable)", p.Name, maxName)
	case len(p.TrialDestinations) > maxDestinations:
		return Project{}, invalid("%d trial destinations (at most %d)", len(p.TrialDestinations), maxDestinations)
	}
	if err := cmp.Or(p.Limit.Validate(), p.Limits.Validate()); err != nil {
		return Project{}, err
	}
	p.Limits.Recipients = slices.SortedFunc(slices.Values(p.Limits.Recipients),
		func(a, b RecipientLimit) int { return cmp.Compare(a.Window, b.Window) })
	normal := make([]string, 0, len(p.TrialDestinations))
	for _, d := range p.TrialDestinations {
		n, ok := NormalNumber(d)
		if !ok {
			return Project{}, invalid("trial destination %q (07XXXXXXXX or +947XXXXXXXX)", d)
		}
		if !slices.Contains(normal, n) {
			normal = append(normal, n)
		}
	}
	p.TrialDestinations = normal
	return p, nil
}

// Validate returns the reason why no project can have the limit, an ErrInvalid.
func (l RateLimit) Validate() error {
	switch {
	case l.Requests < 1 || l.Requests > MaxRequests:
		return invalid("limit of %d requests (1 to %d)", l.Requests, MaxRequests)
	case l.Window < time.Second || l.Window > maxWindow || l.Window%time.Second != 0:
		return invalid("window of %s (whole seconds, 1s to %s)", l.Window, maxWindow)
	}
	return nil
}

// Validate returns the reason why no project can have the limits, an ErrInvalid.
func (l Limits) Validate() error {
	for _, most := range []int64{l.DailyCredits, l.DailyUnits} {
		if most < 0 || most > maxDaily {
			return invalid("%d a day (1 to %d, or none)", most, int64(maxDaily))
		}
	}
	if len(l.Recipients) > maxRecipients {
		return invalid("%d windows of messages to one number (at most %d)", len(l.Recipients), maxRecipients)
	}
	windows := map[time.Duration]bool{}
	for _, r := range l.Recipients {
		switch {
		case r.Messages < 1 || r.Messages > maxMessages:
			return invalid("limit of %d messages to one number (1 to %d)", r.Messages, maxMessages)
		case r.Window < leastRecipientWindow || r.Window%time.Second != 0 || Day%r.Window != 0:
			return invalid("window of %s (at least %s, in whole seconds that divide 24h, such as 10m, 1h or 24h)",
				r.Window, leastRecipientWindow)
		case windows[r.Window]:
			return invalid("two limits for a window of %s", r.Window)
		}
		windows[r.Window] = true
	}
	return nil
}

// unprintable reports whether a text for people may not hold the rune; invalid UTF-8 reads as U+FFFD.
func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

func validateIntegration(i *Integration) error {
	switch {
	case !slices.Contains(Environments(), i.Environment):
		return invalid("environment %q", i.Environment)
	case !slices.Contains(Kinds(), i.Kind):
		return invalid("kind %q", i.Kind)
	case i.Mode != Managed && i.Mode != BYOK:
		return invalid("mode %q", i.Mode)
	case len(i.Vendor) > longestName || !vendorPattern().MatchString(i.Vendor):
		return invalid("vendor %q", i.Vendor)
	case i.Priority < 0 || i.Priority > MaxPriority:
		return invalid("priority %d (0 to %d)", i.Priority, MaxPriority)
	case len(i.Settings) > maxSettings:
		return invalid("%d settings (at most %d)", len(i.Settings), maxSettings)
	}
	for name, value := range i.Settings {
		if len(name) > longestName || !settingPattern().MatchString(name) || len(value) > maxSetting {
			return invalid("setting %q (a name of a-z, 0-9 and _, a value of at most %d bytes)", name, maxSetting)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrInvalid)...)
}

// now returns the current time as it is stored: in UTC, to the second.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }
