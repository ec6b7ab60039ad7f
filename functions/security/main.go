// The function security detects disposable e-mail addresses and the risk of IP addresses.
package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/burner"
	"svcapi/shared/cache"
	"svcapi/shared/iplookup"
	"svcapi/shared/iplookup/vendors"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
)

func main() {
	request.Main(
		func(c iplookup.Config) request.Config { return c.API },
		func(c iplookup.Config, s *request.Service, cfg aws.Config) ([]request.Route, error) {
			secrets := upstream.NewSecretCache(upstream.NewSecretsClient(cfg), c.API.Stage, c.Secrets, s.Log())
			chain := iplookup.NewChain(c, vendors.Risks(), secrets)
			chain.ContinueOnUnknown = true
			store := burner.NewStore(s.DB(), c.API.ProjectsTable)
			email := &emailShield{store, newGlobalList(store, cache.Clock{}), s.AfterResponse}
			email.global.refresh(context.Background()) // beside the start
			return []request.Route{email.operation(), vpnShield(chain)}, nil
		},
	)
}
