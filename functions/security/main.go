// The function security detects disposable e-mail addresses and the risk of IP addresses.
package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/api"
	"svcapi/shared/burner"
	"svcapi/shared/cache"
	"svcapi/shared/iplookup"
	"svcapi/shared/iplookup/vendors"
	"svcapi/shared/secret"
)

func main() {
	api.Main(
		func(c iplookup.Config) api.Config { return c.API },
		func(c iplookup.Config, s *api.Service, cfg aws.Config) ([]api.Route, error) {
			secrets := secret.New(secret.NewClient(cfg), c.API.Stage, c.Secrets, s.Log())
			chain := iplookup.NewChain(c, vendors.Risks(), secrets)
			chain.ContinueOnUnknown = true
			store := burner.NewStore(s.DB(), c.API.ProjectsTable)
			email := &emailShield{store, newGlobalList(store, cache.Clock{}), s.AfterResponse}
			email.global.refresh(context.Background()) // beside the start
			return []api.Route{email.operation(), vpnShield(chain)}, nil
		},
	)
}
