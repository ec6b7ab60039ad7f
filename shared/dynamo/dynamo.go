// Package dynamo creates the clients of DynamoDB and of the other AWS services, reads and creates items, and repeats
// writes. The clients serve conditional writes from a process that Lambda freezes between requests.
package dynamo

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	smithyhttp "github.com/aws/smithy-go/transport/http"
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
	// A failed condition decides, also beside a conflict.
	if Cancelled(err, "TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError") &&
		!Cancelled(err, "ConditionalCheckFailed") {
		return aws.TrueTernary
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

// Get reads an item consistently, and returns nil where the table has none.
func Get(ctx context.Context, client *dynamodb.Client, table string, key Item) (Item, error) {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: new(true)})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", table, err)
	}
	return out.Item, nil
}

// Partition returns a consistent query of the items of a table with one value of the attribute pk.
func Partition(table, pk string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName:                 &table,
		KeyConditionExpression:    new("pk = :pk"),
		ExpressionAttributeValues: Item{":pk": Text(pk)},
		ConsistentRead:            new(true),
	}
}

// Item is a DynamoDB item, its key, or a map within it. The SDK's attributevalue would add 127 KB to a function.
type Item = map[string]types.AttributeValue

// Text returns a string attribute.
func Text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Number returns a number attribute.
func Number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// Bytes returns a binary attribute.
func Bytes(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

// TextOf returns the value of a string attribute, or "" for another type.
func TextOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// NumberOf returns the value of an integer attribute.
func NumberOf(v types.AttributeValue) (int64, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("attribute of type %T is not a number", v)
	}
	return strconv.ParseInt(n.Value, 10, 64)
}

// BytesOf returns the value of a binary attribute, or nil for another type.
func BytesOf(v types.AttributeValue) []byte {
	if b, ok := v.(*types.AttributeValueMemberB); ok {
		return b.Value
	}
	return nil
}

// Pack compresses a text for a binary attribute.
func Pack(text []byte) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.DefaultCompression) // the level is valid
	_, _ = w.Write(text)                                  // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// Unpack returns what Pack has compressed, up to so many bytes.
func Unpack(packed []byte, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), most))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return text, nil
}

// ConditionFailed reports whether a write's condition failed, and returns the stored item where the write requests it.
func ConditionFailed(err error) (Item, bool) {
	failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return nil, false
	}
	return failed.Item, true
}

// Reasons returns the reasons of a cancelled transaction, one for each of its writes, and nil for any other error.
func Reasons(err error) []types.CancellationReason {
	if failed, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return failed.CancellationReasons
	}
	return nil
}

// Refused reports that the condition of a write of a transaction failed.
func Refused(r types.CancellationReason) bool {
	return aws.ToString(r.Code) == "ConditionalCheckFailed"
}

// Cancelled reports whether a transaction was cancelled for a reason with one of the codes.
func Cancelled(err error, codes ...string) bool {
	return slices.ContainsFunc(Reasons(err), func(r types.CancellationReason) bool {
		return slices.Contains(codes, aws.ToString(r.Code))
	})
}

// Call is a method of a DynamoDB client, such as client.PutItem.
type Call[In, Out any] = func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)

// Write makes one write that a request may no longer abandon, and repeats the write until DynamoDB responds or ctx
// ends.
//
//   - A write that DynamoDB turned away for lack of capacity or because of a conflict (HTTP 4xx) has had no effect.
//     Write repeats the write as long as the time lasts: a table on demand throttles while the table grows.
//   - A write that the server failed (HTTP 5xx) is repeated as long, but may have had its effect.
//   - A write without a complete response may have had its effect, too. Write makes Attempts of these.
//
// Write returns the output, and how many failed attempts may have had their effect. The pauses are those of the
// client's Retryer.
func Write[In, Out any](ctx context.Context, do Call[In, Out], in *In) (out *Out, ambiguous int, err error) {
	return repeat(ctx, math.MaxInt, do, in)
}

// WriteUnlessHot makes one write that a request may still abandon. WriteUnlessHot repeats the write as Write does, but
// gives up after Attempts throttles which say that the item's own key gets more requests than DynamoDB serves for one
// key. Requests that wait for such an item take its capacity from the writes that make the item smaller: an overloaded
// wallet would not recover (docs/decisions/money.md#write-retries).
func WriteUnlessHot[In, Out any](ctx context.Context, do Call[In, Out], in *In) (out *Out, ambiguous int, err error) {
	return repeat(ctx, Attempts, do, in)
}

// repeat repeats a write up to mostHot throttles by a hot key, and returns the last error, with that of ctx if it ends.
func repeat[In, Out any](ctx context.Context, mostHot int, do Call[In, Out],
	in *In) (out *Out, ambiguous int, err error) {
	var retryer aws.Retryer
	once := func(o *dynamodb.Options) { retryer, o.Retryer = o.Retryer, aws.NopRetryer{} }
	for attempt, lost, hot := 1, 0, 0; ; attempt++ {
		if out, err = do(ctx, in, once); err == nil {
			return out, ambiguous, nil
		}
		status := statusOf(err)
		if status < 400 {
			lost++
		}
		if status < 400 || status >= 500 {
			ambiguous++
		}
		if hotKey(err) {
			hot++
		}
		ended := lost == Attempts || hot == mostHot
		if ended || !retryer.IsErrorRetryable(err) {
			return nil, ambiguous, err
		}
		if paused := pause(ctx, retryer, attempt); paused != nil {
			return nil, ambiguous, fmt.Errorf("%w, then: %w", err, paused)
		}
	}
}

// hotKey reports a throttle by the rate of requests at the item's own key (DynamoDB API reference, ThrottlingReason).
func hotKey(err error) bool {
	var reasons []types.ThrottlingReason
	if e, ok := errors.AsType[*types.ProvisionedThroughputExceededException](err); ok {
		reasons = e.ThrottlingReasons
	} else if e, ok := errors.AsType[*types.ThrottlingException](err); ok {
		reasons = e.ThrottlingReasons
	} else if e, ok := errors.AsType[*types.RequestLimitExceeded](err); ok {
		reasons = e.ThrottlingReasons
	}
	return slices.ContainsFunc(reasons, func(r types.ThrottlingReason) bool {
		return strings.HasSuffix(aws.ToString(r.Reason), "KeyRangeThroughputExceeded")
	})
}

// statusOf returns the HTTP status of the response that made the error, or 0 where no response came.
func statusOf(err error) int {
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return response.HTTPStatusCode()
	}
	return 0
}

// pause waits before the next attempt, and returns the error of ctx if ctx ends first. An attempt after the end would
// not leave this process, but the caller could not distinguish it from an attempt that did.
func pause(ctx context.Context, retryer aws.Retryer, attempt int) error {
	delay, err := retryer.RetryDelay(attempt, nil)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(delay):
	}
	return ctx.Err()
}

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

// SignedRequest returns a request to an AWS service, by its signing name and a path of its API, with a signature of
// version 4 (IAM User Guide, Signature Version 4 for API requests). A program that makes one call of a service signs
// the call so: the SDK's client of the service would take longer to compile and to start than the rest of the program.
func SignedRequest(ctx context.Context, cfg aws.Config, service, method, path string, header http.Header,
	body []byte) (*http.Request, error) {
	base, named, err := environment{}.GetServiceBaseEndpoint(ctx, service)
	if !named && err == nil {
		domain := "amazonaws.com"
		if strings.HasPrefix(cfg.Region, "cn-") {
			domain = "amazonaws.com.cn"
		}
		base = cmp.Or(aws.ToString(cfg.BaseEndpoint), "https://"+service+"."+cfg.Region+"."+domain)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(base, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, header)
	if trace := os.Getenv("_X_AMZN_TRACE_ID"); trace != "" { // of the event, by which X-Ray joins the call to it
		r.Header.Set("X-Amzn-Trace-Id", trace)
	}
	keys, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	now := time.Now() //nolint:forbidigo // AWS compares the wall clock of the signature
	return r, v4.NewSigner().SignHTTP(ctx, keys, r, hex.EncodeToString(sum[:]), service, cfg.Region, now)
}
