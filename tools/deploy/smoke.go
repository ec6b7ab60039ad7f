package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// rehearsal is one run of smoke: the life of a stage of its own, from a creation that fails to its removal.
type rehearsal struct {
	*terminal
	region string
	svc    string
}

// The stage of the rehearsal, and the one that its restored tables are named after.
const (
	smokeStage    = "smoke"
	smokeStack    = "svc-" + smokeStage
	smokeRestored = "smoke-restored"
)

// errExpected reports that a step which has to fail succeeded.
var errExpected = errors.New("succeeded, and should have failed")

// steps are in their order; the first failure ends the run.
var steps = []struct {
	title string
	run   func(*rehearsal, context.Context) error
}{
	{"The account is ready", (*rehearsal).preflight},
	{"The build", (*rehearsal).build},
	{"A creation that fails leaves nothing", (*rehearsal).failedCreation},
	{"Its repetition succeeds", (*rehearsal).creation},
	{"Acceptance tests, without an SMS", (*rehearsal).acceptance},
	{"A changed parameter takes effect", (*rehearsal).changedParameter},
	{"An update that fails goes back", (*rehearsal).failedUpdate},
	{"Its repetition succeeds", (*rehearsal).repeatedUpdate},
	{"A restore under the old names", (*rehearsal).restore},
	{"The stack is deleted and its tables stay", (*rehearsal).deletion},
	{"It is deployed again with its tables", (*rehearsal).again},
	{"All is removed", (*rehearsal).removal},
}

// smoke runs the steps and writes the report.
func smoke(ctx context.Context, t *terminal, region, folder string, now func() time.Time) error {
	r := &rehearsal{terminal: t, region: region, svc: filepath.Join(".local", "bin", "svc")}
	began := now()
	var report strings.Builder
	fmt.Fprintf(&report, "# Rehearsal of %s in %s\n\n", began.UTC().Format("2006-01-02 15:04 UTC"), region)
	var failed error
	for i, step := range steps {
		from := len(t.log)
		if failed = step.run(r, ctx); failed != nil {
			failed = fmt.Errorf("%s: %w", step.title, failed)
		}
		fmt.Fprintf(&report, "## %d. %s: %s\n\n", i+1, step.title, map[bool]string{true: "done", false: "FAILED"}[failed == nil])
		for _, l := range t.log[from:] {
			fmt.Fprintf(&report, "    $ %s\n", l.command)
			for line := range strings.Lines(tail(l.output, 12)) {
				fmt.Fprintf(&report, "    %s\n", strings.TrimRight(line, "\n"))
			}
			fmt.Fprintf(&report, "    [%s, %v]\n", l.took.Round(time.Second), l.err)
		}
		report.WriteString("\n")
		if failed != nil {
			fmt.Fprintf(&report, "%v\n\nThe stage %s is left as it is: docs/uninstall.md removes it.\n", failed, smokeStage)
			break
		}
	}
	file := filepath.Join(folder, "smoke-"+began.UTC().Format("20060102-1504")+".md")
	return errors.Join(failed, os.WriteFile(file, []byte(report.String()), 0o600))
}

// tail returns the last lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (r *rehearsal) aws(ctx context.Context, args ...string) (string, error) {
	return r.call(ctx, "aws", append(args, "--region", r.region)...)
}

func (r *rehearsal) operate(ctx context.Context, stage string, args ...string) (string, error) {
	return r.call(ctx, r.svc, append(args, "--stage", stage, "--region", r.region)...)
}

func (r *rehearsal) deploy(ctx context.Context, parameters ...string) error {
	args := []string{"deploy", "--stack-name", smokeStack, "--region", r.region, "--resolve-s3", "--s3-prefix", smokeStack, "--capabilities", "CAPABILITY_IAM",
		"--no-confirm-changeset", "--no-fail-on-empty-changeset", "--parameter-overrides", "Stage=" + smokeStage, "LogRetentionDays=1"}
	_, err := r.call(ctx, "sam", append(args, parameters...)...)
	return err
}

// badBoundary is a policy that does not exist: IAM refuses the roles, so that a creation or an update fails.
const badBoundary = "PermissionsBoundaryArn=arn:aws:iam::aws:policy/svc-no-such-policy"

// fails deploys what cannot be deployed, and returns an error unless the stack has the status afterwards.
func (r *rehearsal) fails(ctx context.Context, status string) error {
	if err := r.deploy(ctx, badBoundary); err == nil {
		return fmt.Errorf("deployment with %s: %w", badBoundary, errExpected)
	}
	return r.want(ctx, status, "cloudformation", "describe-stacks", "--stack-name", smokeStack, "--query", "Stacks[0].StackStatus", "--output", "text")
}

// want runs the AWS CLI and compares what it prints.
func (r *rehearsal) want(ctx context.Context, want string, args ...string) error {
	got, err := r.aws(ctx, args...)
	if err == nil && got != want {
		err = fmt.Errorf("%q, want %q", got, want)
	}
	return err
}

// tablesAre checks which of the tables that outlive a stack exist.
func (r *rehearsal) tablesAre(ctx context.Context, want int) error {
	there, err := r.existing(ctx, smokeStage, r.region)
	if err == nil && len(there) != want {
		err = fmt.Errorf("tables %v, want %d", there, want)
	}
	return err
}

func (r *rehearsal) deleteStack(ctx context.Context) error {
	if _, err := r.aws(ctx, "cloudformation", "delete-stack", "--stack-name", smokeStack); err != nil {
		return err
	}
	_, err := r.aws(ctx, "cloudformation", "wait", "stack-delete-complete", "--stack-name", smokeStack)
	return err
}

// healthy protects the tables, and checks money and the stage.
func (r *rehearsal) healthy(ctx context.Context) error {
	for _, args := range [][]string{{"protect"}, {"ledger", "verify"}, {"doctor"}} {
		if _, err := r.operate(ctx, smokeStage, args...); err != nil {
			return err
		}
	}
	return nil
}

func (r *rehearsal) preflight(ctx context.Context) error {
	if _, err := r.call(ctx, "go", "build", "-o", r.svc, "./cmd/svc"); err != nil {
		return err
	}
	if err := r.tablesAre(ctx, 0); err != nil {
		return err
	}
	_, err := r.operate(ctx, smokeStage, "preflight")
	return err
}

func (r *rehearsal) build(ctx context.Context) error {
	_, err := r.call(ctx, "sam", "build")
	return err
}

func (r *rehearsal) failedCreation(ctx context.Context) error {
	if err := r.fails(ctx, "ROLLBACK_COMPLETE"); err != nil {
		return err
	}
	if err := r.tablesAre(ctx, 0); err != nil {
		return err
	}
	return r.deleteStack(ctx)
}

func (r *rehearsal) creation(ctx context.Context) error {
	if err := r.deploy(ctx); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"project", "create", "Rehearsal", "--id", "rehearsal"}, {"credit", "grant", "rehearsal", "1000000", "--reason", "rehearsal", "--id", "rehearsal"}, {"rates", "sync"},
	} {
		if _, err := r.operate(ctx, smokeStage, args...); err != nil {
			return err
		}
	}
	return r.healthy(ctx)
}

func (r *rehearsal) acceptance(ctx context.Context) error {
	url, err := r.aws(ctx, "cloudformation", "describe-stacks", "--stack-name", smokeStack, "--query", "Stacks[0].Outputs[?OutputKey=='BaseUrl'].OutputValue", "--output", "text")
	if err != nil {
		return err
	}
	// ACCEPT_SENDS is empty: no test sends an SMS.
	_, err = r.do(ctx, command{name: "make", args: []string{"acceptance"}, env: []string{"BASE_URL=" + url, "STAGE=" + smokeStage, "ACCEPT_SENDS=", "AWS_REGION=" + r.region}})
	return err
}

// live returns the version of the SMS function that requests reach, and its price.
func (r *rehearsal) live(ctx context.Context) (string, error) {
	name, err := r.aws(ctx, "cloudformation", "describe-stack-resource", "--stack-name", smokeStack, "--logical-resource-id", "SmsFunction",
		"--query", "StackResourceDetail.PhysicalResourceId", "--output", "text")
	if err != nil {
		return "", err
	}
	return r.aws(ctx, "lambda", "get-function-configuration", "--function-name", name, "--qualifier", "live", "--query", "[Version,Environment.Variables.PRICE_SMS]", "--output", "text")
}

func (r *rehearsal) changedParameter(ctx context.Context) error {
	before, err := r.live(ctx)
	if err != nil {
		return err
	}
	if err := r.deploy(ctx, "PriceSms=12345"); err != nil {
		return err
	}
	after, err := r.live(ctx)
	if err == nil && (strings.Fields(before)[0] == strings.Fields(after)[0] || !strings.HasSuffix(after, "12345")) {
		err = fmt.Errorf("version and price are %q after %q", after, before)
	}
	return err
}

func (r *rehearsal) failedUpdate(ctx context.Context) error {
	if err := r.fails(ctx, "UPDATE_ROLLBACK_COMPLETE"); err != nil {
		return err
	}
	return r.healthy(ctx)
}

func (r *rehearsal) repeatedUpdate(ctx context.Context) error {
	if err := r.deploy(ctx, "PriceSms=23456"); err != nil {
		return err
	}
	return r.healthy(ctx)
}

// restore follows docs/restore.md.
func (r *rehearsal) restore(ctx context.Context) error {
	for _, short := range kept {
		if _, err := r.aws(ctx, "dynamodb", "restore-table-to-point-in-time", "--source-table-name", smokeStack+"-"+short,
			"--target-table-name", "svc-"+smokeRestored+"-"+short, "--use-latest-restorable-time"); err != nil {
			return err
		}
	}
	for _, short := range kept {
		if err := r.awaitTable(ctx, "svc-"+smokeRestored+"-"+short); err != nil {
			return err
		}
	}
	if _, err := r.operate(ctx, smokeRestored, "ledger", "verify"); err != nil {
		return err
	}
	backups := map[string]string{}
	for _, short := range kept {
		arn, err := r.aws(ctx, "dynamodb", "create-backup", "--table-name", "svc-"+smokeRestored+"-"+short, "--backup-name", "svc-"+smokeRestored+"-"+short,
			"--query", "BackupDetails.BackupArn", "--output", "text")
		if err != nil {
			return err
		}
		backups[short] = arn
		if err := r.until(ctx, "AVAILABLE", "dynamodb", "describe-backup", "--backup-arn", arn, "--query", "BackupDescription.BackupDetails.BackupStatus", "--output", "text"); err != nil {
			return err
		}
	}
	for _, short := range kept {
		if err := r.deleteTable(ctx, smokeStack+"-"+short, true); err != nil {
			return err
		}
		if _, err := r.aws(ctx, "dynamodb", "restore-table-from-backup", "--target-table-name", smokeStack+"-"+short, "--backup-arn", backups[short]); err != nil {
			return err
		}
	}
	for _, short := range kept {
		if err := r.awaitTable(ctx, smokeStack+"-"+short); err != nil {
			return err
		}
	}
	if err := r.healthy(ctx); err != nil {
		return err
	}
	for _, short := range kept {
		if err := r.deleteTable(ctx, "svc-"+smokeRestored+"-"+short, false); err != nil {
			return err
		}
		if _, err := r.aws(ctx, "dynamodb", "delete-backup", "--backup-arn", backups[short]); err != nil {
			return err
		}
	}
	return nil
}

// awaitTable waits until a restored table is active, up to an hour; the waiter of the CLI gives up after eight minutes.
func (r *rehearsal) awaitTable(ctx context.Context, name string) error {
	return r.until(ctx, "ACTIVE", "dynamodb", "describe-table", "--table-name", name, "--query", "Table.TableStatus", "--output", "text")
}

func (r *rehearsal) until(ctx context.Context, want string, args ...string) error {
	for range 120 {
		if r.want(ctx, want, args...) == nil {
			return nil
		}
		if err := r.pause(ctx, 30*time.Second); err != nil {
			return err
		}
	}
	return fmt.Errorf("not %s after an hour: aws %s", want, strings.Join(args, " "))
}

func (r *rehearsal) deleteTable(ctx context.Context, name string, protected bool) error {
	if protected {
		if _, err := r.aws(ctx, "dynamodb", "update-table", "--table-name", name, "--no-deletion-protection-enabled"); err != nil {
			return err
		}
		if err := r.awaitTable(ctx, name); err != nil {
			return err
		}
	}
	if _, err := r.aws(ctx, "dynamodb", "delete-table", "--table-name", name); err != nil {
		return err
	}
	_, err := r.aws(ctx, "dynamodb", "wait", "table-not-exists", "--table-name", name)
	return err
}

func (r *rehearsal) deletion(ctx context.Context) error {
	if err := r.deleteStack(ctx); err != nil {
		return err
	}
	return r.tablesAre(ctx, len(kept))
}

func (r *rehearsal) again(ctx context.Context) error {
	s := stage{name: smokeStage, stack: smokeStack, prefix: smokeStack, parameters: []string{"Stage=" + smokeStage, "LogRetentionDays=1"}}
	if err := r.importTables(ctx, s, r.region); err != nil {
		return err
	}
	if err := r.deploy(ctx); err != nil {
		return err
	}
	return r.healthy(ctx)
}

// removal follows docs/uninstall.md.
func (r *rehearsal) removal(ctx context.Context) error {
	if err := r.deleteStack(ctx); err != nil {
		return err
	}
	for _, short := range kept {
		if err := r.deleteTable(ctx, smokeStack+"-"+short, true); err != nil {
			return err
		}
	}
	return r.tablesAre(ctx, 0)
}
