package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/cache"
	"svcapi/shared/pattern"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
)

// group holds the dependencies of the function's operations.
type group struct {
	client   *upstream.Client
	secrets  *upstream.SecretCache
	breakers *upstream.Breakers
	vendors  func() vendors.Table
	wallet   *wallet.Store
	timeout  time.Duration // of one vendor call
}

// accounts returns the complete integrations of a call by priority (docs/decisions/money.md#modes).
func (g *group) accounts(ctx context.Context, call *request.Call) ([]upstream.Account, error) {
	accounts, err := g.client.Accounts(ctx, call.Project.ID, call.Integrations, g.vendors().Spec, g.secrets)
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
	return g.vendors().Find(account.Integration.Vendor).New(g.client, account)
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
	Source   string            `json:"source"`
	Balance  string            `json:"balance_formatted"`
	Provider map[string]string `json:"provider_response,omitzero"`
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
				balance := wallet.Grouped(credits) + " credits"
				return &request.Result{Data: balanceResult{Source: "service_wallet", Balance: balance}}, nil
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
		data := balanceResult{"sms_provider_direct", text, map[string]string{"balance": text}}
		return &request.Result{Data: data, Vendor: name}, nil
	}}, nil
}

var errNoUnitPrice = httpError(422, request.ReasonUnitPriceMissing,
	"The SMS integration has no usable unit price to estimate costs with.")

var unitPricePattern = pattern.New(vendors.UnitPricePattern)

// costResponse is provider_response of a cost check.
type costResponse struct {
	Status   string           `json:"status"`
	Campaign vendors.Campaign `json:"campaign_data"`
}

// estimate returns the job of a cost check, which sends nothing and costs nothing. The job calls the vendor only where
// the integration permits that, because no vendor documents that its estimate never sends.
func (g *group) estimate(account upstream.Account, r sendRequest) (*request.Job, error) {
	checker, native := g.adapter(account).(vendors.CostChecker)
	native = native && account.Settings[vendors.NativeCheckCost] == "true"
	var campaign vendors.Campaign
	var err error
	if !native {
		if campaign, err = computeCost(account, r); err != nil {
			return nil, err
		}
	}
	return &request.Job{Run: func(ctx context.Context) (*request.Result, error) {
		if native {
			var to []string
			for _, p := range r.recipients {
				to = append(to, p.To)
			}
			if campaign, err = checker.CheckCost(ctx, to, r.recipients[0].text); err != nil {
				return nil, vendorError(callErrors, account.Integration.Vendor, err)
			}
		}
		return &request.Result{
			Data: sendResult{Method: bulkSame, Units: len(r.recipients) * r.recipients[0].Units, // all have one text
				Provider: costResponse{"success", campaign}},
			Vendor: account.Integration.Vendor,
		}, nil
	}}, nil
}

// computeCost multiplies the units of the message, the unit price of the integration and the number of recipients.
func computeCost(account upstream.Account, r sendRequest) (vendors.Campaign, error) {
	text := account.Settings[vendors.UnitPrice]
	if !unitPricePattern().MatchString(text) {
		return vendors.Campaign{}, errNoUnitPrice.WithCause(fmt.Errorf("setting %s is %q", vendors.UnitPrice, text))
	}
	price, _ := new(big.Rat).SetString(text) // the pattern permits decimals only
	_, fraction, _ := strings.Cut(text, ".")
	places := max(2, len(fraction))
	times := func(amount *big.Rat, n int) *big.Rat { return new(big.Rat).Mul(amount, big.NewRat(int64(n), 1)) }

	message, numbers := r.recipients[0], len(r.recipients)
	unicode := "0"
	if message.unicode {
		unicode = "1"
	}
	cost := times(price, message.Units)
	return vendors.Campaign{
		Method: bulkSame, Type: "sms", Sender: account.Settings["sender_id"],
		Cost: times(cost, numbers).FloatString(places), Numbers: strconv.Itoa(numbers),
		Parts: []vendors.CampaignMessage{{
			Message: message.text, Unicode: unicode, Size: strconv.Itoa(message.Units),
			PerSMS: price.FloatString(places), Cost: cost.FloatString(places),
		}},
	}, nil
}

// callErrors are the responses to a failed status call (openapi.yaml#getSmsStatus) or cost check of a vendor.
var callErrors = map[upstream.Class]*request.Error{
	upstream.NotSent:    httpError(503, request.ReasonVendorUnreachable, "The SMS provider could not be reached."),
	upstream.NoResponse: httpError(503, request.ReasonVendorUnreachable, "The SMS provider did not respond."),
	upstream.TooFast: httpError(503, request.ReasonVendorUnreachable,
		"The SMS provider gets too many requests of the account: ask later."),
	upstream.Unusable: httpError(502, request.ReasonVendorResponseUnusable,
		"The SMS provider's response was unexpected."),
	upstream.Rejected: httpError(502, request.ReasonVendorRejected, "The SMS provider refused the request."),
	upstream.CredentialsRefused: httpError(502, request.ReasonVendorCredentialsRefused,
		"The SMS provider refused the integration's credentials."),
}

var errNoReference = httpError(404, request.ReasonReferenceNotFound,
	"There is no such reference in this project and environment.")

type statusResult struct {
	Reference string        `json:"reference"`
	Status    vendors.State `json:"status"`
	Vendor    string        `json:"vendor"`
	Word      *string       `json:"vendor_status"`
	Reason    string        `json:"reason,omitzero"`
	CheckedAt time.Time     `json:"checked_at"` // in UTC, to the second
}

// status returns the operation openapi.yaml#getSmsStatus, which asks the vendor of an earlier send for its state.
func (g *group) status() request.Route {
	return &request.Operation[string]{
		Name: "sms_status", Method: "GET", Path: "/api/v1/sms/status/{reference}", Kind: project.SMS,
		Decode:  func(in *request.Input) (string, error) { return in.Parameter("reference"), nil },
		Prepare: g.prepareStatus,
	}
}

func (g *group) prepareStatus(ctx context.Context, call *request.Call, text string) (*request.Job, error) {
	vendor, send, ok := vendors.NewSealer(call.Project, call.Environment).Open(text)
	if !ok {
		return nil, errNoReference
	}
	i := slices.IndexFunc(call.Integrations, func(in project.Integration) bool { return in.Vendor == vendor })
	if i < 0 {
		e := call.NoIntegration(nil)
		e.Message = fmt.Sprintf("The project has no active sms integration with %s, the vendor of the send, in %s.",
			vendor, call.Environment)
		return nil, e
	}
	call.Integrations = call.Integrations[i : i+1]
	accounts, err := g.accounts(ctx, call)
	if err != nil {
		return nil, err
	}
	return &request.Job{Run: func(ctx context.Context) (*request.Result, error) {
		found, err := g.vendors().CheckStatus(ctx, g.client, g.secrets, accounts[0], send)
		if err != nil {
			return nil, vendorError(callErrors, vendor, err)
		}
		result := statusResult{text, found.State, vendor, &found.Word, found.Reason,
			cache.Clock{}.Now().UTC().Truncate(time.Second)}
		if found.Word == "" {
			result.Word = nil
		}
		return &request.Result{Data: result, Vendor: vendor}, nil
	}}, nil
}
