package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
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
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	r := &fixture{dir: t.TempDir(), engine: enginetest.URL(t)}
	if err := r.start(t); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *fixture) start(t *testing.T) (err error) {
	ctx := context.Background()
	model, err := r.template(nil)
	if err != nil {
		return err
	}
	if r.binaries, err = build.Functions(ctx, model.Functions); err != nil {
		return err
	}
	r.svc = filepath.Join(r.dir, "svc")
	if err := build.Packages(ctx, r.svc, "./cmd/svc"); err != nil {
		return err
	}
	if r.browser, err = chromium.Environment(ctx, func(string) {}); err != nil {
		return err
	}
	if r.jail, err = jail.New(ctx, func(line string) { t.Log(line) }); err != nil {
		return err
	}
	r.direct = engine.Client(r.engine)
	if r.vault, err = secrets.Start(); err != nil {
		return err
	}
	t.Cleanup(func() { _ = r.vault.Close() })
	if r.sandbox, err = sandbox.Start(); err != nil {
		return err
	}
	t.Cleanup(func() { _ = r.sandbox.Close() })
	if r.tables, err = faultproxy.Start(r.engine, r.decide); err != nil {
		return err
	}
	t.Cleanup(r.tables.Close)
	if r.vendors, err = faultproxy.Start(r.sandbox.URL, r.decide); err != nil {
		return err
	}
	t.Cleanup(r.vendors.Close)
	return r.startRenderer(t, model)
}

// rendererID is the function that renders PDFs.
const rendererID = "PdfRenderFunction"

// startRenderer starts the function that renders PDFs for the instances of all stages.
func (r *fixture) startRenderer(t *testing.T, model *template.Template) error {
	f, known := model.Function(rendererID)
	if !known {
		return errors.New("no function " + rendererID)
	}
	host, err := lambda.NewHost(lambda.Options{LogDir: filepath.Join(r.dir, "renderer"), Jail: r.jail, Concurrency: 2, Environment: r.browser})
	if err != nil {
		return err
	}
	t.Cleanup(host.Close)
	server := httptest.NewServer(host.API())
	t.Cleanup(server.Close)
	r.lambda = server.URL
	return host.Add(f, r.binaries[f.LogicalID])
}

func (r *fixture) template(parameters map[string]string) (*template.Template, error) {
	return template.Load(parameters)
}

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
	prices   credit.Prices
	projects *project.Store
	credits  *credit.Store
	logs     string
	copies   map[string][]map[string]types.AttributeValue // items of the models
}

func (r *fixture) newStage() (*stage, error) {
	s := &stage{fixture: r, name: r.name("faults"), copies: map[string][]map[string]types.AttributeValue{}}
	parameters := stack.Addresses{
		DynamoDBURL: r.tables.URL("unknown"), SecretsURL: r.vault.URL, SandboxURL: r.sandbox.URL, LambdaURL: r.lambda,
	}.Overrides()
	maps.Copy(parameters, map[string]string{"Stage": s.name, "VendorTimeoutSeconds": "2"})
	var err error
	if s.model, err = r.template(parameters); err != nil {
		return nil, err
	}
	if s.prices, err = credit.ReadPrices(credit.FromParameters(s.model.Parameters)); err != nil {
		return nil, err
	}
	if err := engine.CreateTables(context.Background(), r.direct, s.model, nil); err != nil {
		return nil, err
	}
	s.projects = project.NewStore(r.direct, s.table("projects"))
	s.credits = credit.NewStore(r.direct, credit.NamedTables(s.table))
	s.logs = filepath.Join(r.dir, s.name)
	return s, errors.Join(s.accounts(secret.Managed), s.models())
}

func (s *stage) table(name string) string { return "svc-" + s.name + "-" + name }

// accounts stores an owner's accounts at the vendors.
func (s *stage) accounts(owner string) error {
	vault := secret.NewWriter(secretsmanager.New(secretsmanager.Options{
		Region: template.Region, BaseEndpoint: &s.fixture.vault.URL,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	}), s.name)
	for _, v := range accounts {
		change := secret.Change{Environment: project.Development, Vendor: v.vendor, After: sandbox.Accounts[v.vendor]}
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
	{project.SMS, "dialogv2"}, // of the model dialog alone, and its only one
	{project.Security, "ipgeolocation"},
	{project.Security, "proxycheck"},
	{project.Location, "ip-api"},
	{project.Location, "ipinfo"},
}

func (s *stage) drop() error {
	var errs []error
	for _, t := range s.model.Tables {
		_, err := s.fixture.direct.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &t.Name})
		errs = append(errs, err)
	}
	return errors.Join(append(errs, os.RemoveAll(s.logs))...)
}

// The projects that those of schedules are copied from: the vendors are reachable, the first of each chain is not, SMS go
// through dialogv2, or the project has its own accounts and pays nothing.
const (
	open   = "model-open"
	closed = "model-closed"
	dialog = "model-dialog"
	byok   = "model-byok"
)

// models creates the projects that the schedules' projects are copied from, as an operator does.
func (s *stage) models() error {
	ctx := context.Background()
	for _, id := range []string{open, closed, dialog, byok} {
		if _, err := s.projects.CreateProject(ctx, project.Project{ID: id, Name: id, Limit: project.RateLimit{Requests: 1, Window: time.Hour}}); err != nil {
			return err
		}
		err := errors.Join(s.projects.AddCredential(ctx, id, project.Credential{
			ClientID: clientID(id), Environment: project.Development, Active: true,
			Secrets: []project.SecretDigest{{Digest: project.DigestSecret(clientSecret), Created: time.Now().UTC()}},
		}), s.integrate(id, project.Barcode, "builtin", 1, nil), s.integrate(id, project.PDF, "builtin", 1, nil))
		seen := map[project.Kind]bool{}
		for i, v := range accounts {
			if v.kind == project.SMS && (v.vendor == "dialogv2") != (id == dialog) {
				continue
			}
			settings := map[string]string{"endpoint": s.fixture.vendors.URL(id) + "/" + v.vendor}
			if id == closed && !seen[v.kind] {
				settings["endpoint"] = demo.ClosedURL
			}
			seen[v.kind] = true
			if v.kind == project.SMS {
				settings["sender_id"] = "SVCTest"
			}
			err = errors.Join(err, s.integrate(id, v.kind, v.vendor, i, settings))
		}
		if err != nil {
			return err
		}
		out, err := s.fixture.direct.Query(ctx, &dynamodb.QueryInput{
			TableName: aws.String(s.table("projects")), KeyConditionExpression: aws.String("pk = :p"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":p": &types.AttributeValueMemberS{Value: id}},
		})
		if err != nil {
			return err
		}
		s.copies[id] = out.Items
	}
	return nil
}

// renamed returns an attribute with another project's name in its texts.
func renamed(v types.AttributeValue, from, to string) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: strings.ReplaceAll(v.Value, from, to)}
	case *types.AttributeValueMemberM:
		m := map[string]types.AttributeValue{}
		for name, inner := range v.Value {
			m[name] = renamed(inner, from, to)
		}
		return &types.AttributeValueMemberM{Value: m}
	}
	return v
}

// create writes a schedule's project to the tables.
func (s *stage) create(id string, p *plan) error {
	ctx := context.Background()
	model := open
	switch {
	case p.byok:
		model = byok
		if err := s.accounts(id); err != nil {
			return err
		}
	case p.dialog:
		model = dialog
	case p.closed:
		model = closed
	}
	var puts []types.WriteRequest
	for _, item := range s.copies[model] {
		puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{
			Item: renamed(&types.AttributeValueMemberM{Value: item}, model, id).(*types.AttributeValueMemberM).Value,
		}})
	}
	_, err := s.fixture.direct.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{s.table("projects"): puts}})
	if err != nil {
		return err
	}
	if _, err := s.projects.Update(ctx, id, func(r *project.Project) {
		r.Limit = project.RateLimit{Requests: p.limit, Window: time.Hour}
		if p.perNumber > 0 {
			r.Limits.Recipients = []project.RecipientLimit{{Messages: p.perNumber, Window: 24 * time.Hour}}
		}
		r.Limits.DailyCredits, r.Limits.DailyUnits = p.daily, p.daily
	}); err != nil {
		return err
	}
	if err := s.credits.CreateWallet(ctx, id); err != nil || p.credits == 0 {
		return err
	}
	return s.credits.Grant(ctx, credit.Movement{
		Project: id, ID: credit.NewKey(time.Now(), "first"), Credits: p.credits, Reason: "test", Actor: "test",
	})
}

func (s *stage) integrate(id string, kind project.Kind, vendor string, priority int, settings map[string]string) error {
	mode := project.Managed
	if id == byok {
		mode = project.BYOK
	}
	return s.projects.PutIntegration(context.Background(), id, project.Integration{
		Kind: kind, Environment: project.Development, Vendor: vendor, Mode: mode, Active: true, Priority: priority, Settings: settings,
	})
}

const clientSecret = "svcs_faults-faults-faults-faults-faults"

func clientID(projectID string) string { return "svc_" + projectID + "_faultfau" }

// instance is one process of a function, with its own endpoint and gateway.
type instance struct {
	fixture  *fixture
	name     string
	function string
	host     *lambda.Host
	api      *gateway.Handler
	actor    atomic.Pointer[actor] // whose request it runs
	dead     atomic.Bool
}

// newInstance starts no process yet: the process starts with its first event. The environment overrides the template's.
func (s *stage) newInstance(function string, environment map[string]string, decide func(*faultproxy.Request) faultproxy.Fault) (*instance, error) {
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
	if i.host, err = lambda.NewHost(lambda.Options{LogDir: s.logs, Jail: s.fixture.jail, Concurrency: 1, Environment: extra}); err != nil {
		return nil, err
	}
	if err := i.host.Add(f, s.fixture.binaries[f.LogicalID]); err != nil {
		return nil, err
	}
	if i.api, err = gateway.New(s.model, i.host, io.Discard); err != nil {
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
	i.host.Close()
}
