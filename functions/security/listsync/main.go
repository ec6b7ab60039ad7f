// The function listsync fetches the published lists of disposable mail domains on a schedule, and stores their
// difference to the compiled table.
package main

import (
	"errors"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"svcapi/shared/burner"
	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
)

// config is the configuration that the function reads from the environment.
type config struct {
	ProjectsTable string `env:"PROJECTS_TABLE,required,notEmpty"`
	Endpoint      string `env:"LISTS_ENDPOINT_URL"` // of an emulator of the sources; empty: their own addresses
	Upstream      upstream.Config
	Log           telemetry.Config
}

// Validate returns the problems of the configuration.
func (c config) Validate() error {
	if c.Endpoint != "" && !c.Upstream.Local {
		return errors.New("LISTS_ENDPOINT_URL is for the local stack only")
	}
	return c.Upstream.Validate()
}

func main() {
	cfg, err := settings.Read[config]()
	if err != nil {
		telemetry.Exit(err)
	}
	s := &syncer{
		store:    burner.NewStore(dynamo.NewClient(dynamo.FromEnvironment()), cfg.ProjectsTable),
		client:   upstream.New(cfg.Upstream),
		endpoint: cfg.Endpoint,
		now:      cache.Clock{}.Now,
		log:      telemetry.New(os.Stdout, cfg.Log),
	}
	lambda.Start(s.handle)
}
