package preflight

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/cmd/svc/app"
)

// silent is an endpoint that accepts each request and never responds.
type silent struct{}

// Do implements aws.HTTPClient.
func (silent) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestSilentEndpoint: each call to an endpoint that never responds ends, all within 20 s, in a sentence that names the service.
func TestSilentEndpoint(t *testing.T) {
	cfg := aws.Config{Region: "eu-west-1", HTTPClient: silent{}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	for want, actor := range map[string]func(context.Context) (string, error){
		"AWS STS":                             func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() },
		"CloudFormation, Lambda, API Gateway": func(context.Context) (string, error) { return "me", nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &flight{StackName: "svc-prod", Stack: &app.Stack{App: &app.App{}, Stage: "prod", AWS: cfg, DB: dynamodb.NewFromConfig(cfg), Actor: actor}}
			began := time.Now()
			f.account(t.Context(), parameters{})
			var silent []string
			for _, found := range f.Found {
				if service, ok := strings.CutSuffix(found.Detail, " did not respond in time"); ok && found.Advice != "" {
					silent = append(silent, service)
				}
			}
			if took := time.Since(began); strings.Join(silent, ", ") != want || took > 20*time.Second {
				t.Errorf("after %s %+v, want %s within 20 s", took, f.Found, want)
			}
		})
	}
}
