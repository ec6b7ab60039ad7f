// The function currency serves exchange rates and currency codes.
package main

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/rates"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
)

func main() {
	request.Main(
		func(c config) request.Config { return c.API },
		func(c config, s *request.Service, cfg aws.Config) ([]request.Route, error) {
			g := newGroup(
				rates.NewStore(dynamo.NewClient(cfg), c.RatesTable),
				upstream.New(c.Upstream),
				upstream.NewSecretCache(upstream.NewSecretsClient(cfg), c.API.Stage, c.Secrets, s.Log()),
				time.Duration(c.RatesCacheSeconds)*time.Second, cache.Clock{},
			)
			return g.routes(), nil
		},
	)
}
