package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svcapi/functions/sms/reference"
	"svcapi/functions/sms/vendors"
	"svcapi/shared/cache"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
)

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
	vendor, send, ok := reference.New(call.Project, call.Environment).Open(text)
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
		found, err := g.vendors.CheckStatus(ctx, g.client, g.secrets, accounts[0], send)
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
