// Package dynamo creates the clients of DynamoDB and of the other AWS services, reads and creates items, and repeats
// writes. The clients serve conditional writes from a process that Lambda freezes between requests.
package dynamo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

const (
	// Attempts is how often the SDK tries one call, and how often Write tries a write without getting a response.
	// Three attempts of a second each fit into WriteTimeout.
	Attempts = 3
	// AttemptTimeout bounds one attempt, from the connection to the last byte. DynamoDB responds in milliseconds.
	AttemptTimeout = time.Second
	// WriteTimeout is the time for one write of a request, attempts and pauses together: the longest that fits
	// between the end of the work and the response.
	WriteTimeout = 3500 * time.Millisecond
	// Backoff is the longest pause between two attempts.
	Backoff = 100 * time.Millisecond
	// idleTimeout closes a connection before the server does, and counts wall time: none is used again after a freeze.
	idleTimeout = 45 * time.Second
	// warmConnections is the number of simultaneous calls of a request: the count and the reservation.
	warmConnections = 2
)

// NewClient returns a client of DynamoDB whose calls may move money: few short attempts, and no refusal to retry.
func NewClient(cfg aws.Config, options ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.NewFromConfig(cfg, append([]func(*dynamodb.Options){func(o *dynamodb.Options) {
		o.HTTPClient = HTTPClient(AttemptTimeout)
		o.Retryer = Retryer(Backoff)
		o.RetryMaxAttempts = Attempts // AWS_MAX_ATTEMPTS must not change the duration of a request
	}}, options...)...)
}

// Retryer tries a call up to Attempts times. The pause between two attempts is random and grows from a quarter of
// backoff up to backoff. The retryer has no budget, because an outage would use up the budget and more writes would be
// uncertain. In addition to the SDK, the retryer repeats calls with a truncated response, and writes that conflict with
// a transaction or that fail for lack of capacity within a transaction.
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

// retryable reports errors that the SDK does not retry although another attempt may succeed.
func retryable(err error) aws.Ternary {
	if _, ok := errors.AsType[*types.TransactionConflictException](err); ok {
		return aws.TrueTernary
	}
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		failed := func(codes ...string) bool {
			return slices.ContainsFunc(canceled.CancellationReasons, func(r types.CancellationReason) bool {
				return slices.Contains(codes, aws.ToString(r.Code))
			})
		}
		// A failed condition decides, also beside a conflict.
		if !failed("ConditionalCheckFailed") &&
			failed("TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError") {
			return aws.TrueTernary
		}
		return aws.UnknownTernary
	}
	if _, broken := errors.AsType[*smithy.DeserializationError](err); broken || errors.Is(err, io.ErrUnexpectedEOF) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// HTTPClient returns a new client whose attempts have a time limit. Each AWS client has its own connections.
func HTTPClient(timeout time.Duration) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithTimeout(timeout).
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = timeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.IdleConnTimeout = idleTimeout
			t.TLSHandshakeTimeout = timeout
			t.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(4)
		})
}

// Warm opens the connections to DynamoDB for the first request, with reads of a key that does not exist.
func Warm(ctx context.Context, client *dynamodb.Client, table string) {
	ctx, cancel := context.WithTimeout(ctx, AttemptTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for range warmConnections {
		wg.Go(func() {
			_, _ = client.Query(ctx, &dynamodb.QueryInput{
				TableName:                 &table,
				KeyConditionExpression:    new("pk = :pk"),
				ExpressionAttributeValues: Item{":pk": Text("#warm")},
				Limit:                     new(int32(1)),
			})
		})
	}
	wg.Wait()
}

// Scan calls visit for each item that a scan finds, and stops at the first error of visit.
func Scan(ctx context.Context, client *dynamodb.Client, in *dynamodb.ScanInput, visit func(Item) error) error {
	for pages := dynamodb.NewScanPaginator(client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read %s: %w", *in.TableName, err)
		}
		for _, item := range page.Items {
			if err := visit(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// Query calls visit for each item that a query finds, and returns the read units of the query.
func Query(ctx context.Context, client *dynamodb.Client, in *dynamodb.QueryInput,
	visit func(Item) error) (units float64, err error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	for pages := dynamodb.NewQueryPaginator(client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return units, fmt.Errorf("read %s: %w", *in.TableName, err)
		}
		if page.ConsumedCapacity != nil {
			units += aws.ToFloat64(page.ConsumedCapacity.CapacityUnits)
		}
		for _, item := range page.Items {
			if err := visit(item); err != nil {
				return units, err
			}
		}
	}
	return units, nil
}

// Partition returns a consistent query of the items with one value of the attribute pk.
func Partition(pk string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		KeyConditionExpression:    new("pk = :p"),
		ExpressionAttributeValues: Item{":p": Text(pk)},
		ConsistentRead:            new(true),
	}
}
