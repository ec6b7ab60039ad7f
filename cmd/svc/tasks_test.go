package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"svcapi/cmd/svc/app"
	"svcapi/local/template"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
	"svcapi/test/must"
)

// TestTasks does each task of an operator with the compiled svc by the help alone: "svc --help" leads to the command,
// and each example in the help of the command that has a text runs as printed.
func TestTasks(t *testing.T) {
	compiled(t) // in the repository, which the fixture leaves
	f := newFixture(t, "project create Acme --id acme", "credit grant acme 100000 --reason x",
		"project create Initech --id initech")
	shell := func(line string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	f.must(os.WriteFile("textlk.json", []byte(`{"api_token":"k"}`), 0o600))
	f.must(os.WriteFile("quicksend.json", []byte(accountAt("quicksend")), 0o600))
	f.must(os.WriteFile("march.csv", []byte("acme,500\n"), 0o600))
	gateway := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-SVC-Request-ID", loggedID)
		w.WriteHeader(map[bool]int{true: http.StatusUnauthorized,
			false: http.StatusUnprocessableEntity}[strings.HasPrefix(r.Header.Get("X-API-KEY"), "svc_doctor")])
		_, _ = io.WriteString(w, "{}")
	})
	f.announce(map[string]any{"base_url": gateway, "prices": map[string]int64{"sms": 10_000, "pdf": 2_000}})
	f.runAll([]call{
		shows("vendor account sms twilio --env prod --secrets -").given(accountAt("twilio")),
		{args: "integration set acme sms twilio --env prod --mode managed --inactive --setting sender~id=Acme"},
		{args: "integration set initech sms twilio --env prod --mode managed --setting sender~id=Acme"},
		{args: "integration set initech sms quicksend --env prod --mode managed --incomplete"},
	})
	record, err := f.stack().Load(t.Context(), "acme")
	f.must(err)
	f.must(os.WriteFile(filepath.Join(f.dir, "sms.log"), []byte(loggedLine(loggedID, `"code"`, fmt.Sprintf(
		`"environment":"production","sends":[{"to":%q,"state":"accepted","reference":%q}],"code"`,
		record.LoggedNumber("+94771234567"),
		f.reference("acme", "twilio", "SM0", "k")))), 0o600))
	for _, task := range []struct{ command, with, shows string }{
		{"project list", "", `acme +Acme +running +100,000 +0 `},
		{"project top", "", "acme +1 +0 +0 +1 +0"},
		{"usage", "", "No usage"},
		{"usage", "--by project", "PROJECT,NAME,PERIOD"},
		{"usage statement", "", "Closing balance"},
		{"usage statement", "--all", "statements/acme-"},
		{"credit ledger", "", `grant +\+100,000`},
		{"credit grant", "", "would be granted"},
		{"project limits", "", `Daily units +2,000`},
		{"logs", "", loggedID},
		{"sms find", "--last", loggedID + " +accepted"},
		{"sms status", loggedID, "twilio +not_found"},
		{"sms uncertain", "", "ask "},
		{"project show", "", "Project +acme"},
		{"doctor", "acme", "in order"},
		{"vendor account", "quicksend.json", "Fields +api_key, email"},
		{"integration set", "barcode", "barcode +builtin +managed +active"},
		{"integration set", "sms quicksend --mode managed", "quicksend +managed +active"},
		{"integration set", "--replace", `quicksend +managed +inactive(.|\n)*textlk +byok +active`},
		{"price list", "acme", `sms +10,000 +0.01 +PriceSms`},
		{"price set", "", `sms +8,000 +0.008 +own +10,000(.|\n)*pdf +0 +0.00 +own`},
		{"price unset", "", `sms +10,000 +0.01 +PriceSms`},
		{"vendor outage", "", `initech +active +twilio(.|\n)*initech +set_aside +twilio(.|\n)*initech +restored +twilio`},
		{"project close", "", `take 10,100,000 credits(.|\n)*State +closed`},
		{"project reopen", "", `State +running(.|\n)*svc integration enable acme barcode builtin`},
		{"version", "", "Commit"},
	} {
		words := strings.Fields(task.command)
		for i, word := range words {
			if help := shell("svc " + strings.Join(words[:i], " ") + " --help"); !strings.Contains(help, "\n  "+word+" ") {
				t.Errorf("the help leads to no %q:\n%s", task.command, help)
			}
		}
		_, help, _ := strings.Cut(shell("svc "+task.command+" --help"), "\nExamples:\n")
		all, examples := "", regexp.MustCompile(`(?m)^  svc .*$`).FindAllString(help, -1)
		if examples == nil {
			examples = []string{"svc " + task.command}
		}
		for _, example := range examples {
			if strings.Contains(example, task.with) && !strings.Contains(example, "--stage") {
				all += shell(example + " --local")
			}
		}
		if !regexp.MustCompile(task.shows).MatchString(all) {
			t.Errorf("svc %s shows no %q:\n%s", task.command, task.shows, all)
		}
	}
}

// TestCloseProject: closing a project takes its access, credits, secrets and settings, once, and keeps its accounts
// (docs/decisions/money.md#closed-projects).
func TestCloseProject(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme")
	const export = `{"format":1,"project_id":"acme","name":"A","limit_requests":1,"limit_seconds":1,"integrations":[]}`
	f.runAll([]call{
		shows("integration set acme sms quicksend --mode byok --setting sender~id=Acme --secrets -").
			given(`{"email":"a@example.com","api_key":"topsecret"}`),
		{args: "integration set acme barcode --mode managed --env both"},
		{args: "burner add acme own.example"},
		{args: "burner allow fine.example --project acme"},
		{args: "credit grant acme 1000 --reason x"},
		{args: "credit alert acme 5000"},
		refused("project close acme --yes", `acme has a balance of 1,000 credits .*\n.*\nsvc project close acme --refunded `+
			`'transfer 2031' --local\nsvc project close acme --forfeit --local\n`),
		misuse("project close acme --forfeit --refunded x"),
		refused("project close acme --forfeit", "Not confirmed"),
		shows("project close acme --refunded wire_5 --dry-run", `revoke 0 credentials, deactivate 3 integrations`,
			`take 1,000 credits .* by an adjustment: closed, refunded: wire 5`, `delete the secrets svc/`+f.stage+`/\*/acme/`),
		refused("project reopen acme", "is not closed"),
	})
	issued := decode[issuedSecret](f, "credential issue acme --env production")
	s := f.stack()
	r := &wallet.Reservation{Project: "acme", Began: time.Now(), Credits: 30, Price: wallet.Barcode, RequestID: "r"}
	f.must(s.Credits.Reserve(t.Context(), r))
	f.runAll([]call{
		refused("project close acme --forfeit --yes",
			`has an open lease of credits since .*\n.*svc project pause acme --local`),
		{args: "project pause acme"},
		refused("project close acme --forfeit --yes", "Run the command again in three minutes"),
		{args: "project resume acme"},
	})
	s.Credits.Settle(t.Context(), []wallet.Lease{{Project: "acme", Key: r.Key, Slots: 1, Credits: 30}},
		func(_ wallet.Lease, _ wallet.Settled, err error) { f.must(err) })
	_, err := s.Projects.Close(t.Context(), "acme") // an interrupted run
	f.must(err)
	closed := `State +closed.*\nReopen until +20.*\nCredits taken +%s credits .*\nDeleted +svc/` + f.stage +
		`/sms/acme/accounts; settings`
	f.runAll([]call{
		shows("project close acme --refunded wire_5 --yes", fmt.Sprintf(closed, "1,000")),
		shows("project close acme --yes", fmt.Sprintf(closed, "0")),
		shows("ledger verify", "Every wallet agrees").notes("1 wallet, 3 ledger entries"),
		shows("credit ledger acme", `adjustment +-1,000 .* closed, refunded: wire 5, by local`).without("released"),
		shows("usage statement acme", `Adjustments +-1,000 `, `Closing balance +0 `),
		shows("usage --project acme", "No usage"),
		shows("project show acme", "State +closed", "Balance +0", "production +revoked +0",
			`quicksend +byok +inactive +0 +- `),
		shows("burner list acme", "no own domains"),
		finds("doctor --project acme").without(`acme`), // the stack has no base URL
		refused("project create A --id acme", "exists already"),
		refused("project import -", "exists already").given(export),
		misuse("credit grant --file - --batch 2026-03-31 --reason x", "closed ones: acme").given("acme,5"),
	})
	f.must(s.Credits.Grant(t.Context(),
		wallet.Entry{Project: "acme", Key: wallet.NewKey(time.Now(), "late"), Credits: 5, Reason: "late", Actor: "other"}))
	f.runAll([]call{
		finds("doctor --project acme", `warning +closed +acme +it is closed, and has 5 credits .*svc project close acme`),
		shows("project close acme --forfeit --yes", fmt.Sprintf(closed, "5")),
	})
	if deleted, err := s.Secrets.Deleted(t.Context(), project.SMS, "acme"); !deleted || err != nil {
		t.Errorf("the secret is there: %v", err)
	}
	if w, err := s.Credits.Wallet(t.Context(), "acme"); err != nil || w.Alert != 0 {
		t.Errorf("%+v, %v", w, err)
	}
	clientID := strings.ReplaceAll(issued.ClientID, "_", "~")
	for _, args := range []string{
		"project pause acme", "project limits acme --requests 5", "project trial acme off", "credential issue acme",
		"credential rotate " + clientID, "credential revoke " + clientID + " --yes",
		"integration set acme pdf --mode managed", "integration enable acme barcode builtin --env dev",
		"credit grant acme 5 --reason x", "credit adjust acme --by 5 --reason x", "credit alert acme 5",
		"credit refund acme " + string(r.Key) + " --reason x", "burner add acme a.example",
		"burner deny fine.example --project acme",
	} {
		f.run(refused(args, "project acme: the project is closed", "svc project reopen"))
	}
	f.runAll([]call{
		shows("project reopen acme", "State +running").notes(`svc credential issue acme --env production --local\n`,
			`svc integration set acme sms quicksend --env development --local\nsvc integration enable acme sms quicksend `+
				`--env development --local\n`),
		{args: "integration enable acme barcode builtin --env both"},
		{args: "credential issue acme --env production"},
	})
}

const (
	oldKey = "arn:aws:kms:eu-west-1:123456789012:key/old"
	newKey = "arn:aws:kms:eu-west-1:123456789012:key/new"
)

// keyed is a stack whose parameters name KMS keys, with the secrets of its stage.
type keyed struct {
	*fixture
	account
	template []byte
	page     string
	refuse   func(operation string, n int) bool // refuses the n-th call of an operation of Secrets Manager
	calls    map[string]int                     // by operation
}

func newKeyed(t *testing.T, template, page []byte) *keyed {
	k := &keyed{fixture: newFixture(t), template: template, page: string(page),
		account: account{stack: "UPDATE_COMPLETE", parameters: map[string]string{"KmsKeyArn": "", "PreviousKmsKeyArn": ""}},
		refuse:  func(string, int) bool { return false }, calls: map[string]int{}}
	k.signInAt(&k.account)
	t.Setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", k.between(k.vault.URL,
		func(w http.ResponseWriter, _ *http.Request, operation string) bool {
			k.calls[operation]++
			return k.refuse(operation, k.calls[operation]) && refuse(w, "AccessDeniedException")
		}, 0))
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
	must.Succeed(t, cmp.Or(err, pageErr))
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
	k.account.stack = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
	refused(rekey, "its functions may not read the key yet").run(t)
	k.account.stack = "UPDATE_COMPLETE"
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
