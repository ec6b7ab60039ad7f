package upstream

import (
	"context"
)

// Call makes a call with an account, through the circuit of the account. Where the circuit is open, the error wraps an
// *Error of class NotSent, and ErrPaused after a refusal for pace, else ErrOpen. Where the vendor refuses a secret
// that has changed since it was read, because of a rotation, Call repeats the call once with the new secret. Call
// ignores the circuit where breakers is nil.
func Call[T any](
	ctx context.Context, breakers *Breakers, secrets *SecretCache, account Account, call func(Account) (T, error),
) (result T, err error) {
	if breakers != nil {
		c, epoch, open := breakers.begin(account)
		if open != nil {
			return result, open
		}
		err = errPanicked // until the call returns
		defer func() { breakers.end(c, epoch, err) }()
	}
	result, err = call(account)
	if err == nil || ClassOf(err) != CredentialsRefused || len(account.Secrets) == 0 {
		return result, err
	}
	in := account.Integration
	fresh, changed, readErr := secrets.Refresh(ctx, in.Kind, account.Owner, in.Environment, in.Vendor, account.Secrets)
	if readErr != nil || !changed {
		return result, err
	}
	account.Secrets = fresh
	return call(account)
}
