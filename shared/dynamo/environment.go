package dynamo

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/logging"
)

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
