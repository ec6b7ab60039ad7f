// The function currency serves exchange rates and currency codes.
package main

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/api"
	"svcapi/shared/awsclient"
	"svcapi/shared/clock"
	"svcapi/shared/rates"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

func main() {
	api.Main(
		func(c config) api.Config { return c.API },
		func(c config, _ *api.Service, cfg aws.Config) ([]api.Route, error) {
			g := newGroup(
				rates.NewStore(awsclient.DynamoDB(cfg), c.RatesTable),
				upstream.New(c.Upstream),
				secret.New(awsclient.Secrets(cfg), c.API.Stage, time.Duration(c.SecretCacheSeconds)*time.Second),
				time.Duration(c.RatesCacheSeconds)*time.Second, clock.Clock{},
			)
			return g.routes(), nil
		},
	)
}
