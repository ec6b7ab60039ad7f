package main

import (
	"context"
	"fmt"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
)

// balanceErrors are the responses to a failed balance call (openapi.yaml#getSmsBalance).
var balanceErrors = map[upstream.Class]*request.Error{
	upstream.NotSent:    httpError(503, request.ReasonVendorUnreachable, "The SMS provider could not be reached."),
	upstream.NoResponse: httpError(503, request.ReasonVendorUnreachable, "The SMS provider did not respond."),
	upstream.Unusable:   request.ErrInternal,
	upstream.Rejected: httpError(422, request.ReasonBalanceUnavailable,
		"The SMS provider returned no balance for these credentials."),
	upstream.CredentialsRefused: httpError(422, request.ReasonVendorCredentialsRefused,
		"The SMS provider refused the integration's credentials."),
}

var errNoBalance = httpError(422, request.ReasonBalanceUnavailable,
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
func (g *group) balance() request.Route {
	return &request.Operation[struct{}]{
		Name: "sms_balance", Method: "POST", Path: "/api/v1/sms/balance", Kind: project.SMS,
		Decode:  func(*request.Input) (struct{}, error) { return struct{}{}, nil },
		Prepare: g.prepareBalance,
	}
}

func (g *group) prepareBalance(ctx context.Context, call *request.Call, _ struct{}) (*request.Job, error) {
	accounts, err := g.accounts(ctx, call)
	if err != nil {
		return nil, err
	}
	if call.Mode == project.Managed {
		var credits int64
		return &request.Job{
			Prefetch: func(ctx context.Context) (err error) {
				credits, err = g.wallet.Balance(ctx, call.Project.ID)
				return err
			},
			Run: func(context.Context) (*request.Result, error) {
				return &request.Result{Data: balanceResult{Source: "service_wallet",
						Balance: wallet.Grouped(credits) + " credits"}},
					nil
			},
		}, nil
	}
	return &request.Job{Run: func(ctx context.Context) (*request.Result, error) {
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
		return &request.Result{Data: balanceResult{"sms_provider_direct", text, &providerBalance{text}}, Vendor: name}, nil
	}}, nil
}
