package request

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/admit"
	"svcapi/shared/afterresponse"
	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
)

// Main reads the configuration C of a function, lets wire make the routes, and serves them. Main does not return.
func Main[C settings.Validator](base func(C) Config, wire func(cfg C, s *Service, aws aws.Config) ([]Route, error)) {
	if err := start(base, wire); err != nil {
		telemetry.Exit(err)
	}
}

func start[C settings.Validator](base func(C) Config, wire func(C, *Service, aws.Config) ([]Route, error)) error {
	registration := afterresponse.Register()
	cfg, err := settings.Read[C]()
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	awsConfig := dynamo.FromEnvironment()
	common := base(cfg)
	if common.Prices, err = wallet.ReadPrices(wallet.FromEnvironment); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	db := dynamo.NewClient(awsConfig)
	service := New(common, db, telemetry.New(os.Stdout, common.Log))
	routes, err := wire(cfg, service, awsConfig)
	if err != nil {
		return err
	}
	var streams []string
	for _, r := range routes {
		name, _, path := r.route()
		if r.streams() {
			streams = append(streams, path)
		}
		switch _, priced := common.Prices[r.price()]; {
		case r.price() == "":
		case common.WalletsTable == "":
			return fmt.Errorf("operation %s is paid, but WALLETS_TABLE is not set", name)
		case !priced:
			return fmt.Errorf("operation %s is paid, but the environment has no price of %s", name, r.price())
		}
	}
	go dynamo.Warm(context.Background(), db, common.ProjectsTable) // while init has the whole CPU
	afterresponse.Start(service.after, registration, lambdaStream(service.Handler(routes...), streams))
	return nil
}

// Config is the configuration that the pipeline reads from the environment.
type Config struct {
	Stage               string        `env:"STAGE,required"`
	ProjectsTable       string        `env:"PROJECTS_TABLE,required"`
	TransientTable      string        `env:"TRANSIENT_TABLE,required"`
	WalletsTable        string        `env:"WALLETS_TABLE"` // functions with paid operations
	LedgerTable         string        `env:"LEDGER_TABLE"`  // functions with paid operations
	ProjectCacheSeconds int           `env:"PROJECT_CACHE_SECONDS" envDefault:"10"`
	PlaygroundOrigin    string        `env:"PLAYGROUND_ORIGIN"`                // of the page; empty: no such origin
	LogPayloads         string        `env:"LOG_PAYLOADS" envDefault:"masked"` // on, off or masked; empty: masked
	Prices              wallet.Prices `env:"-"`                                // of the paid operations; Main reads them
	Log                 telemetry.Config
}

// Validate returns the problems of the configuration.
func (c Config) Validate() error {
	err := settings.InRange("PROJECT_CACHE_SECONDS", c.ProjectCacheSeconds, 0, 60)
	if !slices.Contains([]string{payloadsOn, payloadsOff, payloadsMasked, ""}, c.LogPayloads) {
		err = errors.Join(err, fmt.Errorf("LOG_PAYLOADS is %q, wants on, off or masked", c.LogPayloads))
	}
	if (c.WalletsTable == "") != (c.LedgerTable == "") {
		err = errors.Join(err, errors.New("WALLETS_TABLE and LEDGER_TABLE go together"))
	}
	return err
}

// New returns a service on the tables of the configuration.
func New(cfg Config, db *dynamodb.Client, log *telemetry.Logger) *Service {
	s := &Service{
		cfg: cfg,
		db:  db,
		projects: project.NewCache(project.NewStore(db, cfg.ProjectsTable),
			time.Duration(cfg.ProjectCacheSeconds)*time.Second),
		guesses: newGuesses(),
		keys:    &keyStore{db, cfg.TransientTable, time.Now},
		after:   afterresponse.New(log),
	}
	s.Stores = &admit.Stores{
		Limiter: ratelimit.New(db, cfg.TransientTable),
		Wallet:  wallet.NewStore(db, wallet.Tables{Wallets: cfg.WalletsTable, Ledger: cfg.LedgerTable}),
		Log:     log, After: s.AfterResponse, Now: time.Now,
	}
	return s
}

// DB returns the client of the tables, which shares its warm connections.
func (s *Service) DB() *dynamodb.Client { return s.db }

// AfterResponse runs work when the response to a request has been sent, with at most three seconds
// (docs/decisions/requests.md#after-response). The context is that of the request.
func (s *Service) AfterResponse(ctx context.Context, name string, work func(context.Context) error) {
	s.after.Do(ctx, afterresponse.Work{Name: name, RequestID: requestID(ctx), Run: work})
}

// authenticate finds the project's record by the request's credentials.
func (s *Service) authenticate(ctx context.Context, state *requestState) error {
	clientID, secret, env, err := credentials(state.request.Header)
	if err != nil {
		return err
	}
	state.record, state.environment, err = s.projects.Authenticate(ctx, clientID, secret, env)
	switch {
	case errors.Is(err, project.ErrWrongSecret):
		return s.wrongSecret(state, clientID)
	case errors.Is(err, project.ErrUnauthorized):
		return errUnauthorized
	case err != nil:
		return ErrInternal.WithCause(fmt.Errorf("authenticate: %w", err))
	}
	return nil
}

// credentials returns the headers that authenticate, or the error that names a wrong header. A header that was sent
// twice with different values matches no credentials, so that no intermediary can choose which value counts
// (docs/decisions/requests.md#credentials).
func credentials(header http.Header) (clientID, secret, env string, err error) {
	values := map[string]string{}
	for _, name := range []string{"X-API-KEY", "X-API-SECRET", "X-ENV"} {
		values[name] = header.Get(name)
		if slices.ContainsFunc(header.Values(name), func(v string) bool { return v != values[name] }) {
			return "", "", "", errHeader("The header " + name + " was sent twice, with different values.")
		}
	}
	clientID, secret, env = values["X-API-KEY"], values["X-API-SECRET"], values["X-ENV"]
	_, known := project.ParseEnvironment(env)
	switch {
	case clientID == "" && secret == "" && header.Get("Authorization") != "":
		err = errHeader("The header Authorization is not used: send X-API-KEY and X-API-SECRET.")
	case clientID == "":
		err = errHeader("The header X-API-KEY is missing.")
	case secret == "":
		err = errHeader("The header X-API-SECRET is missing.")
	case !known:
		err = errHeader("The header X-ENV must be development, dev, production or prod.")
	}
	return clientID, secret, env, err
}

func errHeader(message string) error {
	e := *errUnauthorized
	e.Message = message
	return &e
}

const (
	// mostGuesses is the number of wrong secrets in a minute that one source may send for one client ID.
	mostGuesses   = 100
	guessesWindow = time.Minute
	// maxGuessers bounds the pairs of source and client ID that an instance counts.
	maxGuessers = 10_000
)

// guesses counts wrong secrets by source and client ID, for this instance (docs/decisions/requests.md#guessing).
type guesses struct {
	clock cache.Clock
	mu    sync.Mutex
	pairs *cache.Map[guesser, guessed]
}

type guesser struct{ source, clientID string }

// guessed is the number of wrong secrets since the first one of a minute.
type guessed struct {
	since time.Time
	n     int
}

func newGuesses() *guesses { return &guesses{pairs: cache.New[guesser, guessed](maxGuessers)} }

// count counts a wrong secret, and returns the rest of the minute where the pair has sent too many.
func (g *guesses) count(who guesser) (rest time.Duration, tooMany bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	seen, ok := g.pairs.Get(who)
	if age := now.Sub(seen.since); !ok || age < 0 || age >= guessesWindow {
		seen = guessed{since: now}
	}
	seen.n++
	g.pairs.Put(who, seen)
	return seen.since.Add(guessesWindow).Sub(now), seen.n > mostGuesses
}

// wrongSecret returns the response to a wrong secret of a known client ID. The right secret is compared before.
func (s *Service) wrongSecret(state *requestState, clientID string) error {
	who := guesser{source(state.request.RemoteAddr), clientID}
	rest, tooMany := s.guesses.count(who)
	if !tooMany {
		return errUnauthorized
	}
	state.attributes = append(state.attributes, slog.String("client_id", who.clientID), slog.String("source", who.source))
	return errLimited(outcomeGuessed, rest, mostGuesses, guessesWindow,
		"Too many wrong secrets were sent for this client ID.")
}

// source returns an IPv4 address, or the /64 network of an IPv6 address, which one customer has (RFC 6177).
func source(address string) string {
	if pair, err := netip.ParseAddrPort(address); err == nil {
		address = pair.Addr().String()
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	network, _ := ip.Prefix(64) // an IPv6 address has 128 bits
	return network.String()
}
