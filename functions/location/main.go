// The function location looks up the location of IP addresses.
package main

import (
	"github.com/aws/aws-sdk-go-v2/aws"

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
			return []request.Route{lookup(iplookup.NewChain(c, vendors.Places(), secrets))}, nil // unknown is a result
		},
	)
}
