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

// TestSilentEndpoint: the whole run ends within 20 s, also where the programs, the source of credentials and each call
// to AWS take their time, and what never responds is in a sentence.
func TestSilentEndpoint(t *testing.T) {
	cfg := aws.Config{Region: "eu-west-1", HTTPClient: silent{},
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	hangs := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	knows := func(context.Context) (string, error) { return "me", nil }
	for want, c := range map[string]struct {
		opens time.Duration
		actor func(context.Context) (string, error)
	}{
		"the source of your AWS credentials":  {time.Minute, knows},
		"AWS STS":                             {14 * time.Second, hangs},
		"CloudFormation, Lambda, API Gateway": {0, knows},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := &options{App: &app.App{}, template: "../../../template.yaml", config: "../../../samconfig.toml"}
			o.output = func(ctx context.Context, _, _ string) ([]byte, error) { _, err := hangs(ctx); return nil, err }
			began := time.Now()
			o.open = func(ctx context.Context) (*app.Stack, error) {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(c.opens):
					return &app.Stack{App: o.App, AWS: cfg, DB: dynamodb.NewFromConfig(cfg),
						Actor: func(ctx context.Context) (string, error) {
							if waited := time.Since(began); waited != c.opens {
								t.Errorf("the calls to AWS began after %s, want %s", waited, c.opens)
							}
							return c.actor(ctx)
						}}, nil
				}
			}
			f, _, err := o.check(t.Context())
			var silent []string
			for _, found := range f.Found {
				if service, ok := strings.CutSuffix(found.Detail, " did not respond in time"); ok && found.Check != "tool" &&
					found.Advice != "" {
					silent = append(silent, service)
				}
			}
			if took := time.Since(began); err != nil || strings.Join(silent, ", ") != want || took > 20*time.Second {
				t.Errorf("after %s %v %+v, want %s within 20 s", took, err, f.Found, want)
			}
		})
	}
}
