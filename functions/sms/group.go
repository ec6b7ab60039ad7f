package main

import (
	"context"
	"errors"
	"time"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/api"
	"svcapi/shared/credit"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// group is what the operations of this function share.
type group struct {
	client   *upstream.Client
	secrets  *secret.Cache
	breakers *upstream.Breakers
	vendors  vendors.Table
	wallet   *credit.Store
	timeout  time.Duration // of one vendor call
}

// accounts are the complete integrations of a call, by priority. None is a 422
// http_error (contract: SMS send, rule 9).
func (g *group) accounts(ctx context.Context, call *api.Call) ([]upstream.Account, error) {
	accounts, err := g.client.Accounts(ctx, call.Project.ID, call.Integrations, g.vendors.Spec, g.secrets)
	switch {
	case errors.Is(err, upstream.ErrIncomplete):
		return nil, errIncomplete.WithCause(err)
	case err != nil:
		return nil, api.ErrInternal.WithCause(err)
	}
	return accounts, nil
}

// adapter speaks to the account's vendor, which accounts has found in the table.
func (g *group) adapter(account upstream.Account) vendors.Adapter {
	return g.vendors.Find(account.Integration.Vendor).New(g.client, account)
}

// httpError is an error of the SMS operations that has no code of its own.
func httpError(status int, message string) *api.Error {
	return &api.Error{Status: status, Code: api.CodeHTTPError, Message: message}
}

var errIncomplete = httpError(422, "The SMS integration is incomplete or cannot be used as it is configured.")

// vendorError makes the answer for a failed vendor call from a table of
// classes: what the client sees is the table's, what the vendor said is the
// operator's.
func vendorError(table map[upstream.Class]*api.Error, vendor string, err error) *api.Error {
	e := table[upstream.ClassOf(err)].WithCause(err)
	e.Vendor = vendor
	return e
}
