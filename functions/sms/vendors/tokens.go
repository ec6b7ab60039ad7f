package vendors

import (
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"

	"svcapi/shared/cache"
	"svcapi/shared/upstream"
)

// tokens are the results of an instance's logins at one vendor, by endpoint, user and password. A changed password has
// no result.
type tokens struct {
	results *cache.Expiring[string, loginResult]
	running singleflight.Group // one login at a time, because a vendor counts those that fail
}

// loginResult is a token, or the error of a refused login.
type loginResult struct {
	token   string
	refused error
}

const (
	tokenMargin = 5 * time.Minute // before its end a token is renewed
	// refusedFor is the time without a login after a refused one. A vendor locks an account after several of them.
	refusedFor = 5 * time.Minute
	maxTokens  = 1000
)

func newTokens() *tokens { return &tokens{results: cache.NewExpiring[string, loginResult](maxTokens)} }

// tokenRefused is a class within this package only, because withToken logs in again.
const tokenRefused upstream.Class = "token_refused"

// loginClasses maps the class of a failed login to that of the send; AccountRefused for another class. Each is
// certain, because no message left.
var loginClasses = map[upstream.Class]upstream.Class{
	upstream.NotSent:            upstream.NotSent,
	upstream.NoResponse:         upstream.NotSent,
	upstream.TooFast:            upstream.TooFast,
	upstream.Rejected:           upstream.CredentialsRefused,
	upstream.CredentialsRefused: upstream.CredentialsRefused,
	tokenRefused:                upstream.CredentialsRefused,
}

// logIn returns a new token of a vendor and its life. The body has the user and the password.
type logIn func(ctx context.Context, body any) (token string, life time.Duration, err error)

// session is an account at a vendor with a login by user and password.
type session struct {
	caller
	tokens *tokens
}

// token returns a cached or a new token, and its key in the cache. The error of a refused login is cached, too.
func (s session) token(ctx context.Context, logIn logIn) (key, token string, err error) {
	user, password := s.Secrets["username"], s.Secrets["password"]
	key = s.Endpoint + " " + user + " " + password
	result, _, _ := s.tokens.running.Do(key, func() (any, error) {
		if known, ok := s.tokens.results.Get(key); ok {
			return known, nil
		}
		token, life, err := logIn(ctx, map[string]string{"username": user, "password": password})
		if failed, ok := errors.AsType[*upstream.Error](err); ok {
			failed.Class = cmp.Or(loginClasses[failed.Class], upstream.AccountRefused)
			failed.Detail, failed.ByWords = "login: "+failed.Detail, false
			if failed.Class == upstream.CredentialsRefused {
				life = refusedFor + tokenMargin
			}
		}
		result := loginResult{token, err}
		s.tokens.results.Put(key, result, life-tokenMargin) // nothing for other errors, whose life is 0
		return result, nil
	})
	known, _ := result.(loginResult)
	return key, known.token, known.refused
}

// withToken makes a call with a token. A call with a refused token does nothing, so withToken logs in and calls again.
func (s session) withToken(ctx context.Context, logIn logIn,
	call func(token string) (Receipt, error)) (Receipt, error) {
	var refused error
	for range 2 {
		key, token, err := s.token(ctx, logIn)
		if err != nil {
			return Receipt{}, err
		}
		receipt, err := call(token)
		if err == nil || upstream.ClassOf(err) != tokenRefused {
			return receipt, err
		}
		s.tokens.results.DeleteFunc(key, func(known loginResult) bool { return known.token == token }) // another may be new
		refused = err
	}
	return Receipt{}, s.refusal(upstream.CredentialsRefused, upstream.CodeOf(refused), refused.Error(), nil)
}
