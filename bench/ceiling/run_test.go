// Package ceiling finds how many paid requests a second one project can make: the product's own pipeline, stores and
// limiter on DynamoDB Local, behind a model of what DynamoDB gives to one key (bench/capacity), in virtual time.
package ceiling

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/uuid"

	"svcapi/bench/capacity"
	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/request"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// work is a paid operation: what it does takes a while and touches no table.
type work struct {
	kind        project.Kind
	price       string
	irrevocable bool
	takes       time.Duration
}

func barcode(takes time.Duration) work { return work{project.Barcode, wallet.Barcode, false, takes} }
func sms(takes time.Duration) work     { return work{project.SMS, wallet.SMS, true, takes} }

const path = "/work"

func (w work) route() request.Route {
	return &request.Operation[struct{}]{
		Name: w.price, Method: "POST", Path: path, Kind: w.kind, Price: w.price,
		Decode: func(*request.Input) (struct{}, error) { return struct{}{}, nil },
		Prepare: func(_ context.Context, call *request.Call, _ struct{}) (*request.Job, error) {
			return &request.Job{Credits: call.Credits(1), Irrevocable: w.irrevocable,
				Run: func(context.Context) (*request.Result, error) {
					time.Sleep(w.takes)
					return &request.Result{Data: "done", Vendor: "vendor"}, nil
				}}, nil
		},
	}
}

// offer is the load of one run: requests at random moments, independent of the responses, first to warm up and then to
// measure.
type offer struct {
	work
	rate       float64 // requests in a second
	before     float64 // while warming up; 0: the same
	warm, span time.Duration
	ramp       time.Duration // in which the rate grows from nothing; part of warm
	seed       uint64
}

// table is the role of a table.
type table string

const (
	wallets table = "wallet"  // Wallets
	ledger  table = "ledger"  // Ledger
	counter table = "counter" // Transient
)

// sentRequest is a request that was made.
type sentRequest struct {
	id       string
	measured bool
	status   int
	took     time.Duration // beyond its work
}

// load is the work of the most loaded key of a table.
type load struct {
	units       float64 // in a second
	refused     int     // of all keys
	unitsAWrite float64
}

// outcome is the result of an offer.
type outcome struct {
	offer
	statuses      map[int]int // of all requests
	offered, paid int         // of those measured
	median, p99   time.Duration
	loads         map[table]load
	instances     int
	left          [2]int // leases that the instances left, and their slots
}

// fixture is a project on tables of its own.
type fixture struct {
	offer
	db             *dynamodb.Client // past the model
	tables         enginetest.Tables
	config         request.Config
	store          *books.Store
	client, secret string
}

const (
	projectID   = "busy"
	environment = project.Production
	mostLimit   = 10_000_000
)

// build makes the project.
func build(t *testing.T, o offer) *fixture {
	t.Helper()
	s := &fixture{offer: o}
	s.db, s.tables = enginetest.Client(t)
	prices := wallet.Prices{o.price: 100}
	s.config = request.Config{
		Stage: "test", ProjectsTable: s.tables.Projects, TransientTable: s.tables.Transient,
		WalletsTable: s.tables.Wallets, LedgerTable: s.tables.Ledger, ProjectCacheSeconds: 10, Prices: prices,
	}
	s.store = books.NewStore(s.db, s.tables.Tables)
	ctx, projects := t.Context(), admin.NewStore(s.db, s.tables.Projects)
	try := func(_ any, err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	try(projects.CreateProject(ctx,
		project.Project{ID: projectID, Name: "Busy", Limit: project.RateLimit{Requests: mostLimit, Window: time.Minute}}))
	try(nil, projects.PutIntegration(ctx, projectID,
		project.Integration{Kind: o.kind, Environment: environment, Vendor: "v", Mode: project.Managed, Active: true}))
	var err error
	s.client, s.secret, err = projects.IssueCredential(ctx, projectID, environment)
	try(nil, err)
	try(nil, s.store.CreateWallet(ctx, projectID))
	try(nil, s.store.Grant(ctx, wallet.Entry{
		Project: projectID, Key: wallet.NewKey(time.Now(), "grant"), Credits: 1e15, Reason: "for the run", Actor: "test",
	}))
	return s
}

// instance is one environment of the function in Lambda: one request at a time, with caches of its own.
type instance func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)

// fleet grows by an instance when all are busy, and returns the instance that was used last.
type fleet struct {
	start func() instance

	mu    sync.Mutex
	idle  []instance
	count int
}

func (f *fleet) take() instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.idle); n > 0 {
		i := f.idle[n-1]
		f.idle = f.idle[:n-1]
		return i
	}
	f.count++
	return f.start()
}

func (f *fleet) put(i instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle = append(f.idle, i)
}

// run makes the offer in a bubble of virtual time and examines what it left in the tables.
func run(t *testing.T, o offer) *outcome {
	t.Helper()
	s := build(t, o)
	tables := []string{s.tables.Projects, s.tables.Wallets, s.tables.Ledger, s.tables.Transient}
	model, err := capacity.New(t.Context(), s.db, enginetest.URL(t), tables, o.seed)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	out := &outcome{offer: o, statuses: map[int]int{}}
	var requests []*sentRequest
	var loads []capacity.Load
	synctest.Test(t, func(t *testing.T) {
		requests, loads, out.instances = s.play(t, model)
	})
	if err := model.Err(); err != nil {
		t.Fatal(err)
	}
	out.loads = s.summary(loads)
	s.examine(t, out, requests)
	return out
}

// names returns the names of the tables by role.
func (s *fixture) names() map[table]string {
	return map[table]string{wallets: s.tables.Wallets, ledger: s.tables.Ledger, counter: s.tables.Transient}
}

// play makes the requests, and returns them with the loads of the measured span.
func (s *fixture) play(t *testing.T,
	model *capacity.Model) (requests []*sentRequest, loads []capacity.Load, instances int) {
	// The bubble begins in the year 2000. The engine's clock is the machine's: what expires must be in the engine's future
	// too.
	time.Sleep(time.Until(noon()))
	db := dynamo.NewClient(aws.Config{Region: s.db.Options().Region, Credentials: s.db.Options().Credentials},
		func(o *dynamodb.Options) {
			o.BaseEndpoint, o.HTTPClient = s.db.Options().BaseEndpoint, model
		})
	f := &fleet{start: func() instance {
		return request.Lambda(request.New(s.config, db,
			telemetry.New(io.Discard, telemetry.Config{Level: "ERROR"})).Handler(s.route()))
	}}
	random := rand.New(rand.NewPCG(s.seed, 1))
	began := time.Now()
	at := time.Duration(0)
	measuring := false
	var all sync.WaitGroup
	for {
		rate := s.rate
		switch {
		case at < s.ramp:
			rate *= max(at, s.ramp/100).Seconds() / s.ramp.Seconds()
		case s.before > 0 && at < s.warm:
			rate = s.before
		}
		at += time.Duration(random.ExpFloat64() / rate * float64(time.Second))
		if !measuring && at > s.warm {
			time.Sleep(time.Until(began.Add(s.warm)))
			model.Reset()
			measuring = true
		}
		if at > s.warm+s.span {
			break
		}
		time.Sleep(time.Until(began.Add(at)))
		r := &sentRequest{id: newID(random), measured: measuring}
		requests = append(requests, r)
		all.Go(func() {
			i := f.take()
			defer f.put(i)
			s.call(t, i, r)
		})
	}
	time.Sleep(time.Until(began.Add(s.warm + s.span)))
	loads = model.Loads()
	all.Wait()
	return requests, loads, f.count
}

var realStart = time.Now()

// noon returns the next noon that is an hour away at least.
func noon() time.Time {
	return realStart.UTC().Add(13 * time.Hour).Truncate(24 * time.Hour).Add(12 * time.Hour)
}

func newID(random *rand.Rand) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], random.Uint64())
	binary.BigEndian.PutUint64(id[8:], random.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

func (s *fixture) call(t *testing.T, i instance, r *sentRequest) {
	began := time.Now()
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: r.id})
	response, err := i(ctx, events.APIGatewayProxyRequest{
		HTTPMethod: "POST", Path: path, Body: "{}",
		Headers:        map[string]string{"X-API-KEY": s.client, "X-API-SECRET": s.secret, "X-ENV": string(environment)},
		RequestContext: events.APIGatewayProxyRequestContext{RequestTimeEpoch: began.UnixMilli()},
	})
	if err != nil {
		t.Error(err)
	}
	r.status, r.took = response.StatusCode, time.Since(began)-s.takes
}

// summary returns the work of the most loaded key of each table.
func (s *fixture) summary(loads []capacity.Load) map[table]load {
	found := map[table]load{}
	for role, name := range s.names() {
		var most load
		for _, l := range slices.Backward(loads) { // the most loaded key last
			if l.Table != name {
				continue
			}
			most = load{l.Writes / s.span.Seconds(), most.refused + l.Refused, l.Writes / float64(max(l.Calls, 1))}
		}
		found[role] = most
	}
	return found
}

// settle closes the leases of all instances, and returns how many leases and slots it has closed.
func (s *fixture) settle(t *testing.T) (left [2]int) {
	var leases []wallet.Lease
	err := s.store.VisitPending(t.Context(), func(found wallet.Visited) error {
		leases = append(leases, found.Leases...)
		return errors.Join(found.Unreadable...)
	})
	s.store.Limits.Remove = time.Minute // on a busy machine
	s.store.Settle(t.Context(), leases, func(l wallet.Lease, _ wallet.Settled, failed error) {
		left, err = [2]int{left[0] + 1, left[1] + l.Slots}, errors.Join(err, failed)
	})
	if err != nil {
		t.Error(err)
	}
	return left
}

// examine counts the paid requests and checks what must be true under any load: the ledger explains the wallet; no
// request is charged without a response of 200.
func (s *fixture) examine(t *testing.T, out *outcome, requests []*sentRequest) {
	t.Helper()
	out.left = s.settle(t)
	verified, err := s.store.Verify(t.Context(), nil)
	if err != nil || len(verified.Findings) > 0 {
		t.Errorf("verify: %v, %+v", err, verified)
	}
	entries, err := s.store.Entries(t.Context(), projectID, noon(), noon())
	if err != nil {
		t.Fatal(err)
	}
	charged := map[string]bool{} // by request ID
	for _, e := range entries {
		if e.State == wallet.Captured {
			charged[e.RequestID] = true
		}
	}
	var took []time.Duration
	for _, r := range requests {
		out.statuses[r.status]++
		if r.status != 200 && charged[r.id] {
			t.Errorf("request %s was charged and has the response %d", r.id, r.status)
		}
		if r.measured {
			out.offered++
			took = append(took, r.took)
			if r.status == 200 && charged[r.id] {
				out.paid++
			}
		}
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		out.median, out.p99 = took[n/2], took[n*99/100]
	}
}
