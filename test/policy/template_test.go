package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/shared/request"
	"svcapi/shared/wallet"
)

// findings are a rule's objections to a template.
type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// want adds a finding where a property of a resource is not as want says, in the form of show. A want that begins with
// "~" is a regular expression.
func (f *findings) want(r resource, want string, path ...string) {
	got := show(at(r.properties, path...))
	pattern, isPattern := strings.CutPrefix(want, "~")
	if isPattern && !matches(pattern, got) || !isPattern && got != want {
		f.add("%s: %s is %q, want %q", r.id, strings.Join(path, "."), got, want)
	}
}

// The services that take the roles, by logical ID; the first row that matches counts.
var trusted = [][2]string{{`\w+FunctionEvery\w+Role`, "scheduler"}, {"DeploymentRole", "codedeploy"}, {".*", "lambda"}}

// resources: what each resource of a type has, so that a new one has it, too.
func resources(s *templateFile) (f findings) {
	for _, r := range s.resources("") {
		switch r.kind {
		case "AWS::Lambda::Function":
			f.want(r, "${"+r.stem()+"Role.Arn}", "Role")
			f.want(r, "${"+r.stem()+"LogGroup}", "LoggingConfig", "LogGroup")
		case "AWS::Logs::LogGroup":
			f.want(r, "${LogRetentionDays}", "RetentionInDays")
			f.want(r, "HasKey ? ${KmsKeyArn} : -", "KmsKeyId")
			// docs/pdf-containment.md#the-log-of-the-renderer
			f.want(r, map[bool]string{true: "INFREQUENT_ACCESS"}[r.id == "PdfRenderLogGroup"], "LogGroupClass")
		case "AWS::Lambda::Version":
			if r.attributes.text("DeletionPolicy") != "Retain" {
				f.add("%s is deleted with the next version", r.id)
			}
		case "AWS::CodeDeploy::DeploymentGroup":
			// The state of an alarm outlives a change of its dimensions, so that each version has an alarm of its own.
			f.want(r, "@DeploymentType@", "DeploymentConfigName")
			f.want(r, "{Alarms: [{Name: ${"+r.stem()+canary+"}}], Enabled: true}", "AlarmConfiguration")
			f.want(r, "~.*DEPLOYMENT_STOP_ON_ALARM.*", "AutoRollbackConfiguration")
			alarm := s.resource(r.stem() + canary)
			f.want(alarm, `~.*-canary-\$\{`+r.stem()+`FunctionVersion\.Version\}`, "AlarmName")
		case "AWS::Lambda::EventInvokeConfig":
			f.want(r, "{}", "DestinationConfig") // docs/decisions/operating.md#failed-runs
		case "AWS::Lambda::Permission":
			f.want(r, `~\$\{\w+FunctionAliaslive\}`, "FunctionName")
		case "AWS::IAM::Role":
			i := slices.IndexFunc(trusted, func(row [2]string) bool { return matches(row[0], r.id) })
			f.want(r, `~\[\{Action: \[?sts:AssumeRole\]?, Effect: Allow, Principal: \{Service: \[?`+trusted[i][1]+
				`\.amazonaws\.com\]?\}\}\]`, "AssumeRolePolicyDocument", "Statement")
			f.want(r, "HasBoundary ? ${PermissionsBoundaryArn} : -", "PermissionsBoundary")
			policies := r.properties.text("ManagedPolicyArns")
			if r.id != "DeploymentRole" && strings.Contains(policies, "arn:") {
				f.add("%s has a policy whose rights are not known here: %s", r.id, policies)
			}
			if r.id == "PdfRenderRole" {
				f.want(r, "", "ManagedPolicyArns")
			}
		case "AWS::IAM::ManagedPolicy":
			f.want(r, "", "Roles")
		case "AWS::DynamoDB::Table":
			f = append(f, tables(r)...)
		case "AWS::CloudWatch::Alarm":
			notifies, explains := "Notifies ? [${AlarmTopicArn}] : Mails ? [${AlarmTopic}] : -", `~.+\. Runbook: [a-z-]+`
			if strings.HasSuffix(r.id, canary) { // deployments alone watch it
				notifies = ""
			}
			f.want(r, notifies, "AlarmActions")
			f.want(r, notifies, "OKActions")
			f.want(r, explains, "AlarmDescription")
			// No alarm fires before a first run: one of silence stays as it is where there is nothing at all.
			f.want(r, map[bool]string{true: "ignore", false: "notBreaching"}[strings.HasSuffix(r.id, "SilentAlarm")],
				"TreatMissingData")
		default: // any other type could give a role more
			if matches("AWS::(IAM|DynamoDB)::.*", r.kind) {
				f.add("%s: no rule reads what a resource of the type %s permits", r.id, r.kind)
			}
		}
	}
	return f
}

// tables: what svc protect keeps can be recovered and outlives the stack, but not a creation that failed, which could
// not delete a protected table. Other tables expire their items, and the ledger
// those of unused slots. A resource policy could give a role rights that the role does not show.
func tables(r resource) (f findings) {
	f.want(r, "svc-${Stage}-"+r.folder(), "TableName")
	f.want(r, "HasKey ? {KMSMasterKeyId: ${KmsKeyArn}, SSEEnabled: true, SSEType: KMS} : -", "SSESpecification")
	f.want(r, "", "DeletionProtectionEnabled")
	f.want(r, "", "ResourcePolicy")
	policies, recovery, expiry := "Delete Delete", "", "{AttributeName: expires, Enabled: true}"
	if slices.Contains(app.KeptTables(), r.folder()) {
		policies, recovery = "RetainExceptOnCreate Retain", "{PointInTimeRecoveryEnabled: true}"
		if r.folder() != "ledger" { // whose slots that no request used expire (docs/decisions/money.md#settle)
			expiry = ""
		}
	}
	f.want(r, recovery, "PointInTimeRecoverySpecification")
	f.want(r, expiry, "TimeToLiveSpecification")
	if got := r.attributes.text("DeletionPolicy") + " " + r.attributes.text("UpdateReplacePolicy"); got != policies {
		f.add("%s: its policies are %q, want %q", r.id, got, policies)
	}
	return f
}

// gateway: what of the gateway concerns money, privacy or safety.
func gateway(s *templateFile) (f findings) {
	firewall := s.resource("Firewall")
	// docs/decisions/operating.md#floods
	f.want(s.resource("Budget"), "${MonthlyBudgetUsd}", "Budget", "BudgetLimit", "Amount")
	// No path as sent, no header, no body. A variable without a value is a hyphen, which is JSON between quotes alone.
	stage := s.resource("ApiStage")
	f.want(stage, `~LogsAccess \? \{DestinationArn: \$\{AccessLogGroup\.Arn\}, Format: \{("[a-z_]+":("\$context\.(`+
		`error\.responseType|httpMethod|identity\.sourceIp|integration\.requestId|requestId|resourcePath|responseLatency|responseLength|status|`+
		`waf\.status)"|\$context\.requestTimeEpoch)[,}])+\} : -`, "AccessLogSetting")
	for _, settings := range stage.properties.list("MethodSettings") {
		if got := show(at(settings, "DataTraceEnabled")) + show(at(settings, "LoggingLevel")); got != "falseOFF" {
			f.add("the gateway's log of %s would hold payloads", show(at(settings, "ResourcePath")))
		}
	}
	if text := show(firewall.properties); strings.Contains(text, "SampledRequestsEnabled: true") {
		f.add("samples of the web ACL would hold the headers with secrets")
	}
	// docs/decisions/operating.md#edge: WAF has no variable for the ID of a request.
	want := strings.Replace(refusal(request.CodeRateLimitExceeded, "", "Too many requests. Please try again later."),
		"$context.requestId", "00000000-0000-0000-0000-000000000000", 1)
	f.want(firewall, "~"+regexp.QuoteMeta(want), "CustomResponseBodies", "limited", "Content")
	f.want(firewall, `~\{CustomResponse: \{CustomResponseBodyKey: limited, ResponseCode: 429, ResponseHeaders: \[`+
		`\{Name: Retry-After, Value: [1-9]\d*\}, .*`, "Rules", "0", "Action", "Block")
	for _, id := range []string{"WebAcl", "FirewallAssociation"} { // by the stage's reference they come after the stage
		f.want(s.resource(id), `~.*/restapis/\$\{Api\}/stages/\$\{ApiStage\}`, "ResourceArn")
	}
	// docs/decisions/pdf.md#pdf-stream: only this route streams.
	for path := range s.routes() {
		mode := s.doc.text("Resources", "Api", "Properties", "Body", "paths", path, "x-amazon-apigateway-any-method",
			"x-amazon-apigateway-integration", "responseTransferMode")
		if (mode == "STREAM") != strings.HasSuffix(path, "/utilities/pdf/stream") {
			f.add("%s has the transfer mode %q", path, mode)
		}
	}
	return f
}

// isolation: a function for each mode, because Lambda sets the mode when it creates a function ("Tenant isolation", AWS
// Lambda Developer Guide; docs/decisions/pdf.md#pdf-isolation).
func isolation(s *templateFile) (f findings) {
	renderer, pdf := s.resource(rendererID), s.resource("PdfFunction")
	f.want(renderer, "IsolatesProjects ? {TenantIsolationMode: PER_TENANT} : -", "TenancyConfig")
	f.want(renderer, "~.*\\$\\{PdfIsolation\\}", "FunctionName")
	f.want(s.resource("PdfRenderCanaryAlarm"), "~.*-\\$\\{PdfIsolation\\}-.*", "AlarmName") // each mode has a version 1
	f.want(pdf, renderer.properties.text("FunctionName")+":live", "Environment", "Variables", "PDF_RENDERER")
	f.want(pdf, "${PdfIsolation}", "Environment", "Variables", "PDF_ISOLATION")
	return f
}

const (
	gatewayGivesUp = 29 * time.Second // the default limit of an integration ("Amazon API Gateway quotas")
	clocksDiffer   = 10 * time.Second
	leastResponse  = 5 * time.Second // of a function after a vendor's call
)

// seconds is a number of seconds at keys.
func (o object) seconds(keys ...string) time.Duration {
	n, _ := strconv.Atoi(o.text(keys...))
	return time.Duration(n) * time.Second
}

// times: a function ends before the gateway gives up, a scheduled run and its repetitions before the next run, and a
// lease is settled only when nothing can write to it any more.
func times(s *templateFile) (f findings) {
	longest, scheduled := time.Duration(0), map[string]bool{}
	for _, schedule := range s.resources("AWS::Scheduler::Schedule") {
		id, _, _ := strings.Cut(schedule.id, "Every")
		scheduled[id] = true
		period := every(schedule.properties.text("ScheduleExpression"))
		events := s.resource(id + "EventInvokeConfig").properties
		age, retries := events.seconds("MaximumEventAgeInSeconds"), events.text("MaximumRetryAttempts")
		timeout := s.resource(id).properties.seconds("Timeout")
		if timeout == 0 || timeout >= period || age == 0 || age > period || retries == "" {
			f.add("%s runs for up to %v every %v, and Lambda keeps its event for %v and retries %s times", id, timeout, period,
				age, retries)
		}
		if own := s.resource(id).properties.text("Environment", "Variables", "RESOLVE_PERIOD"); own != "" {
			if d, err := time.ParseDuration(own); err != nil || d != period {
				f.add("RESOLVE_PERIOD is %s, and the schedule %v", own, period)
			}
		}
	}
	integrations := map[string]time.Duration{}
	for path, function := range s.routes() {
		milliseconds := s.doc.seconds("Resources", "Api", "Properties", "Body", "paths", path,
			"x-amazon-apigateway-any-method", "x-amazon-apigateway-integration", "timeoutInMillis")
		integrations[function] = max(integrations[function], cmp.Or(milliseconds/1000, gatewayGivesUp))
	}
	for _, function := range s.functions() {
		timeout := function.properties.seconds("Timeout")
		if scheduled[function.id] {
			continue
		}
		longest = max(longest, timeout)
		if limit := cmp.Or(integrations[function.id], time.Minute); timeout == 0 || timeout > limit {
			f.add("%s may take %v, and its caller waits for %v", function.id, timeout, limit)
		}
	}
	settle, vendor := s.doc.object("Parameters", "SettleAfterSeconds"), s.doc.object("Parameters", "VendorTimeoutSeconds")
	least := wallet.DefaultLimits.Leasing.Life + longest + clocksDiffer
	if settle.seconds("Default") < least || settle.seconds("MinValue") < least {
		f.add("SettleAfterSeconds allows less than %v", least)
	}
	if most := s.resource("SmsFunction").properties.seconds("Timeout") - leastResponse; vendor.seconds("MaxValue") > most {
		f.add("VendorTimeoutSeconds allows more than %v", most)
	}
	return append(f, slowness(s)...)
}

// slowness: the alarm's threshold is 80 % of the time-out that most functions have, and others are scaled to it.
func slowness(s *templateFile) (f findings) {
	alarm, common := s.resource("SlowAlarm"), s.resource("SmsFunction").properties.seconds("Timeout")
	f.want(alarm, strconv.FormatInt((common*8/10).Milliseconds(), 10), "Threshold")
	scale := map[string]string{}
	for _, item := range alarm.properties.list("Metrics") {
		if match := regexp.MustCompile(`^(\w+) \* (\d+) / (\d+)$`).FindStringSubmatch(show(at(item,
			"Expression"))); match != nil {
			scale[match[1]] = match[2] + "/" + match[3]
		}
	}
	for _, item := range alarm.properties.list("Metrics") {
		watched, _ := at(item, "MetricStat", "Metric").(object)
		if watched == nil {
			continue
		}
		function := s.resource(strings.Trim(show(at(watched.list("Dimensions")[0], "Value")), "${}"))
		want, timeout := "", function.properties.seconds("Timeout")
		if timeout > common {
			want = fmt.Sprintf("%d/%d", int(common.Seconds()), int(timeout.Seconds()))
		}
		if got := scale[show(at(item, "Id"))]; got != want && (function.id != rendererID || got != "") {
			f.add("SlowAlarm scales %s by %q, want %q", function.id, got, want)
		}
	}
	return f
}

// every is the period of a schedule.
func every(expression string) time.Duration {
	match := regexp.MustCompile(`^rate\((\d+) (minute|hour|day)s?\)$`).FindStringSubmatch(expression)
	if match == nil {
		return 0
	}
	n, _ := strconv.Atoi(match[1])
	return time.Duration(n) * map[string]time.Duration{"minute": time.Minute, "hour": time.Hour,
		"day": 24 * time.Hour}[match[2]]
}

// rights are the actions of roles and managed policies, after the name of the stack's condition, where there is one,
// and the resources and conditions of each. The first row whose pattern is that of role and action counts. An action in
// no row is no right of any role. No row lets a function write a movement (docs/decisions/money.md#operator-movements),
// and one lets the resolver put resolutions (docs/decisions/extensions.md#resolver).
var rights = []struct{ action, on string }{
	{`SmsResolveRole dynamodb:Scan`, `\$\{Ledger\.Arn\}/index/uncertain`},
	{`SmsResolveRole dynamodb:GetItem`, `\$\{(Ledger|Resolutions)\.Arn\}`},
	{`SmsResolveRole dynamodb:UpdateItem`, `\$\{(Wallets|Ledger)\.Arn\}`},
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
	for _, price := range wallet.PriceList() {
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
	resources, gateway, isolation, times, statements, vendorRights, routes, gatewayResponses, versions,
	parameters, environments, alarms, dashboard,
}

func TestTemplate(t *testing.T) {
	s := current()
	for _, rule := range rules {
		for _, finding := range rule(s) {
			t.Error(finding)
		}
	}
}

// TestTemplateFindings checks that a change of the template which gives a right, or which breaks a rule over two
// resources, is found. The keys of a path are apart by spaces; "+" as the last key appends to a list.
func TestTemplateFindings(t *testing.T) {
	const (
		variables = "Resources SmsFunction Properties Environment Variables "
		statement = "Resources SmsRole Properties Policies 0 PolicyDocument Statement 0 "
		charge    = "Resources ChargePolicy Properties PolicyDocument Statement "
		settle    = "Resources SettleRole Properties Policies 0 PolicyDocument Statement "
		resolver  = "Resources SmsResolveRole Properties Policies 0 PolicyDocument Statement "
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
		{charge + "1 Resource", arn("Movements"), "ChargePolicy dynamodb:PutItem on ${Movements.Arn}, want"},
		{charge + "1 Resource", arn("Resolutions"), "ChargePolicy dynamodb:PutItem on ${Resolutions.Arn}, want"},
		{charge + "0 Resource", []any{arn("Wallets"), arn("Movements")}, "on [${Wallets.Arn}, ${Movements.Arn}], want"},
		{charge + "+", allow("dynamodb:BatchWriteItem", "*"), "ChargePolicy dynamodb:BatchWriteItem is no right of it"},
		{charge + "+", allow([]any{"dynamodb:PartiQL*"}, arn("Movements")), "[dynamodb:PartiQL*] is no right of it"},
		{charge + "+", object{"Effect": "Allow", "NotAction": "iam:*", "NotResource": arn("Projects")},
			"ChargePolicy  is no right of it"},
		{settle + "+", allow("dynamodb:D*", object{"Fn::Sub": "arn:${AWS::Partition}:dynamodb:*:*:table/svc-${Stage}-res*"}),
			"SettleRole dynamodb:D* is no right of it"},
		{settle + "+", object{"Fn::If": []any{"HasKey", allow("*", "*"), object{"Ref": "AWS::NoValue"}}},
			"HasKey SettleRole * is no right of it"},
		{resolver + "7 Resource", arn("Movements"), "SmsResolveRole dynamodb:PutItem on ${Movements.Arn}, want"},
		{resolver + "7 Action", "dynamodb:UpdateItem", "SmsResolveRole dynamodb:UpdateItem on ${Resolutions.Arn}, want"},
		{"Resources SmsRole Properties ManagedPolicyArns +", "arn:aws:iam::aws:policy/AmazonDynamoDBFullAccess",
			"SmsRole has a policy whose rights are not known"},
		{"Resources SmsRights", object{"Type": "AWS::IAM::Policy"},
			"SmsRights: no rule reads what a resource of the type AWS::IAM::Policy permits"},
		{"Resources Copies", object{"Type": "AWS::DynamoDB::GlobalTable"}, "Copies: no rule reads"},
		{"Resources ChargePolicy Properties Roles", []any{object{"Ref": "PdfRenderRole"}}, "ChargePolicy: Roles is"},
		{"Resources Movements Properties ResourcePolicy", object{"PolicyDocument": object{}}, "Movements: ResourcePolicy is"},
		// docs/decisions/operating.md#failed-runs: without a destination, the alarms have to count failed runs.
		{"Resources ErrorsAlarm Properties Metrics 6 MetricStat", nil, "ErrorsAlarm watches"},
		{"Resources SmsResolveFunction Properties Timeout", 120, "SmsResolveFunction runs for up to 2m0s"},
		{"Resources SmsFunction Properties Timeout", 30, "SmsFunction may take 30s"},
		{"Resources PdfFunction Properties Timeout", 61, "SettleAfterSeconds allows less than"},
		{"Resources RatesyncFunction Properties Timeout", 200, "SlowAlarm scales RatesyncFunction"},
		{"Parameters VendorTimeoutSeconds MaxValue", 24, "VendorTimeoutSeconds allows more than"},
		{statement + "Action", "dynamodb:Queri", "SmsRole dynamodb:Queri is no right of it"},
		{statement + "Resource", "*", "SmsRole dynamodb:GetItem on *"},
		{statement + "NotResource", "x", "has a NotResource"},
		{"Resources SmsRole Properties Policies 0 PolicyDocument Statement 4 Fn::If 1 Action", "sms-voice:Send",
			"no right of the function sms is sms-voice:SendTextMessage"},
		{"Resources CurrencyRole Properties Policies 0 PolicyDocument Statement 2 Condition", nil,
			"CurrencyRole dynamodb:UpdateItem on ${Rates.Arn}, want"},
		{"Resources PdfRenderRole Properties Policies 0 PolicyDocument Statement 0 Action", "dynamodb:GetItem",
			"PdfRenderRole dynamodb:GetItem is no right of it"},
		{variables + "PRICE_SMS", object{"Ref": "ApiBurst"}, "Tracing of BarcodeFunction holds"},
		{"Resources RatesAlarm Properties Metrics 0 Expression", "MAX([old, failing])", "RatesAlarm has the metrics"},
	} {
		s := parse(translated())
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
	for _, text := range translate(nil, []string{"PriceSms=10000", "ApiBurst=1", "ExpectedCreditsPerHour=7"},
		[]string{"PriceSms=10001"}, []string{"PdfImageHosts=a.example"}) {
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
