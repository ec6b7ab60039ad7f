package request

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/afterresponse"
	"svcapi/shared/dynamo"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
)

// Main reads the configuration C of a function, lets wire make the routes, and serves them. Main does not return.
func Main[C settings.Validator](base func(C) Config, wire func(cfg C, s *Service, aws aws.Config) ([]Route, error)) {
	if err := start(base, wire); err != nil {
		telemetry.Exit(err)
	}
}

func start[C settings.Validator](base func(C) Config, wire func(C, *Service, aws.Config) ([]Route, error)) error {
	registration := afterresponse.Register()
	cfg, err := settings.Read[C]()
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	awsConfig := dynamo.FromEnvironment()
	common := base(cfg)
	if common.Prices, err = wallet.ReadPrices(wallet.FromEnvironment); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	db := dynamo.NewClient(awsConfig)
	service := New(common, db, telemetry.New(os.Stdout, common.Log))
	routes, err := wire(cfg, service, awsConfig)
	if err != nil {
		return err
	}
	var streams []string
	for _, r := range routes {
		name, _, path := r.route()
		if r.streams() {
			streams = append(streams, path)
		}
		switch _, priced := common.Prices[r.price()]; {
		case r.price() == "":
		case common.WalletsTable == "":
			return fmt.Errorf("operation %s is paid, but WALLETS_TABLE is not set", name)
		case !priced:
			return fmt.Errorf("operation %s is paid, but the environment has no price of %s", name, r.price())
		}
	}
	go dynamo.Warm(context.Background(), db, common.ProjectsTable) // while init has the whole CPU
	afterresponse.Start(service.after, registration, lambdaStream(service.Handler(routes...), streams))
	return nil
}
