package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"svcapi/cmd/svc/catalog"
	"svcapi/shared/credit"
	"svcapi/shared/request"
)

// findings are a rule's objections to a template.
type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// fact is what the property at a path of a resource has to be, as show writes it. A path that begins with "/" is an
// attribute beside the properties, "watched" the metrics of an alarm. "on" is a type, or a pattern of logical IDs;
// without it the path begins at the template's root. A later fact replaces an earlier one of the same path. In "want"
// {id}, {stem} and {folder} are those of the resource, and "~" begins a regular expression.
type fact struct{ on, path, want string }

const (
	boundary = "HasBoundary ? ${PermissionsBoundaryArn} : -"
	withKey  = "HasKey ? ${KmsKeyArn} : -"
	notifies = "Notifies ? [${AlarmTopicArn}] : -"
	traced   = "Traces ? ${TracePolicy} : -, ReadsKey ? ${KeyPolicy} : -]"
	url      = "https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/${Stage}"
	stage    = "~.*/restapis/\\$\\{Api\\}/stages/\\$\\{ApiStage\\}"
	slow     = "{DataTraceEnabled: false, HttpMethod: GET, LoggingLevel: OFF, MetricsEnabled: CountsInFull ? true : " +
		"false, ResourcePath: "
	slowly  = "ThrottlingBurstLimit: 100, ThrottlingRateLimit: 10}, "
	toTopic = ", ThresholdType: PERCENTAGE}, Subscribers: [{Address: ${AlarmTopicArn}, SubscriptionType: SNS}]}"
	gateway = " Sum ApiName=${AWS::StackName} Stage=${Stage}"
	outcome = "SVC/${Stage} Requests Sum outcome="
)

// facts are the rules about single properties. Where two of them belong together, a change of one needs the other.
var facts = []fact{
	// The gateway: every body travels as bytes; its trace would hold payloads; its counts by method cost, and nothing
	// reads them. With another OpenApiVersion SAM adds a stage of its own.
	{"Api", "BinaryMediaTypes", "[*/*]"},
	{"Api", "Body.openapi", "3.0.1"},
	{"Api", "EndpointConfiguration", "{Types: [REGIONAL]}"},
	// TLS 1.2 or later: without a policy a regional API takes 1.0, and a policy of this kind needs the mode. BASIC routes
	// as before ("Security policies for REST APIs in API Gateway", API Gateway developer guide).
	{"Api", "SecurityPolicy", "SecurityPolicy_TLS13_1_2_2021_06"},
	{"Api", "EndpointAccessMode", "BASIC"},
	{"ApiStage", "MethodSettings",
		"[{DataTraceEnabled: false, HttpMethod: *, LoggingLevel: OFF, MetricsEnabled: CountsInFull ? true : false, " +
			"ResourcePath: /*, ThrottlingBurstLimit: ${ApiBurst}, ThrottlingRateLimit: ${ApiRequestsPerSecond}}, " + slow +
			"/~1docs, " + slowly + slow + "/~1docs~1{proxy+}, " +
			strings.TrimSuffix(slowly, ", ") + "]"},
	// docs/decisions/operating.md#floods: the whole account's, to the topic of the alarms.
	{"Budget", "/Condition", "HasBudget"},
	{"Budget", "Budget", "{BudgetLimit: {Amount: ${MonthlyBudgetUsd}, Unit: USD}, BudgetName: " +
		"${AWS::StackName}-${AWS::Region}, BudgetType: COST, TimeUnit: MONTHLY}"},
	{"Budget", "NotificationsWithSubscribers.0",
		"{Notification: {ComparisonOperator: GREATER_THAN, NotificationType: ACTUAL, Threshold: 80" + toTopic},
	{"Budget", "NotificationsWithSubscribers.1",
		"{Notification: {ComparisonOperator: GREATER_THAN, NotificationType: FORECASTED, Threshold: 100" + toTopic},
	{"", "Rules.MonthlyBudgetUsd.RuleCondition", filled("MonthlyBudgetUsd")},
	{"", "Rules.MonthlyBudgetUsd.Assertions.0.Assert", filled("AlarmTopicArn")},
	{"AWS::Lambda::Permission", "FunctionName", "~\\$\\{\\w+FunctionAliaslive\\}"},
	// docs/decisions/pdf.md#pdf-stream: only this route streams, and its function has the time.
	{"Api", "Body.paths./api/v1/utilities/pdf/stream.x-amazon-apigateway-any-method.x-amazon-apigateway-integration.timeoutInMillis", "60000"},
	{"Api", "Body.paths./api/v1/utilities/pdf/stream.x-amazon-apigateway-any-method.x-amazon-apigateway-integration.responseTransferMode", "STREAM"},
	// No path as sent, no header, no body. A variable without a value is a hyphen, which is JSON between quotes alone.
	{"ApiStage", "AccessLogSetting",
		`~LogsAccess \? \{DestinationArn: \$\{AccessLogGroup\.Arn\}, Format: \{("[a-z_]+":("\$context\.(error\.responseType|` +
			`httpMethod|identity\.sourceIp|requestId|resourcePath|responseLatency|responseLength|status|waf\.status)"|\$context\.requestTimeEpoch)[,}])+\} : -`},
	{"AccessLogGroup", "/Condition", "LogsAccess"},

	// Functions. The gateway gives up after 29 s, the settler starts every 60 s. SettleAfterSeconds is at least a
	// lease's 20 s, the longest time-out and 10 s for clocks that differ; a vendor's call leaves 5 s for the response.
	{"AWS::Lambda::Function", "Timeout", "28"},
	{"PdfFunction", "Timeout", "60"},
	{"RatesyncFunction", "Timeout", "240"},
	{"SecurityListsyncFunction", "Timeout", "120"},
	{"SettleFunction", "Timeout", "55"},
	{"SmsResolveFunction", "Timeout", "110"},
	{"SmsResolveFunction", "Environment.Variables.RESOLVE_PERIOD", "2m"}, // as its schedule
	{"", "Parameters.SettleAfterSeconds.Default", "90"},
	{"", "Parameters.SettleAfterSeconds.MinValue", "90"},
	{"", "Parameters.VendorTimeoutSeconds.MaxValue", "20"},
	{"AWS::Lambda::Function", "Runtime", "provided.al2023"},
	{"AWS::Lambda::Function", "Handler", "bootstrap"},
	{"AWS::Lambda::Function", "Architectures", "[arm64]"},
	{"AWS::Lambda::Function", "Description", "~.+"},
	{"AWS::Lambda::Function", "Role", "${{stem}Role.Arn}"},
	{"AWS::Lambda::Function", "/Metadata.BuildMethod", "makefile"},
	{"AWS::Lambda::Function", "LoggingConfig",
		"{ApplicationLogLevel: ${LogLevel}, LogFormat: JSON, LogGroup: ${{stem}LogGroup}, SystemLogLevel: WARN}"},
	{"AWS::Logs::LogGroup", "RetentionInDays", "${LogRetentionDays}"},
	{"AWS::Logs::LogGroup", "KmsKeyId", withKey},
	// The browser is an x86-64 program, and a document's limits are measured against 2,048 MB.
	{"PdfRenderFunction", "Architectures", "[x86_64]"},
	{"PdfRenderFunction", "MemorySize", "2048"},
	{"PdfRenderFunction", "Layers", "[${ChromiumLayer}]"},
	{"ChromiumLayer", "CompatibleArchitectures", "[x86_64]"},
	// docs/decisions/pdf.md#pdf-isolation: a function for each mode, because Lambda sets the mode when it creates a
	// function. Lambda refuses provisioned concurrency and SnapStart beside tenant isolation ("Tenant isolation", AWS
	// Lambda Developer Guide).
	{"PdfRenderFunction", "FunctionName", "svc-${Stage}-pdf-render-${PdfIsolation}"},
	{"PdfRenderFunction", "TenancyConfig", "IsolatesProjects ? {TenantIsolationMode: PER_TENANT} : -"},
	{"PdfRenderFunction", "SnapStart", ""},
	{"AWS::Lambda::Alias", "ProvisionedConcurrencyConfig", ""},
	{"", "Conditions.IsolatesProjects", "{Fn::Equals: [${PdfIsolation}, project]}"},
	{"", "Parameters.PdfIsolation.Default", "shared"},
	{"", "Parameters.PdfIsolation.AllowedValues", "[shared, project]"},
	{"PdfFunction", "Environment.Variables.PDF_RENDERER", "svc-${Stage}-pdf-render-${PdfIsolation}:live"},
	{"PdfFunction", "Environment.Variables.PDF_ISOLATION", "${PdfIsolation}"},
	{"PdfFunction", "/DependsOn", "PdfRenderFunctionAliaslive"},

	// Deployments: each publishes a version, shifts traffic as the stage wants it, and goes back when the new version
	// fails. The state of an alarm outlives a change of its dimensions, so that each version has an alarm of its own.
	{"", "Parameters.DeploymentType.AllowedValues",
		"[AllAtOnce, Canary10Percent5Minutes, Canary10Percent10Minutes, Canary10Percent15Minutes, " +
			"Canary10Percent30Minutes, Linear10PercentEvery1Minute, Linear10PercentEvery2Minutes, " +
			"Linear10PercentEvery3Minutes, Linear10PercentEvery10Minutes]"},
	{"AWS::CodeDeploy::DeploymentGroup", "DeploymentConfigName", "@DeploymentType@"},
	{"AWS::CodeDeploy::DeploymentGroup", "ServiceRoleArn", "${DeploymentRole.Arn}"},
	{"AWS::CodeDeploy::DeploymentGroup", "AlarmConfiguration", "{Alarms: [{Name: ${{stem}CanaryAlarm}}], Enabled: true}"},
	{"AWS::CodeDeploy::DeploymentGroup", "AutoRollbackConfiguration", "~.*DEPLOYMENT_STOP_ON_ALARM.*"},
	{"AWS::Lambda::Alias", "FunctionVersion", "${{stem}FunctionVersion.Version}"},
	{"AWS::Lambda::Version", "/DeletionPolicy", "Retain"},
	{"\\w+CanaryAlarm", "AlarmName", "${AWS::StackName}-{folder}-canary-${{stem}FunctionVersion.Version}"},
	// each mode has a version 1
	{"PdfRenderCanaryAlarm", "AlarmName",
		"${AWS::StackName}-{folder}-${PdfIsolation}-canary-${{stem}FunctionVersion.Version}"},

	// A scheduled run is repeated at most until the next one; Lambda waits one minute before the first retry, two before
	// the second.
	{"AWS::Scheduler::Schedule", "Name", "~\\$\\{AWS::StackName\\}-[a-z]+"},
	{"AWS::Scheduler::Schedule", "Description", "~.+"},
	{"SettleFunctionEveryMinute", "ScheduleExpression", "rate(1 minute)"},
	{"RatesyncFunctionEveryHour", "ScheduleExpression", "rate(1 hour)"},
	{"SecurityListsyncFunctionEveryDay", "ScheduleExpression", "rate(1 day)"},
	{"SecurityListsyncFunctionEveryDay", "State", "SyncsLists ? ENABLED : DISABLED"},
	{"", "Parameters.DisposableLists.Default", "on"},
	{"SmsResolveFunctionEveryTwoMinutes", "ScheduleExpression", "rate(2 minutes)"},
	{"AWS::Lambda::EventInvokeConfig", "Qualifier", "live"},
	{"AWS::Lambda::EventInvokeConfig", "DestinationConfig", "{}"}, // docs/decisions/operating.md#failed-runs
	{"SettleFunctionEventInvokeConfig", "MaximumRetryAttempts", "0"},
	{"SettleFunctionEventInvokeConfig", "MaximumEventAgeInSeconds", "60"},
	{"SmsResolveFunctionEventInvokeConfig", "MaximumRetryAttempts", "0"},
	{"SmsResolveFunctionEventInvokeConfig", "MaximumEventAgeInSeconds", "120"},
	{"RatesyncFunctionEventInvokeConfig", "MaximumRetryAttempts", "2"},
	{"RatesyncFunctionEventInvokeConfig", "MaximumEventAgeInSeconds", "3000"},
	{"SecurityListsyncFunctionEventInvokeConfig", "MaximumRetryAttempts", "2"},
	{"SecurityListsyncFunctionEventInvokeConfig", "MaximumEventAgeInSeconds", "3600"},

	// Roles, besides their statements. Which of the request and charge policies a role needs, the acceptance tests show.
	{"AWS::IAM::Role", "PermissionsBoundary", boundary},
	{"AWS::IAM::Role", "AssumeRolePolicyDocument.Statement",
		"[{Action: sts:AssumeRole, Effect: Allow, Principal: {Service: lambda.amazonaws.com}}]"},
	{"DeploymentRole", "AssumeRolePolicyDocument.Statement",
		"[{Action: sts:AssumeRole, Effect: Allow, Principal: {Service: codedeploy.amazonaws.com}}]"},
	{"\\w+FunctionEvery\\w+Role", "AssumeRolePolicyDocument.Statement",
		"[{Action: [sts:AssumeRole], Effect: Allow, Principal: {Service: [scheduler.amazonaws.com]}}]"},
	{"AWS::IAM::Role", "ManagedPolicyArns",
		"~\\[(\\$\\{RequestPolicy\\}, )?(\\$\\{ChargePolicy\\}, )?" + regexp.QuoteMeta(traced)},
	{"PdfRenderRole|\\w+FunctionEvery\\w+Role", "ManagedPolicyArns", ""},
	{"DeploymentRole", "ManagedPolicyArns",
		"[arn:${AWS::Partition}:iam::aws:policy/service-role/AWSCodeDeployRoleForLambdaLimited]"},
	{"AWS::IAM::ManagedPolicy", "Roles", ""},
	{"TracePolicy", "/Condition", "Traces"},
	{"KeyPolicy", "/Condition", "ReadsKey"},

	// Tables: money and configuration can be recovered and outlive the stack, but not a creation that failed. That could
	// not delete a protected table: svc protect protects it later. The keys are tested by each test of a store.
	{"AWS::DynamoDB::Table", "BillingMode", "PAY_PER_REQUEST"},
	{"AWS::DynamoDB::Table", "TableName", "svc-${Stage}-{folder}"},
	{"AWS::DynamoDB::Table", "DeletionProtectionEnabled", ""},
	{"AWS::DynamoDB::Table", "SSESpecification",
		"HasKey ? {KMSMasterKeyId: ${KmsKeyArn}, SSEEnabled: true, SSEType: KMS} : -"},
	{"AWS::DynamoDB::Table", "TimeToLiveSpecification", ""},
	{"AWS::DynamoDB::Table", "ResourcePolicy", ""}, // it could give a role rights that the role does not show
	{"AWS::DynamoDB::Table", "PointInTimeRecoverySpecification", "{PointInTimeRecoveryEnabled: true}"},
	{"AWS::DynamoDB::Table", "/DeletionPolicy", "RetainExceptOnCreate"},
	{"AWS::DynamoDB::Table", "/UpdateReplacePolicy", "Retain"},
	{"Ledger", "GlobalSecondaryIndexes.0.Projection", "{ProjectionType: ALL}"},
	{"Rates|Transient", "TimeToLiveSpecification", "{AttributeName: expires, Enabled: true}"},
	{"Rates|Transient", "PointInTimeRecoverySpecification", ""},
	{"Rates|Transient", "/DeletionPolicy", "Delete"},
	{"Rates|Transient", "/UpdateReplacePolicy", "Delete"},

	// Alarms notify and are explained, but for those that deployments alone watch. No alarm fires before a first run: one
	// of silence needs a run before, and stays where there is nothing at all.
	{"AWS::CloudWatch::Alarm", "AlarmActions", notifies},
	{"AWS::CloudWatch::Alarm", "OKActions", notifies},
	{"AWS::CloudWatch::Alarm", "AlarmDescription", "~.+\\. Runbook: [a-z-]+"},
	{"AWS::CloudWatch::Alarm", "TreatMissingData", "notBreaching"},
	{"AWS::CloudWatch::Alarm", "ComparisonOperator", "GreaterThanOrEqualToThreshold"},
	{"\\w+CanaryAlarm", "AlarmActions", ""},
	{"\\w+CanaryAlarm", "OKActions", ""},
	{"\\w+CanaryAlarm", "AlarmDescription",
		"~The new version of .+ fails: its deployment is rolled back\\. Runbook: canary"},
	{"\\w+SilentAlarm", "TreatMissingData", "ignore"},
	{"\\w+SilentAlarm", "Metrics.0.Expression", "FILL(runs, REPEAT) - FILL(runs, 0)"},
	{"GatewayThrottledAlarm", "Metrics.0.Expression", "IF(count > ${ApiBurst}, unknown, 0)"},
	// 80 % of 28 s; other time-outs are scaled to it.
	{"SlowAlarm", "Threshold", "22400"},
	{"SlowAlarm", "Metrics.1.Expression", "pdf * 28 / 60"},
	{"SlowAlarm", "Metrics.2.Expression", "ratesync * 28 / 240"},
	{"SlowAlarm", "Metrics.3.Expression", "settle * 28 / 55"},

	// What each alarm watches; stageAlarms has those of all functions and tables.
	{"FailuresAlarm", "watched", "[" + outcome + "error]"},
	{"GatewayErrorsAlarm", "watched", "[AWS/ApiGateway 5XXError" + gateway + ", SVC/${Stage} ServerErrors Sum]"},
	{"GatewayThrottledAlarm", "watched",
		"[AWS/ApiGateway 4XXError" + gateway + ", AWS/ApiGateway Count" + gateway + ", SVC/${Stage} ClientErrors Sum]"},
	{"VendorFailuresAlarm", "watched",
		"[" + outcome + "unavailable, " + outcome + "vendor_failed, SVC/${Stage} StaleSecrets Sum]"},
	{"AuthenticationFailuresAlarm", "watched", "[" + outcome + "unauthorized]"},
	{"GuessingAlarm", "watched", "[" + outcome + "guessed]"},
	{"CreditsSpentAlarm", "watched", "[SVC/${Stage} Credits Sum]"},
	{"LowWalletsAlarm", "watched", "[SVC/${Stage} DailyLimitsNear Sum, SVC/${Stage} LowWallets Maximum]"},
	{"UnusualSpendingAlarm", "watched", "[SVC/${Stage} UnusualSpending Maximum]"},
	{"UncertainSendsAlarm", "watched",
		"[AWS/Lambda Errors Sum FunctionName=${SmsResolveFunction}, SVC/${Stage} OutcomesNotKept Sum, SVC/${Stage} " +
			"SettledUncertain Sum, SVC/${Stage} UncertainSends Sum]"},
	{"UnsettledAlarm", "watched", "[SVC/${Stage} SettleFailed Sum, SVC/${Stage} SettleOldest Maximum, SVC/${Stage} " +
		"UnsettledReservations Sum]"},
	{"SettleSilentAlarm", "watched", "[SVC/${Stage} SettleFailed SampleCount]"},
	{"RatesSilentAlarm", "watched", "[SVC/${Stage} RatesFailed SampleCount]"},
	{"ListsAlarm", "watched", "[SVC/${Stage} ListsAge Maximum]"},
	{"ListsAlarm", "Threshold", "255600"}, // docs/decisions/look-ups.md#fresh-lists
	{"RatesAlarm", "watched", "[SVC/${Stage} RatesAge Maximum, SVC/${Stage} RatesFailed Sum, SVC/${Stage} RatesRefused " +
		"Sum]"},

	// A host name and a web ACL are the operator's choice; by the stage's reference they come after the stage. "Disable
	// the default endpoint for REST APIs" (API Gateway developer guide): a setting of the stage has to change with it.
	{"Domain|DomainMapping", "/Condition", "HasDomain"},
	{"DomainRecord", "/Condition", "HasZone"},
	{"Domain", "SecurityPolicy", "TLS_1_2"},
	{"DomainMapping", "Stage", "${ApiStage}"},
	{"Api", "Body.servers.0.x-amazon-apigateway-endpoint-configuration.disableExecuteApiEndpoint",
		"HasDomain ? true : false"},
	{"ApiStage", "Variables", "{host: HasDomain ? ${DomainName} : default}"},
	{"", "Outputs.BaseUrl.Value", "HasDomain ? https://${DomainName}/api/v1 : " + url + "/api/v1"},
	{"", "Outputs.DocsUrl.Value", "HasDomain ? https://${DomainName}/docs : " + url + "/docs"},
	{"", "Rules.DomainName.RuleCondition", filled("DomainName")},
	{"", "Rules.DomainName.Assertions.0.Assert", filled("CertificateArn")},
	{"", "Rules.CertificateArn.RuleCondition", filled("CertificateArn")},
	{"", "Rules.CertificateArn.Assertions.0.Assert", filled("DomainName")},
	{"", "Rules.HostedZoneId.RuleCondition", filled("HostedZoneId")},
	{"", "Rules.HostedZoneId.Assertions.0.Assert", filled("DomainName")},
	{"", "Rules.WebAclArn.RuleCondition", filled("WebAclArn")},
	{"", "Rules.WebAclArn.Assertions.0.Assert", "{Fn::Equals: [${AddressRequestsPer5Minutes}, 0]}"},
	{"WebAcl", "/Condition", "HasWebAcl"},
	{"Firewall|FirewallAssociation", "/Condition", "HasFirewall"},
	{"WebAcl|FirewallAssociation", "ResourceArn", stage},
	// Samples would hold the headers with secrets. The counted rules of AWSManagedRulesCommonRuleSet would block the API's
	// own requests: HTML in bodies of up to 4 MiB, and programs without a User-Agent (AWS WAF developer guide, "Baseline
	// rule groups").
	{"Firewall", "Scope", "REGIONAL"},
	{"Firewall", "Rules.0.Statement",
		"{RateBasedStatement: {AggregateKeyType: IP, Limit: ${AddressRequestsPer5Minutes}}}"},
	{"Firewall", "Rules.1.Statement.ManagedRuleGroupStatement.RuleActionOverrides",
		"[" + strings.TrimSuffix(counted("NoUserAgent_HEADER")+
			counted("SizeRestrictions_BODY")+counted("CrossSiteScripting_BODY")+counted("GenericLFI_BODY")+
			counted("GenericRFI_BODY")+counted("EC2MetaDataSSRF_BODY"), ", ") + "]"},
	{"Firewall", "VisibilityConfig.SampledRequestsEnabled", "false"},
	{"Firewall", "Rules.0.VisibilityConfig.SampledRequestsEnabled", "false"},
	{"Firewall", "Rules.1.VisibilityConfig.SampledRequestsEnabled", "false"},
}

func filled(name string) string { return "{Fn::Not: [{Fn::Equals: [${" + name + "}, ]}]}" }

func counted(name string) string { return "{ActionToUse: {Count: {}}, Name: " + name + "}, " }

// properties checks the facts.
func properties(s *templateFile) (f findings) {
	found := make([]bool, len(facts))
	for _, r := range append(s.resources(""), resource{attributes: s.doc, properties: s.doc}) {
		wants := map[string]string{}
		for i, c := range facts {
			if c.on == r.kind && r.id != "" || matches(c.on, r.id) {
				found[i], wants[c.path] = true, c.want
			}
		}
		for path, want := range wants {
			got := "[" + strings.Join(watched(r), ", ") + "]"
			if attribute, ok := strings.CutPrefix(path, "/"); ok {
				got = show(at(r.attributes, strings.Split(attribute, ".")...))
			} else if path != "watched" {
				got = show(at(r.properties, strings.Split(path, ".")...))
			}
			want = strings.NewReplacer("{id}", r.id, "{stem}", r.stem(), "{folder}", r.folder()).Replace(want)
			pattern, isPattern := strings.CutPrefix(want, "~")
			if isPattern && !matches(pattern, got) || !isPattern && got != want {
				f.add("%s: %s is %q, want %q", r.id, path, got, want)
			}
		}
	}
	for i, c := range facts {
		if !found[i] {
			f.add("nothing is a %s", c.on)
		}
	}
	return f
}

// rights are the actions of roles and managed policies, after the name of the stack's condition, where there is one,
// and the resources and conditions of each. The first row whose pattern is that of role and action counts. An action in
// no row is no right of any role.
var rights = []struct{ action, on string }{
	{`SmsResolveRole dynamodb:Scan`, `\$\{Ledger\.Arn\}/index/uncertain`},
	{`SmsResolveRole dynamodb:(GetItem|UpdateItem)`,
		`\$\{(Wallets|Ledger|Resolutions)\.Arn\}`}, // movements has the writes
	{`SmsResolveRole dynamodb:PutItem`, `\$\{Resolutions\.Arn\}`},
	{`SmsResolveRole dynamodb:ConditionCheckItem`, `\$\{Movements\.Arn\}`},
	{`SmsResolveRole secretsmanager:GetSecretValue`,
		`arn:\$\{AWS::Partition\}:secretsmanager:\$\{AWS::Region\}:\$\{AWS::AccountId\}:secret:svc/\$\{Stage\}/sms/managed/\*`},
	{`CurrencyRole dynamodb:(Put|Update)Item`,
		`\$\{Rates\.Arn\} if \{ForAllValues:StringLike: \{dynamodb:LeadingKeys: project#\*\}\}`},
	{`SecurityListsyncRole dynamodb:(Query|UpdateItem)`,
		`\$\{Projects\.Arn\} if \{ForAllValues:StringLike: \{dynamodb:LeadingKeys: burner#\}\}`},
	{`\w+ dynamodb:((BatchGet|Delete|Get|Put|Update)Item|Query|Scan)`,
		`\$\{(Projects|Wallets|Ledger|Rates|Transient)\.Arn\}`},
	{`RatesyncRole secretsmanager:GetSecretValue`,
		`arn:\$\{AWS::Partition\}:secretsmanager:\$\{AWS::Region\}:\$\{AWS::AccountId\}:secret:svc/\$\{Stage\}/currency/managed/\*`},
	{`\w+Role secretsmanager:GetSecretValue`,
		`arn:\$\{AWS::Partition\}:secretsmanager:\$\{AWS::Region\}:\$\{AWS::AccountId\}:secret:svc/\$\{Stage\}/{folder}/\*`},
	{`\w+Role logs:(CreateLogStream|PutLogEvents)`, `\$\{{stem}LogGroup\.Arn\}`},
	{`PdfRole lambda:InvokeFunction`,
		`arn:\$\{AWS::Partition\}:lambda:\$\{AWS::Region\}:\$\{AWS::AccountId\}:function:svc-\$\{Stage\}-pdf-render-(shared|project):live`},
	{`\w+FunctionEvery\w+Role lambda:InvokeFunction`, `\$\{\w+FunctionAliaslive\}`},
	{`TracePolicy xray:(PutTraceSegments|PutTelemetryRecords)`, `\*`},
	{`HasKey KeyPolicy kms:Decrypt`, `\$\{KmsKeyArn\}` + through},
	{`HasPreviousKey KeyPolicy kms:Decrypt`, `\$\{PreviousKmsKeyArn\}` + through},
	{`SendsThroughAws SmsRole sms-voice:SendTextMessage`, `\{Fn::Split: \[,, \$\{SmsOriginationIdentityArns\}\]\}`},
}

const through = ` if \{StringEquals: \{kms:ViaService: \[dynamodb\.\$\{AWS::Region\}\.\$\{AWS::URLSuffix\}, ` +
	`secretsmanager\.\$\{AWS::Region\}\.\$\{AWS::URLSuffix\}\]\}\}`

// statements: one action on one named resource for each need. The renderer may write its log and nothing else, because
// strangers' documents run there (docs/decisions/pdf.md#pdf-renderer).
func statements(s *templateFile) (f findings) {
	for _, r := range slices.Concat(s.resources("AWS::IAM::Role"), s.resources("AWS::IAM::ManagedPolicy")) {
		seen := map[string]bool{}
		for _, statement := range r.statements() {
			action, on := r.id+" "+statement.text("Action"), statement.text("Resource")
			if optional := statement.list("Fn::If"); len(optional) == 3 && show(optional[2]) == "-" {
				statement, _ = optional[1].(object)
				action, on = show(optional[0])+" "+r.id+" "+statement.text("Action"), statement.text("Resource")
			}
			if condition := statement.text("Condition"); condition != "" {
				on += " if " + condition
			}
			i := slices.IndexFunc(rights, func(row struct{ action, on string }) bool { return matches(row.action, action) })
			if i < 0 || r.id == "PdfRenderRole" && !strings.HasPrefix(action, "PdfRenderRole logs:") {
				f.add("%s is no right of it", action)
				continue
			}
			want := strings.NewReplacer("{stem}", r.stem(), "{folder}", r.folder()).Replace(rights[i].on)
			if !matches(want, on) || statement.text("Effect") != "Allow" {
				f.add("%s on %s, want %s", action, on, want)
			}
			for key := range statement {
				if !slices.Contains([]string{"Sid", "Effect", "Action", "Resource", "Condition"}, key) {
					f.add("%s has a %s", action, key)
				}
			}
			if sid := statement.text("Sid"); seen[action+on] || sid != "" && seen[sid] {
				f.add("%s occurs twice", action)
			} else {
				seen[action+on], seen[sid] = true, true
			}
		}
	}
	return f
}

// statements are the statements of a role or a managed policy.
func (r resource) statements() (all []object) {
	for _, item := range append(r.properties.list("Policies"), any(r.properties)) {
		policy, _ := item.(object)
		for _, statement := range policy.list("PolicyDocument", "Statement") {
			of, _ := statement.(object)
			all = append(all, of)
		}
	}
	return all
}

// vendorRights: what a Managed integration needs in place of secret fields is a right of its function.
func vendorRights(s *templateFile) (f findings) {
	for _, offer := range catalog.Offers() {
		action := offer.Spec.ManagedAction
		if action == "" {
			continue
		}
		has := slices.ContainsFunc(s.resources("AWS::IAM::Role"), func(r resource) bool {
			return r.folder() == string(offer.Kind) && slices.ContainsFunc(r.statements(), func(statement object) bool {
				return show(at(statement, "Fn::If", "1", "Action")) == action || statement.text("Action") == action
			})
		})
		if !has {
			f.add("no right of the function %s is %s, which Managed integrations of %s need", offer.Kind,
				action, offer.Spec.Name)
		}
	}
	return f
}

// routes: every method of a route reaches its function's alias, so that a function answers 405 itself.
func routes(s *templateFile) (f findings) {
	served := s.routes()
	for path := range s.doc.object("Resources", "Api", "Properties", "Body", "paths") {
		function := served[path]
		if !matches(`/api/v1(/([a-z0-9-]+|\{[a-z]+\}))+|(/docs|/api/v1/utilities/currency)(/\{proxy\+\})?`, path) {
			f.add("the path %q is not of the form /api/v1/... or /docs", path)
		}
		item := maps.Clone(s.doc.object("Resources", "Api", "Properties", "Body", "paths", path))
		if get := item.text("get", "x-amazon-apigateway-integration", "uri"); strings.HasPrefix(path, "/docs") &&
			get == item.text("x-amazon-apigateway-any-method", "x-amazon-apigateway-integration", "uri") {
			delete(item, "get") // docs/decisions/operating.md#floods
		}
		if methods := item.names(); !slices.Equal(methods, []string{"x-amazon-apigateway-any-method"}) {
			f.add("%s takes %v", path, methods)
		}
		if s.doc.object("Resources")[function] == nil {
			f.add("%s goes to %q", path, function)
		}
	}
	for _, function := range s.functions() {
		for _, end := range []string{"Version", "Alias" + alias, "DeploymentGroup"} {
			if s.doc.object("Resources")[function.id+end] == nil {
				f.add("%s has no %s", function.id, end)
			}
		}
	}
	return f
}

// alias is the alias that the gateway and the schedules call.
const alias = "live"

// The gateway's own responses (docs/decisions/requests.md#routes, docs/decisions/requests.md#internal-errors): unknown
// routes 404, large bodies 413, throttling 429 with Retry-After, and a function that dies 500. DEFAULT_4XX with a
// status would give it to every 4xx.
var responsesWanted = map[string]string{
	"DEFAULT_4XX": " http_error", "DEFAULT_5XX": "500 internal_error", "INTEGRATION_FAILURE": "500 internal_error",
	"INTEGRATION_TIMEOUT": "500 internal_error", "MISSING_AUTHENTICATION_TOKEN": "404 http_error",
	"INVALID_SIGNATURE": "404 http_error",
	"EXPIRED_TOKEN":     "404 http_error", "RESOURCE_NOT_FOUND": "404 http_error", "REQUEST_TOO_LARGE": "413 http_error",
	"THROTTLED": "429 rate_limit_exceeded", "QUOTA_EXCEEDED": "429 rate_limit_exceeded",
}

func gatewayResponses(s *templateFile) (f findings) {
	responses := s.doc.object("Resources", "Api", "Properties", "Body", "x-amazon-apigateway-gateway-responses")
	if got, want := responses.names(), slices.Sorted(maps.Keys(responsesWanted)); !slices.Equal(got, want) {
		f.add("gateway responses are %v, want %v", got, want)
	}
	for name := range responses {
		response := responses.object(name)
		text := response.text("responseTemplates", "application/json")
		var body struct {
			Error struct {
				Code, Message string
				Details       struct{ Reason string }
			}
		}
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			f.add("%s: %v", name, err)
			continue
		}
		if got, want := response.text("statusCode")+" "+body.Error.Code, responsesWanted[name]; got != want {
			f.add("%s is %s, want %s", name, got, want)
		}
		headers := response.text("responseParameters")
		want := "{gatewayresponse.header.Cache-Control: 'no-store', "
		if strings.HasPrefix(responsesWanted[name], "429") {
			want += "gatewayresponse.header.Retry-After: '[1-9][0-9]*', "
		}
		want += "gatewayresponse.header.Strict-Transport-Security: '" + request.StrictTransport +
			"', gatewayresponse.header.X-SVC-Request-ID: context.requestId}"
		if !matches(want, headers) {
			f.add("%s has the headers %s, want %s", name, headers, want)
		}
		if known := body.Error.Details.Reason != ""; known != (body.Error.Code == "http_error") {
			f.add("%s has the reason %q", name, body.Error.Details.Reason)
		}
		if envelope := refusal(body.Error.Code, body.Error.Details.Reason, body.Error.Message); text != envelope {
			f.add("%s is %s, want the functions' envelope %s", name, text, envelope)
		}
	}
	return f
}

// refusal returns the body of a function's response to a refused request, with the gateway's variable as request ID.
func refusal(code, reason, message string) string {
	w := httptest.NewRecorder()
	request.Refuse(w, &http.Request{},
		&request.Error{Status: http.StatusBadRequest, Code: code, Reason: request.Reason(reason), Message: message})
	var sent struct {
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &sent); err != nil {
		return err.Error()
	}
	return strings.Replace(w.Body.String(), sent.RequestID, "$context.requestId", 1)
}

// versions: SAM resolves the references of Tracing before it names a version by the function's properties. Lambda
// publishes no version of a function that has not changed, so each function has the same values in variables: in
// PARAMETERS, or in one of its own. The renderer, which knows no other parameter, has values of its own.
func versions(s *templateFile) (f findings) {
	wants := map[bool]map[string]bool{false: {"Tracing": true}, true: {}}
	for _, function := range s.functions() {
		p, variables := maps.Clone(function.properties), maps.Clone(function.properties.object("Environment", "Variables"))
		delete(variables, "PARAMETERS")
		p["Environment"] = variables
		delete(p, "ReservedConcurrentExecutions") // which is no part of a version
		for name := range referred(p) {
			if s.doc.object("Parameters")[name] != nil {
				wants[function.id == rendererID][name] = true
			}
		}
	}
	for _, function := range s.functions() {
		want := wants[function.id == rendererID]
		mode := map[bool]string{false: "@Tracing@", true: "PassThrough"}[function.id == rendererID]
		if got := function.properties.text("TracingConfig", "Mode",
			"Fn::Select"); !strings.HasPrefix(got, "[0, ["+mode+", ") {
			f.add("Tracing of %s is %s", function.id, got)
		}
		values := function.properties.text("TracingConfig", "Mode", "Fn::Select", "1", "1")
		if got := referred(regexp.MustCompile(`@(\w+)@`).ReplaceAllString(values, "$${$1}")); !maps.Equal(got, want) {
			f.add("Tracing of %s holds %v, and the functions have %v", function.id, slices.Sorted(maps.Keys(got)),
				slices.Sorted(maps.Keys(want)))
		}
		variables := referred(function.properties.object("Environment", "Variables"))
		for name := range want {
			if !variables[name] {
				f.add("no variable of %s holds %s", function.id, name)
			}
			// The same value as number and as text would give two names for one version.
			if _, ok := at(s.doc, "Parameters", name, "Default").(string); !ok {
				f.add("the default of %s is no text: quote it", name)
			}
		}
	}
	return f
}

// parameters: each is described, grouped and labelled. cfn-lint finds one that is not used. A price is an integer.
func parameters(s *templateFile) (f findings) {
	shown := s.doc.object("Metadata", "AWS::CloudFormation::Interface")
	grouped := map[any]int{}
	for _, group := range shown.list("ParameterGroups") {
		if show(at(group, "Label", "default")) == "" {
			f.add("a parameter group has no label")
		}
		names, _ := at(group, "Parameters").([]any)
		for _, name := range names {
			grouped[name]++
		}
	}
	all := s.doc.object("Parameters")
	for _, name := range all.names() {
		if !strings.HasSuffix(all.text(name, "Description"), ".") || all.object(name)["Default"] == nil {
			f.add("%s is not described in a sentence, or has no default", name)
		}
		if grouped[name] != 1 || shown.text("ParameterLabels", name, "default") == "" {
			f.add("%s is in %d parameter groups, want 1, or has no label", name, grouped[name])
		}
		if all.object(name)["NoEcho"] != nil {
			f.add("%s is a secret: secrets are in Secrets Manager", name)
		}
	}
	for _, price := range credit.PriceList() {
		if p := all.object(price.Parameter); p.text("Type") != "String" || p.text("AllowedPattern") != "^[0-9]{1,12}$" {
			f.add("%s is no integer: %v", price.Parameter, p)
		}
	}
	for name := range s.doc.object("Outputs") {
		if s.doc.text("Outputs", name, "Description") == "" {
			f.add("the output %s is not described", name)
		}
	}
	return f
}

var (
	secretName = regexp.MustCompile(`SECRET|PASSWORD|TOKEN|CREDENTIAL|(API|ACCESS|PRIVATE|AUTH)_KEY`)
	// Variables about secrets that hold none.
	aboutSecrets = []string{"SECRET_CACHE_SECONDS", "SECRET_STALE_SECONDS", "AWS_ENDPOINT_URL_SECRETS_MANAGER"}
	// Variables that only the local stack may give a function. SVC_LOCAL permits vendors without TLS.
	localOnly = []string{"SVC_LOCAL", "CHROMIUM", "SVC_TEST_PUBLIC_NETS", "SVC_TEST_CA"}
	// The variables of the renderer that are not empty.
	rendererKnows = []string{"STAGE", "PDF_IMAGE_HOSTS", "PDF_MAX_PAGES", "PDF_RENDER_SECONDS", "PARAMETERS"}
)

// environments: no variable holds a secret, and the renderer knows nothing of the others.
func environments(s *templateFile) (f findings) {
	for _, function := range s.functions() {
		variables := function.properties.object("Environment", "Variables")
		for _, name := range variables.names() {
			switch {
			case secretName.MatchString(name) && !slices.Contains(aboutSecrets, name):
				f.add("%s: %s looks like a secret", function.id, name)
			case slices.Contains(localOnly, name):
				f.add("%s: %s is for the local stack alone", function.id, name)
			case function.id == rendererID && variables[name] != "" && !slices.Contains(rendererKnows, name):
				f.add("%s knows %s", function.id, name)
			}
		}
	}
	if strings.Contains(show(s.doc), "{{resolve:") {
		f.add("a dynamic reference would put a secret into the template's result")
	}
	return f
}

// rules are the policies over the translated template.
var rules = []func(*templateFile) findings{
	properties, statements, movements, vendorRights, routes, gatewayResponses, versions, parameters, environments, alarms,
	dashboard,
}

func TestTemplate(t *testing.T) {
	s := current()
	for _, rule := range rules {
		for _, finding := range rule(s) {
			t.Error(finding)
		}
	}
}

// TestTemplateFindings checks for each kind of rule that a change which breaks it is found. The keys of a path are
// apart by spaces; "+" as the last key appends to a list.
func TestTemplateFindings(t *testing.T) {
	const (
		variables  = "Resources SmsFunction Properties Environment Variables "
		responses  = "Resources Api Properties Body x-amazon-apigateway-gateway-responses "
		statement  = "Resources SmsRole Properties Policies 0 PolicyDocument Statement 0 "
		charge     = "Resources ChargePolicy Properties PolicyDocument Statement "
		settle     = "Resources SettleRole Properties Policies 0 PolicyDocument Statement "
		resolver   = "Resources SmsResolveRole Properties Policies 0 PolicyDocument Statement "
		dashboards = "Resources Dashboard Properties DashboardBody Fn::Sub"
	)
	arn := func(id string) object { return object{"Fn::GetAtt": []any{id, "Arn"}} }
	allow := func(action, resource any) object {
		return object{"Effect": "Allow", "Action": action, "Resource": resource}
	}
	for _, c := range []struct {
		path string
		with any
		want string
	}{
		// docs/decisions/money.md#operator-movements: each way to let a function write a movement.
		{charge + "1 Resource", arn("Movements"), "SmsRole may PutItem: grant"},
		{charge + "1 Resource", arn("Resolutions"), "PdfRole may PutItem: confirmation"},
		{charge + "0 Resource", []any{arn("Wallets"), arn("Movements")}, "SmsRole may UpdateItem: adjustment"},
		{charge + "+", allow("dynamodb:BatchWriteItem", "*"), "BarcodeRole may BatchWriteItem: refund"},
		{charge + "+", allow([]any{"dynamodb:PartiQL*"}, arn("Movements")), "LocationRole may PartiQLInsert: grant"},
		{charge + "+", object{"Effect": "Allow", "NotAction": "iam:*", "NotResource": arn("Projects")},
			"SecurityRole may DeleteItem: grant"},
		{settle + "+", allow("dynamodb:D*", object{"Fn::Sub": "arn:${AWS::Partition}:dynamodb:*:*:table/svc-${Stage}-res*"}),
			"SettleRole may DeleteItem: refunding resolution"},
		{settle + "+", object{"Fn::If": []any{"HasKey", allow("*", "*"), object{"Ref": "AWS::NoValue"}}},
			"SettleRole may UpdateItem: grant"},
		{resolver + "7 Resource", arn("Movements"), "SmsResolveRole may PutItem: grant"},
		{resolver + "7 Action", "dynamodb:UpdateItem", "SmsResolveRole may UpdateItem: confirmation"},
		{"Resources SmsRole Properties ManagedPolicyArns +", "arn:aws:iam::aws:policy/AmazonDynamoDBFullAccess",
			"SmsRole has a policy whose rights are not known"},
		{"Resources SmsRights", object{"Type": "AWS::IAM::Policy"},
			"SmsRights: no rule reads what a resource of the type AWS::IAM::Policy permits"},
		{"Resources Copies", object{"Type": "AWS::DynamoDB::GlobalTable"}, "Copies: no rule reads"},
		{"Resources ChargePolicy Properties Roles", []any{object{"Ref": "PdfRenderRole"}}, "ChargePolicy: Roles is"},
		{"Resources Movements Properties ResourcePolicy", object{"PolicyDocument": object{}}, "Movements: ResourcePolicy is"},
		{"Resources Wallets Properties BillingMode", "PAY_PER_REQUESTS", `Wallets: BillingMode is "PAY_PER_REQUESTS"`},
		{"Resources Api Properties SecurityPolicy", nil, "Api: SecurityPolicy is"},
		{"Resources Wallets DeletionPolicy", nil, `Wallets: /DeletionPolicy is ""`},
		{"Resources SmsCanaryAlarm Properties Metrics 1 MetricStat Metric MetricName", "Throttles", "SmsCanaryAlarm watches"},
		{"Resources SmsCanaryAlarm Properties Metrics 2 MetricStat", nil, "SmsCanaryAlarm watches"},
		{"Resources SettleCanaryAlarm Properties MetricName", "Throttles", "SettleCanaryAlarm watches"},
		{"Resources PdfRenderCanaryAlarm Properties AlarmName",
			"${AWS::StackName}-pdfrender-canary-${PdfRenderFunctionVersion.Version}", "PdfRenderCanaryAlarm: AlarmName is"},
		{"Resources PdfFunction", nil, "nothing is a PdfFunction"},
		// docs/decisions/operating.md#failed-runs: without a destination, the alarms have to count failed runs.
		{"Resources ErrorsAlarm Properties Metrics 6 MetricStat", nil, "ErrorsAlarm watches"},
		{"Rules HostedZoneId Assertions", nil, ": Rules.HostedZoneId.Assertions.0.Assert is"},
		{"Resources ApiStage Properties AccessLogSetting Fn::If 1 Format", `{"path":"$context.path"}`,
			"ApiStage: AccessLogSetting is"},
		{statement + "Action", "dynamodb:Queri", "SmsRole dynamodb:Queri is no right of it"},
		{statement + "Action", []any{"dynamodb:Query", "dynamodb:GetItem"}, "is no right of it"},
		{statement + "Resource", "*", "SmsRole dynamodb:GetItem on *"},
		{statement + "Effect", "Deny", "SmsRole dynamodb:GetItem on"},
		{statement + "NotResource", "x", "has a NotResource"},
		{statement + "Sid", "WriteLog", "occurs twice"},
		{"Resources SmsRole Properties Policies 0 PolicyDocument Statement 3 Resource",
			object{"Fn::Sub": "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:svc/${Stage}/*"},
			"SmsRole secretsmanager:GetSecretValue on"},
		{"Resources SmsRole Properties Policies 0 PolicyDocument Statement 4 Fn::If 1 Action", "sms-voice:Send",
			"no right of the function sms is sms-voice:SendTextMessage"},
		{"Resources SmsRole Properties Policies 0 PolicyDocument Statement 4 Fn::If",
			[]any{"HasKey", object{"Action": "sms-voice:SendTextMessage"},
				object{"Ref": "AWS::NoValue"}}, "HasKey SmsRole sms-voice:SendTextMessage is no right of it"},
		{"Resources KeyPolicy Properties PolicyDocument Statement 1 Fn::If 1 Resource", "*",
			"HasPreviousKey KeyPolicy kms:Decrypt on *"},
		{"Resources CurrencyRole Properties Policies 0 PolicyDocument Statement 2 Condition", nil,
			"CurrencyRole dynamodb:UpdateItem on ${Rates.Arn}, want"},
		{"Resources PdfRenderRole Properties Policies 0 PolicyDocument Statement 0 Action", "dynamodb:GetItem",
			"PdfRenderRole dynamodb:GetItem is no right of it"},
		{"Resources Api Properties Body paths /api/v1/sms/send post", object{}, "/api/v1/sms/send takes"},
		{"Resources Api Properties Body paths /api/v1/sms/send/", object{}, `the path "/api/v1/sms/send/"`},
		{"Resources Api Properties Body paths /docs x-amazon-apigateway-any-method x-amazon-apigateway-integration uri",
			"${DocsFunction.Arn}", `/docs goes to ""`},
		{"Resources SmsFunctionAliaslive", nil, "SmsFunction has no Aliaslive"},
		{responses + "THROTTLED", nil, "gateway responses are"},
		{responses + "THROTTLED statusCode", "503", "THROTTLED is 503 rate_limit_exceeded"},
		{responses + "THROTTLED responseParameters gatewayresponse.header.Retry-After", "1", "THROTTLED has the headers"},
		{responses + "EXPIRED_TOKEN responseTemplates application/json", `{"error":{"code":"http_error"}}`,
			`EXPIRED_TOKEN has the reason ""`},
		{responses + "THROTTLED responseTemplates application/json", `{"error":{"code":"rate_limit_exceeded"}}`,
			"want the functions' envelope"},
		{variables + "PRICE_SMS", object{"Ref": "ApiBurst"}, "Tracing of BarcodeFunction holds"},
		{variables + "PARAMETERS", object{"Fn::Sub": "${PriceSms}"}, "no variable of SmsFunction holds PricePdf"},
		{"Resources SmsFunction Properties TracingConfig Mode", "Active", "Tracing of SmsFunction is"},
		{"Parameters PriceSms Default", 10, "the default of PriceSms is no text"},
		{"Parameters PriceSms AllowedPattern", "^[0-9.]{1,12}$", "PriceSms is no integer"},
		{"Parameters PriceSms Description", "Credits", "PriceSms is not described"},
		{"Parameters PriceSms NoEcho", true, "PriceSms is a secret"},
		{"Metadata AWS::CloudFormation::Interface ParameterGroups 1 Parameters +", "PriceSms",
			"PriceSms is in 2 parameter groups"},
		{"Metadata AWS::CloudFormation::Interface ParameterGroups 1 Label", nil, "a parameter group has no label"},
		{"Outputs BaseUrl Description", nil, "the output BaseUrl is not described"},
		{variables + "TWILIO_TOKEN", "abc", "TWILIO_TOKEN looks like a secret"},
		{variables + "SVC_LOCAL", "1", "SVC_LOCAL is for the local stack alone"},
		{variables + "STAGE", "{{resolve:secretsmanager:svc/dev/sms}}", "a dynamic reference"},
		{"Resources PdfRenderFunction Properties Environment Variables WALLETS_TABLE", "wallets",
			"PdfRenderFunction knows WALLETS_TABLE"},
		{"Resources FaxFunction", object{"Type": "AWS::Lambda::Function", "Properties": object{}}, "ErrorsAlarm watches"},
		{"Resources FaxFunction", object{"Type": "AWS::Lambda::Function", "Properties": object{}},
			"11 metrics are too many for ErrorsAlarm, which takes 10"},
		{"Resources Faxes", object{"Type": "AWS::DynamoDB::Table"}, "TablesThrottledAlarm watches"},
		{"Resources LowWalletsAlarm Properties AlarmDescription", "Low. Runbook: nowhere",
			"docs/runbook.md has no chapter nowhere"},
		{"Resources LowWalletsAlarm Properties AlarmDescription", "Low. Runbook: throttles",
			"the chapter low-wallets, which no alarm names"},
		{"Resources CreditsSpentAlarm Properties Dimensions", []any{object{"Name": "flavour", "Value": "sms_send"}},
			"which nothing prints"},
		{"Resources FailuresAlarm Properties Dimensions 0 Value", "failed", "which no response has"},
		{"Resources RatesAlarm Properties Metrics 1 ReturnData", true, "RatesAlarm returns 2 values"},
		{"Resources RatesAlarm Properties Metrics 0 Expression", "MAX([old, failing])", "RatesAlarm has the metrics"},
		{"Resources ErrorsAlarm Properties Metrics +", object{"MetricStat": object{}}, "ErrorsAlarm watches 11 metrics"},
		{dashboards, "{", "the dashboard is no JSON"},
		{dashboards, `{"widgets": [{"x": 20, "y": 1, "width": 8, "height": 1}]}`,
			"a widget at 20, 1 overlaps another or is outside"},
		{dashboards, `{"widgets": []}`, "the dashboard does not ask"},
		{dashboards, `{"x": "FunctionName=("}`, "a widget by function does not show SmsFunction"},
		{dashboards, `{"x": "${SmsCanaryAlarm.Arn}"}`, "the dashboard shows SmsCanaryAlarm: true"},
		{dashboards, `{"x": "MetricName=\"Credit\""}`, "the dashboard shows Credit, which nothing prints"},
	} {
		s := &templateFile{clone(current().doc).(object)}
		change(s.doc, strings.Fields(c.path), c.with)
		var all findings
		for _, rule := range rules {
			all = append(all, rule(s)...)
		}
		if !strings.Contains(strings.Join(all, "\n"), c.want) {
			t.Errorf("%s = %v: found %q, want %q", c.path, c.with, all[:min(3, len(all))], c.want)
		}
	}
}

// clone returns a deep copy of a value.
func clone(value any) any {
	switch value := value.(type) {
	case object:
		out := object{}
		for key, inner := range value {
			out[key] = clone(inner)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = clone(inner)
		}
		return out
	}
	return value
}

// change sets or appends the value at a path. Without a value, change deletes the path.
func change(doc object, path []string, with any) {
	last := len(path) - 1
	above := at(doc, path[:last]...)
	if list, ok := above.([]any); ok {
		if path[last] == "+" {
			change(doc, path[:last], append(list, with))
		}
		return
	}
	if with == nil {
		delete(above.(object), path[last])
	} else {
		above.(object)[path[last]] = with
	}
}

// TestParameterPublishes: another value of a parameter of functions is another version of each function, which the
// alias gets, also from a released package. Other parameters, and a default that is given as a value, publish nothing
// (docs/decisions/operating.md#versions).
func TestParameterPublishes(t *testing.T) {
	t.Parallel()
	var published [][]string
	for _, text := range translate(
		nil, []string{"PriceSms=10000", "ApiBurst=1",
			"ExpectedCreditsPerHour=7"}, []string{"PriceSms=10001"}, []string{"PdfImageHosts=a.example"},
	) {
		var ids []string
		for _, version := range parse(text).resources("AWS::Lambda::Version") {
			ids = append(ids, version.id)
		}
		published = append(published, ids)
	}
	before := published[0]
	if same := published[1]; !slices.Equal(same, before) || len(same) == 0 {
		t.Errorf("versions are %v and were %v", same, before)
	}
	// The renderer has parameters of its own, and none of the others'.
	for i, ofRenderer := range []bool{false, true} {
		for _, id := range published[2+i] {
			if want := strings.HasPrefix(id, rendererID) == ofRenderer; slices.Contains(before, id) == want {
				t.Errorf("parameter of the renderer %v: the versions were %v, and now there is %s", ofRenderer, before, id)
			}
		}
	}
}
