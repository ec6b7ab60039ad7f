package main

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"svcapi/cmd/svc/app"
	"svcapi/local/template"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

const (
	oldKey = "arn:aws:kms:eu-west-1:123456789012:key/old"
	newKey = "arn:aws:kms:eu-west-1:123456789012:key/new"
)

// keyed is a stack whose parameters name KMS keys, with the secrets of its stage.
type keyed struct {
	*fixture
	template   []byte
	page       string
	parameters map[string]string
	status     string
	refuse     func(operation string, n int) bool // refuses the n-th call of an operation of Secrets Manager
	calls      map[string]int                     // by operation
}

func newKeyed(t *testing.T, template, page []byte) *keyed {
	k := &keyed{fixture: newFixture(t), template: template, page: string(page), status: "UPDATE_COMPLETE",
		refuse: func(string, int) bool { return false }, calls: map[string]int{}}
	k.parameters = map[string]string{"KmsKeyArn": "", "PreviousKmsKeyArn": ""}
	forward := k.between(k.vault.URL, func(operation string) string {
		k.calls[operation]++
		return map[bool]string{true: "AccessDeniedException"}[k.refuse(operation, k.calls[operation])]
	}, 0)
	signIn(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		account{stack: k.status, parameters: k.parameters}.ServeHTTP(w, r)
	}))
	t.Setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", forward)
	t.Setenv("SVC_STAGE", k.stage)
	return k
}

// overrides matches what docs/key-compromise.md prints for parameter_overrides.
var overrides = regexp.MustCompile("`\"?((?:Previous)?KmsKeyArn)=([^`\"]*)\"?`")

// deploy deploys as a step of docs/key-compromise.md#another-kms-key prints, and gives the role of the function sms the
// rights that the template gives it. SAM keeps a parameter without an override, and accepts no empty value without
// quotes.
func (k *keyed) deploy(step int, key, previous string) {
	k.t.Helper()
	_, text, _ := strings.Cut(k.page, fmt.Sprintf("\n%d. ", step))
	text, _, _ = strings.Cut(text, fmt.Sprintf("\n%d. ", step+1))
	names := strings.NewReplacer("NEW", cmp.Or(key, "''"), "OLD", cmp.Or(previous, "''"))
	for _, found := range overrides.FindAllStringSubmatch(text, -1) {
		value := names.Replace(found[2])
		if k.parameters[found[1]] = strings.Trim(value, "'"); value == "" {
			k.t.Errorf("step %d: sam deploy refuses %s=", step, found[1])
		}
	}
	stack, err := template.Parse(k.template, k.parameters)
	k.must(err)
	function, _ := stack.Function("sms")
	var rights []string
	for _, p := range function.Permissions {
		if strings.HasPrefix(p.Action, "kms:") {
			rights = append(rights, p.Action+" "+p.Resource)
		}
	}
	k.vault.Limit("ROLE", rights...)
}

// as returns a client of Secrets Manager for an access key.
func (k *keyed) as(accessKeyID string) *secretsmanager.Client {
	return secretsmanager.New(secretsmanager.Options{
		Region: "eu-west-1", BaseEndpoint: &k.vault.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(accessKeyID, "test", ""),
	})
}

// reads checks whether an identity reads the account of acme as the function does.
func (k *keyed) reads(accessKeyID string, want bool) {
	k.t.Helper()
	fields, err := secret.NewWriter(k.as(accessKeyID), k.stage).Fields(k.t.Context(), project.SMS, "acme",
		project.Development, "quicksend")
	if (err == nil && fields["api_key"] != "") != want {
		k.t.Errorf("%s reads: %v, %v, want %v", accessKeyID, fields, err, want)
	}
}

// TestRekey follows docs/key-compromise.md#another-kms-key, from a key of the operator's own and from that of AWS, and
// back to that of AWS: the function always reads its secrets, at last without the old key
// (docs/decisions/operating.md#kms-keys).
func TestRekey(t *testing.T) {
	text, err := os.ReadFile("../../template.yaml")
	page, pageErr := os.ReadFile("../../docs/key-compromise.md")
	if err = cmp.Or(err, pageErr); err != nil {
		t.Fatal(err)
	}
	for _, before := range []string{oldKey, ""} {
		t.Run("from "+before, func(t *testing.T) { rekeyFrom(newKeyed(t, text, page), before) })
	}
}

// rekeyFrom changes the key of a stack from a key to newKey, and then to that of AWS.
func rekeyFrom(k *keyed, before string) {
	t := k.t
	k.deploy(2, before, "")
	w := secret.NewWriter(k.as("operator"), k.stage)
	w.Key = before
	const leaving = "initech"
	account := secret.Change{Environment: project.Development, Vendor: "quicksend",
		After: map[string]string{"api_key": "k"}}
	for _, owner := range []string{"acme", "globex", leaving, upstream.ManagedOwner} {
		k.must(w.Put(t.Context(), project.SMS, owner, account))
	}
	_, err := k.as("operator").DeleteSecret(t.Context(),
		&secretsmanager.DeleteSecretInput{SecretId: new(upstream.SecretName(k.stage, project.SMS, leaving))})
	k.must(err)
	k.must(secret.NewWriter(k.as("operator"), k.stage+"-2").Put(t.Context(), project.SMS, "acme", account))
	k.reads("ROLE", true)

	k.deploy(2, newKey, "") // without the previous key
	k.reads("ROLE", before == "")
	k.deploy(2, before, "")
	k.deploy(1, newKey, before)
	k.reads("ROLE", true)
	k.deploy(2, newKey, before)
	k.reads("ROLE", true)

	const rekey = "secrets rekey"
	t.Setenv("SVC_KMS_KEY", before)
	refused(rekey, "export SVC_KMS_KEY="+newKey+"\n").run(t)
	t.Setenv("SVC_KMS_KEY", newKey)
	k.status = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
	refused(rekey, "its functions may not read the key yet").run(t)
	k.status = "UPDATE_COMPLETE"
	misuse(rekey + " --local").run(t)

	// The key of one secret is changed by an identity that may not encrypt: the secret names the key, its version does
	// not.
	k.vault.Limit("HALF")
	_, err = k.as("HALF").UpdateSecret(t.Context(), &secretsmanager.UpdateSecretInput{
		SecretId: new(upstream.SecretName(k.stage, project.SMS, "globex")), KmsKeyId: new(newKey),
	})
	k.must(err)
	expect := func(args string, exit, updates int, states ...string) {
		t.Helper()
		var rows []string
		for i, owner := range []string{"acme", "globex", leaving, upstream.ManagedOwner} {
			severity, detail, _ := strings.Cut(states[i], " ")
			rows = append(rows, severity+" +secret +"+upstream.SecretName(k.stage, project.SMS, owner)+" .*"+detail+".*\n")
		}
		call{args: args, exit: exit, reports: true, out: []string{`ADVICE\n` + strings.Join(rows, "") + "$"}}.run(t)
		if k.calls["UpdateSecret"] != updates {
			t.Errorf("%s: %d secrets were changed, want %d", args, k.calls["UpdateSecret"], updates)
		}
	}
	const kept, changed, would, was = "warning scheduled for deletion on", "ok it was encrypted again",
		"ok it would be encrypted again", "ok it has the key already"
	expect(rekey+" --dry-run", 0, 0, would, would, kept, would)
	k.refuse = func(operation string, n int) bool {
		if operation == "UpdateSecret" && n == 1 { // beside a write of another operator
			account.Vendor = "textlk"
			k.must(w.Put(t.Context(), project.SMS, "acme", account))
		}
		return operation == "UpdateSecret" && n == 3
	}
	expect(rekey, app.ExitFailed, 4, changed, "broken AccessDenied", kept, changed)
	expect(rekey, 0, 5, was, changed, kept, was)
	expect(rekey, 0, 5, was, was, kept, was)
	if fields, err := w.Fields(t.Context(), project.SMS, "acme", project.Development, "textlk"); err != nil ||
		fields["api_key"] != "k" {
		t.Errorf("the other operator's write: %v, %v", fields, err)
	}
	k.reads("ROLE", true)
	k.deploy(4, newKey, before)
	if k.reads("ROLE", true); k.parameters["PreviousKmsKeyArn"] != "" {
		t.Errorf("the functions keep the right on the previous key: %v", k.parameters)
	}
	k.vault.Limit("THIEF", "kms:Decrypt "+oldKey)
	k.reads("THIEF", false)

	k.deploy(2, "", newKey)
	t.Setenv("SVC_KMS_KEY", "")
	k.reads("ROLE", true)
	expect(rekey, 0, 8, changed, changed, kept, changed)
	expect(rekey, 0, 8, was, was, kept, was)
	k.deploy(4, "", newKey)
	k.reads("ROLE", true)
}
