package secret

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"svcapi/shared/dynamo"
)

// NewClient returns a client for Secrets Manager, which responds more slowly than DynamoDB.
func NewClient(cfg aws.Config, options ...func(*secretsmanager.Options)) *secretsmanager.Client {
	return secretsmanager.NewFromConfig(cfg, append([]func(*secretsmanager.Options){func(o *secretsmanager.Options) {
		o.HTTPClient = dynamo.HTTPClient(2 * dynamo.AttemptTimeout)
		o.Retryer = dynamo.Retryer(dynamo.Backoff)
		o.RetryMaxAttempts = dynamo.Attempts
	}}, options...)...)
}
