package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"
	"github.com/google/uuid"
)

// gatewayLimit is the time after which API Gateway gives up, counted from its receipt of the request. The start of a function
// counts for the gateway and not for the function (docs/decisions.md#time-budget).
const gatewayLimit = 29 * time.Second

// staleAfter is the age from which the time of an event is ignored, because the event is replayed from a file.
const staleAfter = time.Minute

// Lambda returns a handler of API Gateway REST (v1) proxy events.
func Lambda(handler http.Handler) func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	adapter := httpadapter.New(handler)
	return func(ctx context.Context, event events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		// The adapter fails on an invalid host or path (a malformed escape, a control character), and the gateway would
		// return its own 500.
		if _, err := url.Parse("https://" + event.RequestContext.DomainName); err != nil {
			event.RequestContext.DomainName = ""
		}
		if _, err := url.Parse("https://host/" + event.Path); err != nil {
			event.Path = "/"
		}
		event.RequestContext.RequestID = validID(ctx, event.RequestContext.RequestID)
		ctx, cancel := withDeadline(ctx, event.RequestContext.RequestTimeEpoch)
		defer cancel()
		return adapter.ProxyWithContext(ctx, event)
	}
}

// withDeadline returns a context that ends at the earlier of the function's and the gateway's limits.
func withDeadline(ctx context.Context, epochMilliseconds int64) (context.Context, context.CancelFunc) {
	received := time.UnixMilli(epochMilliseconds)
	if time.Since(received).Abs() > staleAfter {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, received.Add(gatewayLimit))
}

// validID returns the gateway's request ID, or Lambda's where an event has no UUID of its own.
func validID(ctx context.Context, id string) string {
	lc, _ := lambdacontext.FromContext(ctx)
	candidates := []string{id}
	if lc != nil {
		candidates = append(candidates, lc.AwsRequestID)
	}
	for _, c := range candidates {
		if parsed, err := uuid.Parse(c); err == nil {
			return parsed.String()
		}
	}
	return uuid.NewString()
}

// requestID returns the ID of the request that the context belongs to.
func requestID(ctx context.Context) string {
	gateway, ok := core.GetAPIGatewayContextFromContext(ctx)
	if !ok {
		return uuid.NewString()
	}
	return gateway.RequestID
}
