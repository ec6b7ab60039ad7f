package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"svcapi/shared/wallet"
)

// rehearsal is one run of smoke: the life of a stage of its own, from a creation that fails to its removal.
type rehearsal struct {
	*terminal
	svc   string
	grant string // the ID of the project's grant
}

// The stage of the rehearsal, and the one that its restored tables are named after.
const (
	smokeStage    = "smoke"
	smokeStack    = "svc-" + smokeStage
	smokeRestored = "smoke-restored"
	smokeProject  = "rehearsal"
	smokeCredits  = "1000000"
)

// steps are in their order; the first failure ends the run.
var steps = []struct {
	title string
	run   func(*rehearsal, context.Context)
}{
	{"The account is ready", func(r *rehearsal, ctx context.Context) {
		r.call(ctx, "go", "build", "-o", r.svc, "./cmd/svc")
		r.tablesAre(ctx, 0)
		r.operate(ctx, "preflight")
	}},
	{"The build", func(r *rehearsal, ctx context.Context) { r.call(ctx, "sam", "build") }},
	{"A creation that fails leaves nothing", func(r *rehearsal, ctx context.Context) {
		r.fails(ctx, "ROLLBACK_COMPLETE")
		r.tablesAre(ctx, 0)
		r.aws(ctx, "cloudformation delete-stack --stack-name %s", smokeStack)
		r.aws(ctx, "cloudformation wait stack-delete-complete --stack-name %s", smokeStack)
	}},
	{"Its repetition succeeds", func(r *rehearsal, ctx context.Context) {
		r.deploy(ctx)
		r.operate(ctx, "project create Rehearsal --id "+smokeProject)
		r.operate(ctx, "credit grant "+smokeProject+" "+smokeCredits+" --reason rehearsal --id "+r.grant)
		r.operate(ctx, "rates sync")
		r.healthy(ctx)
	}},
	{"Acceptance tests, without an SMS", (*rehearsal).acceptance},
	{"A request ID that the client sends is not used", (*rehearsal).chosenID},
	{"A changed parameter takes effect", (*rehearsal).changedParameter},
	{"An update that fails goes back", func(r *rehearsal, ctx context.Context) {
		r.fails(ctx, "UPDATE_ROLLBACK_COMPLETE")
		r.healthy(ctx)
	}},
	{"Its repetition succeeds", func(r *rehearsal, ctx context.Context) {
		r.deploy(ctx, "PriceSms=23456")
		r.healthy(ctx)
	}},
	{"A restore under the old names", (*rehearsal).restore},
	{"The stack is deleted and its tables stay", func(r *rehearsal, ctx context.Context) {
		r.follow(ctx, "docs/uninstall.md", "1. Delete the stack")
		r.tablesAre(ctx, len(kept))
	}},
	{"It is deployed again with its tables", func(r *rehearsal, ctx context.Context) {
		parameters := []string{"Stage=" + smokeStage, "LogRetentionDays=1"}
		r.importTables(ctx, stage{smokeStage, smokeStack, smokeStack, parameters, nil})
		r.deploy(ctx)
		// make redeploy knows the stages of samconfig.toml alone.
		r.follow(ctx, "docs/uninstall.md", "Deploy again", "make redeploy STAGE=prod REGION=eu-west-1", "true")
	}},
	{"All is removed", func(r *rehearsal, ctx context.Context) {
		r.follow(ctx, "docs/uninstall.md", "1. Delete the stack")
		r.follow(ctx, "docs/uninstall.md", "2. Delete what is left")
		r.tablesAre(ctx, 0)
	}},
}

// smoke runs the steps and writes the report.
func smoke(ctx context.Context, t *terminal, folder string, now func() time.Time) error {
	began := now()
	r := &rehearsal{t, filepath.Join(".local", "bin", "svc"), string(wallet.NewKey(began, uuid.NewString()))}
	var report strings.Builder
	fmt.Fprintf(&report, "# Rehearsal of %s in %s\n\n", began.UTC().Format("2006-01-02 15:04 UTC"), t.region)
	for i, step := range steps {
		from := len(t.log)
		step.run(r, ctx)
		fmt.Fprintf(&report, "## %d. %s: %s\n\n", i+1, step.title,
			map[bool]string{true: "done", false: "FAILED"}[r.err == nil])
		for _, l := range t.log[from:] {
			fmt.Fprintf(&report, "    $ %s\n", l.command)
			lines := slices.Collect(strings.Lines(l.output))
			for _, line := range lines[max(0, len(lines)-12):] {
				fmt.Fprintf(&report, "    %s\n", strings.TrimRight(line, "\n"))
			}
			fmt.Fprintf(&report, "    [%s, %v]\n", l.took.Round(time.Second), l.err)
		}
		report.WriteString("\n")
		if r.err != nil {
			r.err = fmt.Errorf("%s: %w", step.title, r.err)
			fmt.Fprintf(&report, "%v\n\nThe stage %s is left as it is: docs/uninstall.md removes it.\n", r.err, smokeStage)
			break
		}
	}
	file := filepath.Join(folder, "smoke-"+began.UTC().Format("20060102-1504")+".md")
	return errors.Join(r.err, os.WriteFile(file, []byte(report.String()), 0o600))
}

func (r *rehearsal) operate(ctx context.Context, text string) {
	r.call(ctx, r.svc, r.words("%s --stage %s", text, smokeStage)...)
}

// deployment returns the arguments of "sam deploy".
func (r *rehearsal) deployment(parameters ...string) []string {
	return append(strings.Fields(fmt.Sprintf("deploy --stack-name %s --region %s --resolve-s3 --s3-prefix %[1]s"+
		" --capabilities CAPABILITY_IAM --no-confirm-changeset --no-fail-on-empty-changeset"+
		" --parameter-overrides Stage=%[3]s LogRetentionDays=1", smokeStack, r.region, smokeStage)), parameters...)
}

func (r *rehearsal) deploy(ctx context.Context, parameters ...string) {
	r.call(ctx, "sam", r.deployment(parameters...)...)
}

// describe returns a value of the stack.
func (r *rehearsal) describe(ctx context.Context, query string) string {
	return r.aws(ctx, "cloudformation describe-stacks --stack-name %s --query Stacks[0].%s --output text", smokeStack,
		query)
}

// badBoundary is a policy that does not exist: IAM refuses the roles, so that a creation or an update fails.
const badBoundary = "PermissionsBoundaryArn=arn:aws:iam::aws:policy/svc-no-such-policy"

// fails deploys what cannot be deployed. The stack must then have the status.
func (r *rehearsal) fails(ctx context.Context, status string) {
	if _, err := r.do(ctx, command{name: "sam", args: r.deployment(badBoundary)}); err == nil {
		r.fail(fmt.Errorf("the deployment with %s succeeded, and should have failed", badBoundary))
	}
	if got := r.describe(ctx, "StackStatus"); got != status {
		r.fail(fmt.Errorf("%q, want %q", got, status))
	}
}

// tablesAre checks how many of the tables that outlive a stack exist.
func (r *rehearsal) tablesAre(ctx context.Context, want int) {
	if there := r.existing(ctx, smokeStage); len(there) != want {
		r.fail(fmt.Errorf("tables %v, want %d", there, want))
	}
}

// healthy protects the tables, and checks money and the stage.
func (r *rehearsal) healthy(ctx context.Context) {
	for _, command := range []string{"protect", "ledger verify", "doctor"} {
		r.operate(ctx, command)
	}
}

// baseURL returns the URL of the stage's API.
func (r *rehearsal) baseURL(ctx context.Context) string {
	return r.describe(ctx, "Outputs[?OutputKey=='BaseUrl'].OutputValue")
}

// chosenID sends the header that sets the gateway's request ID, and records the IDs of a function's response and of the
// gateway's own. The key of a charge must rest on no chosen ID (docs/decisions/requests.md#request-id).
func (r *rehearsal) chosenID(ctx context.Context) {
	chosen, url := uuid.NewString(), r.baseURL(ctx)
	get := func(path string) string {
		return r.call(ctx, "curl", "-sS", "-o", "/dev/null", "-H", "x-amzn-RequestId: "+chosen, "-w",
			"%{http_code} X-SVC-Request-ID %header{x-svc-request-id} x-amzn-RequestId %header{x-amzn-requestid}", url+path)
	}
	own := strings.Fields(get("/currency/codes") + " - - -")[2]
	if r.err == nil && (own == chosen || uuid.Validate(own) != nil) {
		r.fail(fmt.Errorf("the request ID is %q, and the client chose %q", own, chosen))
	}
	get("/nowhere")
}

func (r *rehearsal) acceptance(ctx context.Context) {
	url := r.baseURL(ctx)
	if r.err == nil { // ACCEPT_SENDS is empty: no test sends an SMS.
		env := []string{"BASE_URL=" + url, "STAGE=" + smokeStage, "ACCEPT_SENDS=", "AWS_REGION=" + r.region}
		_, r.err = r.do(ctx, command{"make", []string{"acceptance"}, env})
	}
}

// live returns the version of the SMS function that requests reach, and its price.
func (r *rehearsal) live(ctx context.Context) string {
	name := r.aws(ctx, "cloudformation describe-stack-resource --stack-name %s --logical-resource-id SmsFunction"+
		" --query StackResourceDetail.PhysicalResourceId --output text", smokeStack)
	return r.aws(ctx, "lambda get-function-configuration --function-name %s --qualifier live"+
		" --query [Version,Environment.Variables.PRICE_SMS] --output text", name)
}

func (r *rehearsal) changedParameter(ctx context.Context) {
	before := r.live(ctx)
	r.deploy(ctx, "PriceSms=12345")
	after := r.live(ctx)
	if r.err == nil && (strings.Fields(before)[0] == strings.Fields(after)[0] || !strings.HasSuffix(after, "12345")) {
		r.fail(fmt.Errorf("version and price are %q after %q", after, before))
	}
}

// restore follows docs/restore.md. The grant is repeated, and counts once.
func (r *rehearsal) restore(ctx context.Context) {
	r.follow(ctx, "docs/restore.md", "Restore from backup", "svc-restored-", "svc-"+smokeRestored+"-",
		"--stage restored", "--stage "+smokeRestored, "--stage-name prod", "--stage-name "+smokeStage,
		"--restore-date-time 2026-03-31T12:00:00Z", "--use-latest-restorable-time", "PROJECT.json", "/dev/null",
		"PROJECT", smokeProject, "CREDITS", smokeCredits, "--id ID", "--id "+r.grant)
	r.healthy(ctx)
}
