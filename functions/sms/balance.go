package main

import (
	"context"
	"fmt"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/api"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// balanceErrors are the responses to a failed balance call (openapi.yaml#getSmsBalance).
var balanceErrors = map[upstream.Class]*api.Error{
	upstream.NotSent:    httpError(503, api.ReasonVendorUnreachable, "The SMS provider could not be reached."),
	upstream.NoResponse: httpError(503, api.ReasonVendorUnreachable, "The SMS provider did not respond."),
	upstream.Unusable:   api.ErrInternal,
	upstream.Rejected: httpError(422, api.ReasonBalanceUnavailable,
		"The SMS provider returned no balance for these credentials."),
	upstream.CredentialsRefused: httpError(422, api.ReasonVendorCredentialsRefused,
		"The SMS provider refused the integration's credentials."),
}

var errNoBalance = httpError(422, api.ReasonBalanceUnavailable,
	"The SMS provider of this integration has no balance to ask for.")

type balanceResult struct {
	Source   string           `json:"source"`
	Balance  string           `json:"balance_formatted"`
	Provider *providerBalance `json:"provider_response,omitzero"`
}

type providerBalance struct {
	Balance string `json:"balance"`
}

// balance returns the operation openapi.yaml#getSmsBalance: the balance of the wallet for a Managed integration, and
// that of the vendor's account for a Manual (BYOK) one.
func (g *group) balance() api.Route {
	return &api.Operation[struct{}]{
		Name: "sms_balance", Method: "POST", Path: "/api/v1/sms/balance", Kind: project.SMS,
		Decode:  func(*api.Input) (struct{}, error) { return struct{}{}, nil },
		Prepare: g.prepareBalance,
	}
}

func (g *group) prepareBalance(ctx context.Context, call *api.Call, _ struct{}) (*api.Job, error) {
	accounts, err := g.accounts(ctx, call)
	if err != nil {
		return nil, err
	}
	if call.Mode == project.Managed {
		var credits int64
		return &api.Job{
			Prefetch: func(ctx context.Context) (err error) {
				credits, err = g.wallet.Balance(ctx, call.Project.ID)
				return err
			},
			Run: func(context.Context) (*api.Result, error) {
				return &api.Result{Data: balanceResult{Source: "service_wallet", Balance: credit.Grouped(credits) + " credits"}},
					nil
			},
		}, nil
	}
	return &api.Job{Run: func(ctx context.Context) (*api.Result, error) {
		name := accounts[0].Integration.Vendor
		if _, ok := g.adapter(accounts[0]).(vendors.Balancer); !ok {
			return nil, errNoBalance.WithCause(fmt.Errorf("%s has no balance call", name))
		}
		text, err := upstream.Call(ctx, nil, g.secrets, accounts[0], func(a upstream.Account) (string, error) {
			return g.adapter(a).(vendors.Balancer).Balance(ctx)
		})
		if err != nil {
			return nil, vendorError(balanceErrors, name, err)
		}
		return &api.Result{Data: balanceResult{"sms_provider_direct", text, &providerBalance{text}}, Vendor: name}, nil
	}}, nil
}
