// The function docs serves the documentation page and the OpenAPI document. The function needs no credentials and has
// none.
package main

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/aws/aws-lambda-go/lambda"

	"svcapi"
	"svcapi/shared/request"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
)

func main() {
	cfg, err := settings.Read[config]()
	prices, missing := wallet.ReadPrices(wallet.FromEnvironment)
	if err = errors.Join(err, missing); err != nil {
		telemetry.Exit(fmt.Errorf("configuration: %w", err))
	}
	files := sync.OnceValue(func() map[string]*file {
		if cfg.Docs == "off" {
			return nil
		}
		files, err := newFiles(svcapi.OpenAPI, svcapi.Changelog, prices, cfg.Demo)
		if err != nil {
			telemetry.Exit(err)
		}
		return files
	})
	go files() // the function asks for its first event meanwhile
	lambda.Start(request.Lambda(&site{files: files, log: telemetry.New(os.Stdout, cfg.Log)}))
}

// config is what the function reads from the environment, beside the prices.
type config struct {
	Docs string `env:"DOCS" envDefault:"on"` // "off": every path is 404
	Demo demo
	Log  telemetry.Config
}

// demo holds credentials that the playground starts with. Only the local stack has them.
type demo struct {
	ID     string `env:"DEMO_CLIENT_ID"`
	Secret string `env:"DEMO_CLIENT_SECRET"`
}

// Validate returns the problems of the configuration.
func (c config) Validate() error {
	if c.Docs != "on" && c.Docs != "off" {
		return fmt.Errorf("DOCS is %q, wants on or off", c.Docs)
	}
	if (c.Demo.ID == "") != (c.Demo.Secret == "") {
		return errors.New("DEMO_CLIENT_ID and DEMO_CLIENT_SECRET go together")
	}
	return nil
}
