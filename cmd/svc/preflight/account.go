package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigateway"
	gatewaytypes "github.com/aws/aws-sdk-go-v2/service/apigateway/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"svcapi/cmd/svc/app"
)

// account checks the AWS account and region.
func (f *flight) account(ctx context.Context, s *app.Stack, p parameters, stackName string) {
	actor, err := s.Actor(ctx)
	if err != nil {
		f.Fail("sign-in", "AWS", err)
		return
	}
	f.Add(app.OK, "sign-in", actor, "region "+s.AWS.Region, "")
	f.regions(p, s.AWS.Region)
	f.leftovers(ctx, s, stackName)
	f.concurrency(ctx, s.AWS, p)
	f.gateway(ctx, s.AWS, p)
}

// regions checks that what parameters name by ARN is in the stack's region.
func (f *flight) regions(p parameters, region string) {
	for _, name := range []string{"AlarmTopicArn", "CertificateArn", "KmsKeyArn", "MmdbLayerArn", "WebAclArn"} {
		parts := strings.SplitN(p.value(name), ":", 5)
		if len(parts) == 5 && parts[3] != region {
			f.Add(app.Broken, "parameter", name, "it is in the region "+parts[3]+", the stack in "+region, "Name one of the stack's region, or give --region.")
		}
	}
}

// leftovers checks that the stack can be created or updated.
func (f *flight) leftovers(ctx context.Context, s *app.Stack, stackName string) {
	stack, err := app.DescribeStack(ctx, s.AWS, stackName)
	if err != nil {
		f.Fail("stack", stackName, err)
		return
	}
	var status types.StackStatus // empty: there is no stack
	if stack != nil {
		status = stack.StackStatus
	}
	switch {
	case status == types.StackStatusRollbackComplete || status == types.StackStatusRollbackFailed || status == types.StackStatusDeleteFailed:
		f.Add(app.Broken, "stack", stackName, "it is "+string(status)+": its creation or deletion failed, and no deployment can continue it",
			"Read its events, then delete it: docs/deploy.md, When the first deployment fails.")
		return
	case strings.HasSuffix(string(status), "_IN_PROGRESS") && status != types.StackStatusReviewInProgress:
		f.Add(app.Broken, "stack", stackName, "it is "+string(status), "Wait for the end of that operation.")
		return
	case status != "" && status != types.StackStatusReviewInProgress:
		f.Add(app.OK, "stack", stackName, string(status), "")
		return
	}
	f.Add(app.OK, "stack", stackName, "it does not exist yet", "")
	for _, short := range []string{"projects", "wallets", "ledger", "rates", "transient"} {
		name := s.Table(short)
		_, err := s.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if absent := (*dynamodbtypes.ResourceNotFoundException)(nil); errors.As(err, &absent) {
			continue
		}
		if err != nil {
			f.Fail("table", name, err)
			return
		}
		f.Add(app.Broken, "table", name, "a former stack left it, and sam deploy would end in \"already exists\"",
			"Deploy with the tables, or delete them: docs/uninstall.md, Deploy again.")
	}
}

// What Lambda keeps for functions without a reservation, and what an account needs for this stack ("Lambda quotas",
// "Configuring reserved concurrency for a function"). New accounts have 10.
const (
	unreservedLeast  = 100
	concurrencyLeast = 100
	askConcurrency   = `Ask for 1,000 under Service Quotas, AWS Lambda, "Concurrent executions" (L-B99A9384).`
)

func (f *flight) concurrency(ctx context.Context, cfg aws.Config, p parameters) {
	settings, err := lambda.NewFromConfig(cfg).GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
	if err != nil {
		f.Fail("quota", "Lambda", err)
		return
	}
	limit, free := int(settings.AccountLimit.ConcurrentExecutions), int(aws.ToInt32(settings.AccountLimit.UnreservedConcurrentExecutions))
	pdf, rate := int(p.number("PdfConcurrency")), int(p.number("ApiRequestsPerSecond"))
	switch {
	case limit < concurrencyLeast:
		f.Add(app.Broken, "quota", "Lambda", fmt.Sprintf("the account runs %d functions at once: a few slow requests stop the whole API", limit), askConcurrency)
	case pdf > 0 && free-pdf < unreservedLeast:
		f.Add(app.Broken, "quota", "Lambda", fmt.Sprintf("PdfConcurrency=%d leaves less than %d of %d for all other functions, which Lambda refuses", pdf, unreservedLeast, free),
			"Lower it, or set 0. "+askConcurrency)
	case limit < rate:
		f.Add(app.Warning, "quota", "Lambda", fmt.Sprintf("the account runs %d functions at once, and ApiRequestsPerSecond lets %d requests a second in per route", limit, rate),
			"Lower ApiRequestsPerSecond, or ask for more: "+askConcurrency)
	default:
		f.Add(app.OK, "quota", "Lambda", fmt.Sprintf("%d functions at once", limit), "")
	}
}

func (f *flight) gateway(ctx context.Context, cfg aws.Config, p parameters) {
	account, err := apigateway.NewFromConfig(cfg).GetAccount(ctx, &apigateway.GetAccountInput{})
	if err != nil {
		f.Fail("quota", "API Gateway", err)
		return
	}
	if p.value("AccessLogs") == "on" && aws.ToString(account.CloudwatchRoleArn) == "" {
		f.Add(app.Broken, "account", "API Gateway", "AccessLogs needs the account's log role, and there is none", "Create it once for the account and region: docs/deploy.md, Access logs.")
	}
	throttle := cmp.Or(account.ThrottleSettings, &gatewaytypes.ThrottleSettings{})
	rate, burst := p.number("ApiRequestsPerSecond"), p.number("ApiBurst")
	if throttle.RateLimit > 0 && (rate > throttle.RateLimit || burst > float64(throttle.BurstLimit)) {
		f.Add(app.Warning, "quota", "API Gateway",
			fmt.Sprintf("the account takes %.0f requests a second and %d at once over all its APIs, less than ApiRequestsPerSecond or ApiBurst", throttle.RateLimit, throttle.BurstLimit),
			`Lower them, or ask for more under Service Quotas, Amazon API Gateway, "Throttle rate" (L-8A5B8E43).`)
		return
	}
	f.Add(app.OK, "quota", "API Gateway", fmt.Sprintf("%.0f requests a second over all APIs", throttle.RateLimit), "")
}
