package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"svcapi/cmd/svc/app"
	"svcapi/shared/dynamo"
)

func preflightCommand(a *app.App) *cobra.Command {
	o := &preflightOptions{App: a, open: a.Open, output: func(ctx context.Context, name, arg string) ([]byte, error) {
		return exec.CommandContext(ctx, name, arg).Output()
	}}
	cmd := &cobra.Command{
		Use:  "preflight",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.template, "template", "template.yaml", "template of the stack")
	cmd.Flags().StringVar(&o.config, "config-file", "samconfig.toml", "parameters by stage")
	cmd.Flags().StringArrayVar(&o.given, "parameter", nil, "NAME=VALUE, over that of the file; may be repeated")
	cmd.Flags().BoolVar(&o.released, "released", false, "the deployment is of a released package, which needs no build")
	cmd.Flags().BoolVar(&o.all, "all", false, "also show checks without a problem")
	return cmd
}

type preflightOptions struct {
	*app.App
	template, config string
	given            []string
	released, all    bool

	open   func(context.Context) (*app.Stack, error)
	output func(ctx context.Context, name, arg string) ([]byte, error) // what a program prints
}

func (o *preflightOptions) run(ctx context.Context) error {
	if o.Local {
		return app.Usagef("--local: the local stack is not deployed")
	}
	f, p, err := o.check(ctx)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	if err := o.PrintFindings(f.Found, o.all); err != nil {
		return err
	}
	o.Note("Deploy in the same region: %s", o.deployment(p, f.AWS.Region))
	return nil
}

// check makes all checks: the programs run beside the calls to AWS.
func (o *preflightOptions) check(ctx context.Context) (*flight, parameters, error) {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	programs := o.tools(ctx)
	s, signInErr := within(ctx, runTime, "the source of your AWS credentials", o.open)
	f := &flight{Stack: s}
	p, err := o.parameters()
	if err != nil {
		return f, p, err
	}
	f.checkParameters(p)
	if !f.Failed("sign-in", "AWS", signInErr) {
		f.account(ctx, p)
	}
	f.Found = append(programs(), f.Found...)
	return f, p, nil
}

// deployment returns the command that deploys these parameters: by the stage's section of samconfig.toml, or whole. The
// template accepts no value that the shell would need in quotes, and SAM no empty value without them.
func (o *preflightOptions) deployment(p parameters, region string) string {
	whole := o.released || !p.inFile
	command := fmt.Sprintf("sam build --config-env %[1]s && sam deploy --config-env %[1]s", o.Stage)
	if whole {
		start := map[bool]string{true: "sam deploy --template-file " + o.template, false: "sam build && sam deploy"}
		command = start[o.released] + " --stack-name " + o.StackName() + " --resolve-s3 --capabilities CAPABILITY_IAM"
	}
	command += " --region " + region
	if whole || len(o.given) > 0 {
		command += " --parameter-overrides" // in place of those of the file
		for _, name := range slices.Sorted(maps.Keys(p.set)) {
			command += " " + name + "=" + cmp.Or(p.set[name], `"''"`)
		}
	}
	return command
}

// All checks have 18 s together, and each call to AWS 5 s of them, so that an endpoint that accepts a connection and
// never responds becomes a finding within 20 s.
const (
	runTime  = 18 * time.Second
	callTime = 5 * time.Second
)

// within runs one call with a time limit. The error of a call that the limit ends names who has not responded.
func within[T any](ctx context.Context, limit time.Duration, who string,
	call func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := call(limited)
	if err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		err = app.Failf(app.ExitFailed, "Check the network, the proxy, the region and AWS_ENDPOINT_URL.",
			"%s did not respond in time", who)
	}
	return out, err
}

// flight is one run of preflight.
type flight struct {
	app.Findings
	*app.Stack
}

// tool is a program that a deployment runs.
type tool struct {
	name, version string // version is the argument that prints the version
	build         bool   // only sam build needs the tool
	why           string
}

var tools = []tool{
	{"sam", "--version", false, "the SAM CLI deploys: docs.aws.amazon.com, \"Install the AWS SAM CLI\""},
	{"go", "version", true, "sam build compiles the functions"},
	{"make", "--version", true, "sam build calls the Makefile"},
	{"bash", "--version", true, "the Makefile's recipes run in bash"},
	{"node", "--version", true, "the layer of the browser is unpacked by Node"},
	{"npm", "--version", true, "the browser comes from npm"},
}

// tools starts the programs, and returns a function that waits for what they show of the system and of themselves.
func (o *preflightOptions) tools(ctx context.Context) (wait func() []app.Finding) {
	found := make([]app.Findings, len(tools))
	var running sync.WaitGroup
	for i, t := range tools {
		if t.build && o.released {
			continue
		}
		running.Go(func() {
			out, err := within(ctx, runTime, t.name, func(ctx context.Context) ([]byte, error) {
				return o.output(ctx, t.name, t.version)
			})
			version, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
			found[i].AddIf(err == nil, app.OK, "tool", t.name, version, "")
			problem := fmt.Sprint("it does not run: ", err)
			found[i].AddIf(err != nil, app.Broken, "tool", t.name, problem, "Install it: "+t.why+".")
		})
	}
	return func() []app.Finding {
		var f app.Findings
		windows := runtime.GOOS == "windows" && !o.released
		f.AddIf(!windows, app.OK, "system", runtime.GOOS, "", "")
		f.AddIf(windows, app.Broken, "system", runtime.GOOS, "the build needs make and bash with Linux paths",
			"Build inside WSL, or deploy a released package.")
		running.Wait()
		for _, tool := range found {
			f.Found = append(f.Found, tool.Found...)
		}
		return f.Found
	}
}

// account checks the AWS account and region.
func (f *flight) account(ctx context.Context, p parameters) {
	actor, err := within(ctx, callTime, "AWS STS", f.Actor)
	if f.Failed("sign-in", "AWS", err) {
		return
	}
	f.Add(app.OK, "sign-in", actor, "region "+f.AWS.Region, "")
	f.regions(p, f.AWS.Region)
	f.leftovers(ctx, p)
	f.lambda(ctx, p)
	f.gateway(ctx, p)
}

// regions checks that what parameters name by ARN is in the stack's region.
func (f *flight) regions(p parameters, region string) {
	for _, name := range []string{"AlarmTopicArn", "CertificateArn", "KmsKeyArn", "PreviousKmsKeyArn",
		"MmdbLayerArn", "WebAclArn"} {
		parts := strings.SplitN(p.value(name), ":", 5)
		if len(parts) == 5 && parts[3] != region {
			f.Add(app.Broken, "parameter", name, "it is in the region "+parts[3]+", the stack in "+region,
				"Name one of the stack's region, or give --region.")
		}
	}
}

// stackState returns what a state of the stack needs before or in place of a deployment. Advice that begins with a
// hyphen is a command of aws cloudformation for the stack.
func stackState(status types.StackStatus) (s app.Severity, detail, advice string) {
	switch status {
	case types.StackStatusCreateComplete, types.StackStatusUpdateComplete, types.StackStatusUpdateRollbackComplete,
		types.StackStatusImportComplete, types.StackStatusImportRollbackComplete:
		return app.OK, "", ""
	case types.StackStatusRollbackComplete, types.StackStatusRollbackFailed, types.StackStatusCreateFailed,
		types.StackStatusDeleteFailed:
		return app.Broken, "its creation or deletion failed, and no deployment can continue it", "-delete-stack"
	case types.StackStatusUpdateFailed:
		return app.Broken, "an update stopped halfway without a rollback", "-rollback-stack"
	case types.StackStatusUpdateRollbackFailed:
		return app.Broken, "the rollback of an update stopped halfway", "-continue-update-rollback"
	case types.StackStatusImportRollbackFailed:
		return app.Broken, "an import of resources stopped halfway", "-describe-stack-events"
	case types.StackStatusReviewInProgress:
		// A change set may wait for a person, or CloudFormation has refused the change set. SAM begins the creation again.
		return app.Warning, "the change set of its creation was not executed: its events have the reason", "-describe-events"
	}
	if strings.HasSuffix(string(status), "_IN_PROGRESS") {
		return app.Broken, "", "Wait for the end of that operation."
	}
	return app.Broken, "", "Update svc, which does not know this state."
}

// leftovers checks that the stack can be created or updated.
func (f *flight) leftovers(ctx context.Context, p parameters) {
	name := f.StackName()
	stack, err := within(ctx, callTime, "CloudFormation", f.DescribeStack)
	if f.Failed("stack", name, err) {
		return
	}
	f.isolation(stack, p)
	if stack != nil {
		severity, detail, advice := stackState(stack.Status)
		if command, ok := strings.CutPrefix(advice, "-"); ok {
			advice = fmt.Sprintf("aws cloudformation %s --region %s --stack-name %s (docs/deploy.md, "+
				"When the first deployment fails)", command, f.AWS.Region, name)
		}
		detail = strings.TrimSuffix("it is "+string(stack.Status)+": "+detail, ": ")
		f.Add(severity, "stack", name, detail, advice)
		if stack.Status != types.StackStatusReviewInProgress {
			return
		}
	} else {
		f.Add(app.OK, "stack", name, "it does not exist yet", "")
	}
	for _, short := range append(app.KeptTables(), "rates", "transient") {
		name := f.Table(short)
		_, err := within(ctx, callTime, "DynamoDB", func(ctx context.Context) (*dynamodb.DescribeTableOutput, error) {
			return f.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		})
		if absent := (*dynamodbtypes.ResourceNotFoundException)(nil); errors.As(err, &absent) {
			continue
		}
		if f.Failed("table", name, err) {
			return
		}
		f.Add(app.Broken, "table", name,
			"a former stack left it, and CloudFormation would refuse the change set (ResourceExistenceCheck)",
			"Deploy with the tables, or delete them: docs/uninstall.md, Deploy again.")
	}
}

// isolation names what a change of PdfIsolation costs a stack that exists (docs/decisions/pdf.md#pdf-isolation). A
// deployment keeps the stack's value where nothing sets the parameter.
func (f *flight) isolation(stack *app.CloudStack, p parameters) {
	const name = "PdfIsolation"
	if stack == nil {
		return
	}
	before, after := cmp.Or(stack.Parameters[name], p.defined[name].Default), p.set[name]
	costs := "it changes from " + before + " to " + after + ", and a new renderer gets all documents without a canary"
	if after == "project" {
		costs += "; execution environments of one project each mean more cold starts, a fee for each, and no " +
			"provisioned concurrency"
	}
	f.AddIf(after != "" && after != before, app.Warning, "parameter", name, costs,
		"Read docs/upgrade.md, Change PdfIsolation.")
}

// What Lambda keeps for functions without a reservation, and what an account needs for this stack ("Lambda quotas",
// "Configuring reserved concurrency for a function"). New accounts have 10.
const (
	unreservedLeast  = 100
	concurrencyLeast = 100
	askConcurrency   = `Ask for 1,000 under Service Quotas, AWS Lambda, "Concurrent executions" (L-B99A9384).`
)

// lambdaAccount is what Lambda says about the account ("GetAccountSettings", AWS Lambda API Reference).
type lambdaAccount struct {
	AccountLimit struct {
		ConcurrentExecutions, UnreservedConcurrentExecutions int
		TotalCodeSize                                        int64 // bytes
	}
	AccountUsage struct{ TotalCodeSize int64 }
}

// lambda checks the quotas of Lambda.
func (f *flight) lambda(ctx context.Context, p parameters) {
	settings, err := readAccount[lambdaAccount](ctx, f, "Lambda", "lambda", "/2016-08-19/account-settings/")
	if f.Failed("quota", "Lambda", err) {
		return
	}
	used, most := settings.AccountUsage.TotalCodeSize>>20, settings.AccountLimit.TotalCodeSize>>20
	f.AddIf(used > most*8/10, app.Warning, "quota", "Lambda code storage",
		fmt.Sprintf("%d of %d MiB are used: each deployment adds versions, and nothing deletes them", used, most),
		`Delete old versions: docs/upgrade.md, Old versions. Or ask for more, "Function and layer storage" (L-2ACBD22F).`)
	limit, free := settings.AccountLimit.ConcurrentExecutions, settings.AccountLimit.UnreservedConcurrentExecutions
	pdf, rate := int(p.number("PdfConcurrency")), int(p.number("ApiRequestsPerSecond"))
	switch {
	case limit < concurrencyLeast:
		f.Add(app.Broken, "quota", "Lambda",
			fmt.Sprintf("the account runs %d functions at once: a few slow requests stop the whole API", limit), askConcurrency)
	case pdf > 0 && free-pdf < unreservedLeast:
		f.Add(app.Broken, "quota", "Lambda",
			fmt.Sprintf("PdfConcurrency=%d leaves less than %d of %d for all other functions, which Lambda refuses", pdf,
				unreservedLeast, free),
			"Lower it, or set 0. "+askConcurrency)
	case limit < rate:
		f.Add(app.Warning, "quota", "Lambda",
			fmt.Sprintf("the account runs %d functions at once, and ApiRequestsPerSecond lets %d requests a second in per route",
				limit, rate),
			"Lower ApiRequestsPerSecond, or ask for more: "+askConcurrency)
	default:
		f.Add(app.OK, "quota", "Lambda", fmt.Sprintf("%d functions at once", limit), "")
	}
}

// gatewayAccount is what API Gateway says about the account ("GetAccount", Amazon API Gateway API Reference).
type gatewayAccount struct {
	LogRole  string `json:"cloudwatchRoleArn"`
	Throttle struct {
		Rate  float64 `json:"rateLimit"` // requests a second
		Burst int     `json:"burstLimit"`
	} `json:"throttleSettings"`
}

// readAccount reads what a service, by its title and its signing name, says about the account at a path.
func readAccount[T any](ctx context.Context, f *flight, title, service, path string) (T, error) {
	return within(ctx, callTime, title, func(ctx context.Context) (out T, err error) {
		r, err := dynamo.SignedRequest(ctx, f.AWS, service, http.MethodGet, path,
			http.Header{"Accept": {"application/json"}}, nil)
		if err != nil {
			return out, err
		}
		response, err := f.AWS.HTTPClient.Do(r)
		if err != nil {
			return out, err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			code, _, _ := strings.Cut(response.Header.Get("X-Amzn-Errortype"), ":")
			return out, &smithy.GenericAPIError{Code: cmp.Or(code, response.Status), Message: "GET " + path + " failed"}
		}
		return out, json.NewDecoder(response.Body).Decode(&out)
	})
}

// gateway checks the settings and the quotas of API Gateway.
func (f *flight) gateway(ctx context.Context, p parameters) {
	account, err := readAccount[gatewayAccount](ctx, f, "API Gateway", "apigateway", "/account")
	if f.Failed("quota", "API Gateway", err) {
		return
	}
	f.AddIf(p.value("AccessLogs") == "on" && account.LogRole == "", app.Broken, "account", "API Gateway",
		"AccessLogs needs the account's log role, and there is none", "Create it once for the account and region: "+
			"docs/deploy.md, Access logs.")
	throttle := account.Throttle
	rate, burst := p.number("ApiRequestsPerSecond"), p.number("ApiBurst")
	low := throttle.Rate > 0 && (rate > throttle.Rate || burst > float64(throttle.Burst))
	f.AddIf(low, app.Warning, "quota", "API Gateway",
		fmt.Sprintf("the account takes %.0f requests a second and %d at once over all its APIs, less than "+
			"ApiRequestsPerSecond or ApiBurst", throttle.Rate, throttle.Burst),
		`Lower them, or ask for more under Service Quotas, Amazon API Gateway, "Throttle rate" (L-8A5B8E43).`)
	f.AddIf(!low, app.OK, "quota", "API Gateway", fmt.Sprintf("%.0f requests a second over all APIs", throttle.Rate), "")
}

// definition is one parameter of the template.
type definition struct {
	Type           string   `yaml:"Type"`
	Default        string   `yaml:"Default"`
	AllowedPattern string   `yaml:"AllowedPattern"`
	Constraint     string   `yaml:"ConstraintDescription"`
	AllowedValues  []string `yaml:"AllowedValues"`
	MinValue       *float64 `yaml:"MinValue"`
	MaxValue       *float64 `yaml:"MaxValue"`
}

// parameters are the parameters of a deployment.
type parameters struct {
	defined map[string]definition
	set     map[string]string // what the file and the flags set
	from    string            // where they were read
	inFile  bool              // samconfig.toml has the stage

	variables map[string]map[string]yaml.Node // of each function, by its logical ID
}

// value returns what the stack gets.
func (p parameters) value(name string) string {
	if v, ok := p.set[name]; ok {
		return v
	}
	return p.defined[name].Default
}

func (p parameters) number(name string) float64 {
	n, _ := strconv.ParseFloat(p.value(name), 64)
	return n
}

// override is NAME=VALUE in the text form of samconfig.toml, where a value with spaces has quotes.
var override = regexp.MustCompile(`([A-Za-z0-9]+)=("[^"]*"|'[^']*'|\S*)`)

// parameters reads the definitions of the template, and the values of the stage and of the flags.
func (o *preflightOptions) parameters() (parameters, error) {
	text, err := os.ReadFile(o.template)
	if err != nil {
		return parameters{}, app.Usagef("%v: run svc preflight beside the template, or give --template", err)
	}
	type function struct {
		Environment struct {
			Variables map[string]yaml.Node `yaml:"Variables"`
		} `yaml:"Environment"`
	}
	var template struct {
		Parameters map[string]definition `yaml:"Parameters"`
		Globals    struct {
			Function function `yaml:"Function"`
		} `yaml:"Globals"`
		Resources map[string]struct {
			Type       string    `yaml:"Type"`
			Properties yaml.Node `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(text, &template); err != nil {
		return parameters{}, app.Usagef("%s: %v", o.template, err)
	}
	p := parameters{defined: template.Parameters, set: map[string]string{}, from: "--parameter"}
	p.variables = map[string]map[string]yaml.Node{}
	for id, resource := range template.Resources {
		if resource.Type != "AWS::Serverless::Function" {
			continue
		}
		var own function
		if err := resource.Properties.Decode(&own); err != nil {
			return parameters{}, app.Usagef("%s: %s: %v", o.template, id, err)
		}
		p.variables[id] = maps.Clone(template.Globals.Function.Environment.Variables)
		maps.Copy(p.variables[id], own.Environment.Variables)
	}
	var config map[string]any
	_, err = toml.DecodeFile(o.config, &config)
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.released: // a package need not have the file
	case err != nil:
		return parameters{}, app.Usagef("%s: %v", o.config, err)
	case config[o.Stage] != nil:
		p.from, p.inFile = o.config+" ["+o.Stage+"]", true
		maps.Copy(p.set, stageOverrides(config, o.Stage))
	}
	for _, text := range o.given {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return parameters{}, app.Usagef("--parameter is NAME=VALUE, not %q", text)
		}
		p.set[name] = value
	}
	if p.set["Stage"] == "" {
		p.set["Stage"] = o.Stage
	}
	return p, nil
}

// stageOverrides returns parameter_overrides of one environment in the configuration of sam, a list or one text.
func stageOverrides(config map[string]any, stage string) map[string]string {
	at := func(of any, key string) any {
		inner, _ := of.(map[string]any)
		return inner[key]
	}
	set := map[string]string{}
	switch list := at(at(at(config[stage], "deploy"), "parameters"), "parameter_overrides").(type) {
	case []any:
		for _, item := range list {
			if name, value, ok := strings.Cut(fmt.Sprint(item), "="); ok {
				set[name] = strings.Trim(value, `"'`)
			}
		}
	case string:
		for _, match := range override.FindAllStringSubmatch(list, -1) {
			set[match[1]] = strings.Trim(match[2], `"'`)
		}
	}
	return set
}

// checkParameters checks each value as CloudFormation does, then the combinations.
func (f *flight) checkParameters(p parameters) {
	before := len(f.Found)
	for _, name := range slices.Sorted(maps.Keys(p.set)) {
		d, ok := p.defined[name]
		f.AddIf(!ok, app.Broken, "parameter", name, "the template has no such parameter", "Correct the name in "+p.from+".")
		problem := d.problem(p.set[name]) // a name without a definition has none
		f.AddIf(problem != "", app.Broken, "parameter", name,
			fmt.Sprintf("it is %q, and has to be %s", p.set[name], problem), "Correct it in "+p.from+".")
	}
	f.combinations(p)
	f.environments(p)
	f.AddIf(len(f.Found) == before, app.OK, "parameters", p.from, "", "")
}

// environmentMost is the most bytes that Lambda accepts for the variables of a function, measured as a JSON object
// ("Lambda quotas", Environment variables).
const environmentMost = 4096

// environments checks that the variables of each function fit with these parameters.
func (f *flight) environments(p parameters) {
	for _, id := range slices.Sorted(maps.Keys(p.variables)) {
		values, used := map[string]string{}, map[string]bool{}
		for name, node := range p.variables[id] {
			values[name] = p.resolve(&node, used)
		}
		text, _ := json.Marshal(values) // texts alone
		if len(text) <= environmentMost {
			continue
		}
		longest := ""
		for _, name := range slices.Sorted(maps.Keys(used)) {
			if len(p.value(name)) > len(p.value(longest)) {
				longest = name
			}
		}
		f.Add(app.Broken, "environment", id,
			fmt.Sprintf("its variables have %d bytes with these parameters, and Lambda accepts %d", len(text), environmentMost),
			"Shorten "+longest+" in "+p.from+".")
	}
}

var placeholder = regexp.MustCompile(`\$\{([A-Za-z0-9]+)\}`)

// resolve returns the value of a variable: a text, a reference to a parameter, or a text with such references, in the
// short or, in a packaged template, in the long form. The names to which the variable refers are added to used.
func (p parameters) resolve(n *yaml.Node, used map[string]bool) string {
	tag := strings.TrimPrefix(n.Tag, "!")
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 {
		tag, n = strings.TrimPrefix(n.Content[0].Value, "Fn::"), n.Content[1]
	}
	switch tag {
	case "Ref":
		used[n.Value] = true
		return p.value(n.Value)
	case "Sub":
		return placeholder.ReplaceAllStringFunc(n.Value, func(found string) string {
			name := found[2 : len(found)-1]
			used[name] = true
			return p.value(name)
		})
	}
	return n.Value
}

// problem returns what a value has to be, and nothing for a value that the template accepts and the functions can read.
func (d definition) problem(value string) string {
	if len(d.AllowedValues) > 0 && !slices.Contains(d.AllowedValues, value) {
		return "one of " + strings.Join(d.AllowedValues, ", ")
	}
	if pattern, err := regexp.Compile(d.AllowedPattern); err != nil || !pattern.MatchString(value) {
		if d.Constraint != "" {
			return d.Constraint
		}
		return "of the pattern " + d.AllowedPattern
	}
	if d.Type != "Number" {
		return ""
	}
	// CloudFormation takes fractions, which no variable of a function is.
	number, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil:
		return "an integer"
	case d.MinValue != nil && float64(number) < *d.MinValue:
		return fmt.Sprintf("at least %.0f", *d.MinValue)
	case d.MaxValue != nil && float64(number) > *d.MaxValue:
		return fmt.Sprintf("at most %.0f", *d.MaxValue)
	}
	return ""
}

// combinations checks what one parameter needs of another. The template's Rules refuse these and two web ACLs as well.
func (f *flight) combinations(p parameters) {
	for _, c := range []struct{ name, needs string }{
		{"DomainName", "CertificateArn"}, {"CertificateArn", "DomainName"}, {"HostedZoneId", "DomainName"},
	} {
		lacks := p.value(c.name) != "" && p.value(c.needs) == ""
		f.AddIf(lacks, app.Broken, "parameters", c.name, "it needs "+c.needs, "Set both, or neither.")
	}
	address, other := p.number("AddressRequestsPer5Minutes"), p.value("WebAclArn") != ""
	f.AddIf(address > 0 && other, app.Broken, "parameters", "WebAclArn",
		"an API has one web ACL, and AddressRequestsPer5Minutes creates another", "Set one of both.")
	f.AddIf(address > 0 && address < 10 && !other, app.Broken, "parameter", "AddressRequestsPer5Minutes",
		"AWS WAF takes no limit below 10", "Set 10 or more, or 0 for no web ACL.")
	topic, email := p.value("AlarmTopicArn") != "", p.value("AlarmEmail") != ""
	f.AddIf(topic && email, app.Broken, "parameters", "AlarmEmail", "it excludes AlarmTopicArn", "Set one of both.")
	f.AddIf(!topic && !email && p.value("MonthlyBudgetUsd") != "", app.Broken, "parameters", "MonthlyBudgetUsd",
		"it needs AlarmTopicArn or AlarmEmail", "Set one of both, or no budget.")
	f.AddIf(!topic && !email, app.Warning, "parameter", "AlarmTopicArn", "without a topic the alarms notify no one",
		"Set the ARN of an SNS topic that your team reads, or an address in AlarmEmail.")
}
