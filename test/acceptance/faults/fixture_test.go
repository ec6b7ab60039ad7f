package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"svcapi/local/build"
	"svcapi/local/chromium"
	"svcapi/local/demo"
	"svcapi/local/engine"
	"svcapi/local/gateway"
	"svcapi/local/jail"
	"svcapi/local/lambda"
	"svcapi/local/sandbox"
	"svcapi/local/secrets"
	"svcapi/local/stack"
	"svcapi/local/template"
	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
)

// fixture is the fixture of all batches: engine, secrets, vendors, the proxies in front of them, and the binaries.
type fixture struct {
	dir      string
	svc      string // the compiled command line
	binaries map[string]string
	browser  map[string]string
	jail     *jail.Jail
	engine   string
	direct   *dynamodb.Client // past the proxy
	vault    *secrets.Server
	sandbox  *sandbox.Server
	lambda   string // the Lambda API of the renderer, which has no part in money
	tables   *faultproxy.Proxy
	vendors  *faultproxy.Proxy
	clients  sync.Map // name at a proxy: func(*faultproxy.Request) faultproxy.Fault
	names    atomic.Int64
	http     *http.Client // of the stores in this process; no call has a time limit
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	r := &fixture{dir: t.TempDir(), engine: enginetest.URL(t),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	t.Cleanup(r.http.CloseIdleConnections)
	ctx := context.Background()
	model := must.Get(template.Load(nil)).Or(t)
	r.binaries = must.Get(build.Functions(ctx, model.Functions)).Or(t)
	r.svc = must.Get(build.Program(ctx, "./cmd/svc")).Or(t)
	r.browser = must.Get(chromium.Environment(ctx, func(string) {})).Or(t)
	r.jail = must.Get(jail.New(ctx, func(line string) { t.Log(line) })).Or(t)
	r.direct = engine.Client(r.engine)
	r.vault = must.Get(secrets.Start()).Or(t)
	t.Cleanup(func() { _ = r.vault.Close() })
	r.sandbox = must.Get(sandbox.Start()).Or(t)
	t.Cleanup(func() { _ = r.sandbox.Close() })
	r.tables = must.Get(faultproxy.Start(r.engine, r.decide)).Or(t)
	t.Cleanup(r.tables.Close)
	r.vendors = must.Get(faultproxy.Start(r.sandbox.URL, r.decide)).Or(t)
	t.Cleanup(r.vendors.Close)
	f, known := model.Function(rendererID)
	if !known {
		t.Fatal("no function " + rendererID)
	}
	host := must.Get(lambda.HostOf(lambda.Options{
		LogDir: filepath.Join(r.dir, "renderer"), Jail: r.jail, Concurrency: 2, Environment: r.browser,
	}, f, r.binaries[f.LogicalID])).Or(t)
	t.Cleanup(host.Close)
	server := httptest.NewServer(host.API())
	t.Cleanup(server.Close)
	r.lambda = server.URL
	return r
}

// rendererID is the function that renders the PDFs of the instances of all stages.
const rendererID = "PdfRenderFunction"

// decide returns the decision of the request's actor. A client that is no longer known is dead.
func (r *fixture) decide(request *faultproxy.Request) faultproxy.Fault {
	found, known := r.clients.Load(request.Client)
	if !known {
		return faultproxy.DropRequest
	}
	return found.(func(*faultproxy.Request) faultproxy.Fault)(request)
}

// name returns a new client name at the proxies.
func (r *fixture) name(of string) string { return fmt.Sprintf("%s-%d", of, r.names.Add(1)) }

// stage is a new set of tables, and the template with their names.
type stage struct {
	fixture  *fixture
	name     string
	model    *template.Template
	prices   wallet.Prices
	projects *admin.Store
	credits  *books.Store
	logs     string
}

func (r *fixture) newStage() (*stage, error) {
	s := &stage{fixture: r, name: r.name("faults")}
	parameters := stack.Addresses{
		DynamoDBURL: r.tables.URL("unknown"), SecretsURL: r.vault.URL, SandboxURL: r.sandbox.URL, LambdaURL: r.lambda,
	}.Overrides()
	maps.Copy(parameters, map[string]string{"Stage": s.name, "VendorTimeoutSeconds": "2"})
	var err error
	if s.model, err = template.Load(parameters); err != nil {
		return nil, err
	}
	if s.prices, err = books.Prices(s.model.Parameters); err != nil {
		return nil, err
	}
	if err := engine.CreateTables(context.Background(), r.direct, s.model, nil); err != nil {
		return nil, err
	}
	s.projects = admin.NewStore(r.direct, s.table("projects"))
	s.credits = books.NewStore(r.direct, books.NamedTables(s.table))
	s.logs = filepath.Join(r.dir, s.name)
	return s, s.accounts(upstream.ManagedOwner)
}

func (s *stage) table(name string) string { return "svc-" + s.name + "-" + name }

// transient returns the item of a partition key in Transient, nil where there is none.
func (s *stage) transient(pk string) (dynamo.Item, error) {
	return dynamo.Get(context.Background(), s.fixture.direct, s.table("transient"), dynamo.Item{"pk": dynamo.Text(pk)})
}

// accounts stores an owner's accounts at the vendors.
func (s *stage) accounts(owner string) error {
	vault := secret.NewWriter(secretsmanager.New(secretsmanager.Options{
		Region: template.Region, BaseEndpoint: &s.fixture.vault.URL,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	}), s.name)
	for _, v := range accounts {
		change := secret.Change{Environment: project.Development, Vendor: v.vendor, After: sandbox.Account(v.vendor)}
		if err := vault.Put(context.Background(), v.kind, owner, change); err != nil {
			return err
		}
	}
	return nil
}

// accounts are the vendors that projects use, each kind's chain in order.
var accounts = []struct {
	kind   project.Kind
	vendor string
}{
	{project.SMS, "quicksend"},
	{project.SMS, "twilio"},
	{project.SMS, "dialogv2"}, // of the plans with dialog alone, and their only one
	{project.Security, "ipgeolocation"},
	{project.Security, "proxycheck"},
	{project.Location, "ip-api"},
	{project.Location, "ipinfo"},
}

func (s *stage) drop() error {
	names := map[string]string{}
	for _, t := range s.model.Tables {
		names[t.LogicalID] = t.Name
	}
	return errors.Join(engine.DropTables(context.Background(), s.fixture.direct, names), os.RemoveAll(s.logs))
}

// create writes a schedule's project to the tables; in virtual time the project is its wallet.
func (s *stage) create(id string, p *plan, began time.Time) error {
	if p.virtual {
		return s.fill(id, p.credits, began)
	}
	ctx, mode, limits := context.Background(), project.Managed, project.Limits{DailyCredits: p.daily, DailyUnits: p.daily}
	if p.perNumber > 0 {
		limits.Recipients = []project.RecipientLimit{{Messages: p.perNumber, Window: 24 * time.Hour}}
	}
	if p.byok {
		mode = project.BYOK
		if err := s.accounts(id); err != nil {
			return err
		}
	}
	var integrations []project.Integration
	add := func(kind project.Kind, vendor string, settings map[string]string) {
		integrations = append(integrations, project.Integration{
			Kind: kind, Environment: project.Development, Vendor: vendor, Mode: mode, Active: true,
			Priority: len(integrations), Settings: settings,
		})
	}
	add(project.Barcode, "builtin", nil)
	add(project.PDF, "builtin", nil)
	seen := map[project.Kind]bool{}
	for _, v := range accounts {
		if v.kind == project.SMS && (v.vendor == "dialogv2") != p.dialog {
			continue
		}
		settings := map[string]string{"endpoint": s.fixture.vendors.URL(id) + "/" + v.vendor}
		if p.closed && !p.byok && !p.dialog && !seen[v.kind] {
			settings["endpoint"] = demo.ClosedURL
		}
		seen[v.kind] = true
		if v.kind == project.SMS {
			settings["sender_id"] = "SVCTest"
		}
		add(v.kind, v.vendor, settings)
	}
	_, err := s.projects.CreateProject(ctx, project.Project{
		ID: id, Name: id, Limit: project.RateLimit{Requests: p.limit, Window: time.Hour}, Limits: limits,
	}, integrations...)
	if err == nil {
		err = s.projects.AddCredential(ctx, id, project.Credential{
			ClientID: clientID(id), Environment: project.Development, Active: true,
			Secrets: []project.SecretDigest{{Digest: project.DigestSecret(clientSecret), Created: time.Now().UTC()}},
		})
	}
	return errors.Join(err, s.fill(id, p.credits, began))
}

// fill creates the wallet of a project with its first credits.
func (s *stage) fill(id string, credits int64, at time.Time) error {
	ctx := context.Background()
	if err := s.credits.CreateWallet(ctx, id); err != nil || credits == 0 {
		return err
	}
	return s.credits.Grant(ctx, wallet.Entry{
		Project: id, Key: wallet.NewKey(at, "first"), Credits: credits, Reason: "test", Actor: "test",
	})
}

const clientSecret = "svcs_faults-faults-faults-faults-faults"

func clientID(projectID string) string { return "svc_" + projectID + "_faultfau" }

// instance is one process of a function, with its own endpoint and gateway. In virtual time the instance is a store in
// this process, with a clock that is off and that may have stopped.
type instance struct {
	store   *books.Store
	skew    time.Duration
	stopped bool

	fixture  *fixture
	name     string
	function string
	host     *lambda.Host
	api      *gateway.Handler
	access   accessLog
	actor    atomic.Pointer[actor] // whose request it runs
	dead     atomic.Bool
}

// newInstance starts no process yet: the process starts with its first event. The environment overrides the template's.
func (s *stage) newInstance(function string, environment map[string]string,
	decide func(*faultproxy.Request) faultproxy.Fault) (*instance, error) {
	f, known := s.model.Function(function)
	if !known {
		return nil, fmt.Errorf("no function %s", function)
	}
	f.Environment = maps.Clone(f.Environment)
	f.Environment["PDF_RENDERER"] = rendererID // by its logical ID: one renderer serves all stages
	maps.Copy(f.Environment, environment)
	i := &instance{fixture: s.fixture, name: s.fixture.name(function), function: function}
	if decide == nil {
		decide = i.decide
	}
	extra := map[string]string{"SVC_LOCAL": "1", "AWS_ENDPOINT_URL_DYNAMODB": s.fixture.tables.URL(i.name)}
	var err error
	options := lambda.Options{LogDir: s.logs, Jail: s.fixture.jail, Concurrency: 1, Environment: extra}
	if i.host, err = lambda.HostOf(options, f, s.fixture.binaries[f.LogicalID]); err != nil {
		return nil, err
	}
	if i.api, err = gateway.New(s.model, i.host, &i.access); err != nil {
		return nil, err
	}
	s.fixture.clients.Store(i.name, decide)
	return i, nil
}

func (i *instance) decide(r *faultproxy.Request) faultproxy.Fault {
	c, a := decode(r), i.actor.Load()
	switch {
	case i.dead.Load():
		return faultproxy.DropRequest
	case a == nil || c.step == warm:
		return faultproxy.Deliver
	}
	return a.schedule.arrive(a, c.step, r)
}

// kill ends the process at once.
func (i *instance) kill() {
	i.dead.Store(true)
	i.fixture.clients.Delete(i.name)
	if i.host != nil {
		i.host.Close()
	}
}
