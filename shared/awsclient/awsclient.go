// Package awsclient makes the AWS clients of the product: one configuration, and settings that suit
// conditional writes from a process that Lambda freezes between requests.
package awsclient

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"
)

const (
	// Attempts is how often the SDK tries one call, and how often Write tries a write without getting a response.
	// Three attempts of a second each fit into WriteTimeout.
	Attempts = 3
	// AttemptTimeout bounds one attempt, from the connection to the last byte of the answer.
	// DynamoDB answers in milliseconds; what takes a second is lost.
	AttemptTimeout = time.Second
	// WriteTimeout is the time for one write of a request, attempts and pauses together: the longest that fits
	// between the end of the work and the response.
	WriteTimeout = 3500 * time.Millisecond
	// Backoff is the longest pause between two attempts.
	Backoff = 100 * time.Millisecond
	// idleTimeout drops a connection before the other side does (a minute and more). It counts
	// wall time, so a connection that slept through a freeze is not used again.
	idleTimeout = 45 * time.Second
	// warmConnections is how many calls a request makes at once: the count beside the reservation.
	warmConnections = 2
)

// DynamoDB returns a client whose calls may move money: few short attempts, and no refusal to retry.
func DynamoDB(cfg aws.Config, options ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.NewFromConfig(cfg, append([]func(*dynamodb.Options){func(o *dynamodb.Options) {
		o.HTTPClient = httpClient(AttemptTimeout)
		o.Retryer = Retryer(Backoff)
		o.RetryMaxAttempts = Attempts // AWS_MAX_ATTEMPTS must not change what a request can last
	}}, options...)...)
}

// Secrets returns a client for Secrets Manager. It answers more slowly than DynamoDB.
func Secrets(cfg aws.Config, options ...func(*secretsmanager.Options)) *secretsmanager.Client {
	return secretsmanager.NewFromConfig(cfg, append([]func(*secretsmanager.Options){func(o *secretsmanager.Options) {
		o.HTTPClient = httpClient(2 * AttemptTimeout)
		o.Retryer = Retryer(Backoff)
		o.RetryMaxAttempts = Attempts
	}}, options...)...)
}

// Retryer tries a call up to Attempts times. The pause between two attempts is random and grows from a quarter of
// backoff up to backoff. The retryer has no budget that an outage could use up: a write with few attempts would be left
// in doubt more often. Beside what the SDK retries, the retryer repeats calls whose response broke off, and writes that
// a transaction on the same item, or a lack of capacity within a transaction, turned away.
func Retryer(backoff time.Duration) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = Attempts
		o.RateLimiter = ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
			longest := backoff / 4 << min(max(attempt-1, 0), 2)
			if longest <= 0 {
				return 0, nil
			}
			return longest/2 + rand.N(longest/2+1), nil
		})
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(retryable))
	})
}

// retryable names what the SDK would give up on although another attempt may succeed.
func retryable(err error) aws.Ternary {
	if _, ok := errors.AsType[*types.TransactionConflictException](err); ok {
		return aws.TrueTernary
	}
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, reason := range canceled.CancellationReasons {
			if aws.ToString(reason.Code) == "ConditionalCheckFailed" {
				return aws.UnknownTernary // the answer that matters
			}
		}
		for _, reason := range canceled.CancellationReasons {
			switch aws.ToString(reason.Code) {
			case "TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError":
				return aws.TrueTernary
			}
		}
		return aws.UnknownTernary
	}
	if _, broken := errors.AsType[*smithy.DeserializationError](err); broken || errors.Is(err, io.ErrUnexpectedEOF) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// httpClient is made once per AWS client, so that each has connections of its own.
func httpClient(timeout time.Duration) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithTimeout(timeout).
		WithDialerOptions(func(d *net.Dialer) {
			d.Timeout = timeout
		}).
		WithTransportOptions(func(t *http.Transport) {
			t.IdleConnTimeout = idleTimeout
			t.TLSHandshakeTimeout = timeout
			t.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(4)
		})
}

// Warm opens the connections to DynamoDB that the first request will use. Start it in the
// background while the function initialises, when CPU is free. It reads a key of the table that does
// not exist; what it is answered does not matter, so it returns nothing.
func Warm(ctx context.Context, client *dynamodb.Client, table string) {
	ctx, cancel := context.WithTimeout(ctx, AttemptTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for range warmConnections {
		wg.Go(func() {
			_, _ = client.Query(ctx, &dynamodb.QueryInput{
				TableName:              &table,
				KeyConditionExpression: aws.String("pk = :pk"),
				ExpressionAttributeValues: map[string]types.AttributeValue{
					":pk": &types.AttributeValueMemberS{Value: "#warm"},
				},
				Limit: aws.Int32(1),
			})
		})
	}
	wg.Wait()
}
