package main

import (
	"context"
	"net/netip"

	"svcapi/shared/api"
	"svcapi/shared/credit"
	"svcapi/shared/ipaddr"
	"svcapi/shared/iplookup"
	"svcapi/shared/iplookup/vendors"
	"svcapi/shared/project"
)

var errUnavailable = &api.Error{
	Status: 503, Code: api.CodeServiceUnavailable,
	Message: "No security provider could complete the lookup. An unavailable check is not a safe result.",
}

// riskResult is openapi.yaml#VpnResult.
type riskResult struct {
	Address string `json:"ip_address"`
	vendors.Risk
	Provider string `json:"provider_name"`
}

// vpnShield returns the operation openapi.yaml#checkVpn.
func vpnShield(chain *iplookup.Chain[vendors.Risk]) api.Route {
	return &api.Operation[netip.Addr]{
		Name: "vpn_shield", Method: "POST", Path: "/api/v1/security/vpn-shield",
		Kind: project.Security, Price: credit.VPNShield,
		Decode: func(in *api.Input) (netip.Addr, error) { return iplookup.Address(in, "ip"), nil },
		Prepare: func(ctx context.Context, call *api.Call, addr netip.Addr) (*api.Job, error) {
			accounts, err := chain.Accounts(ctx, call.Project.ID, call.Integrations)
			if err != nil {
				return nil, err
			}
			if !ipaddr.Global(addr) {
				return &api.Job{Run: func(context.Context) (*api.Result, error) {
					return &api.Result{Data: riskResult{Address: addr.String(), Provider: "none"}}, nil
				}}, nil
			}
			return &api.Job{
				Credits: call.Credits(1),
				Run: func(ctx context.Context) (*api.Result, error) {
					a, err := chain.Ask(ctx, accounts, addr)
					if err != nil {
						e := errUnavailable.WithCause(err)
						e.Vendor = a.Vendor
						return nil, e
					}
					return &api.Result{Data: riskResult{addr.String(), a.Value, a.Vendor}, Vendor: a.Vendor, Attributes: a.Attributes()}, nil
				},
			}, nil
		},
	}
}
