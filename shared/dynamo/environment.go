package dynamo

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/logging"
)

// FromEnvironment returns the configuration that Lambda gives to a function: the region and the role's credentials,
// which stay the same as long as the process lives. AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE> name other
// endpoints. The SDK's config package reads the same variables, but adds 2 MB of unneeded clients to each program.
func FromEnvironment() aws.Config {
	cfg := aws.Config{
		Region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider(
			os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN"))),
		ConfigSources: []any{environment{}},
		Logger:        logging.Nop{}, // each message of the SDK is also an error of the call, or a remark
	}
	if url := os.Getenv("AWS_ENDPOINT_URL"); url != "" {
		cfg.BaseEndpoint = &url
	}
	return cfg
}

// environment gives the SDK the settings that belong to one service.
type environment struct{}

// GetServiceBaseEndpoint returns AWS_ENDPOINT_URL_<SERVICE>; an empty variable is no endpoint.
func (environment) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	url := os.Getenv("AWS_ENDPOINT_URL_" + strings.ToUpper(strings.ReplaceAll(service, " ", "_")))
	return url, url != "", nil
}
