package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// An endpoint is a plain https URL, whatever an operator's file holds.
func FuzzEndpoint(f *testing.F) {
	for _, endpoint := range []string{"https://v.example/base", "http://v.example", "https://u:p@v.example",
		"https://v.example?x", "https://[::1%25a]/", "//v.example", "https://v.example#f", "HTTPS://V", "https:v.example"} {
		f.Add(endpoint)
	}
	client := New(Config{TimeoutSeconds: 1})
	f.Fuzz(func(t *testing.T, endpoint string) {
		if client.validateEndpoint(endpoint) != nil {
			return
		}
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil ||
			strings.ContainsAny(endpoint, "@") && !strings.Contains(u.Path, "@") {
			t.Errorf("%q is accepted", endpoint)
		}
	})
}

// fakeSecretsManager responds without a network.
type fakeSecretsManager struct{ value string }

func (a *fakeSecretsManager) Do(r *http.Request) (*http.Response, error) {
	body, err := json.Marshal(map[string]string{"Name": "n", "SecretString": a.value})
	return &http.Response{StatusCode: 200, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(string(body))), Request: r}, err
}

// No error and no printed text contains a piece of a secret.
func FuzzValue(f *testing.F) {
	for _, value := range []string{`{"development":{"v":{"api_key":"k3y-of-the-vendor"}}}`, `{"v":1}`, `[]`, ``, `null`,
		`{"development":{"v":{"k":"a"},"v":{"k":"b"}}}`, "{\"development\":{\"v\":{\"\xff\":\"\xff\"}}}",
		`k3y-of-the-vendor`} {
		f.Add(value)
	}
	fake := &fakeSecretsManager{}
	client := secretsmanager.New(secretsmanager.Options{
		Region: "eu-west-1", HTTPClient: fake, Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
	})
	f.Fuzz(func(t *testing.T, value string) {
		fake.value = value
		got, found, err := ReadSecret(t.Context(), client, "n", nil)
		if found != SecretPresent {
			t.Fatalf("%v, %v", found, err)
		}
		if err != nil && len(value) > 8 && strings.Contains(err.Error(), value) {
			t.Errorf("the error contains the value: %v", err)
		}
		for _, fields := range got["development"] {
			values := SecretValues(fields)
			encoded, bad := json.Marshal(values)
			printed := fmt.Sprintf("%v %+v %#v %s %q %d", values, values, values, values, values, values) + string(encoded)
			for name, secret := range values {
				if len(secret) > 8 && !strings.Contains(strings.Join(values.Names(), " "), secret) &&
					strings.Contains(printed, secret) || bad != nil {
					t.Errorf("%s is printed: %s, %v", name, printed, bad)
				}
			}
		}
	})
}
