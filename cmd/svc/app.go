package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"
	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"

	"svcapi/shared/awsclient"
	"svcapi/shared/burner"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// app is one run of the command line: the console and the flags that every command has.
type app struct {
	console

	local, dryRun                             bool
	stage, region, profile, output, stackName string

	// started tells that the arguments were understood and the command runs.
	started bool
}

// stack is what the commands work on.
type stack struct {
	stage    string
	projects *project.Store
	credits  *credit.Store
	secrets  *secret.Writer
	burners  *burner.Store // projects' own disposable domains
	rates    *rates.Store
	// sandbox plays every vendor on the local stack; empty: a deployed stage, with real ones.
	sandbox string
	// vendors judges whether an integration is complete, as the functions do, and calls its vendor.
	vendors *upstream.Client
	// aws is for vendors that are paid through the caller's AWS account.
	aws aws.Config
	// actor names the caller for the ledger.
	actor func(context.Context) (string, error)
	// deployed is what was deployed beside tables and secrets.
	deployed func(context.Context) (deployed, error)
	// db and vault are the clients below the stores.
	db    *dynamodb.Client
	vault *secretsmanager.Client
}

// environment is what svc itself takes from the environment; the AWS SDK takes its own.
type environment struct {
	Stage string `env:"SVC_STAGE" envDefault:"dev"`
	// KMSKey encrypts the secrets that svc makes; empty: AWS's own key.
	KMSKey string `env:"SVC_KMS_KEY"`
}

// An operator may be far from the region: more patience than a function has.
const (
	patience = 15 * time.Second
	backoff  = 500 * time.Millisecond
	// vendorPatience is what a vendor is given to answer, in seconds, as in the functions.
	vendorPatience = 10
)

// open connects to the stage that the flags name.
func (a *app) open(ctx context.Context) (*stack, error) {
	if a.local {
		return a.openLocal(ctx)
	}
	var e environment
	if err := env.Parse(&e); err != nil {
		return nil, err
	}
	if a.stage == "" {
		a.stage = e.Stage
	}
	var options []func(*config.LoadOptions) error
	if a.region != "" {
		options = append(options, config.WithRegion(a.region))
	}
	if a.profile != "" {
		options = append(options, config.WithSharedConfigProfile(a.profile))
	}
	if a.dryRun {
		options = append(options, config.WithAPIOptions([]func(*middleware.Stack) error{refuseWrites}))
	}
	cfg, err := awsclient.Load(ctx, options...)
	if err != nil {
		return nil, &signInError{err}
	}
	if cfg.Region == "" {
		return nil, &usageError{"no AWS region: give --region, or set AWS_REGION"}
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, &signInError{err}
	}
	s := newStack(a.stage, cfg,
		awsclient.DynamoDB(cfg, patientDynamoDB),
		awsclient.Secrets(cfg, patientSecrets),
		upstream.Config{TimeoutSeconds: vendorPatience},
		func(ctx context.Context) (string, error) {
			who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
			if err != nil {
				return "", fmt.Errorf("ask AWS who you are: %w", err)
			}
			return *who.Arn, nil
		})
	s.secrets = s.secrets.WithKey(e.KMSKey)
	s.deployed = func(ctx context.Context) (deployed, error) {
		return describeStack(ctx, cfg, cmp.Or(a.stackName, "svc-"+a.stage))
	}
	return s, nil
}

// localStack is what the local stack writes to .local/demo.json, as far as it is used here.
type localStack struct {
	Stage       string           `json:"stage"`
	DynamoDBURL string           `json:"dynamodb_url"`
	SecretsURL  string           `json:"secrets_url"`
	BaseURL     string           `json:"base_url"`
	Prices      map[string]int64 `json:"prices"`
	SandboxURL  string           `json:"sandbox_url"`
}

// localAccessKey is one of those that the sandbox takes for a function's role.
const localAccessKey = "LOCALSVC"

// localStage is the stage of the local stack, unless its file says another.
const localStage = "local"

func (a *app) openLocal(ctx context.Context) (*stack, error) {
	if a.stage != "" || a.region != "" || a.profile != "" {
		return nil, &usageError{"--local goes without --stage, --region and --profile"}
	}
	running := localStack{Stage: localStage}
	if err := readLocalStack(&running); err != nil {
		return nil, err
	}
	a.stage = running.Stage
	cfg, err := awsclient.Load(ctx,
		config.WithRegion("us-east-1"),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(localAccessKey, "local", "")))
	if err != nil {
		return nil, err
	}
	if a.dryRun {
		cfg.APIOptions = append(cfg.APIOptions, refuseWrites)
	}
	s := newStack(running.Stage, cfg,
		awsclient.DynamoDB(cfg, patientDynamoDB, func(o *dynamodb.Options) { o.BaseEndpoint = &running.DynamoDBURL }),
		awsclient.Secrets(cfg, patientSecrets, func(o *secretsmanager.Options) { o.BaseEndpoint = &running.SecretsURL }),
		upstream.Config{TimeoutSeconds: vendorPatience, Local: true},
		func(context.Context) (string, error) { return "local", nil })
	s.deployed = func(context.Context) (deployed, error) { return deployed{running.BaseURL, running.Prices}, nil }
	s.sandbox = running.SandboxURL
	return s, nil
}

// readLocalStack reads .local/demo.json of this folder or the nearest one above that has it.
func readLocalStack(into *localStack) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, ".local", "demo.json"))
		if err == nil {
			if err := json.Unmarshal(content, into); err != nil || into.DynamoDBURL == "" || into.SecretsURL == "" || into.SandboxURL == "" {
				return errors.New(".local/demo.json is not what the local stack writes; start it again with: make run")
			}
			return nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return errNoLocalStack
		}
		dir = parent
	}
}

func newStack(stage string, cfg aws.Config, db *dynamodb.Client, secrets *secretsmanager.Client, vendors upstream.Config, actor func(context.Context) (string, error)) *stack {
	table := func(name string) string { return "svc-" + stage + "-" + name }
	return &stack{
		stage:    stage,
		projects: project.NewStore(db, table("projects")),
		credits:  credit.NewStore(db, credit.Tables{Wallets: table("wallets"), Ledger: table("ledger")}),
		secrets:  secret.NewWriter(secrets, stage),
		burners:  burner.NewStore(db, table("projects")),
		rates:    rates.NewStore(db, table("rates")),
		vendors:  upstream.New(vendors),
		aws:      cfg,
		actor:    actor,
		db:       db,
		vault:    secrets,
	}
}

func patientDynamoDB(o *dynamodb.Options) {
	o.HTTPClient = awshttp.NewBuildableClient().WithTimeout(patience)
	o.Retryer = awsclient.Retryer(backoff)
}

func patientSecrets(o *secretsmanager.Options) {
	o.HTTPClient = awshttp.NewBuildableClient().WithTimeout(patience)
	o.Retryer = awsclient.Retryer(backoff)
}

// on makes a command's action of a function that works on the stack.
func (a *app) on(do func(ctx context.Context, s *stack, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := a.open(cmd.Context())
		if err != nil {
			return err
		}
		return do(cmd.Context(), s, args)
	}
}

// table is the name of one of the stage's tables.
func (s *stack) table(name string) string { return "svc-" + s.stage + "-" + name }

// load reads a project that must be there.
func (s *stack) load(ctx context.Context, projectID string) (*project.Record, error) {
	if projectID == "" {
		return nil, &usageError{"the project's ID is empty"}
	}
	rec, err := s.projects.Load(ctx, projectID)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, fmt.Errorf("project %s: %w", projectID, project.ErrNotFound)
	}
	return rec, nil
}
