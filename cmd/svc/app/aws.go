package app

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// loadAWS reads region, credentials and endpoints as every AWS tool does. The SDK's own log is off: without a
// ClientLogMode the log holds only remarks on bodies that could not be closed and on odd headers.
func loadAWS(ctx context.Context, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	return config.LoadDefaultConfig(ctx, append([]func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}, options...)...)
}
