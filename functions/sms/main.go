// The function sms sends SMS, and reports balances and the states of earlier sends.
package main

import (
	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/api"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

func main() {
	api.Main(
		func(c config) api.Config { return c.API },
		func(c config, s *api.Service, cfg aws.Config) ([]api.Route, error) {
			g := &group{
				client:   upstream.New(c.Upstream),
				secrets:  secret.New(secret.NewClient(cfg), c.API.Stage, c.Secrets, s.Log()),
				breakers: upstream.NewBreakers(),
				vendors:  vendors.NewTable(cfg),
				wallet:   s.Wallet(),
				timeout:  c.Upstream.Timeout(),
			}
			return []api.Route{g.send(), g.balance(), g.status()}, nil
		},
	)
}
