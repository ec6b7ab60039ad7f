// The function location looks up the location of IP addresses.
package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/iplookup"
	"svcapi/shared/iplookup/vendors"
	"svcapi/shared/pattern"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
)

func main() {
	request.Main(
		func(c iplookup.Config) request.Config { return c.API },
		func(c iplookup.Config, s *request.Service, cfg aws.Config) ([]request.Route, error) {
			secrets := upstream.NewSecretCache(upstream.NewSecretsClient(cfg), c.API.Stage, c.Secrets, s.Stores.Log)
			return []request.Route{lookup(iplookup.NewChain(c, vendors.Places, secrets))}, nil // unknown is a result
		},
	)
}

// lookupRequest is the decoded body of POST /location/lookup.
type lookupRequest struct {
	addr     netip.Addr
	provider *string // the hint in the request; nil: none
}

var providerPattern = pattern.New(`^[A-Za-z0-9_-]+$`)

// errUnavailable is the error for a chain whose vendors all failed. The contract has only 500 for that failure, and the
// reason distinguishes the failure from one of the service (docs/decisions/look-ups.md#lookup-chain).
var errUnavailable = &request.Error{
	Status: 500, Code: request.CodeInternalError, Reason: request.ReasonVendorUnreachable,
	Message: request.ErrInternal.Message,
}

// lookup returns the operation openapi.yaml#lookUpLocation.
func lookup(chain *iplookup.Chain[vendors.Place]) request.Route {
	return &request.Operation[lookupRequest]{
		Name: "location_lookup", Method: "POST", Path: "/api/v1/location/lookup",
		Kind: project.Location, Price: wallet.Location,
		Decode: decodeLookup,
		Prepare: func(ctx context.Context, call *request.Call, r lookupRequest) (*request.Job, error) {
			integrations := call.Integrations
			if r.provider != nil {
				integrations = slices.DeleteFunc(slices.Clone(integrations), func(in project.Integration) bool {
					return in.Vendor != *r.provider
				})
				if len(integrations) == 0 {
					e := call.NoIntegration(nil)
					e.Message = fmt.Sprintf("The project has no active location integration with the provider %s in %s.",
						*r.provider, call.Environment)
					return nil, e
				}
			}
			return chain.Job(ctx, call, integrations, r.addr, errUnavailable,
				func(found iplookup.Result[vendors.Place]) *request.Result {
					return &request.Result{Data: found.Value, Meta: map[string]*string{"provider_override": r.provider}}
				})
		},
	}
}

func decodeLookup(in *request.Input) (lookupRequest, error) {
	r := lookupRequest{addr: iplookup.Address(in, "ip")}
	if in.Has("provider") {
		provider := in.Text("provider",
			request.Text{Min: 1, Max: 50, Pattern: providerPattern, Message: "must consist of letters, digits, _ and -"})
		r.provider = &provider
	}
	return r, nil
}
