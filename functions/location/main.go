// The function location looks up the location of IP addresses.
package main

import (
	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/api"
	"svcapi/shared/iplookup"
	"svcapi/shared/iplookup/vendors"
	"svcapi/shared/secret"
)

func main() {
	api.Main(
		func(c iplookup.Config) api.Config { return c.API },
		func(c iplookup.Config, s *api.Service, cfg aws.Config) ([]api.Route, error) {
			secrets := secret.New(secret.NewClient(cfg), c.API.Stage, c.Secrets, s.Log())
			return []api.Route{lookup(iplookup.NewChain(c, vendors.Places(), secrets))}, nil // unknown is a result
		},
	)
}
