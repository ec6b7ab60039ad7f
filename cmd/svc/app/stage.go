package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cloudformationtypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"svcapi/shared/books"
	"svcapi/shared/burner"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/rates"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
)

// Stack holds the run of the command line, and the stores and clients of the stage that a command works on.
type Stack struct {
	*App
	Projects *admin.Store
	Credits  *books.Store
	Secrets  *secret.Writer
	Burners  *burner.Store // projects' own disposable domains
	Rates    *rates.Store
	// Running is the local stack; empty for a deployed stage.
	Running LocalStack
	// Vendors validates integrations as the functions do, and calls their vendors.
	Vendors *upstream.Client
	// AWS configures the vendors of the operator's AWS account.
	AWS aws.Config
	// Actor returns the operator's name for the ledger.
	Actor func(context.Context) (string, error)
	// DB and Vault are the clients below the stores.
	DB    *dynamodb.Client
	Vault *secretsmanager.Client
}

// The operator may be far from the region, so that the limits are larger than in a function.
const (
	attemptTimeout = 15 * time.Second
	backoff        = 500 * time.Millisecond
	// vendorTimeoutSeconds is the default of the functions.
	vendorTimeoutSeconds = 10
)

// loadAWS reads region, credentials and endpoints as every AWS tool does. The SDK's own log is off: without a
// ClientLogMode the log holds only remarks on bodies that could not be closed and on odd headers.
func (a *App) loadAWS(ctx context.Context, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	options = append(options, config.WithLogger(logging.Nop{}),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(attemptTimeout)))
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if a.DryRun {
		cfg.APIOptions = append(cfg.APIOptions, refuseWrites)
	}
	return cfg, err
}

// Open connects to the stage that the flags name.
func (a *App) Open(ctx context.Context) (*Stack, error) {
	if a.Local {
		return a.openLocal(ctx)
	}
	a.Stage = cmp.Or(a.Stage, os.Getenv("SVC_STAGE"), "dev")
	cfg, err := a.loadAWS(ctx, config.WithRegion(a.region), config.WithSharedConfigProfile(a.profile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSignIn, err)
	}
	if cfg.Region == "" {
		return nil, errNoRegion
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", errSignIn, err)
	}
	s := a.newStack(cfg, "", "")
	s.Actor = func(ctx context.Context) (string, error) {
		who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return "", fmt.Errorf("ask AWS who you are: %w", err)
		}
		return *who.Arn, nil
	}
	s.Secrets.Key = os.Getenv("SVC_KMS_KEY") // empty: the key of AWS
	return s, nil
}

// LocalStack holds the fields of .local/demo.json, which the local stack writes, that svc uses.
type LocalStack struct {
	Stage       string           `json:"stage"`
	DynamoDBURL string           `json:"dynamodb_url"`
	SecretsURL  string           `json:"secrets_url"`
	BaseURL     string           `json:"base_url"`
	Prices      map[string]int64 `json:"prices"`
	SandboxURL  string           `json:"sandbox_url"` // of the sandbox vendors
	LogDir      string           `json:"log_dir"`     // the folder with the logs
	Projects    map[string]struct {
		ID     string  `json:"project_id"`
		Faults []Fault `json:"faults"`
	} `json:"projects"`
}

// Fault is a finding of "svc doctor" that a demo project exists to show.
type Fault struct {
	Check  string `json:"check"`
	Detail string `json:"detail"` // a part of the finding's detail
}

// openLocal connects to the local stack.
func (a *App) openLocal(ctx context.Context) (*Stack, error) {
	if a.Stage != "" || a.region != "" || a.profile != "" {
		return nil, Usagef("--local goes without --stage, --region and --profile")
	}
	running := LocalStack{Stage: "local"}
	if err := readLocalStack(&running); err != nil {
		return nil, err
	}
	a.Stage = running.Stage
	cfg, err := a.loadAWS(ctx, config.WithRegion("us-east-1"),
		// The sandbox accepts the key as a function's role.
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("LOCALSVC", "local", "")))
	if err != nil {
		return nil, err
	}
	s := a.newStack(cfg, running.DynamoDBURL, running.SecretsURL)
	s.Running = running
	s.Actor = func(context.Context) (string, error) { return "local", nil }
	return s, nil
}

// readLocalStack reads .local/demo.json of this folder or of the nearest folder above with such a file.
func readLocalStack(into *LocalStack) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(dir, ".local", "demo.json"))
	for errors.Is(err, os.ErrNotExist) {
		if dir == filepath.Dir(dir) {
			return errNoLocalStack
		}
		dir = filepath.Dir(dir)
		content, err = os.ReadFile(filepath.Join(dir, ".local", "demo.json"))
	}
	if err != nil {
		return err
	}
	if json.Unmarshal(content, into) != nil || into.DynamoDBURL == "" || into.SecretsURL == "" || into.SandboxURL == "" {
		return errors.New(".local/demo.json does not come from the local stack; start it again with: make run")
	}
	if into.LogDir != "" && !filepath.IsAbs(into.LogDir) {
		into.LogDir = filepath.Join(dir, into.LogDir)
	}
	return nil
}

// newStack makes the clients of a stage. An empty endpoint is the endpoint of AWS.
func (a *App) newStack(cfg aws.Config, dynamoDBURL, secretsURL string) *Stack {
	retryer := dynamo.Retryer(backoff)
	s := &Stack{App: a, AWS: cfg, Vendors: upstream.New(upstream.Config{TimeoutSeconds: vendorTimeoutSeconds,
		Local: a.Local})}
	s.DB = dynamo.NewClient(cfg, func(o *dynamodb.Options) {
		if o.HTTPClient, o.Retryer = cfg.HTTPClient, retryer; dynamoDBURL != "" {
			o.BaseEndpoint = &dynamoDBURL
		}
	})
	s.Vault = upstream.NewSecretsClient(cfg, func(o *secretsmanager.Options) {
		if o.HTTPClient, o.Retryer = cfg.HTTPClient, retryer; secretsURL != "" {
			o.BaseEndpoint = &secretsURL
		}
	})
	s.Secrets = secret.NewWriter(s.Vault, a.Stage)
	s.Projects = admin.NewStore(s.DB, s.Table("projects"))
	s.Credits = books.NewStore(s.DB, books.NamedTables(s.Table))
	s.Burners = burner.NewStore(s.DB, s.Table("projects"))
	s.Rates = rates.NewStore(s.DB, s.Table("rates"))
	return s
}

// StackName returns the name of the CloudFormation stack.
func (a *App) StackName() string { return cmp.Or(a.stackName, "svc-"+a.Stage) }

// Table returns the name of one of the stage's tables.
func (s *Stack) Table(name string) string { return "svc-" + s.Stage + "-" + name }

// HasRecovery reports whether point-in-time recovery of a table is on.
func (s *Stack) HasRecovery(ctx context.Context, table string) (bool, error) {
	out, err := s.DB.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &table})
	if err != nil {
		return false, err
	}
	backups := out.ContinuousBackupsDescription
	return backups != nil && backups.PointInTimeRecoveryDescription != nil &&
		backups.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled, nil
}

// Load reads a project, and returns an error for a project that does not exist.
func (s *Stack) Load(ctx context.Context, projectID string) (*project.Record, error) {
	if !project.HasIDForm(projectID) {
		return nil, errNoProject(projectID)
	}
	rec, err := s.Projects.Load(ctx, projectID)
	if err == nil && rec == nil {
		err = errNoProject(projectID)
	}
	return rec, err
}

func errNoProject(id string) error { return fmt.Errorf("project %s: %w", id, admin.ErrNotFound) }

// ListProjects returns the only project that a command concerns, which must exist, or all projects for an empty ID.
func (s *Stack) ListProjects(ctx context.Context, only string) ([]project.Project, error) {
	if only == "" {
		return s.Projects.ListProjects(ctx)
	}
	rec, err := s.Load(ctx, only)
	if err != nil {
		return nil, err
	}
	return []project.Project{rec.Project}, nil
}

// Deployed returns the base URL and the prices of the stack.
func (s *Stack) Deployed(ctx context.Context) (baseURL string, prices wallet.Prices, err error) {
	if s.Local {
		return s.Running.BaseURL, s.Running.Prices, nil
	}
	stack, err := s.DeployedStack(ctx)
	if err == nil {
		baseURL = stack.Outputs["BaseUrl"]
		prices, err = books.Prices(stack.Parameters)
	}
	return baseURL, prices, err
}

// KeptTables returns the short names of the tables that outlive the stack: those of projects and money.
func KeptTables() []string {
	return []string{"projects", "wallets", "ledger", "movements", "resolutions"}
}

// CloudStack is a stack of CloudFormation with its parameters and outputs by name.
type CloudStack struct {
	Status              cloudformationtypes.StackStatus
	Parameters, Outputs map[string]string
}

// DescribeStack reads the stack of the stage from CloudFormation, and returns nil for a stack that does not exist.
func (s *Stack) DescribeStack(ctx context.Context) (*CloudStack, error) {
	in := &cloudformation.DescribeStacksInput{StackName: new(s.StackName())}
	out, err := cloudformation.NewFromConfig(s.AWS).DescribeStacks(ctx, in)
	response, ok := errors.AsType[smithy.APIError](err)
	if ok && response.ErrorCode() == "ValidationError" && strings.Contains(response.ErrorMessage(), "does not exist") {
		return nil, nil
	}
	if err != nil || len(out.Stacks) == 0 {
		return nil, err
	}
	found := out.Stacks[0]
	stack := &CloudStack{found.StackStatus, map[string]string{}, map[string]string{}}
	for _, p := range found.Parameters {
		stack.Parameters[aws.ToString(p.ParameterKey)] = aws.ToString(p.ParameterValue)
	}
	for _, o := range found.Outputs {
		stack.Outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	return stack, nil
}

// DeployedStack reads the stack of the stage from CloudFormation. A stack that does not exist is an error. The local
// stack has no parameters and no outputs.
func (s *Stack) DeployedStack(ctx context.Context) (*CloudStack, error) {
	if s.Local {
		return &CloudStack{}, nil
	}
	stack, err := s.DescribeStack(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the stack %s: %w", s.StackName(), err)
	case stack == nil:
		return nil, fmt.Errorf("there is no stack %s (--stack names another)", s.StackName())
	}
	return stack, nil
}

// AboveStage returns which limit of the stage ends requests before a project's own limit does, and "" for none. The web
// ACL counts an address over five minutes, and the throttle counts all projects on one route.
func (c *CloudStack) AboveStage(limit project.RateLimit) string {
	if limit.Window < time.Second {
		return ""
	}
	own := float64(limit.Requests) / limit.Window.Seconds()
	above := func(parameter, what string, seconds float64) string {
		stage, err := strconv.ParseFloat(c.Parameters[parameter], 64)
		if err == nil && stage > 0 && own > stage/seconds {
			return fmt.Sprintf("%.4g requests a second are above %s=%.0f, which is %.4g a second for %s", own, parameter,
				stage, stage/seconds, what)
		}
		return ""
	}
	return cmp.Or(above("ApiRequestsPerSecond", "all projects on one route", 1),
		above("AddressRequestsPer5Minutes", "one address", 300))
}
