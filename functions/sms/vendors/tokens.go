package vendors

import (
	"context"
	"time"

	"svcapi/shared/cache"
	"svcapi/shared/upstream"
)

// tokenCache caches the tokens of an instance by account, for vendors with a login.
type tokenCache = cache.Expiring[string, string]

const (
	tokenMargin = 5 * time.Minute // before its end a token is renewed
	maxTokens   = 1000
)

// tokenRefused is a class within this package only, because session.send logs in again.
const tokenRefused upstream.Class = "token_refused"

// loginClasses maps the class of a failed login to that of the send. No message left, so no class is uncertain.
var loginClasses = map[upstream.Class]upstream.Class{
	upstream.NotSent:            upstream.NotSent,
	upstream.NoResponse:         upstream.NotSent,
	upstream.Unusable:           upstream.Rejected,
	upstream.Rejected:           upstream.CredentialsRefused,
	upstream.CredentialsRefused: upstream.CredentialsRefused,
	tokenRefused:                upstream.CredentialsRefused,
}

// login is the body of a login.
type login struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// logIn returns a new token of a vendor and its life.
type logIn func(context.Context, login) (token string, life time.Duration, err error)

// session is an account at a vendor with a login by user and password.
type session struct {
	caller
	tokens *tokenCache
}

// token returns a cached or a new token, and its key in the cache.
func (s session) token(ctx context.Context, logIn logIn) (key, token string, err error) {
	l := login{s.account.Secrets["username"], s.account.Secrets["password"]}
	key = s.account.Endpoint + " " + l.Username + " " + l.Password
	if token, ok := s.tokens.Get(key); ok {
		return key, token, nil
	}
	token, life, err := logIn(ctx, l)
	if err != nil {
		return "", "", s.withCode(s.fail(loginClasses[upstream.ClassOf(err)], "login: "+err.Error()), upstream.CodeOf(err))
	}
	s.tokens.Put(key, token, life-tokenMargin)
	return key, token, nil
}

// send sends with a token. After a refused token nothing was sent, so send logs in and sends once more.
func (s session) send(ctx context.Context, logIn logIn, send func(token string) (Receipt, error)) (Receipt, error) {
	var refused error
	for range 2 {
		key, token, err := s.token(ctx, logIn)
		if err != nil {
			return Receipt{}, err
		}
		receipt, err := send(token)
		if err == nil || upstream.ClassOf(err) != tokenRefused {
			return receipt, err
		}
		s.tokens.DeleteFunc(key, func(cached string) bool { return cached == token }) // another request may have a new one
		refused = err
	}
	return Receipt{}, s.withCode(s.fail(upstream.CredentialsRefused, refused.Error()), upstream.CodeOf(refused))
}
