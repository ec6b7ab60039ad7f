package admin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/test/enginetest"
	"svcapi/test/itemtest"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func newTestStore(t *testing.T) *Store {
	client, tables := enginetest.Client(t)
	return NewStore(client, tables.Projects)
}

var limit = project.RateLimit{Requests: 5, Window: time.Minute}

func pause(p *project.Project) { p.Paused = true }

func create(t *testing.T, s *Store, p project.Project) project.Project {
	t.Helper()
	p.Name, p.Limit = cmp.Or(p.Name, "Test"), cmp.Or(p.Limit, limit)
	return must.Get(s.CreateProject(t.Context(), p)).Or(t)
}

func load(t *testing.T, s *Store, id string) *project.Record {
	t.Helper()
	rec := must.Get(s.Load(t.Context(), id)).Or(t)
	if rec == nil {
		t.Fatalf("project %s is not there", id)
	}
	return rec
}

// accepts reports whether a secret is one of the live ones.
func accepts(c *project.Credential, secret string) bool {
	return slices.ContainsFunc(c.Secrets,
		func(d project.SecretDigest) bool { return d.Digest == project.DigestSecret(secret) })
}

// TestRecord writes everything that a record holds and reads it back.
func TestRecord(t *testing.T) {
	s, ctx := newTestStore(t), t.Context()
	p := create(t, s, project.Project{ID: "acme", Name: "Acme Ltd", Trial: true,
		TrialDestinations: []string{"0771234567", "+94771234567"}})
	if len(p.TrialDestinations) != 1 || p.TrialDestinations[0] != "+94771234567" || p.Created.IsZero() {
		t.Errorf("created %+v", p)
	}
	clientID, secret, err := s.IssueCredential(ctx, "acme", project.Production)
	must.Succeed(t, err)
	want := project.Integration{
		Kind: project.SMS, Environment: project.Production, Vendor: "quicksend", Mode: project.BYOK, Active: true,
		Priority: 3,
		Settings: map[string]string{"sender_id": "Acme", "endpoint": "https://example.com"},
	}
	must.Succeed(t, s.PutIntegration(ctx, "acme", want))
	create(t, s, project.Project{ID: "other"})

	rec := load(t, s, "acme")
	p.Version, p.Limits.Recipients, p.Prices = 3, []project.RecipientLimit{}, map[string]int64{}
	if !reflect.DeepEqual(rec.Project, p) {
		t.Errorf("project %+v, want %+v", rec.Project, p)
	}
	c := rec.Credential(clientID)
	if c == nil || !c.Active || c.Environment != project.Production || len(c.Secrets) != 1 || !accepts(c, secret) {
		t.Errorf("credential %+v", c)
	}
	got := Integration(rec, project.Production, project.SMS, "quicksend")
	if got == nil || got.Updated.IsZero() {
		t.Fatalf("integration %+v", got)
	}
	want.ID, want.Updated = "production/sms/quicksend", got.Updated
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("integration %+v, want %+v", *got, want)
	}

	if _, err := s.Update(ctx, "acme", func(p *project.Project) {
		p.Paused, p.Limit, p.Trial, p.TrialDestinations = true, project.RateLimit{Requests: 7, Window: time.Hour}, false, nil
	}); err != nil {
		t.Error(err)
	}
	rec = load(t, s, "acme")
	if !rec.Paused || rec.Limit != (project.RateLimit{Requests: 7, Window: time.Hour}) || rec.Trial ||
		len(rec.TrialDestinations) != 0 ||
		len(rec.Credentials) != 1 {
		t.Errorf("after the changes: %+v", rec)
	}
	if list := must.Get(s.ListProjects(ctx)).Or(t); len(list) != 2 || list[0].ID != "acme" ||
		list[1].ID != "other" {
		t.Errorf("list %+v", list)
	}
	if rec, err := s.Load(ctx, "nobody"); rec != nil || err != nil {
		t.Errorf("a project that is not there: %v, %v", rec, err)
	}
	if _, err := s.CreateProject(ctx,
		project.Project{ID: "acme", Name: "Again", Limit: limit}); !errors.Is(err, ErrExists) {
		t.Errorf("a second project of the same ID: %v", err)
	}
}

// TestLimits checks that limits are stored, sorted and removed, and that the key of the numbers' hashes stays
// (docs/decisions/requests.md#recipient-limit).
func TestLimits(t *testing.T) {
	s, ctx := newTestStore(t), t.Context()
	create(t, s, project.Project{ID: "acme"})
	day20, tenMinutes := project.RecipientLimit{Messages: 20, Window: 24 * time.Hour},
		project.RecipientLimit{Messages: 5, Window: 10 * time.Minute}
	set := func(edit func(*project.Project)) project.Project {
		t.Helper()
		changed := must.Get(s.Update(ctx, "acme", edit)).Or(t)
		if stored := load(t, s, "acme").Project; fmt.Sprint(stored.Limits) != fmt.Sprint(changed.Limits) ||
			stored.RecipientID("n") != changed.RecipientID("n") {
			t.Errorf("stored %+v, want %+v", stored, changed)
		}
		return changed
	}
	first := set(func(p *project.Project) {
		p.Limits = project.Limits{Recipients: []project.RecipientLimit{day20, tenMinutes}, DailyCredits: 7, DailyUnits: 8}
	})
	if !reflect.DeepEqual(first.Limits, project.Limits{
		Recipients: []project.RecipientLimit{tenMinutes, day20}, DailyCredits: 7, DailyUnits: 8}) ||
		first.Limit != limit ||
		len(first.HashKey) != hashKeySize {
		t.Errorf("%+v", first)
	}
	none := set(func(p *project.Project) { p.Limit.Requests, p.Limits = 9, project.Limits{} })
	if none.Limit.Requests != 9 || !reflect.DeepEqual(none.Limits, project.Limits{}) {
		t.Errorf("%+v", none)
	}
	again := set(func(p *project.Project) { p.Limits.Recipients = []project.RecipientLimit{day20} })
	other := create(t, s, project.Project{ID: "other", Limits: again.Limits})
	if a, b := first.RecipientID("n"), again.RecipientID("n"); a != b || a == first.RecipientID("m") ||
		a == other.RecipientID("n") || len(a) != 32 {
		t.Errorf("hashes %q, %q, %q", a, b, other.RecipientID("n"))
	}
	other.ID = again.ID // one ID under two keys
	if a, b := again.TenantID(), other.TenantID(); a != first.TenantID() || a == b || len(a) != 32 ||
		strings.Contains(a, again.ID) {
		t.Errorf("tenants %q, %q", a, b)
	}
}

// TestRefusals checks the projects, credentials and integrations that a store refuses.
func TestRefusals(t *testing.T) {
	s, ctx := newTestStore(t), t.Context()
	create(t, s, project.Project{ID: "acme"})
	good := project.Project{ID: "fine", Name: "Fine", Limit: limit}
	integration := project.Integration{Kind: project.SMS, Environment: project.Development,
		Vendor: "v", Mode: project.BYOK}
	edited := func(edit func(*project.Project)) func() error {
		return func() error {
			p := good
			edit(&p)
			_, err := s.CreateProject(ctx, p)
			return err
		}
	}
	windows := func(limits ...project.RecipientLimit) func() error {
		return edited(func(p *project.Project) { p.Limits.Recipients = limits })
	}
	add := func(clientID string, secrets int) func() error {
		return func() error {
			return s.AddCredential(ctx, "acme", project.Credential{ClientID: clientID, Environment: project.Development,
				Secrets: make([]project.SecretDigest, secrets)})
		}
	}
	put := func(edit func(*project.Integration)) func() error {
		return func() error {
			i := integration
			edit(&i)
			return s.PutIntegration(ctx, "acme", i)
		}
	}
	for name, c := range map[string]struct {
		do   func() error
		want error
	}{
		"short ID":            {edited(func(p *project.Project) { p.ID = "ab" }), ErrInvalid},
		"reserved ID":         {edited(func(p *project.Project) { p.ID = "managed" }), ErrInvalid},
		"upper-case ID":       {edited(func(p *project.Project) { p.ID = "Acme" }), ErrInvalid},
		"no name":             {edited(func(p *project.Project) { p.Name = "" }), ErrInvalid},
		"name of two lines":   {edited(func(p *project.Project) { p.Name = "a\nb" }), ErrInvalid},
		"broken name":         {edited(func(p *project.Project) { p.Name = "a\xff" }), ErrInvalid},
		"no limit":            {edited(func(p *project.Project) { p.Limit.Requests = 0 }), ErrInvalid},
		"half a second":       {edited(func(p *project.Project) { p.Limit.Window = 1500 * time.Millisecond }), ErrInvalid},
		"no window":           {edited(func(p *project.Project) { p.Limit.Window = 0 }), ErrInvalid},
		"window of 7 minutes": {windows(project.RecipientLimit{Messages: 1, Window: 7 * time.Minute}), ErrInvalid},
		"two days":            {windows(project.RecipientLimit{Messages: 1, Window: 48 * time.Hour}), ErrInvalid},
		"part of a second":    {windows(project.RecipientLimit{Messages: 1, Window: 67500 * time.Millisecond}), ErrInvalid},
		"less than a minute":  {windows(project.RecipientLimit{Messages: 1, Window: 30 * time.Second}), ErrInvalid},
		"no message":          {windows(project.RecipientLimit{Messages: 0, Window: time.Hour}), ErrInvalid},
		"one window twice": {windows(project.RecipientLimit{Messages: 1, Window: time.Hour},
			project.RecipientLimit{Messages: 2, Window: time.Hour}), ErrInvalid},
		"six windows":      {windows(make([]project.RecipientLimit, 6)...), ErrInvalid},
		"negative credits": {edited(func(p *project.Project) { p.Limits.DailyCredits = -1 }), ErrInvalid},
		"endless units":    {edited(func(p *project.Project) { p.Limits.DailyUnits = maxDaily + 1 }), ErrInvalid},
		"bad destination":  {edited(func(p *project.Project) { p.TrialDestinations = []string{"12"} }), ErrInvalid},
		"bad kind":         {put(func(i *project.Integration) { i.Kind = "fax" }), ErrInvalid},
		"bad environment":  {put(func(i *project.Integration) { i.Environment = "staging" }), ErrInvalid},
		"bad mode":         {put(func(i *project.Integration) { i.Mode = "free" }), ErrInvalid},
		"bad vendor":       {put(func(i *project.Integration) { i.Vendor = "a#b" }), ErrInvalid},
		"bad priority":     {put(func(i *project.Integration) { i.Priority = -1 }), ErrInvalid},
		"bad setting":      {put(func(i *project.Integration) { i.Settings = map[string]string{"a b": ""} }), ErrInvalid},
		"long setting": {put(func(i *project.Integration) { i.Settings = map[string]string{"a": strings.Repeat("x", 2000)} }),
			ErrInvalid},
		"no project":        {func() error { return s.PutIntegration(ctx, "nobody", integration) }, ErrNotFound},
		"pause nobody":      {func() error { _, err := s.Update(ctx, "nobody", pause); return err }, ErrNotFound},
		"no credential":     {func() error { return s.RevokeCredential(ctx, "svc_acme_aaaaaaaa") }, ErrNotFound},
		"no client ID":      {func() error { return s.RevokeCredential(ctx, "acme") }, ErrInvalid},
		"foreign client ID": {add("svc_other_aaaaaaaa", 1), ErrInvalid},
		"three secrets":     {add("svc_acme_aaaaaaaa", 3), ErrInvalid},
	} {
		if err := c.do(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if rec := load(t, s, "acme"); len(rec.Integrations)+len(rec.Credentials) != 0 {
		t.Errorf("a refused change is there: %+v", rec)
	}
}

// TestRotation checks that two secrets can be live during a rotation (docs/decisions/requests.md#credentials).
func TestRotation(t *testing.T) {
	s, ctx := newTestStore(t), t.Context()
	create(t, s, project.Project{ID: "acme"})
	clientID, first, err := s.IssueCredential(ctx, "acme", project.Development)
	must.Succeed(t, err)
	live := func(secrets ...string) {
		t.Helper()
		c := load(t, s, "acme").Credential(clientID)
		if len(c.Secrets) != len(secrets) {
			t.Errorf("%d live secrets, want %d", len(c.Secrets), len(secrets))
		}
		for i, secret := range secrets {
			if !accepts(c, secret) {
				t.Errorf("secret %d is not accepted", i+1)
			}
		}
	}
	live(first)
	second := must.Get(s.RotateCredential(ctx, clientID, false)).Or(t)
	live(first, second)
	if _, err := s.RotateCredential(ctx, clientID, false); !errors.Is(err, ErrRotating) {
		t.Errorf("an open rotation is begun again: %v", err)
	}
	live(first, second)
	third := must.Get(s.RotateCredential(ctx, clientID, true)).Or(t)
	live(first, third)
	must.Succeed(t, s.FinishRotation(ctx, clientID))
	live(third)
	must.Succeed(t, s.RevokeCredential(ctx, clientID))
	live()
	if load(t, s, "acme").Credential(clientID).Active {
		t.Error("a revoked credential is active")
	}
	if _, err := s.RotateCredential(ctx, clientID, false); !errors.Is(err, ErrInvalid) {
		t.Errorf("a revoked credential rotates: %v", err)
	}
}

// TestModes checks that active integrations of one kind and environment share one mode (docs/decisions/money.md#modes).
func TestModes(t *testing.T) {
	s, ctx := newTestStore(t), t.Context()
	create(t, s, project.Project{ID: "acme"})
	for i, c := range []struct {
		env    project.Environment
		kind   project.Kind
		vendor string
		mode   project.Mode
		active bool
		want   error
	}{
		{project.Development, project.SMS, "a", project.Managed, true, nil},
		{project.Development, project.SMS, "b", project.Managed, true, nil},
		{project.Development, project.SMS, "c", project.BYOK, true, ErrMixedModes},
		{project.Development, project.SMS, "c", project.BYOK, false, nil},
		{project.Development, project.SMS, "a", project.BYOK, true, ErrMixedModes},
		{project.Development, project.SMS, "b", project.Managed, false, nil},
		{project.Development, project.SMS, "a", project.BYOK, true, nil}, // the only active one changes its mode
		{project.Production, project.SMS, "a", project.Managed, true, nil},
		{project.Development, project.PDF, "a", project.Managed, true, nil},
		{project.Development, project.SMS, "c", project.BYOK, true, nil},
		{project.Development, project.SMS, "b", project.Managed, true, ErrMixedModes},
	} {
		err := s.PutIntegration(ctx, "acme",
			project.Integration{Kind: c.kind, Environment: c.env, Vendor: c.vendor, Mode: c.mode, Active: c.active})
		if !errors.Is(err, c.want) {
			t.Errorf("step %d: %v, want %v", i, err, c.want)
		}
	}
}

// TestModesTogether checks that two operators who enable different modes at the same moment do not get a mix.
func TestModesTogether(t *testing.T) {
	s, ctx := newTestStore(t), context.Background()
	create(t, s, project.Project{ID: "acme"})
	modes := map[string]project.Mode{"a": project.Managed, "b": project.BYOK}
	for round := range 10 {
		for vendor, mode := range modes {
			err := s.PutIntegration(ctx, "acme",
				project.Integration{Kind: project.SMS, Environment: project.Development, Vendor: vendor, Mode: mode})
			must.Succeed(t, err)
		}
		var wait sync.WaitGroup
		for vendor, mode := range modes {
			wait.Go(func() {
				err := s.PutIntegration(ctx, "acme",
					project.Integration{Kind: project.SMS, Environment: project.Development, Vendor: vendor, Mode: mode, Active: true})
				if err != nil && !errors.Is(err, ErrMixedModes) {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		wait.Wait()
		if active := load(t, s, "acme").Active(project.SMS, project.Development); len(active) != 1 {
			t.Fatalf("round %d: %d active", round, len(active))
		}
	}
}

// TestDamagedItems checks that a damaged item is an error and never a guess.
func TestDamagedItems(t *testing.T) {
	s, ctx := newTestStore(t), t.Context()
	create(t, s, project.Project{ID: "acme"})
	_, _, err := s.IssueCredential(ctx, "acme", project.Development)
	must.Succeed(t, err)
	must.Succeed(t, s.PutIntegration(ctx, "acme",
		project.Integration{Kind: project.SMS, Environment: project.Development, Vendor: "v", Mode: project.BYOK,
			Settings: map[string]string{"a": "b"}}))
	out := must.Get(s.db.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.table, KeyConditionExpression: new("pk = :p"),
		ExpressionAttributeValues: item{":p": dynamo.Text("acme")},
	})).Or(t)
	must.Get(project.Decode(out.Items)).Or(t)
	refused := func(whole item, name string, value types.AttributeValue) {
		broken := maps.Clone(whole)
		broken[name] = value
		if _, err := project.Decode([]item{broken}); err == nil {
			t.Errorf("%s of %+v is read", dynamo.TextOf(whole["sk"]), broken)
		}
	}
	for _, whole := range out.Items {
		for _, name := range []string{"v", "version"} {
			if whole[name] != nil {
				refused(whole, name, &types.AttributeValueMemberNULL{Value: true})
			}
		}
		var members map[string]any
		must.Succeed(t, json.Unmarshal([]byte(dynamo.TextOf(whole["v"])), &members))
		for name := range members {
			for _, damage := range []func(map[string]any){
				func(m map[string]any) { delete(m, name) }, func(m map[string]any) { m[name] = nil },
				func(m map[string]any) { m[name] = []any{[]any{}} },
			} {
				broken := maps.Clone(members)
				damage(broken)
				text := must.Get(json.Marshal(broken)).Or(t)
				refused(whole, "v", dynamo.Text(string(text)))
			}
		}
	}
}

// TestClose checks that a closed project has no access and no change left but its reopening, within 30 days, and that
// its ID is never given again (docs/decisions/money.md#closed-projects).
func TestClose(t *testing.T) {
	s, ctx := newTestStore(t), t.Context()
	create(t, s, project.Project{ID: "acme", Trial: true, TrialDestinations: []string{"0771234567"}})
	clientID, secret, err := s.IssueCredential(ctx, "acme", project.Development)
	for range 2 { // more than one transaction changes
		credentials := make([]project.Credential, maxChanges)
		for i := range credentials {
			credentials[i], _ = NewCredential("acme", project.Production)
		}
		err = errors.Join(err, s.AddCredential(ctx, "acme", credentials...))
	}
	sms := project.Integration{Kind: project.SMS, Environment: project.Development, Vendor: "v",
		Mode: project.BYOK, Active: true,
		Settings: map[string]string{"sender_id": "Acme"}}
	must.Succeed(t, errors.Join(err, s.PutIntegration(ctx, "acme", sms)))
	closed := must.Get(s.Close(ctx, "acme")).Or(t)
	if again := must.Get(s.Close(ctx, "acme")).Or(t); !again.Closed.Equal(closed.Closed) ||
		closed.Closed.IsZero() {
		t.Errorf("closed at %s, then at %s", closed.Closed, again.Closed)
	}
	rec := load(t, s, "acme")
	kept := func(c project.Credential) bool { return c.Active || len(c.Secrets) > 0 }
	if i := rec.Integrations[0]; i.Active || len(i.Settings)+len(rec.TrialDestinations) > 0 ||
		slices.ContainsFunc(rec.Credentials, kept) {
		t.Errorf("left: %+v, %v, or credentials", i, rec.TrialDestinations)
	}
	write := func(closed time.Time) { // with a credential that is not yet revoked
		rec.Closed = closed
		live := project.Credential{ClientID: clientID, Environment: project.Development, Active: true,
			Secrets: []project.SecretDigest{{Digest: project.DigestSecret(secret), Created: now()}}}
		must.Succeed(t, s.transact(ctx, s.puts(types.Put{Item: projectItem(&rec.Project)}, credentialItem("acme", &live))))
	}
	write(rec.Closed)
	for _, secret := range []string{secret, "svcs_wrong"} {
		if _, _, err := project.NewCache(s.Store, 0).Authenticate(ctx, clientID, secret, ""); !errors.Is(err,
			project.ErrUnauthorized) ||
			errors.Is(err, project.ErrWrongSecret) {
			t.Errorf("a closed project: %v", err)
		}
	}
	if _, err := s.CreateProject(ctx, closed); !errors.Is(err, ErrExists) {
		t.Errorf("its ID for another project: %v", err)
	}
	if _, err := s.Update(ctx, "acme", pause); !errors.Is(err, ErrClosed) ||
		!errors.Is(ValidateIntegrations(rec), ErrClosed) {
		t.Errorf("a change of a closed project: %v", err)
	}
	open := must.Get(s.Reopen(ctx, "acme")).Or(t)
	if _, err := s.Update(ctx, "acme", pause); err != nil || !open.Closed.IsZero() {
		t.Errorf("a change of the reopened project: %v", err)
	}
	write(now().Add(-ReopenFor - time.Second))
	if _, err := s.Reopen(ctx, "acme"); !errors.Is(err, ErrClosed) {
		t.Errorf("after 30 days: %v", err)
	}
}

// TestNewCredential checks that a new client ID names its project, and that a secret is random. FuzzClientID has the
// pattern.
func TestNewCredential(t *testing.T) {
	id := NewID()
	if got, ok := project.ParseClientID(newClientID(id)); !ok || got != id || len(id) != 12 {
		t.Errorf("a new client ID of project %q names %q", id, got)
	}
	if a, b := newSecret(), newSecret(); a == b || len(a) != len("svcs_")+43 {
		t.Error("secrets are not 32 random bytes")
	}
}

// A record reads as it was written. Items that the product never wrote give an error or a record and never a panic.
func FuzzItems(f *testing.F) {
	f.Add([]byte("project"), "acme", "Acme", "0771234567", int64(60), uint32(5), true)
	f.Add(bytes.Repeat([]byte{3, 'a', 'b', 'c', 9, 7, 1, 0}, 20), "a", "\xff", "", int64(-1), uint32(0), false)
	f.Fuzz(func(t *testing.T, data []byte, id, name, destination string, number int64, seconds uint32, yes bool) {
		strange := itemtest.Item(data, "pk", "sk", "v", "version")
		if r, err := project.Decode([]item{strange}); r != nil && (err != nil || dynamo.TextOf(strange["v"]) == "") {
			t.Errorf("%+v, %v", r, err)
		}
		if !utf8.ValidString(id + " " + name + " " + destination) {
			return // JSON holds a replacement character
		}
		at := time.Unix(int64(seconds), 0).UTC()
		want := project.Record{
			Project: project.Project{ID: id, Name: name, Paused: yes,
				Limit: project.RateLimit{Requests: int(number), Window: time.Duration(seconds) * time.Second}, Trial: !yes,
				TrialDestinations: []string{destination, name}, Created: at, Closed: at, Version: number,
				Limits: project.Limits{Recipients: []project.RecipientLimit{
					{Messages: int(number), Window: time.Duration(seconds) * time.Second}, {Messages: 1, Window: project.Day}},
					DailyCredits: number, DailyUnits: int64(seconds)}, HashKey: []byte(name), Prices: map[string]int64{name: number}},
			Credentials: []project.Credential{{ClientID: name, Environment: project.Production, Active: yes,
				Secrets: []project.SecretDigest{{Digest: project.DigestSecret(name), Created: at},
					{Digest: project.DigestSecret(id), Created: at}}}},
			Integrations: []project.Integration{{ID: project.IntegrationID(project.Development, project.SMS, destination),
				Kind: project.SMS, Environment: project.Development,
				Vendor: destination, Mode: project.BYOK, Active: yes, SetAside: !yes,
				Priority: int(seconds), Settings: map[string]string{name: id}, Updated: at}},
		}
		got, err := project.Decode([]item{projectItem(&want.Project), credentialItem(id, &want.Credentials[0]),
			integrationItem(id, &want.Integrations[0])})
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	})
}
