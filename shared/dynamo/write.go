package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// call is a method of a DynamoDB client, such as client.PutItem.
type call[In, Out any] = func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)

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
func Write[In, Out any](ctx context.Context, do call[In, Out], in *In) (out *Out, ambiguous int, err error) {
	return repeat(ctx, math.MaxInt, do, in)
}

// WriteUnlessHot makes one write that a request may still abandon. WriteUnlessHot repeats the write as Write does, but
// gives up after Attempts throttles which say that the item's own key gets more requests than DynamoDB serves for one
// key. Requests that wait for such an item take its capacity from the writes that make the item smaller: an overloaded
// wallet would not recover (docs/decisions/money.md#write-retries).
func WriteUnlessHot[In, Out any](ctx context.Context, do call[In, Out], in *In) (out *Out, ambiguous int, err error) {
	return repeat(ctx, Attempts, do, in)
}

// repeat repeats a write, and returns the error of the last attempt, with that of ctx where the time has ended. The write
// ends after mostHot throttles by a hot key.
func repeat[In, Out any](ctx context.Context, mostHot int, do call[In, Out],
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

// pause waits before the next attempt, and returns the error of ctx if ctx ends first. An attempt after the end would not
// leave this process, but the caller could not distinguish it from an attempt that did.
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
