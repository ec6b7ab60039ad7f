package request

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"svcapi/shared/cache"
	"svcapi/shared/project"
)

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
	}
	return internal("authenticate", err)
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
