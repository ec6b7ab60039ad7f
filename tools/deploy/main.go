// Command deploy runs what sam deploy has no flag for: the deployment of a stage whose tables a former stack left, and
// a rehearsal of the life of a stack on an AWS account. The program calls the AWS CLI and the SAM CLI.
//
// Neither was ever run on AWS: the tests replay the calls of testdata, with responses that this project wrote.
//
// Usage:
//
//	go run ./tools/deploy redeploy STAGE REGION   # docs/uninstall.md, Deploy again
//	go run ./tools/deploy smoke REGION [FOLDER]   # docs/deploy.md, A rehearsal; the report goes into FOLDER
//	go run ./tools/deploy page FILE [HEADING]     # the commands of a page's blocks
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 3 && args[0] == "redeploy":
		p, err := readStage("samconfig.toml", args[1])
		if err != nil {
			return err
		}
		return (&terminal{run: execute, region: args[2]}).redeploy(ctx, p)
	case (len(args) == 2 || len(args) == 3) && args[0] == "smoke":
		return smoke(ctx, &terminal{run: execute, region: args[1]}, cmp.Or(strings.Join(args[2:], ""), "."), time.Now)
	case (len(args) == 2 || len(args) == 3) && args[0] == "page":
		text, err := script(args[1], strings.Join(args[2:], ""))
		_, printErr := os.Stdout.WriteString(text)
		return errors.Join(err, printErr)
	}
	return fmt.Errorf("usage: redeploy STAGE REGION, smoke REGION [FOLDER], or page FILE [HEADING]")
}

// command is one call of a program.
type command struct {
	name string
	args []string
	env  []string
}

// String returns the command as a shell takes it, for the report.
func (c command) String() string {
	words := append([]string{}, c.env...)
	for _, word := range append([]string{c.name}, c.args...) {
		if strings.ContainsAny(word, " '\"[]{}?*$&;|<>()`\\") || word == "" {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// terminal runs commands. The tests replace run by recorded calls.
type terminal struct {
	run    func(ctx context.Context, c command) (output string, err error)
	region string
	log    []logged
	err    error // the first failure, after which call runs no command
}

// logged is a command that was run.
type logged struct {
	command command
	output  string
	err     error
	took    time.Duration
}

// fail keeps the first error.
func (t *terminal) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// call runs a program and returns its standard output. After a failure call runs nothing and returns an empty text.
func (t *terminal) call(ctx context.Context, name string, args ...string) (output string) {
	if t.err == nil {
		output, t.err = t.do(ctx, command{name: name, args: args})
	}
	return output
}

// aws calls the AWS CLI with the words of a text.
func (t *terminal) aws(ctx context.Context, format string, names ...any) string {
	return t.call(ctx, "aws", t.words(format, names...)...)
}

// words returns the words of a text and the region.
func (t *terminal) words(format string, names ...any) []string {
	return append(strings.Fields(fmt.Sprintf(format, names...)), "--region", t.region)
}

// do runs a command and returns its standard output, without the space around it.
func (t *terminal) do(ctx context.Context, c command) (string, error) {
	began := time.Now()
	output, err := t.run(ctx, c)
	output = strings.TrimSpace(output)
	t.log = append(t.log, logged{c, output, err, time.Since(began)})
	if err != nil {
		return output, fmt.Errorf("%s: %w", c, err)
	}
	return output, nil
}

// execute runs a command with its progress on standard error.
func execute(ctx context.Context, c command) (string, error) {
	fmt.Fprintln(os.Stderr, "+", c)
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), c.env...), os.Stderr
	out, err := cmd.Output()
	return string(out), err
}

// script returns the commands of a page's blocks in their order: those below a heading, or of the page for an empty
// heading. A block that begins with "```sh not run: REASON" becomes a comment.
func script(page, heading string) (string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	in, below, prefix, indent := false, heading == "", "", ""
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		title := strings.TrimLeft(trimmed, "#")
		reason, skipped := strings.CutPrefix(trimmed, "```sh not run: ")
		switch {
		case in && trimmed == "```":
			in = false
		case in && below:
			out.WriteString(prefix + strings.TrimPrefix(line, indent))
		case in:
		case heading != "" && title != trimmed:
			below = strings.TrimSpace(title) == heading
		case trimmed == "```sh" || skipped:
			in, prefix = true, ""
			indent, _, _ = strings.Cut(line, "`")
			if skipped {
				prefix = "# not run, " + reason + ": "
			}
		}
	}
	if in || out.Len() == 0 {
		return "", fmt.Errorf("%s has no blocks of commands, or one without an end, below %q", page, heading)
	}
	return out.String(), nil
}

// follow runs a page's commands, with other names, as an operator does: in one shell. Each name must occur in the page.
func (r *rehearsal) follow(ctx context.Context, page, heading string, names ...string) {
	text, err := script(page, heading)
	for i := 0; err == nil && i < len(names); i += 2 {
		if !strings.Contains(text, names[i]) {
			err = fmt.Errorf("%s below %q: no %q", page, heading, names[i])
		}
	}
	if r.fail(err); r.err != nil {
		return
	}
	text = strings.NewReplacer(append(names, "svc-prod", smokeStack, "svc/prod/", "svc/"+smokeStage+"/",
		"--stage prod", "--stage "+smokeStage, "Value=prod", "Value="+smokeStage)...).Replace(text)
	// The AWS CLI 1 reads another variable than the SDKs.
	env := []string{"AWS_REGION=" + r.region, "AWS_DEFAULT_REGION=" + r.region}
	_, r.err = r.do(ctx, command{"bash",
		[]string{"-euo", "pipefail", "-c", "svc() { " + r.svc + " \"$@\"; }\n" + text}, env})
}

// stage is what samconfig.toml says of a deployment.
type stage struct {
	name, stack, prefix string
	parameters, tags    []string // NAME=VALUE
}

// readStage reads the parameters of "sam deploy --config-env STAGE".
func readStage(file, name string) (stage, error) {
	var config map[string]toml.Primitive
	meta, err := toml.DecodeFile(file, &config)
	if err != nil {
		return stage{}, err
	}
	var section struct {
		Deploy struct {
			Parameters struct {
				StackName          string   `toml:"stack_name"`
				S3Prefix           string   `toml:"s3_prefix"`
				ParameterOverrides []string `toml:"parameter_overrides"`
				Tags               []string `toml:"tags"`
			} `toml:"parameters"`
		} `toml:"deploy"`
	}
	if found, ok := config[name]; ok {
		err = meta.PrimitiveDecode(found, &section)
	}
	p := section.Deploy.Parameters
	if err == nil && p.StackName == "" {
		err = errors.New("no stack_name")
	}
	if err != nil {
		return stage{}, fmt.Errorf("%s, stage %s: %w", file, name, err)
	}
	return stage{name, p.StackName, p.S3Prefix, p.ParameterOverrides, p.Tags}, nil
}

// Files between the steps, in a folder that git ignores.
const (
	packaged = ".aws-sam/packaged.yaml"
	literal  = ".aws-sam/redeploy.yaml"
)

// changeSet is the name of the change set that imports the tables.
const changeSet = "import-tables"

// redeploy deploys a stage again around the tables that a former stack left.
func (t *terminal) redeploy(ctx context.Context, s stage) error {
	t.call(ctx, "sam", "build", "--config-env", s.name)
	t.importTables(ctx, s)
	// The template of later deployments has names with !Sub, which are the same.
	t.call(ctx, "sam", t.words("deploy --config-env %s --no-confirm-changeset", s.name)...)
	return t.err
}

// importTables creates the stack around the tables that exist. CloudFormation imports a resource by a literal name
// alone ("Import AWS resources into a CloudFormation stack automatically", CloudFormation user guide), so the names are
// written out first. Nothing is executed unless every table that exists would be imported.
func (t *terminal) importTables(ctx context.Context, s stage) {
	there := t.existing(ctx, s.name)
	if len(there) == 0 {
		t.fail(fmt.Errorf("there are no tables of the stage %s in %s: deploy with sam deploy", s.name, t.region))
	}
	t.call(ctx, "sam", t.words("package --resolve-s3 --s3-prefix %s --output-template-file %s", s.prefix, packaged)...)
	if t.err == nil {
		t.err = writeLiteral(s.name)
	}
	bucket := t.aws(ctx, "cloudformation describe-stacks --stack-name aws-sam-cli-managed-default"+
		" --query Stacks[0].Outputs[?OutputKey=='SourceBucket'].OutputValue --output text")
	// A template of more than 51,200 bytes is read from S3 ("CloudFormation quotas").
	key := s.prefix + "/" + filepath.Base(literal)
	t.aws(ctx, "s3 cp %s s3://%s/%s", literal, bucket, key)
	t.createChangeSet(ctx, s, "https://"+bucket+".s3."+t.region+".amazonaws.com/"+key)
	imported := t.aws(ctx, "cloudformation describe-change-set --stack-name %s --change-set-name %s"+
		" --query Changes[?ResourceChange.Action=='Import'].ResourceChange.LogicalResourceId --output text",
		s.stack, changeSet)
	var got []string
	for id := range strings.FieldsSeq(imported) {
		got = append(got, "svc-"+s.name+"-"+strings.ToLower(id))
	}
	slices.Sort(got)
	if !slices.Equal(got, there) {
		t.fail(fmt.Errorf("the change set imports %v, and the tables are %v: nothing was executed; read the change set %s, "+
			"then delete the stack %s", got, there, changeSet, s.stack))
	}
	t.aws(ctx, "cloudformation execute-change-set --change-set-name %s --stack-name %s", changeSet, s.stack)
	t.aws(ctx, "cloudformation wait stack-create-complete --stack-name %s", s.stack)
}

// writeLiteral writes the packaged template with the names of a stage's kept tables.
func writeLiteral(stage string) error {
	text, err := os.ReadFile(packaged)
	if err != nil {
		return err
	}
	if text, err = writeNames(text, stage); err != nil {
		return err
	}
	return os.WriteFile(literal, text, 0o600)
}

// createChangeSet creates the change set and waits for it.
func (t *terminal) createChangeSet(ctx context.Context, s stage, url string) {
	pairs := func(list []string, name, value string) string {
		out := []map[string]string{}
		for _, item := range list {
			k, v, _ := strings.Cut(item, "=")
			out = append(out, map[string]string{name: k, value: strings.Trim(v, `"'`)}) // as sam deploy reads it
		}
		text, _ := json.Marshal(out) // texts have no error
		return string(text)
	}
	t.call(ctx, "aws", append(t.words("cloudformation create-change-set --stack-name %s --change-set-name %s"+
		" --change-set-type CREATE --import-existing-resources --template-url %s --capabilities CAPABILITY_IAM", s.stack,
		changeSet, url),
		"--parameters", pairs(s.parameters, "ParameterKey", "ParameterValue"), "--tags", pairs(s.tags, "Key", "Value"))...)
	created := t.err == nil
	t.aws(ctx, "cloudformation wait change-set-create-complete --stack-name %s --change-set-name %s", s.stack, changeSet)
	if created && t.err != nil { // the early validation, for example
		t.err = fmt.Errorf("%w; the reason: aws cloudformation describe-events --stack-name %s --filters FailedEvents=true "+
			"--region %s", t.err, s.stack, t.region)
	}
}

// kept are the tables that outlive a stack.
var kept = []string{"ledger", "movements", "projects", "resolutions", "wallets"}

// existing returns the names of the stage's kept tables that exist.
func (t *terminal) existing(ctx context.Context, stage string) (there []string) {
	out := t.aws(ctx, "dynamodb list-tables --query TableNames[] --output text")
	for _, short := range kept {
		if name := "svc-" + stage + "-" + short; slices.Contains(strings.Fields(out), name) {
			there = append(there, name)
		}
	}
	return there
}

// writeNames writes the names of the kept tables out, and keeps them when the creation fails: they hold money by now.
// The names are in the short form of the template or in the long form of "sam package".
func writeNames(template []byte, stage string) ([]byte, error) {
	for _, short := range kept {
		name := regexp.MustCompile(`TableName:\s+(?:!Sub|Fn::Sub:) svc-\$\{Stage\}-` + short + `\n`)
		if !name.Match(template) {
			return nil, fmt.Errorf("the packaged template has no table with the name svc-${Stage}-%s", short)
		}
		template = name.ReplaceAll(template, []byte("TableName: svc-"+stage+"-"+short+"\n"))
	}
	policy := []byte("DeletionPolicy: RetainExceptOnCreate\n")
	if n := bytes.Count(template, policy); n != len(kept) {
		return nil, fmt.Errorf("%d resources of the packaged template are kept, but %d tables", n, len(kept))
	}
	return bytes.ReplaceAll(template, policy, []byte("DeletionPolicy: Retain\n")), nil
}
