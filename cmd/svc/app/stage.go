package app

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

	"svcapi/shared/awsclient"
	"svcapi/shared/burner"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// Stack is the stage that the commands work on.
type Stack struct {
	Stage    string
	Projects *project.Store
	Credits  *credit.Store
	Secrets  *secret.Writer
	Burners  *burner.Store // projects' own disposable domains
	Rates    *rates.Store
	// Sandbox plays every vendor on the local stack; empty: a deployed stage, with real vendors.
	Sandbox string
	// Vendors validates whether an integration is complete, as the functions do, and calls its vendor.
	Vendors *upstream.Client
	// AWS is for vendors that are paid through the caller's AWS account.
	AWS aws.Config
	// Actor names the caller for the ledger.
	Actor func(context.Context) (string, error)
	// Deployed reads what was deployed apart from tables and secrets.
	Deployed func(context.Context) (Deployed, error)
	// DB and Vault are the clients below the stores.
	DB    *dynamodb.Client
	Vault *secretsmanager.Client
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

// Open connects to the stage that the flags name.
func (a *App) Open(ctx context.Context) (*Stack, error) {
	if a.Local {
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
	if a.DryRun {
		options = append(options, config.WithAPIOptions([]func(*middleware.Stack) error{refuseWrites}))
	}
	cfg, err := loadAWS(ctx, options...)
	if err != nil {
		return nil, &signInError{err}
	}
	if cfg.Region == "" {
		return nil, Usagef("no AWS region: give --region, or set AWS_REGION")
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
	s.Secrets = s.Secrets.WithKey(e.KMSKey)
	s.Deployed = func(ctx context.Context) (Deployed, error) {
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

// openLocal connects to the local stack.
func (a *App) openLocal(ctx context.Context) (*Stack, error) {
	if a.stage != "" || a.region != "" || a.profile != "" {
		return nil, Usagef("--local goes without --stage, --region and --profile")
	}
	running := localStack{Stage: localStage}
	if err := readLocalStack(&running); err != nil {
		return nil, err
	}
	a.stage = running.Stage
	cfg, err := loadAWS(ctx,
		config.WithRegion("us-east-1"),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(localAccessKey, "local", "")))
	if err != nil {
		return nil, err
	}
	if a.DryRun {
		cfg.APIOptions = append(cfg.APIOptions, refuseWrites)
	}
	s := newStack(running.Stage, cfg,
		awsclient.DynamoDB(cfg, patientDynamoDB, func(o *dynamodb.Options) { o.BaseEndpoint = &running.DynamoDBURL }),
		awsclient.Secrets(cfg, patientSecrets, func(o *secretsmanager.Options) { o.BaseEndpoint = &running.SecretsURL }),
		upstream.Config{TimeoutSeconds: vendorPatience, Local: true},
		func(context.Context) (string, error) { return "local", nil })
	s.Deployed = func(context.Context) (Deployed, error) { return Deployed{running.BaseURL, running.Prices}, nil }
	s.Sandbox = running.SandboxURL
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

func newStack(stage string, cfg aws.Config, db *dynamodb.Client, secrets *secretsmanager.Client, vendors upstream.Config, actor func(context.Context) (string, error)) *Stack {
	table := func(name string) string { return "svc-" + stage + "-" + name }
	return &Stack{
		Stage:    stage,
		Projects: project.NewStore(db, table("projects")),
		Credits:  credit.NewStore(db, credit.Tables{Wallets: table("wallets"), Ledger: table("ledger")}),
		Secrets:  secret.NewWriter(secrets, stage),
		Burners:  burner.NewStore(db, table("projects")),
		Rates:    rates.NewStore(db, table("rates")),
		Vendors:  upstream.New(vendors),
		AWS:      cfg,
		Actor:    actor,
		DB:       db,
		Vault:    secrets,
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

// Table returns the name of one of the stage's tables.
func (s *Stack) Table(name string) string { return "svc-" + s.Stage + "-" + name }

// Load reads a project that must be there.
func (s *Stack) Load(ctx context.Context, projectID string) (*project.Record, error) {
	if projectID == "" {
		return nil, Usagef("the project's ID is empty")
	}
	rec, err := s.Projects.Load(ctx, projectID)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, fmt.Errorf("project %s: %w", projectID, project.ErrNotFound)
	}
	return rec, nil
}
