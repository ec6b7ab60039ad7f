package main

import (
	"cmp"
	"context"
	"net/netip"

	"svcapi/shared/iplookup"
	"svcapi/shared/iplookup/vendors"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/wallet"
)

var errUnavailable = &request.Error{
	Status: 503, Code: request.CodeServiceUnavailable,
	Message: "No security provider could complete the lookup. An unavailable check is not a safe result.",
}

// riskResult is openapi.yaml#VpnResult.
type riskResult struct {
	Address string `json:"ip_address"`
	vendors.Risk
	Provider string `json:"provider_name"`
}

// vpnShield returns the operation openapi.yaml#checkVpn.
func vpnShield(chain *iplookup.Chain[vendors.Risk]) request.Route {
	return &request.Operation[netip.Addr]{
		Name: "vpn_shield", Method: "POST", Path: "/api/v1/security/vpn-shield",
		Kind: project.Security, Price: wallet.VPNShield,
		Decode: func(in *request.Input) (netip.Addr, error) { return iplookup.Address(in, "ip"), nil },
		Prepare: func(ctx context.Context, call *request.Call, addr netip.Addr) (*request.Job, error) {
			return chain.Job(ctx, call, call.Integrations, addr, errUnavailable,
				func(found iplookup.Result[vendors.Risk]) *request.Result {
					return &request.Result{Data: riskResult{addr.String(), found.Value, cmp.Or(found.Vendor, "none")}}
				})
		},
	}
}
