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
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
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

// Stack holds the stores and clients of the stage that a command works on.
type Stack struct {
	Stage    string
	Projects *project.Store
	Credits  *credit.Store
	Secrets  *secret.Writer
	Burners  *burner.Store // projects' own disposable domains
	Rates    *rates.Store
	// Sandbox is the URL of the local stack's sandbox vendors; empty for a deployed stage.
	Sandbox string
	// Vendors validates integrations as the functions do, and calls their vendors.
	Vendors *upstream.Client
	// AWS configures the vendors of the operator's AWS account.
	AWS aws.Config
	// Actor returns the operator's name for the ledger.
	Actor func(context.Context) (string, error)
	// Deployed reads the base URL and the prices of the stack.
	Deployed func(context.Context) (Deployed, error)
	// DB and Vault are the clients below the stores.
	DB    *dynamodb.Client
	Vault *secretsmanager.Client
}

// environment holds the variables that svc reads; the AWS SDK reads others.
type environment struct {
	Stage string `env:"SVC_STAGE" envDefault:"dev"`
	// KMSKey encrypts the secrets that svc creates; empty means the key of AWS.
	KMSKey string `env:"SVC_KMS_KEY"`
}

// The operator may be far from the region, so that the limits are larger than in a function.
const (
	attemptTimeout = 15 * time.Second
	backoff        = 500 * time.Millisecond
	// vendorTimeoutSeconds is the default of the functions.
	vendorTimeoutSeconds = 10
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
	s := newStack(a.stage, cfg, awsclient.DynamoDB(cfg, dynamoDBWithRetries), awsclient.Secrets(cfg, secretsWithRetries),
		upstream.Config{TimeoutSeconds: vendorTimeoutSeconds},
		func(ctx context.Context) (string, error) {
			who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
			if err != nil {
				return "", fmt.Errorf("ask AWS who you are: %w", err)
			}
			return *who.Arn, nil
		})
	s.Secrets = s.Secrets.WithKey(e.KMSKey)
	s.Deployed = func(ctx context.Context) (Deployed, error) {
		return describeStack(ctx, cfg, a.StackName())
	}
	return s, nil
}

// localStack holds the fields of .local/demo.json, which the local stack writes, that svc uses.
type localStack struct {
	Stage       string           `json:"stage"`
	DynamoDBURL string           `json:"dynamodb_url"`
	SecretsURL  string           `json:"secrets_url"`
	BaseURL     string           `json:"base_url"`
	Prices      map[string]int64 `json:"prices"`
	SandboxURL  string           `json:"sandbox_url"`
}

// localAccessKey is an access key that the sandbox accepts as a function's role.
const localAccessKey = "LOCALSVC"

// localStage is the default stage of the local stack.
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
		awsclient.DynamoDB(cfg, dynamoDBWithRetries, func(o *dynamodb.Options) { o.BaseEndpoint = &running.DynamoDBURL }),
		awsclient.Secrets(cfg, secretsWithRetries, func(o *secretsmanager.Options) { o.BaseEndpoint = &running.SecretsURL }),
		upstream.Config{TimeoutSeconds: vendorTimeoutSeconds, Local: true},
		func(context.Context) (string, error) { return "local", nil })
	s.Deployed = func(context.Context) (Deployed, error) { return Deployed{running.BaseURL, running.Prices}, nil }
	s.Sandbox = running.SandboxURL
	return s, nil
}

// readLocalStack reads .local/demo.json of this folder or of the nearest folder above with such a file.
func readLocalStack(into *localStack) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, ".local", "demo.json"))
		if err == nil {
			if err := json.Unmarshal(content, into); err != nil || into.DynamoDBURL == "" || into.SecretsURL == "" || into.SandboxURL == "" {
				return errors.New(".local/demo.json does not come from the local stack; start it again with: make run")
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
	s := &Stack{Stage: stage, Secrets: secret.NewWriter(secrets, stage), Vendors: upstream.New(vendors), AWS: cfg, Actor: actor, DB: db, Vault: secrets}
	s.Projects = project.NewStore(db, s.Table("projects"))
	s.Credits = credit.NewStore(db, credit.Tables{Wallets: s.Table("wallets"), Ledger: s.Table("ledger")})
	s.Burners = burner.NewStore(db, s.Table("projects"))
	s.Rates = rates.NewStore(db, s.Table("rates"))
	return s
}

func dynamoDBWithRetries(o *dynamodb.Options) {
	o.HTTPClient = awshttp.NewBuildableClient().WithTimeout(attemptTimeout)
	o.Retryer = awsclient.Retryer(backoff)
}

func secretsWithRetries(o *secretsmanager.Options) {
	o.HTTPClient = awshttp.NewBuildableClient().WithTimeout(attemptTimeout)
	o.Retryer = awsclient.Retryer(backoff)
}

// StageName returns the stage that the flags and the environment name, also where Open has failed.
func (a *App) StageName() string { return a.stage }

// StackName returns the name of the CloudFormation stack.
func (a *App) StackName() string { return cmp.Or(a.stackName, "svc-"+a.stage) }

// Table returns the name of one of the stage's tables.
func (s *Stack) Table(name string) string { return "svc-" + s.Stage + "-" + name }

// Load reads a project, and returns an error for a project that does not exist.
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

// Deployed holds the base URL and the prices of a deployed stack.
type Deployed struct {
	BaseURL string
	Prices  credit.Prices
}

// describeStack reads the base URL and the prices of a stack from CloudFormation.
func describeStack(ctx context.Context, cfg aws.Config, name string) (Deployed, error) {
	out, err := cloudformation.NewFromConfig(cfg).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil {
		return Deployed{}, fmt.Errorf("read the stack %s (--stack names another): %w", name, err)
	}
	if len(out.Stacks) == 0 {
		return Deployed{}, fmt.Errorf("there is no stack %s", name)
	}
	d, parameters := Deployed{}, map[string]string{}
	for _, o := range out.Stacks[0].Outputs {
		if aws.ToString(o.OutputKey) == "BaseUrl" {
			d.BaseURL = aws.ToString(o.OutputValue)
		}
	}
	for _, p := range out.Stacks[0].Parameters {
		parameters[aws.ToString(p.ParameterKey)] = aws.ToString(p.ParameterValue)
	}
	d.Prices, err = credit.ReadPrices(credit.FromParameters(parameters))
	return d, err
}
