package secrets

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go"
)

func start(t *testing.T) *secretsmanager.Client {
	t.Helper()
	server, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return secretsmanager.New(secretsmanager.Options{
		Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}

func create(t *testing.T, client *secretsmanager.Client, name, value string) *secretsmanager.CreateSecretOutput {
	t.Helper()
	out, err := client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: &name, SecretString: &value})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLife(t *testing.T) {
	client, ctx := start(t), t.Context()
	name := aws.String("svc/local/sms/managed/development")
	created := create(t, client, *name, "one")
	if !strings.HasPrefix(*created.ARN, "arn:aws:secretsmanager:eu-west-1:000000000000:secret:"+*name+"-") {
		t.Errorf("ARN = %s", *created.ARN)
	}
	put, err := client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: name, SecretString: aws.String("two")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in   secretsmanager.GetSecretValueInput
		want string
	}{
		{secretsmanager.GetSecretValueInput{SecretId: name}, "two"},
		{secretsmanager.GetSecretValueInput{SecretId: created.ARN}, "two"},
		{secretsmanager.GetSecretValueInput{SecretId: aws.String((*created.ARN)[:len(*created.ARN)-7])}, "two"},
		{secretsmanager.GetSecretValueInput{SecretId: name, VersionStage: aws.String("AWSPREVIOUS")}, "one"},
		{secretsmanager.GetSecretValueInput{SecretId: name, VersionId: created.VersionId}, "one"},
		{secretsmanager.GetSecretValueInput{SecretId: name, VersionId: put.VersionId, VersionStage: aws.String("AWSCURRENT")}, "two"},
	} {
		got, err := client.GetSecretValue(ctx, &c.in)
		if err != nil || *got.SecretString != c.want || got.CreatedDate == nil {
			t.Errorf("get %+v = %+v, %v; want %s", c.in, got, err, c.want)
		}
	}
	deleted, err := client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: name})
	if err != nil || deleted.DeletionDate == nil {
		t.Fatalf("delete = %+v, %v", deleted, err)
	}
	if _, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: name}); code(err) != "InvalidRequestException" {
		t.Errorf("get after delete: %v", err)
	}
	if _, err := client.RestoreSecret(ctx, &secretsmanager.RestoreSecretInput{SecretId: name}); err != nil {
		t.Errorf("restore: %v", err)
	}
	if got, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: name}); err != nil || *got.SecretString != "two" {
		t.Errorf("get after restore: %+v, %v", got, err)
	}
}

func TestErrors(t *testing.T) {
	client, ctx := start(t), t.Context()
	create(t, client, "here", "value")
	create(t, client, "leaving", "value")
	if _, err := client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: aws.String("leaving")}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: aws.String("empty")}); err != nil {
		t.Fatal(err)
	}
	value, absent, big := aws.String("v"), aws.String("absent"), aws.String(strings.Repeat("x", maxValue+1))
	for name, c := range map[string]struct {
		call func() error
		want string
	}{
		"get absent": {func() error {
			_, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: absent})
			return err
		}, "ResourceNotFoundException"},
		"get without a value": {func() error {
			_, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String("empty")})
			return err
		}, "ResourceNotFoundException"},
		"put absent": {func() error {
			_, err := client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: absent, SecretString: value})
			return err
		}, "ResourceNotFoundException"},
		"put no value": {func() error {
			_, err := client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: aws.String("here")})
			return err
		}, "InvalidRequestException"},
		"delete absent": {func() error {
			_, err := client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: absent})
			return err
		}, "ResourceNotFoundException"},
		"restore absent": {func() error {
			_, err := client.RestoreSecret(ctx, &secretsmanager.RestoreSecretInput{SecretId: absent})
			return err
		}, "ResourceNotFoundException"},
		"describe, which nobody calls": {func() error {
			_, err := client.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: aws.String("here")})
			return err
		}, "UnknownOperationException"},
		"put a binary value": {func() error {
			_, err := client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: aws.String("here"), SecretBinary: []byte("v")})
			return err
		}, "InvalidParameterException"},
		"put with stages": {func() error {
			_, err := client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: aws.String("here"), SecretString: value, VersionStages: []string{"mine"}})
			return err
		}, "InvalidParameterException"},
		"forced delete": {func() error {
			_, err := client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: aws.String("here"), ForceDeleteWithoutRecovery: aws.Bool(true)})
			return err
		}, "InvalidParameterException"},
		"create twice": {func() error {
			_, err := client.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: aws.String("here"), SecretString: value})
			return err
		}, "ResourceExistsException"},
		"create while it is leaving": {func() error {
			_, err := client.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: aws.String("leaving"), SecretString: value})
			return err
		}, "InvalidRequestException"},
		"create with a bad name": {func() error {
			_, err := client.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: aws.String("a b"), SecretString: value})
			return err
		}, "InvalidParameterException"},
		"create too big": {func() error {
			_, err := client.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: absent, SecretString: big})
			return err
		}, "InvalidParameterException"},
		"delete twice": {func() error {
			_, err := client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: aws.String("leaving")})
			return err
		}, "InvalidRequestException"},
		"delete with a window": {func() error {
			_, err := client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: aws.String("here"), RecoveryWindowInDays: aws.Int64(7)})
			return err
		}, "InvalidParameterException"},
		"list, which nobody calls": {func() error {
			_, err := client.ListSecrets(ctx, &secretsmanager.ListSecretsInput{})
			return err
		}, "UnknownOperationException"},
		"a call it does not have": {func() error {
			_, err := client.GetRandomPassword(ctx, &secretsmanager.GetRandomPasswordInput{})
			return err
		}, "UnknownOperationException"},
	} {
		if got := code(c.call()); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	var missing *types.ResourceNotFoundException
	_, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: absent})
	if !errors.As(err, &missing) || missing.ErrorMessage() == "" {
		t.Errorf("an absent secret is %v, want the client's own error with its message", err)
	}
}

func TestRepeatsAreRecognisedByToken(t *testing.T) {
	client, ctx := start(t), t.Context()
	token := aws.String(strings.Repeat("t", 32))
	create := func(value string) error {
		_, err := client.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: aws.String("a"), SecretString: &value, ClientRequestToken: token})
		return err
	}
	put := func(value string) error {
		_, err := client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: aws.String("a"), SecretString: &value, ClientRequestToken: token})
		return err
	}
	for i, c := range []struct {
		err  error
		want string
	}{{create("x"), ""}, {create("x"), ""}, {create("y"), "ResourceExistsException"}, {put("x"), ""}, {put("y"), "ResourceExistsException"}} {
		if code(c.err) != c.want {
			t.Errorf("call %d: %v, want %q", i, c.err, c.want)
		}
	}
}

func TestUnsignedIsRefused(t *testing.T) {
	server, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
	r.Header.Set("X-Amz-Target", "secretsmanager.GetSecretValue")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got := response.Header.Get("X-Amzn-Errortype"); response.StatusCode != http.StatusBadRequest || got != "MissingAuthenticationTokenException" {
		t.Errorf("%d %s", response.StatusCode, got)
	}
}

// code is AWS's code of an error, "" without one.
func code(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &api):
		return api.ErrorCode()
	}
	return err.Error()
}
