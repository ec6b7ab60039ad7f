package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"
)

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
func (t *terminal) redeploy(ctx context.Context, s stage, region string) error {
	if _, err := t.call(ctx, "sam", "build", "--config-env", s.name); err != nil {
		return err
	}
	if err := t.importTables(ctx, s, region); err != nil {
		return err
	}
	// The template of later deployments has names with !Sub, which are the same.
	_, err := t.call(ctx, "sam", "deploy", "--config-env", s.name, "--region", region, "--no-confirm-changeset")
	return err
}

// importTables creates the stack around the tables that exist. CloudFormation imports a resource by a literal name alone
// ("Import AWS resources into a CloudFormation stack automatically", CloudFormation user guide), so the names are written
// out first. Nothing is executed unless every table that exists would be imported.
func (t *terminal) importTables(ctx context.Context, s stage, region string) error {
	there, err := t.existing(ctx, s.name, region)
	if err != nil {
		return err
	}
	if len(there) == 0 {
		return fmt.Errorf("there are no tables of the stage %s in %s: deploy with sam deploy", s.name, region)
	}
	if _, err := t.call(ctx, "sam", "package", "--resolve-s3", "--s3-prefix", s.prefix, "--region", region, "--output-template-file", packaged); err != nil {
		return err
	}
	text, err := os.ReadFile(packaged)
	if err != nil {
		return err
	}
	if text, err = writeNames(text, s.name); err != nil {
		return err
	}
	if err := os.WriteFile(literal, text, 0o600); err != nil {
		return err
	}
	bucket, err := t.call(ctx, "aws", "cloudformation", "describe-stacks", "--region", region, "--stack-name", "aws-sam-cli-managed-default",
		"--query", "Stacks[0].Outputs[?OutputKey=='SourceBucket'].OutputValue", "--output", "text")
	if err != nil {
		return err
	}
	// A template of more than 51,200 bytes is read from S3 ("CloudFormation quotas").
	key := s.prefix + "/" + filepath.Base(literal)
	if _, err := t.call(ctx, "aws", "s3", "cp", "--region", region, literal, "s3://"+bucket+"/"+key); err != nil {
		return err
	}
	if err := t.changeSet(ctx, s, region, "https://"+bucket+".s3."+region+".amazonaws.com/"+key); err != nil {
		return err
	}
	imported, err := t.call(ctx, "aws", "cloudformation", "describe-change-set", "--region", region, "--stack-name", s.stack, "--change-set-name", changeSet,
		"--query", "Changes[?ResourceChange.Action=='Import'].ResourceChange.LogicalResourceId", "--output", "text")
	if err != nil {
		return err
	}
	var got []string
	for id := range strings.FieldsSeq(imported) {
		got = append(got, "svc-"+s.name+"-"+strings.ToLower(id))
	}
	slices.Sort(got)
	if !slices.Equal(got, there) {
		return fmt.Errorf("the change set imports %v, and the tables are %v: nothing was executed; read the change set %s, then delete the stack %s", got, there, changeSet, s.stack)
	}
	for _, args := range [][]string{
		{"execute-change-set", "--change-set-name", changeSet}, {"wait", "stack-create-complete"},
	} {
		if _, err := t.call(ctx, "aws", slices.Concat([]string{"cloudformation"}, args, []string{"--stack-name", s.stack, "--region", region})...); err != nil {
			return err
		}
	}
	return nil
}

// changeSet creates the change set and waits for it.
func (t *terminal) changeSet(ctx context.Context, s stage, region, url string) error {
	pairs := func(list []string, name, value string) (string, error) {
		out := []map[string]string{}
		for _, item := range list {
			k, v, _ := strings.Cut(item, "=")
			out = append(out, map[string]string{name: k, value: v})
		}
		text, err := json.Marshal(out)
		return string(text), err
	}
	parameters, err := pairs(s.parameters, "ParameterKey", "ParameterValue")
	if err != nil {
		return err
	}
	tags, err := pairs(s.tags, "Key", "Value")
	if err != nil {
		return err
	}
	if _, err := t.call(ctx, "aws", "cloudformation", "create-change-set", "--region", region, "--stack-name", s.stack, "--change-set-name", changeSet,
		"--change-set-type", "CREATE", "--import-existing-resources", "--template-url", url, "--capabilities", "CAPABILITY_IAM",
		"--parameters", parameters, "--tags", tags); err != nil {
		return err
	}
	_, err = t.call(ctx, "aws", "cloudformation", "wait", "change-set-create-complete", "--region", region, "--stack-name", s.stack, "--change-set-name", changeSet)
	return err
}

// kept are the tables that outlive a stack.
var kept = []string{"ledger", "projects", "wallets"}

// existing returns the names of the stage's kept tables that exist.
func (t *terminal) existing(ctx context.Context, stage, region string) ([]string, error) {
	out, err := t.call(ctx, "aws", "dynamodb", "list-tables", "--region", region, "--query", "TableNames[]", "--output", "text")
	if err != nil {
		return nil, err
	}
	var there []string
	for _, short := range kept {
		if name := "svc-" + stage + "-" + short; slices.Contains(strings.Fields(out), name) {
			there = append(there, name)
		}
	}
	return there, nil
}

// writeNames writes the names of the kept tables out, and keeps them when the creation fails: they hold money by now.
func writeNames(template []byte, stage string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(template, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("the packaged template is empty")
	}
	resources := field(doc.Content[0], "Resources")
	for _, short := range kept {
		id := strings.ToUpper(short[:1]) + short[1:]
		table := field(resources, id)
		name, policy := field(field(table, "Properties"), "TableName"), field(table, "DeletionPolicy")
		if name == nil || policy == nil {
			return nil, fmt.Errorf("the packaged template has no table %s with a name and a DeletionPolicy", id)
		}
		*name = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "svc-" + stage + "-" + short}
		*policy = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "Retain"}
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	err := e.Encode(&doc)
	return out.Bytes(), err
}

// field returns the value of a mapping's key; nil where there is none.
func field(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for pair := range slices.Chunk(mapping.Content, 2) {
		if pair[0].Value == key {
			return pair[1]
		}
	}
	return nil
}
