package awsclient

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// call is a method of a DynamoDB client, such as client.PutItem.
type call[In, Out any] = func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)

// Write makes one write that a request may no longer abandon, and repeats the write until DynamoDB responds or ctx ends.
//
//   - A write that DynamoDB turned away for lack of capacity or because of a conflict (HTTP 4xx) has had no effect.
//     Write repeats the write as long as the time lasts: a table on demand throttles while the table grows.
//   - A write that the server failed (HTTP 5xx) is repeated as long, but may have had its effect.
//   - A write without a complete response may have had its effect, too. Write makes Attempts of these.
//
// Write returns how many failed attempts may have had their effect. The pauses are those of the client's Retryer.
func Write[In, Out any](ctx context.Context, do call[In, Out], in *In) (ambiguous int, err error) {
	return repeat(ctx, math.MaxInt, do, in)
}

// Try makes one write that a request may still abandon, with Attempts attempts in all. Requests that wait for capacity
// longer would compete with the writes that give capacity back: an overloaded wallet would not recover.
func Try[In, Out any](ctx context.Context, do call[In, Out], in *In) (ambiguous int, err error) {
	return repeat(ctx, Attempts, do, in)
}

func repeat[In, Out any](ctx context.Context, most int, do call[In, Out], in *In) (ambiguous int, err error) {
	var retryer aws.Retryer
	once := func(o *dynamodb.Options) { retryer, o.Retryer = o.Retryer, aws.NopRetryer{} }
	for attempt, lost := 1, 0; ; attempt++ {
		if _, err = do(ctx, in, once); err == nil {
			return ambiguous, nil
		}
		status := statusOf(err)
		if status < 400 {
			lost++
		}
		if status < 400 || status >= 500 {
			ambiguous++
		}
		if attempt == most || lost == Attempts || !retryer.IsErrorRetryable(err) || !pause(ctx, retryer, attempt) {
			return ambiguous, err
		}
	}
}

// statusOf returns the HTTP status of the response that made the error, or 0 where no response came.
func statusOf(err error) int {
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return response.HTTPStatusCode()
	}
	return 0
}

// pause waits before the next attempt, and reports false if ctx ends first. An attempt after the end would not leave this
// process, but the caller could not distinguish it from an attempt that did.
func pause(ctx context.Context, retryer aws.Retryer, attempt int) bool {
	delay, err := retryer.RetryDelay(attempt, nil)
	if err != nil {
		return false
	}
	select {
	case <-ctx.Done():
	case <-time.After(delay):
	}
	return ctx.Err() == nil
}
