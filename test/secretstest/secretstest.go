// Package secretstest gives tests clients of an emulated Secrets Manager.
package secretstest

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go/middleware"

	"svcapi/local/secrets"
	"svcapi/test/must"
)

// Start starts an endpoint of the test's own, and returns the options of a client that makes each call once.
func Start(t *testing.T) secretsmanager.Options {
	t.Helper()
	server := must.Get(secrets.Start()).Or(t)
	t.Cleanup(func() { _ = server.Close() })
	return secretsmanager.Options{
		Region:           "us-east-1",
		BaseEndpoint:     &server.URL,
		Credentials:      credentials.NewStaticCredentialsProvider("test", "test", ""),
		RetryMaxAttempts: 1,
	}
}

// Before returns an option that runs a function before each call of a client, with the input of the call. The error of
// the function ends the call.
func Before(run func(in any) error) func(*secretsmanager.Options) {
	return func(o *secretsmanager.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("before",
				func(ctx context.Context, in middleware.InitializeInput,
					next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
					if err := run(in.Parameters); err != nil {
						return middleware.InitializeOutput{}, middleware.Metadata{}, err
					}
					return next.HandleInitialize(ctx, in)
				}), middleware.Before)
		})
	}
}
