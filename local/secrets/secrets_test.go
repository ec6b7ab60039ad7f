package secrets

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"svcapi/test/must"
)

// start returns a server, and its clients by access key.
func start(t *testing.T) (server *Server, as func(accessKeyID string) *secretsmanager.Client) {
	server = must.Get(Start()).Or(t)
	t.Cleanup(func() { _ = server.Close() })
	return server, func(accessKeyID string) *secretsmanager.Client {
		return secretsmanager.New(secretsmanager.Options{
			Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
			Credentials: credentials.NewStaticCredentialsProvider(accessKeyID, "test", ""),
		})
	}
}

// TestLife takes a secret through its calls with AWS's own client.
func TestLife(t *testing.T) {
	_, as := start(t)
	ctx, client := t.Context(), as("test")
	name := new("svc/local/sms/managed/development")
	created := must.Get(client.CreateSecret(ctx,
		&secretsmanager.CreateSecretInput{Name: name, SecretString: new("one")})).Or(t)
	if !strings.HasPrefix(*created.ARN, "arn:aws:secretsmanager:eu-west-1:000000000000:secret:"+*name+"-") {
		t.Errorf("ARN = %s", *created.ARN)
	}
	put := must.Get(client.PutSecretValue(ctx,
		&secretsmanager.PutSecretValueInput{SecretId: name, SecretString: new("two")})).Or(t)
	for _, c := range []struct {
		in   secretsmanager.GetSecretValueInput
		want string
	}{
		{secretsmanager.GetSecretValueInput{SecretId: name}, "two"},
		{secretsmanager.GetSecretValueInput{SecretId: created.ARN}, "two"},
		{secretsmanager.GetSecretValueInput{SecretId: new((*created.ARN)[:len(*created.ARN)-7])}, "two"},
		{secretsmanager.GetSecretValueInput{SecretId: name, VersionStage: new("AWSPREVIOUS")}, "one"},
		{secretsmanager.GetSecretValueInput{SecretId: name, VersionId: created.VersionId}, "one"},
		{secretsmanager.GetSecretValueInput{SecretId: name, VersionId: put.VersionId, VersionStage: new("AWSCURRENT")},
			"two"},
	} {
		got, err := client.GetSecretValue(ctx, &c.in)
		if err != nil || *got.SecretString != c.want || got.CreatedDate == nil {
			t.Errorf("get %+v = %+v, %v; want %s", c.in, got, err, c.want)
		}
	}
	var missing *types.ResourceNotFoundException // the client's own error, with its message
	_, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: new("absent")})
	if !errors.As(err, &missing) || missing.ErrorMessage() == "" {
		t.Errorf("an absent secret is %v", err)
	}
	deleted, err := client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: name})
	if err != nil || deleted.DeletionDate == nil {
		t.Fatalf("delete = %+v, %v", deleted, err)
	}
	var leaving *types.InvalidRequestException
	if _, err := client.GetSecretValue(ctx,
		&secretsmanager.GetSecretValueInput{SecretId: name}); !errors.As(err, &leaving) {
		t.Errorf("get after delete: %v", err)
	}
	if _, err := client.RestoreSecret(ctx, &secretsmanager.RestoreSecretInput{SecretId: name}); err != nil {
		t.Errorf("restore: %v", err)
	}
	if got, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: name}); err != nil ||
		*got.SecretString != "two" {
		t.Errorf("get after restore: %+v, %v", got, err)
	}
}

// TestErrors checks the code of each error, and that a repeat is recognised by its token. The calls run in this order.
func TestErrors(t *testing.T) {
	server, _ := start(t)
	call := func(operation, body, authorization string) string {
		r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))).Or(t)
		r.Header.Set("X-Amz-Target", "secretsmanager."+operation)
		r.Header.Set("Authorization", authorization)
		response := must.Get(http.DefaultClient.Do(r)).Or(t)
		defer response.Body.Close()
		kind := response.Header.Get("X-Amzn-Errortype")
		if (response.StatusCode == http.StatusBadRequest) != (kind != "") {
			t.Errorf("%s %s: status %d, %s", operation, body, response.StatusCode, kind)
		}
		return kind
	}
	const signed = "AWS4-HMAC-SHA256 Credential=test/20261122/eu-west-1/secretsmanager/aws4_request, Signature=x"
	const other = "AWS4-HMAC-SHA256 Credential=test/20261122/eu-west-1/dynamodb/aws4_request, Signature=x"
	token := `"ClientRequestToken":"` + strings.Repeat("t", 32) + `"`
	for _, c := range []struct{ operation, body, want string }{
		{"CreateSecret", `{"Name":"here","SecretString":"value"}`, ""},
		{"CreateSecret", `{"Name":"leaving","SecretString":"value"}`, ""},
		{"DeleteSecret", `{"SecretId":"leaving"}`, ""},
		{"CreateSecret", `{"Name":"empty"}`, ""},
		{"GetSecretValue", `{"SecretId":"absent"}`, "ResourceNotFoundException"},
		{"GetSecretValue", `{"SecretId":"empty"}`, "ResourceNotFoundException"},
		{"GetSecretValue", `{}`, "InvalidParameterException"},
		{"PutSecretValue", `{"SecretId":"absent","SecretString":"v"}`, "ResourceNotFoundException"},
		{"PutSecretValue", `{"SecretId":"here"}`, "InvalidRequestException"},
		{"PutSecretValue", `{"SecretId":"here","SecretBinary":"dg=="}`, "InvalidParameterException"},
		{"PutSecretValue", `{"SecretId":"here","SecretString":"v","VersionStages":["mine"]}`, "InvalidParameterException"},
		{"PutSecretValue", `{"SecretId":"here","SecretString":"v","ClientRequestToken":"short"}`,
			"InvalidParameterException"},
		{"DeleteSecret", `{"SecretId":"absent"}`, "ResourceNotFoundException"},
		{"DeleteSecret", `{"SecretId":"here","ForceDeleteWithoutRecovery":true}`, "InvalidParameterException"},
		{"DeleteSecret", `{"SecretId":"here","RecoveryWindowInDays":7}`, "InvalidParameterException"},
		{"DeleteSecret", `{"SecretId":"leaving"}`, "InvalidRequestException"},
		{"RestoreSecret", `{"SecretId":"absent"}`, "ResourceNotFoundException"},
		{"CreateSecret", `{"Name":"here","SecretString":"v"}`, "ResourceExistsException"},
		{"CreateSecret", `{"Name":"leaving","SecretString":"v"}`, "InvalidRequestException"},
		{"CreateSecret", `{"Name":"a b","SecretString":"v"}`, "InvalidParameterException"},
		{"CreateSecret", `{"Name":"absent","SecretString":"` + strings.Repeat("x", maxValue+1) + `"}`,
			"InvalidParameterException"},
		{"CreateSecret", `{"Name":"a","SecretString":"x",` + token + `}`, ""},
		{"CreateSecret", `{"Name":"a","SecretString":"x",` + token + `}`, ""},
		{"CreateSecret", `{"Name":"a","SecretString":"y",` + token + `}`, "ResourceExistsException"},
		{"PutSecretValue", `{"SecretId":"a","SecretString":"x",` + token + `}`, ""},
		{"PutSecretValue", `{"SecretId":"a","SecretString":"y",` + token + `}`, "ResourceExistsException"},
		{"DescribeSecret", `{"SecretId":"here"}`, "UnknownOperationException"},
		{"ListSecrets", `{}`, "InvalidParameterException"},
		{"UpdateSecret", `{"SecretId":"absent"}`, "ResourceNotFoundException"},
		{"UpdateSecret", `{"SecretId":"leaving"}`, "InvalidRequestException"},
		{"UpdateSecret", `{"SecretId":"a","SecretString":"x",` + token + `}`, "ResourceExistsException"},
	} {
		if got := call(c.operation, c.body, signed); got != c.want {
			t.Errorf("%s %.80s: %q, want %q", c.operation, c.body, got, c.want)
		}
	}
	if got := call("GetSecretValue", "{}", ""); got != "MissingAuthenticationTokenException" {
		t.Errorf("unsigned: %s", got)
	}
	if got := call("GetSecretValue", "{}", other); got != "IncompleteSignatureException" {
		t.Errorf("signed for another service: %s", got)
	}
}

// TestVersions: a repeat with a token of before moves no stage, a version without a stage is listed on request only and
// is kept for a day, and AWSCURRENT moves from the version that has it alone.
func TestVersions(t *testing.T) {
	server, as := start(t)
	ctx, name, client := t.Context(), new("name"), as("test")
	id := func(n int) *string { return new(fmt.Sprintf("%032d", n)) }
	put := func(n int) error {
		_, err := client.PutSecretValue(ctx,
			&secretsmanager.PutSecretValueInput{SecretId: name, SecretString: id(n), ClientRequestToken: id(n)})
		return err
	}
	move := func(to, from int) error {
		_, err := client.UpdateSecretVersionStage(ctx, &secretsmanager.UpdateSecretVersionStageInput{
			SecretId: name, VersionStage: new(current), MoveToVersionId: id(to), RemoveFromVersionId: id(from),
		})
		return err
	}
	_, err := client.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: name})
	stored := server.secrets["name"]
	step := func(what string, failed error, code string, now, before, versions int) {
		t.Helper()
		got := [3]string{stored.stages[current], stored.stages[previous], fmt.Sprint(len(stored.versions))}
		if !strings.Contains(fmt.Sprint(failed), code) || got != [3]string{*id(now), *id(before), fmt.Sprint(versions)} {
			t.Errorf("%s: %v, %v", what, got, failed)
		}
	}
	step("third version", errors.Join(err, put(1), put(2), put(3)), "nil", 3, 2, 3)
	step("a repeat of the second", put(2), "nil", 3, 2, 3)
	step("rolled back", move(1, 3), "nil", 1, 3, 3)
	step("from another version", move(2, 3), "InvalidParameterException", 1, 3, 3)
	step("to no version", move(9, 1), "ResourceNotFoundException", 1, 3, 3)
	listed, err := client.ListSecretVersionIds(ctx, &secretsmanager.ListSecretVersionIdsInput{SecretId: name})
	if err != nil || len(listed.Versions) != 2 {
		t.Errorf("listed %+v, %v; want the two with a stage", listed, err)
	}
	for n := 4; n <= maxVersions; n++ {
		err = errors.Join(err, put(n))
	}
	step("too many young versions", errors.Join(err, put(101)), "LimitExceededException", 100, 99, 100)
	for i := range 10 {
		stored.versions[i].created = time.Now().Add(-youngVersion - time.Second)
	}
	step("versions of the day before", put(101), "nil", 101, 100, 91)
}

// TestKeys: an identity needs a right on a version's key to read the version, and a change of a secret's key reaches
// only what the identity that changes it may decrypt and encrypt.
func TestKeys(t *testing.T) {
	server, as := start(t)
	ctx, name, value := t.Context(), new("name"), new("value")
	rights := func(key string) []string {
		return []string{"kms:Decrypt " + key, "kms:Encrypt " + key, "kms:GenerateDataKey " + key}
	}
	server.Limit("ENCRYPTS-NEW", rights("new")...)
	server.Limit("READS-BOTH", "kms:Decrypt old", "kms:Decrypt new", "kms:GenerateDataKey new")
	server.Limit("NONE")
	for _, key := range []string{"old", "new"} {
		server.Limit(key, "kms:Decrypt "+key)
	}
	reads := func(version, want string) {
		t.Helper()
		var can []string
		for _, who := range []string{"old", "new", "NONE"} {
			_, err := as(who).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: name, VersionStage: &version})
			if err == nil {
				can = append(can, who)
			} else if !strings.Contains(err.Error(), "AccessDeniedException: Access to KMS is not allowed") {
				t.Error(err)
			}
		}
		if got := strings.Join(can, " "); got != want {
			t.Errorf("%s is read by %q, want %q", version, got, want)
		}
	}
	update := func(who, key string, value *string) error {
		_, err := as(who).UpdateSecret(ctx,
			&secretsmanager.UpdateSecretInput{SecretId: name, KmsKeyId: &key, SecretString: value})
		return err
	}
	if _, err := as("NONE").CreateSecret(ctx,
		&secretsmanager.CreateSecretInput{Name: name, SecretString: value, KmsKeyId: new("old")}); err == nil {
		t.Error("created under a key without a right")
	}
	must.Get(as("NONE").CreateSecret(ctx, // with the managed key
		&secretsmanager.CreateSecretInput{Name: name, SecretString: value})).Or(t)
	reads("AWSCURRENT", "old new NONE")
	for _, step := range []struct {
		who, key string
		value    *string
		want     string
	}{
		{"operator", "old", value, "old"},
		{"NONE", "old", nil, "old"},         // changes nothing
		{"READS-BOTH", "new", nil, "old"},   // no kms:Encrypt: the version stays
		{"ENCRYPTS-NEW", "new", nil, "old"}, // no kms:Decrypt on the old key: the version stays
		{"operator", "new", nil, "old new"},
		{"operator", "new", value, "new"},
		{"operator", "", value, "old new NONE"},
	} {
		if err := update(step.who, step.key, step.value); err != nil {
			t.Errorf("%+v: %v", step, err)
		}
		reads("AWSCURRENT", step.want)
	}
}
