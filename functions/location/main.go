// The function location looks up the location of IP addresses.
package main

import (
	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/api"
	"svcapi/shared/iplookup"
	"svcapi/shared/iplookup/vendors"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

func main() {
	api.Main(
		func(c iplookup.FunctionConfig) api.Config { return c.API },
		func(c iplookup.FunctionConfig, s *api.Service, cfg aws.Config) ([]api.Route, error) {
			secrets := secret.New(secret.NewClient(cfg), c.API.Stage, c.Secrets, s.Log())
			// The chain ends at a vendor that does not know the address, because unknown is a result.
			chain := iplookup.NewChain(c.Lookup, vendors.Places(), iplookup.StopOnUnknown, upstream.New(c.Upstream), secrets)
			return []api.Route{lookup(chain)}, nil
		},
	)
}
