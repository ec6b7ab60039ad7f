package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
)

// group holds the dependencies of the function's operations.
type group struct {
	client   *upstream.Client
	secrets  *upstream.SecretCache
	breakers *upstream.Breakers
	vendors  vendors.Table
	wallet   *wallet.Store
	timeout  time.Duration // of one vendor call
}

// accounts returns the complete integrations of a call by priority (docs/decisions/money.md#modes).
func (g *group) accounts(ctx context.Context, call *request.Call) ([]upstream.Account, error) {
	accounts, err := g.client.Accounts(ctx, call.Project.ID, call.Integrations, g.vendors.Spec, g.secrets)
	switch {
	case errors.Is(err, upstream.ErrIncomplete):
		incomplete := httpError(422, request.ReasonIntegrationIncomplete, call.NoIntegration(nil).Message)
		incomplete.Cause = err
		return nil, incomplete
	case err != nil:
		return nil, request.ErrInternal.WithCause(err)
	}
	return accounts, nil
}

// adapter returns the adapter of the account. accounts has found the vendor in the table.
func (g *group) adapter(account upstream.Account) vendors.Adapter {
	return g.vendors.Find(account.Integration.Vendor).New(g.client, account)
}

// httpError returns an error of the SMS operations with the code http_error.
func httpError(status int, reason request.Reason, message string) *request.Error {
	return &request.Error{Status: status, Code: request.CodeHTTPError, Reason: reason, Message: message}
}

// vendorError returns the error of the table for a failed vendor call; that of Rejected where the class has none. The
// client sees the vendor's code, and only the operator sees the vendor's text.
func vendorError(table map[upstream.Class]*request.Error, vendor string, err error) *request.Error {
	e := cmp.Or(table[upstream.ClassOf(err)], table[upstream.Rejected]).WithCause(err)
	e.Vendor, e.VendorCode = vendor, upstream.CodeOf(err)
	return e
}
