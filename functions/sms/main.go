// The function sms sends SMS, and reports balances and the states of earlier sends.
package main

import (
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
)

func main() {
	request.Main(
		func(c config) request.Config { return c.API },
		func(c config, s *request.Service, cfg aws.Config) ([]request.Route, error) {
			g := &group{
				client:   upstream.New(c.Upstream),
				secrets:  upstream.NewSecretCache(upstream.NewSecretsClient(cfg), c.API.Stage, c.Secrets, s.Stores.Log),
				breakers: upstream.NewBreakers(),
				vendors:  sync.OnceValue(func() vendors.Table { return vendors.NewTable(cfg) }), // at the first request
				wallet:   s.Stores.Wallet,
				timeout:  c.Upstream.Timeout(),
			}
			return []request.Route{g.send(), g.balance(), g.status()}, nil
		},
	)
}

// config is the configuration that the function reads from the environment.
type config struct {
	API      request.Config
	Upstream upstream.Config
	Secrets  upstream.SecretConfig
}

// Validate returns the problems of the configuration.
func (c config) Validate() error {
	return errors.Join(c.API.Validate(), c.Upstream.Validate(), c.Secrets.Validate())
}
