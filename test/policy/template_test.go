package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"svcapi/local/template"
	"svcapi/shared/api"
	"svcapi/shared/credit"
)

// current is template.yaml.
func current(t *testing.T) *templateFile {
	t.Helper()
	s, err := readTemplate()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// findings are a rule's objections to a template.
type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// edit replaces the first occurrence of old in template.yaml.
type edit struct{ old, with string }

// rule is a policy over a template. It has edits that break it, and has to notice every one.
type rule struct {
	name   string
	check  func(*templateFile) findings
	breaks []edit
}

// rules are the policies over template.yaml.
var rules = []rule{
	{"gateway responses have the envelope", gatewayResponses, []edit{
		{"        THROTTLED:", "        THROTTLE:"},
		{"StatusCode: '404'", "StatusCode: '403'"},
		{"        DEFAULT_4XX:\n", "        DEFAULT_4XX:\n          StatusCode: '400'\n"},
		{"X-SVC-Request-ID: context.requestId", "X-SVC-Request-ID: \"'$context.requestId'\""},
		{`Cache-Control: "'no-store'"`, `Cache-Control: "no-store"`},
		{`, Strict-Transport-Security: "'max-age=31536000'"`, ""},
		{`"request_id":"$context.requestId"`, `"request_id":$context.requestId`},
		{`"success":false,"request_id"`, `"request_id"`},
		{`,"error":{"code"`, `,"meta":{},"error":{"code"`},
		{`"error":{"code":"rate_limit_exceeded"`, `"error":{"code":"too_many"`},
		{`Retry-After: "'1'"`, `Retry-After: 1`},
		{"        REQUEST_TOO_LARGE:", "        UNSUPPORTED_MEDIA_TYPE:"},
	}},
	{"the API takes bytes and traces nothing", restAPI, []edit{
		{"['*/*']", "['image/png']"},
		{"OpenApiVersion: 3.0.1", "OpenApiVersion: '2.0'"},
		{"DataTraceEnabled: false", "DataTraceEnabled: true"},
		{"LoggingLevel: 'OFF'", "LoggingLevel: OFF"},
		{"Type: REGIONAL", "Type: REGION"},
	}},
	{"routes let every method reach the function", routes, []edit{
		{"Method: any", "Method: post"},
		{"Path: /api/v1/sms/send", "Path: /api/v1/sms/send/"},
		{"Path: /api/v1/sms/send", "Path: /api/v1/sms/balance"},
		{"RestApiId: !Ref Api, ", ""},
	}},
	{"functions are built and run as intended", functionSettings, []edit{
		{"BuildMethod: makefile", "BuildMethod: go1.x"},
		{"CodeUri: .", "CodeUri: functions/sms"},
		{"Runtime: provided.al2023", "Runtime: provided.al2"},
		{"Architectures: [arm64]", "Architectures: [arm]"},
		{"  SmsFunction:", "  TextFunction:"},
		{"Timeout: 28", "Timeout: 30"},
		{"      Timeout: 60\n", "      Timeout: 61\n"},
		{", TimeoutInMillis: 60000", ""},
	}},
	{"the browser's layer is the renderer's", browserLayer, []edit{
		{"      Layers: [!Ref ChromiumLayer]\n", ""},
		{"      BuildArchitecture: x86_64\n", "      BuildArchitecture: arm64\n"},
		{"      CompatibleArchitectures: [x86_64]\n", "      CompatibleArchitectures: [arm64]\n"},
		{"      Architectures: [x86_64]\n", ""},
		{"      MemorySize: 2048\n", "      MemorySize: 1024\n"},
		{"ContentUri: layers/chromium", "ContentUri: layers"},
	}},
	{"the renderer has no right but to log", rendererRights, []edit{
		{"      Policies:\n        - PolicyName: pdfrender\n", "      ManagedPolicyArns: [!Ref ChargePolicy]\n      Policies:\n        - PolicyName: pdfrender\n"},
		{"Resource: !GetAtt PdfRenderLogGroup.Arn}\n", "Resource: !GetAtt PdfRenderLogGroup.Arn}\n              - {Sid: ReadBalance, Effect: Allow, Action: dynamodb:GetItem, Resource: !GetAtt Wallets.Arn}\n"},
		{"Action: logs:CreateLogStream, Resource: !GetAtt PdfRenderLogGroup.Arn", "Action: kms:Decrypt, Resource: !Ref KmsKeyArn"},
		{" WALLETS_TABLE: '',", ""},
		{"PDF_IMAGE_HOSTS: !Ref PdfImageHosts,", "PDF_IMAGE_HOSTS: !Ref PdfImageHosts, SECRET_ARN: !Ref KmsKeyArn,"},
		{"[0, [PassThrough,", "[0, [Active,"},
		{"Resource: !Sub '${PdfRenderFunction.Arn}:live'", "Resource: !GetAtt PdfRenderFunction.Arn"},
	}},
	{"functions log to a group that forgets", logGroups, []edit{
		{"LogGroup: !Ref SmsLogGroup", "LogGroup: sms"},
		{"      RetentionInDays: !Ref LogRetentionDays\n", ""},
		{"LogFormat: JSON", "LogFormat: Json"},
	}},
	{"one action on one resource for each need", statements, []edit{
		{"Action: dynamodb:Query", "Action: dynamodb:Queri"},
		{"Action: dynamodb:Query", "Action: dynamodb:*"},
		{"Action: dynamodb:Query", "Action: [dynamodb:Query, dynamodb:GetItem]"},
		{"Resource: !GetAtt Projects.Arn", "Resource: '*'"},
		{"Resource: !GetAtt Projects.Arn", "Resource: !GetAtt Project.Arn"},
		{"secret:svc/${Stage}/sms/*", "secret:svc/${Stage}/*"},
		{"Sid: LoadProject", "Sid: ReadBalance"},
		{"Sid: LoadProject, Effect: Allow", "Sid: LoadProject, Effect: allow"},
		{"- {Sid: ReadBalance,", "- {Sid: ReadBalanceAgain, Effect: Allow, Action: dynamodb:GetItem, Resource: !GetAtt Wallets.Arn}\n              - {Sid: ReadBalance,"},
		{"Resource: !GetAtt SmsLogGroup.Arn", "Resource: !GetAtt BarcodeLogGroup.Arn"},
		{"Action: logs:PutLogEvents", "Action: logs:PutLogEvent"},
		{"Action: logs:PutLogEvents", "Action: logs:DeleteLogGroup"},
		{"      Role: !GetAtt SmsRole.Arn\n", ""},
		{"Role: !GetAtt SmsRole.Arn", "Role: !GetAtt BarcodeRole.Arn"},
		{"dynamodb:LeadingKeys: project#*", "dynamodb:LeadingKeys: '*'"},
	}},
	{"tables have the keys and the protection of their kind", tables, []edit{
		{"BillingMode: PAY_PER_REQUEST", "BillingMode: PAY_PER_REQUESTS"},
		{"      TableName: !Sub svc-${Stage}-projects\n", "      TableName: !Sub svc-${Stage}-projects\n      DeletionProtectionEnabled: true\n"},
		{"PointInTimeRecoveryEnabled: true", "PointInTimeRecoveryEnable: true"},
		{"DeletionPolicy: RetainExceptOnCreate", "DeletionPolicy: Delete"},
		{"DeletionPolicy: RetainExceptOnCreate", "DeletionPolicy: Retain"},
		{"UpdateReplacePolicy: Retain", "UpdateReplacePolicy: Snapshot"},
		{"AttributeName: expires", "AttributeName: expiry"},
		{"IndexName: uncertain", "IndexName: another"},
		{"ProjectionType: ALL", "ProjectionType: KEYS_ONLY"},
	}},
	{"schedules are named by the stack and well formed", schedules, []edit{
		{"rate(1 minute)", "rate(1 minutes)"},
		{"rate(1 minute)", "rate(5 minute)"},
		{"Name: !Sub ${AWS::StackName}-settle", "Name: settle"},
	}},
	{"the settler waits until no request can be alive", settleTimes, []edit{
		{"    Default: '90'\n    MinValue: 90", "    Default: '80'\n    MinValue: 90"},
		{"    Default: '90'\n    MinValue: 90", "    Default: '90'\n    MinValue: 80"},
		{"    Default: '90'\n    MinValue: 90\n", "    Default: '90'\n"},
		{"Default: '900'", "Default: '600'"},
		{"MinValue: 900", "MinValue: 600"},
		{"    Timeout: 28", "    Timeout: 45"},
		{"    MaxValue: 20\n", "    MaxValue: 25\n"},
		{"SETTLE_AFTER_SECONDS: !Ref SettleAfterSeconds", "SETTLE_AFTER_SECONDS: '5'"},
		{"      Timeout: 55", "      Timeout: 65"},
	}},
	{"deployments and transfers use names that exist", enumerations, []edit{
		{"      - Canary10Percent5Minutes\n", "      - Canary10Percent5Minute\n"},
		{"AllowedValues: [Active, PassThrough]", "AllowedValues: [ACTIVE, PassThrough]"},
		{"Method: any}", "Method: any, ResponseTransferMode: STREAM}"},
		{"      Description: SMS send and balance\n", "      Description: SMS send and balance\n      Tracing: ACTIVE\n"},
		{"      - - !Ref Tracing\n", "      - - ACTIVE\n"},
		{"ComparisonOperator: GreaterThanOrEqualToThreshold", "ComparisonOperator: GreaterOrEqualToThreshold"},
		{"TreatMissingData: notBreaching", "TreatMissingData: notbreaching"},
		{"Statistic: Sum", "Statistic: Total"},
		{"SystemLogLevel: WARN", "SystemLogLevel: ERROR"},
	}},
	{"a changed parameter publishes a version of every function", versions, []edit{
		{"    Tracing: !Select\n", "    Trace: !Select\n"},
		{"${PriceSms} ", ""},
		{"        PARAMETERS: !Sub\n", "        PARAMETER: !Sub\n"},
		{"        PARAMETERS: !Sub\n", "        PARAMETERS: !Sub\n          ${PriceSms}\n"},
		{"RATES_CACHE_SECONDS: !Ref RatesCacheSeconds", "RATES_CACHE_SECONDS: '1'"},
		{"{PRICE_SMS: !Ref PriceSms", "{PRICE_SMS: !Ref ApiBurst"},
		{"PARAMETERS: !Sub '${LogLevel} ${Stage} ", "PARAMETERS: !Sub '${Stage} "},
		{"    Default: '10'\n", "    Default: 10\n"},
	}},
	{"prices are integers", prices, []edit{
		{"    AllowedPattern: ^[0-9]{1,12}$\n", ""},
		{"    AllowedPattern: ^[0-9]{1,12}$\n", "    AllowedPattern: ^[0-9.]{1,12}$\n"},
		{"    Type: String\n    Default: '10000'\n", "    Type: Number\n    Default: '10000'\n"},
	}},
	{"every parameter is described, grouped and used", parameters, []edit{
		{"    Description: Credits for one SMS unit on a Managed integration.\n", ""},
		{"[PriceSms, ", "["},
		{"[PriceSms, ", "[PriceSms, PriceSms, "},
		{"      PriceSms: {default: 'SMS, per unit'}\n", ""},
		{"ThrottlingRateLimit: !Ref ApiRequestsPerSecond", "ThrottlingRateLimit: 400"},
	}},
	{"no environment variable holds a secret", environments, []edit{
		{"STAGE: !Ref Stage", "STAGE: '{{resolve:secretsmanager:svc/dev/sms}}'"},
		{"STAGE: !Ref Stage", "VENDOR_API_KEY: abc"},
		{"STAGE: !Ref Stage", "TWILIO_TOKEN: abc"},
		{"    Default: ''\n", "    Default: ''\n    NoEcho: true\n"},
		{"STAGE: !Ref Stage", "SVC_LOCAL: '1'"},
		{"STAGE: !Ref Stage", "SVC_TEST_CA: /tmp/ca.pem"},
		{"STAGE: !Ref Stage", "SVC_TEST_PUBLIC_NETS: 10.0.0.0/8"},
		{"STAGE: !Ref Stage", "CHROMIUM: /usr/bin/chromium"},
		{"        AWS_ENDPOINT_URL_DYNAMODB: !Ref DynamoDbEndpointUrl\n", ""},
	}},
	{"functions know the tables by name", tableNames, []edit{
		{"PROJECTS_TABLE: !Sub svc-${Stage}-projects", "PROJECTS_TABLE: !Ref Projects"},
		{"PROJECTS_TABLE: !Sub svc-${Stage}-projects", "PROJECTS_TABLE: !Sub svc-${Stage}-project"},
		{"TableName: !Sub svc-${Stage}-wallets", "TableName: !Sub svc-${Stage}-wallet"},
		{"        LEDGER_TABLE: !Sub svc-${Stage}-ledger\n", ""},
		{"PDF_RENDERER: !Sub svc-${Stage}-pdf-render:live", "PDF_RENDERER: !Sub svc-${Stage}-pdf-render:dead"},
	}},
	{"outputs are described", outputs, []edit{
		{"    Description: Root of the API\n", ""},
		{"/${Stage}/api/v1", "/${Stage}"},
	}},
}

func TestTemplate(t *testing.T) { test(t, rules, current(t)) }

// test checks the rules against a template, and against a copy of it with each of their edits.
func test(t *testing.T, rules []rule, s *templateFile) {
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			for _, finding := range rule.check(s) {
				t.Error(finding)
			}
			for _, broken := range rule.breaks {
				text := strings.Replace(s.text, broken.old, broken.with, 1)
				if text == s.text {
					t.Errorf("the template does not hold %q", broken.old)
					continue
				}
				copied, err := parse(text)
				if err != nil {
					t.Errorf("%q for %q: %v", broken.with, broken.old, err)
					continue
				}
				if len(rule.check(copied)) == 0 {
					t.Errorf("does not notice %q for %q", broken.with, broken.old)
				}
			}
		})
	}
}

// The gateway's response types (API Gateway developer guide, "Gateway response types").
var responseTypes = []string{
	"ACCESS_DENIED", "API_CONFIGURATION_ERROR", "AUTHORIZER_CONFIGURATION_ERROR", "AUTHORIZER_FAILURE",
	"BAD_REQUEST_BODY", "BAD_REQUEST_PARAMETERS", "DEFAULT_4XX", "DEFAULT_5XX", "EXPIRED_TOKEN",
	"INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT", "INVALID_API_KEY", "INVALID_SIGNATURE",
	"MISSING_AUTHENTICATION_TOKEN", "QUOTA_EXCEEDED", "REQUEST_TOO_LARGE", "RESOURCE_NOT_FOUND", "THROTTLED",
	"UNAUTHORIZED", "UNSUPPORTED_MEDIA_TYPE", "WAF_FILTERED",
}

// The gateway's own responses (docs/decisions.md#routes, docs/decisions.md#internal-errors): unknown routes 404,
// large bodies 413, throttling 429 with Retry-After, and a function that dies 500.
var responsesWanted = map[string]struct{ status, code string }{
	"DEFAULT_4XX":                  {"", "http_error"},
	"DEFAULT_5XX":                  {"500", "internal_error"},
	"INTEGRATION_FAILURE":          {"500", "internal_error"},
	"INTEGRATION_TIMEOUT":          {"500", "internal_error"},
	"MISSING_AUTHENTICATION_TOKEN": {"404", "http_error"},
	"INVALID_SIGNATURE":            {"404", "http_error"},
	"EXPIRED_TOKEN":                {"404", "http_error"},
	"RESOURCE_NOT_FOUND":           {"404", "http_error"},
	"REQUEST_TOO_LARGE":            {"413", "http_error"},
	"THROTTLED":                    {"429", "rate_limit_exceeded"},
	"QUOTA_EXCEEDED":               {"429", "rate_limit_exceeded"},
}

var quotedSeconds = regexp.MustCompile(`^'[1-9][0-9]*'$`)

func gatewayResponses(s *templateFile) (f findings) {
	responses := s.doc.object("Resources", "Api", "Properties", "GatewayResponses")
	for name := range responsesWanted {
		if responses[name] == nil {
			f.add("no gateway response %s", name)
		}
	}
	for _, name := range responses.names() {
		response, want := responses.object(name), responsesWanted[name]
		if !slices.Contains(responseTypes, name) {
			f.add("%s is no gateway response", name)
		}
		if got := response.text("StatusCode"); got != want.status {
			f.add("%s has the status %q, want %q", name, got, want.status)
		}
		headers := response.object("ResponseParameters", "Headers")
		if headers.text("X-SVC-Request-ID") != "context.requestId" {
			f.add("%s: X-SVC-Request-ID is not the mapping context.requestId", name)
		}
		if got, want := headers.text("Strict-Transport-Security"), "'"+api.StrictTransport+"'"; got != want {
			f.add("%s: Strict-Transport-Security is %s, and that of the functions %s", name, got, want)
		}
		if headers.text("Cache-Control") != "'no-store'" {
			f.add("%s: Cache-Control is not the static value no-store", name)
		}
		if want.status == "429" && !quotedSeconds.MatchString(headers.text("Retry-After")) {
			f.add("%s: Retry-After is no static number of seconds in single quotes", name)
		}
		text := response.text("ResponseTemplates", "application/json")
		var body struct {
			Error struct {
				Code, Message string
				Details       struct{ Reason string }
			}
		}
		if err := json.Unmarshal([]byte(text), &body); err != nil || body.Error.Message == "" {
			f.add("%s: the template is no JSON with a message: %v", name, err)
			continue
		}
		if body.Error.Code != want.code {
			f.add("%s has the code %q, want %q", name, body.Error.Code, want.code)
		}
		if known := body.Error.Details.Reason != ""; known != (want.code == "http_error") {
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
	api.Refuse(w, &http.Request{}, &api.Error{Status: http.StatusBadRequest, Code: code, Reason: api.Reason(reason), Message: message})
	var sent struct {
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &sent); err != nil {
		return err.Error()
	}
	return strings.Replace(w.Body.String(), sent.RequestID, "$context.requestId", 1)
}

func restAPI(s *templateFile) (f findings) {
	api := s.doc.object("Resources", "Api", "Properties")
	if types := api.list("BinaryMediaTypes"); len(types) != 1 || types[0] != "*/*" {
		f.add("BinaryMediaTypes is %v, want */* alone: every body travels as bytes", types)
	}
	if api.text("OpenApiVersion") != "3.0.1" {
		f.add("OpenApiVersion is %v: with 2.0 SAM adds a stage of its own", api["OpenApiVersion"])
	}
	if got := api.text("EndpointConfiguration", "Type"); got != "REGIONAL" {
		f.add("EndpointConfiguration is %q, want REGIONAL", got)
	}
	settings := api.list("MethodSettings")
	if len(settings) == 0 {
		f.add("no MethodSettings")
	}
	for _, item := range settings {
		setting, _ := item.(object)
		if setting["DataTraceEnabled"] != false {
			f.add("DataTraceEnabled is %v: the gateway's trace holds payloads", setting["DataTraceEnabled"])
		}
		// Unquoted OFF is false in YAML 1.1, which AWS reads.
		if level := setting.text("LoggingLevel"); level != "OFF" || !strings.Contains(s.text, "LoggingLevel: 'OFF'") {
			f.add("LoggingLevel is not the quoted OFF")
		}
		if ref(setting["ThrottlingRateLimit"]) == "" || ref(setting["ThrottlingBurstLimit"]) == "" {
			f.add("the stage's throttle is no parameter")
		}
	}
	return f
}

// apiRoot is where the paths of openapi.yaml begin.
const apiRoot = "/api/v1"

var routePath = regexp.MustCompile(`^(/api/v1(/([a-z0-9-]+|\{[a-z]+\}))+|(/docs|/api/v1/utilities/currency)(/\{proxy\+\})?)$`)

func routes(s *templateFile) (f findings) {
	seen := map[string]bool{}
	for _, function := range s.functions() {
		for _, event := range function.events("Api") {
			path := event.text("Path")
			if !routePath.MatchString(path) {
				f.add("%s: the path %q is not of the form /api/v1/... or /docs", function.id, path)
			}
			if seen[path] {
				f.add("%s: %s is routed twice", function.id, path)
			}
			seen[path] = true
			if event.text("Method") != "any" {
				f.add("%s: %s takes %v: a wrong method has to reach the function", function.id, path, event["Method"])
			}
			if ref(event["RestApiId"]) != "Api" {
				f.add("%s: %s is not a route of Api", function.id, path)
			}
		}
	}
	return f
}

// gatewaySeconds is the longest time that API Gateway waits for a function.
const gatewaySeconds = 29

func functionSettings(s *templateFile) (f findings) {
	if len(s.functions()) == 0 {
		f.add("no function")
	}
	for _, function := range s.functions() {
		p := function.properties
		if got := function.attributes.text("Metadata", "BuildMethod"); got != "makefile" {
			f.add("%s: BuildMethod is %q, want makefile", function.id, got)
		}
		for name, want := range map[string]string{"CodeUri": ".", "Runtime": "provided.al2023", "Handler": "bootstrap"} {
			if got := p.text(name); got != want {
				f.add("%s: %s is %q, want %q", function.id, name, got, want)
			}
		}
		if list := p.list("Architectures"); len(list) != 1 || (list[0] != "arm64" && list[0] != "x86_64") {
			f.add("%s: Architectures is %v, want one of arm64, x86_64", function.id, list)
		}
		if p.text("Description") == "" {
			f.add("%s: no Description", function.id)
		}
		if _, err := os.Stat(root("functions", template.Package(function.id), "main.go")); err != nil {
			f.add("%s: no code: %v", function.id, err)
		}
		limit := gatewaySeconds - 1
		for _, event := range function.events("Api") {
			milliseconds, _ := event["TimeoutInMillis"].(int)
			streams := event.text("ResponseTransferMode") == "RESPONSE_STREAM"
			if streams {
				limit = milliseconds / 1000
			}
			if streams != (milliseconds > 0) {
				f.add("%s: %s gives up after %d ms", function.id, event.text("Path"), milliseconds)
			}
		}
		if seconds, ok := p["Timeout"].(int); !ok || len(function.events("Api")) > 0 && seconds > limit {
			f.add("%s: Timeout is %v: the gateway gives up after %d s", function.id, p["Timeout"], limit)
		}
	}
	return f
}

// browserLayer: the browser is an x86-64 program, and a document's limits are measured against 2,048 MB.
func browserLayer(s *templateFile) (f findings) {
	for _, layer := range s.resources("AWS::Serverless::LayerVersion") {
		built := layer.attributes.object("Metadata")
		if built.text("BuildMethod") != "makefile" || built.text("BuildArchitecture") != "x86_64" {
			f.add("%s is built by %v", layer.id, built)
		}
		if list := layer.properties.list("CompatibleArchitectures"); len(list) != 1 || list[0] != "x86_64" {
			f.add("%s: CompatibleArchitectures is %v", layer.id, list)
		}
		if _, err := os.Stat(root(layer.properties.text("ContentUri"), "Makefile")); err != nil {
			f.add("%s cannot be built: %v", layer.id, err)
		}
	}
	for _, function := range s.functions() {
		if function.id != rendererID {
			continue
		}
		p := function.properties
		if list := p.list("Layers"); len(list) != 1 || ref(list[0]) != "ChromiumLayer" {
			f.add("%s: Layers is %v", function.id, list)
		}
		if list := p.list("Architectures"); len(list) != 1 || list[0] != "x86_64" {
			f.add("%s: Architectures is %v", function.id, list)
		}
		if megabytes, ok := p["MemorySize"].(int); !ok || megabytes < 2048 {
			f.add("%s: MemorySize is %v", function.id, p["MemorySize"])
		}
	}
	return f
}

// rendererID is the function that runs the browser.
const rendererID = "PdfRenderFunction"

// rendererRights: strangers' documents run in the renderer, so that its role and its variables are of no use to them
// (docs/decisions.md#pdf-renderer). The operation may invoke the renderer's alias, and no other function may.
func rendererRights(s *templateFile) (f findings) {
	for _, function := range s.functions() {
		for _, document := range s.policies(function) {
			for _, item := range document.list("Statement") {
				statement, _ := item.(object)
				action, resource := statement.text("Action"), fmt.Sprint(statement["Resource"])
				if function.id == rendererID && (!slices.Contains(logActions, action) || resource != "map[Fn::GetAtt:[PdfRenderLogGroup Arn]]") {
					f.add("%s may %s on %s", function.id, action, resource)
				}
				if strings.HasPrefix(action, "lambda:") && (function.id != "PdfFunction" || action != "lambda:InvokeFunction" || resource != "map[Fn::Sub:${"+rendererID+".Arn}:"+alias+"]") {
					f.add("%s may %s on %s", function.id, action, resource)
				}
			}
		}
		if function.id != rendererID {
			continue
		}
		if managed := s.role(function).properties.list("ManagedPolicyArns"); len(managed) > 0 || !passesThrough(function.properties.list("Tracing", "Fn::Select")) {
			f.add("%s has the managed policies %v, and traces %v", function.id, managed, function.properties["Tracing"])
		}
		variables := function.properties.object("Environment", "Variables")
		for _, name := range variables.names() {
			if variables[name] != "" && !slices.Contains([]string{"STAGE", "PDF_IMAGE_HOSTS", "PDF_MAX_PAGES", "PDF_RENDER_SECONDS", "PARAMETERS"}, name) {
				f.add("%s knows %s", function.id, name)
			}
		}
	}
	return f
}

// passesThrough reports whether a selection, which is the first of its values, traces nothing of its own.
func passesThrough(selection []any) bool {
	if len(selection) != 2 || selection[0] != 0 {
		return false
	}
	values, _ := selection[1].([]any)
	return len(values) > 0 && values[0] == "PassThrough"
}

func logGroups(s *templateFile) (f findings) {
	groups := map[string]resource{}
	for _, group := range s.resources("AWS::Logs::LogGroup") {
		groups[group.id] = group
		if group.properties["RetentionInDays"] == nil {
			f.add("%s keeps its logs for ever", group.id)
		}
	}
	for _, function := range s.functions() {
		config := function.properties.object("LoggingConfig")
		if _, ok := groups[ref(config["LogGroup"])]; !ok {
			f.add("%s: LogGroup names no log group of the template", function.id)
		}
		if config.text("LogFormat") != "JSON" {
			f.add("%s: LogFormat is %v, want JSON", function.id, config["LogFormat"])
		}
	}
	return f
}

// Actions that a function may have, of the service authorization reference, by the resource they are for.
var (
	tableActions = []string{
		"dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query",
		"dynamodb:Scan", "dynamodb:UpdateItem",
	}
	secretActions = []string{"secretsmanager:GetSecretValue"}
	logActions    = []string{"logs:CreateLogStream", "logs:PutLogEvents"}
	secretARN     = regexp.MustCompile(`^arn:\$\{AWS::Partition\}:secretsmanager:\$\{AWS::Region\}:\$\{AWS::AccountId\}:secret:svc/\$\{Stage\}/([a-z]+)(/managed)?/\*$`)
	// secretKinds are the kinds of secret of functions that are not named for theirs.
	secretKinds = map[string]string{"ratesync": "currency"}
)

func statements(s *templateFile) (f findings) {
	tables := map[string]bool{}
	for _, table := range s.resources("AWS::DynamoDB::Table") {
		tables[table.id] = true
	}
	for _, function := range s.functions() {
		sids, needs := map[string]bool{}, map[string]bool{}
		role := s.role(function)
		if role.id != strings.TrimSuffix(function.id, "Function")+"Role" || len(function.properties.list("Policies")) > 0 {
			f.add("%s: its role is %q, want one of its own with all of its policies", function.id, role.id)
		}
		own := strings.TrimSuffix(function.id, "Function") + "LogGroup"
		for _, document := range s.policies(function) {
			if document.text("Version") != "2012-10-17" {
				f.add("%s: a policy is not written out in the language of 2012-10-17", function.id)
				continue
			}
			for _, item := range document.list("Statement") {
				statement, _ := item.(object)
				sid, action := statement.text("Sid"), statement.text("Action")
				if sid == "" || sids[sid] {
					f.add("%s: the Sid %q is empty or occurs twice", function.id, sid)
				}
				sids[sid] = true
				if statement.text("Effect") != "Allow" {
					f.add("%s/%s: Effect is %v", function.id, sid, statement["Effect"])
				}
				need := fmt.Sprint(action, statement["Resource"])
				if needs[need] {
					f.add("%s/%s: the same need occurs twice", function.id, sid)
				}
				needs[need] = true
				resource, _ := statement["Resource"].(object)
				parts := resource.list("Fn::GetAtt")
				if function.folder() == "currency" && slices.Contains([]string{"dynamodb:PutItem", "dynamodb:UpdateItem"}, action) &&
					len(parts) == 2 && parts[0] == "Rates" && statement.text("Condition", "ForAllValues:StringLike", "dynamodb:LeadingKeys") != "project#*" {
					f.add("%s/%s: may write rates that are not a project's own", function.id, sid)
				}
				arn := secretARN.FindStringSubmatch(resource.text("Fn::Sub"))
				switch {
				case len(parts) == 2 && parts[1] == "Arn" && tables[fmt.Sprint(parts[0])]:
					if !slices.Contains(tableActions, action) {
						f.add("%s/%s: %v is no action on a table", function.id, sid, statement["Action"])
					}
				case len(parts) == 2 && parts[1] == "Arn" && parts[0] == own:
					if !slices.Contains(logActions, action) {
						f.add("%s/%s: %v is no action on a log", function.id, sid, statement["Action"])
					}
				case strings.HasPrefix(action, "lambda:"): // rendererRights has the only one
				case arn != nil && arn[1] == cmp.Or(secretKinds[function.folder()], function.folder()):
					if !slices.Contains(secretActions, action) {
						f.add("%s/%s: %v is no action on a secret", function.id, sid, statement["Action"])
					}
				default:
					f.add("%s/%s: %v is no table of the template, nor the function's own log or secrets", function.id, sid, statement["Resource"])
				}
			}
		}
	}
	return f
}

// The tables: keys as attribute and type in order, whether their items outlive the stack, and the TTL attribute.
var tablesWanted = map[string]struct {
	keys, index string
	kept        bool
	ttl         string
}{
	"Projects":  {keys: "pk HASH S, sk RANGE S", kept: true},
	"Wallets":   {keys: "pk HASH S", kept: true},
	"Ledger":    {keys: "pk HASH S, sk RANGE S", index: "uncertain: uncertain HASH S, sk RANGE S, ALL", kept: true},
	"Rates":     {keys: "pk HASH S, sk RANGE S", ttl: "expires"},
	"Transient": {keys: "pk HASH S", ttl: "expires"},
}

func tables(s *templateFile) (f findings) {
	found := s.resources("AWS::DynamoDB::Table")
	if len(found) != len(tablesWanted) {
		f.add("%d tables, want %d", len(found), len(tablesWanted))
	}
	for _, table := range found {
		p, want := table.properties, tablesWanted[table.id]
		types := object{}
		for _, item := range p.list("AttributeDefinitions") {
			definition, _ := item.(object)
			types[definition.text("AttributeName")] = definition["AttributeType"]
		}
		keys := func(schema []any) string {
			var out []string
			for _, item := range schema {
				key, _ := item.(object)
				out = append(out, fmt.Sprint(key.text("AttributeName"), " ", key.text("KeyType"), " ", types[key.text("AttributeName")]))
			}
			return strings.Join(out, ", ")
		}
		if got := keys(p.list("KeySchema")); got != want.keys {
			f.add("%s has the keys %q, want %q", table.id, got, want.keys)
		}
		var indexes []string
		for _, item := range p.list("GlobalSecondaryIndexes") {
			index, _ := item.(object)
			indexes = append(indexes, index.text("IndexName")+": "+keys(index.list("KeySchema"))+", "+index.text("Projection", "ProjectionType"))
		}
		if got := strings.Join(indexes, "; "); got != want.index {
			f.add("%s has the indexes %q, want %q", table.id, got, want.index)
		}
		if got := p.text("BillingMode"); got != "PAY_PER_REQUEST" {
			f.add("%s: BillingMode is %q, want PAY_PER_REQUEST", table.id, got)
		}
		if got := p.text("TimeToLiveSpecification", "AttributeName"); got != want.ttl {
			f.add("%s expires by %q, want %q", table.id, got, want.ttl)
		}
		kept := p.at("PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled") == true &&
			table.attributes.text("DeletionPolicy") == "RetainExceptOnCreate" && table.attributes.text("UpdateReplacePolicy") == "Retain"
		if want.kept && !kept {
			f.add("%s holds money or configuration and has not both of recovery and RetainExceptOnCreate", table.id)
		}
		// A creation that fails could not delete a protected table, and its repetition would find the table.
		if p["DeletionProtectionEnabled"] != nil {
			f.add("%s is protected from deletion while it is created: svc protect does so later", table.id)
		}
	}
	return f
}

// EventBridge Scheduler: the unit is singular for 1 and plural otherwise.
var scheduleExpression = regexp.MustCompile(`^(rate\((1 (minute|hour|day)|([2-9]|[1-9][0-9]+) (minutes|hours|days))\)|cron\([^ ]+( [^ ]+){5}\))$`)

func schedules(s *templateFile) (f findings) {
	for _, function := range s.functions() {
		events := function.events("ScheduleV2")
		if len(function.events("Api"))+len(events) == 0 && function.id != rendererID {
			f.add("%s: nothing calls it", function.id)
		}
		for _, event := range events {
			if got := event.text("ScheduleExpression"); !scheduleExpression.MatchString(got) {
				f.add("%s: %q is no schedule expression", function.id, got)
			}
			if name := event.text("Name", "Fn::Sub"); !strings.HasPrefix(name, "${AWS::StackName}-") {
				f.add("%s: the schedule's name %q does not begin with the stack's", function.id, name)
			}
			if event.text("Description") == "" {
				f.add("%s: the schedule is not described", function.id)
			}
		}
	}
	return f
}

const (
	// settleMargin is the time that a write may still take after its function ended: retried copies in the network, clocks
	// that differ. In seconds.
	settleMargin = 60
	// signatureSeconds is how long AWS accepts a signed request, so how late a copy of one may still take effect.
	signatureSeconds = 900
	// responseSeconds is the time that a request keeps for its capture and response after a vendor's call.
	responseSeconds = 5
)

func settleTimes(s *templateFile) (f findings) {
	longest := 0
	for _, function := range s.functions() {
		seconds, _ := function.properties["Timeout"].(int)
		if len(function.events("Api")) > 0 {
			for _, event := range function.events("Api") {
				if event.text("ResponseTransferMode") == "RESPONSE_STREAM" {
					// The time beyond a request's own is that of the stream, which follows the capture (docs/decisions.md#time-budget).
					seconds = min(seconds, gatewaySeconds)
				}
			}
			longest = max(longest, seconds)
		} else if function.folder() == "settle" && seconds > 60 {
			f.add("SettleFunction may run for %d s and starts every 60 s", seconds)
		}
	}
	defaults := s.doc.object("Parameters")
	number := func(parameter, field string) int {
		value, _ := strconv.Atoi(fmt.Sprint(defaults.at(parameter, field)))
		return value
	}
	for _, field := range []string{"Default", "MinValue"} { // no stage can be deployed with less
		if got, want := number("SettleAfterSeconds", field), longest+settleMargin; got < want {
			f.add("%s of SettleAfterSeconds is %d, want at least %d: the longest time-out and %d", field, got, want, settleMargin)
		}
		if got := number("SettleCapturedAfterSeconds", field); got < signatureSeconds {
			f.add("%s of SettleCapturedAfterSeconds is %d, want at least %d", field, got, signatureSeconds)
		}
	}
	if got := number("VendorTimeoutSeconds", "MaxValue"); got == 0 || got > longest-responseSeconds {
		f.add("VendorTimeoutSeconds may be %d, want at most %d", got, longest-responseSeconds)
	}
	variables := s.doc.object("Resources", "SettleFunction", "Properties", "Environment", "Variables")
	for name, parameter := range map[string]string{
		"SETTLE_AFTER_SECONDS": "SettleAfterSeconds", "SETTLE_CAPTURED_AFTER_SECONDS": "SettleCapturedAfterSeconds",
	} {
		if got := ref(variables[name]); got != parameter {
			f.add("%s is not the parameter %s", name, parameter)
		}
	}
	return f
}

// Names that SAM and CloudFormation do not validate and that fail, or are ignored, at deployment: values by their key in
// a function, API or event.
var enumerated = map[string][]string{
	"DeploymentPreference/Type": {
		"AllAtOnce", "Canary10Percent5Minutes", "Canary10Percent10Minutes", "Canary10Percent15Minutes",
		"Canary10Percent30Minutes", "Linear10PercentEvery1Minute", "Linear10PercentEvery2Minutes",
		"Linear10PercentEvery3Minutes", "Linear10PercentEvery10Minutes",
	},
	"ResponseTransferMode": {"BUFFERED", "RESPONSE_STREAM"},
	"Tracing":              {"Active", "PassThrough", "Disabled"},
	"SystemLogLevel":       {"DEBUG", "INFO", "WARN"},
	"Statistic":            {"Average", "Maximum", "Minimum", "SampleCount", "Sum"},
	"TreatMissingData":     {"breaching", "ignore", "missing", "notBreaching"},
	"ComparisonOperator": {
		"GreaterThanOrEqualToThreshold", "GreaterThanThreshold", "LessThanOrEqualToThreshold", "LessThanThreshold",
	},
	"SSEType": {"KMS"},
}

func enumerations(s *templateFile) (f findings) {
	walk(object{"Globals": s.doc["Globals"], "Resources": s.doc["Resources"]}, "", func(path, key string, value any) {
		for at, allowed := range enumerated {
			if !strings.HasSuffix("/"+path+"/"+key, "/"+at) {
				continue
			}
			if selected, ok := value.(object); ok && len(selected.list("Fn::Select")) == 2 {
				from, _ := selected.list("Fn::Select")[1].([]any)
				value = from[0]
			}
			texts := s.doc.list("Parameters", ref(value), "AllowedValues")
			if text, ok := value.(string); ok {
				texts = []any{text}
			}
			for _, text := range texts {
				if name, _ := text.(string); !slices.Contains(allowed, name) {
					f.add("%s/%s: %v is none of %v", path, key, text, allowed)
				}
			}
		}
	})
	return f
}

var substitution = regexp.MustCompile(`\$\{([A-Za-z0-9]+)\}`)

// referred returns the names that a value refers to.
func referred(in any) map[string]bool {
	used := map[string]bool{}
	walk(in, "", func(_, key string, value any) {
		text, _ := value.(string)
		switch key {
		case "Ref":
			used[text] = true
		case "Fn::Sub":
			for _, match := range substitution.FindAllStringSubmatch(text, -1) {
				used[match[1]] = true
			}
		}
	})
	return used
}

// versions: SAM resolves the references of Tracing before it names a version by the function's properties. Lambda publishes
// no version of a function that has not changed, so each function has the same values in a variable.
//
// The renderer, which knows no other parameter, has values of its own.
func versions(s *templateFile) (f findings) {
	var renderer, others []resource
	for _, function := range s.functions() {
		if function.id == rendererID {
			renderer = append(renderer, function)
		} else {
			others = append(others, function)
		}
	}
	for _, functions := range [][]resource{renderer, others} {
		f = append(f, sharedVersions(s, functions)...)
	}
	return f
}

// sharedVersions checks functions with the same values.
func sharedVersions(s *templateFile, functions []resource) (f findings) {
	want := map[string]bool{}
	defined := s.doc.object("Parameters")
	var values object
	for _, function := range functions {
		p := maps.Clone(function.properties)
		selected := p.list("Tracing", "Fn::Select")
		var from []any
		if len(selected) == 2 {
			from, _ = selected[1].([]any)
		}
		if len(from) != 2 || selected[0] != 0 {
			f.add("Tracing of %s is %v, and selects not the first of two", function.id, selected)
			return f
		}
		values, _ = from[1].(object)
		variables := maps.Clone(p.object("Environment", "Variables"))
		if variable := variables.text("PARAMETERS", "Fn::Sub"); variable != values.text("Fn::Sub") {
			f.add("the variable PARAMETERS %q has other values than Tracing %v", variable, from)
		}
		delete(variables, "PARAMETERS")
		p["Environment"], p["Tracing"] = variables, from[0]
		// A version has none of these, and Lambda publishes none for their changes.
		delete(p, "ReservedConcurrentExecutions")
		delete(p, "DeploymentPreference")
		delete(p, "Events")
		for name := range referred(p) {
			if defined[name] != nil {
				want[name] = true
			}
		}
	}
	if got := referred(values); !maps.Equal(got, want) {
		f.add("PARAMETERS holds %v, and the functions have %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for name := range want {
		// The same value as number and as text would give two names for one version.
		if _, ok := defined.at(name, "Default").(string); !ok {
			f.add("the default of %s is no text: quote it", name)
		}
	}
	return f
}

// prices: a fraction would fail the start of the functions. CloudFormation has patterns for texts alone.
func prices(s *templateFile) (f findings) {
	for _, price := range credit.PriceList() {
		p := s.doc.object("Parameters", price.Parameter)
		pattern, err := regexp.Compile(cmp.Or(p.text("AllowedPattern"), "."))
		if err != nil || p.text("Type") != "String" {
			f.add("%s is a %v: %v", price.Parameter, p["Type"], err)
			continue
		}
		for text, want := range map[string]bool{"0": true, "10000": true, "1.5": false, "-1": false, "": false, "1e3": false, "1000000000000": false} {
			if pattern.MatchString(text) != want {
				f.add("%s may be %q: %v", price.Parameter, text, !want)
			}
		}
	}
	return f
}

func parameters(s *templateFile) (f findings) {
	used := map[string]bool{}
	for _, section := range []string{"Globals", "Conditions", "Resources", "Outputs"} {
		maps.Copy(used, referred(s.doc[section]))
	}
	shown := s.doc.object("Metadata", "AWS::CloudFormation::Interface")
	grouped := map[any]int{}
	for _, item := range shown.list("ParameterGroups") {
		group, _ := item.(object)
		if group.text("Label", "default") == "" {
			f.add("a parameter group has no label")
		}
		for _, name := range group.list("Parameters") {
			grouped[name]++
		}
	}
	all := s.doc.object("Parameters")
	for _, name := range all.names() {
		if !strings.HasSuffix(all.text(name, "Description"), ".") {
			f.add("%s is not described in a sentence", name)
		}
		if _, ok := all.object(name)["Default"]; !ok {
			f.add("%s has no default", name)
		}
		if !used[name] {
			f.add("%s is not used", name)
		}
		if grouped[name] != 1 {
			f.add("%s is in %d parameter groups, want 1", name, grouped[name])
		}
		if shown.text("ParameterLabels", name, "default") == "" {
			f.add("%s has no label", name)
		}
	}
	for name := range grouped {
		if all[fmt.Sprint(name)] == nil {
			f.add("a group names %v, which is no parameter", name)
		}
	}
	return f
}

// Variables that only the local stack may give a function. SVC_LOCAL permits vendors without TLS.
var localOnly = []string{"SVC_LOCAL", "CHROMIUM", "SVC_TEST_PUBLIC_NETS", "SVC_TEST_CA"}

var (
	secretName = regexp.MustCompile(`SECRET|PASSWORD|TOKEN|CREDENTIAL|(API|ACCESS|PRIVATE|AUTH)_KEY`)
	// Variables about secrets that hold none.
	aboutSecrets = []string{"SECRET_CACHE_SECONDS", "AWS_ENDPOINT_URL_SECRETS_MANAGER"}
)

func environments(s *templateFile) (f findings) {
	for _, function := range s.functions() {
		variables := function.properties.object("Environment", "Variables")
		for _, name := range variables.names() {
			if secretName.MatchString(name) && !slices.Contains(aboutSecrets, name) {
				f.add("%s: %s looks like a secret", function.id, name)
			}
			if slices.Contains(localOnly, name) {
				f.add("%s: %s is for the local stack alone", function.id, name)
			}
		}
		// Every function can be pointed at an emulator of each service that it may use.
		uses := fmt.Sprint(s.policies(function))
		for service, variable := range map[string]string{
			"dynamodb:": "AWS_ENDPOINT_URL_DYNAMODB", "secretsmanager:": "AWS_ENDPOINT_URL_SECRETS_MANAGER",
			"lambda:InvokeFunction": "AWS_ENDPOINT_URL_LAMBDA",
		} {
			if strings.Contains(uses, service) && ref(variables[variable]) == "" {
				f.add("%s may use %s and cannot be pointed at an emulator by %s", function.id, service, variable)
			}
		}
	}
	if strings.Contains(s.text, "{{resolve:") {
		f.add("a dynamic reference would put a secret into the template's result")
	}
	parameters := s.doc.object("Parameters")
	for _, name := range parameters.names() {
		if parameters.object(name)["NoEcho"] != nil {
			f.add("%s is a secret: secrets live in Secrets Manager", name)
		}
	}
	return f
}

// Every function but the renderer has each table's name in a variable, and PdfFunction the renderer's. A name is written
// out, as sam local resolves a Ref to a resource to its logical ID.
func tableNames(s *templateFile) (f findings) {
	name := s.doc.text("Resources", rendererID, "Properties", "FunctionName", "Fn::Sub")
	caller := s.doc.object("Resources", "PdfFunction", "Properties", "Environment", "Variables")
	if got, want := caller.text("PDF_RENDERER", "Fn::Sub"), name+":"+alias; got != want || name == "" {
		f.add("PDF_RENDERER is %q, want %q", got, want)
	}
	for _, function := range s.functions() {
		if function.id == rendererID {
			continue
		}
		variables := function.properties.object("Environment", "Variables")
		for _, table := range s.resources("AWS::DynamoDB::Table") {
			variable := strings.ToUpper(table.id) + "_TABLE"
			got, want := variables.text(variable, "Fn::Sub"), table.properties.text("TableName", "Fn::Sub")
			if got != want {
				f.add("%s: %s is %q, want %q", function.id, variable, got, want)
			}
		}
	}
	return f
}

func outputs(s *templateFile) (f findings) {
	all := s.doc.object("Outputs")
	for _, name := range all.names() {
		if all.text(name, "Description") == "" {
			f.add("the output %s is not described", name)
		}
	}
	for name, path := range map[string]string{"BaseUrl": "/api/v1", "DocsUrl": "/docs"} {
		urls := all.list(name, "Value", "Fn::If")
		if len(urls) != 3 || urls[0] != "HasDomain" || !strings.HasSuffix(fmt.Sprint(urls[1]), "//${DomainName}"+path+"]") ||
			!strings.HasSuffix(fmt.Sprint(urls[2]), "/${Stage}"+path+"]") {
			f.add("%s is %v, neither of the host name nor of the stage", name, urls)
		}
	}
	return f
}

// Overrides that samconfig.toml gives a stage keep the same order of times. Values are NAME=VALUE.
func checkOverrides(s *templateFile, overrides []string) (f findings) {
	parameters := s.doc.object("Parameters")
	text := s.text
	for _, override := range overrides {
		name, value, ok := strings.Cut(override, "=")
		if !ok || parameters[name] == nil {
			f.add("%q overrides no parameter", override)
			continue
		}
		if allowed := parameters.list(name, "AllowedValues"); len(allowed) > 0 {
			known := slices.ContainsFunc(allowed, func(v any) bool { return fmt.Sprint(v) == value })
			if !known {
				f.add("%s: %s is none of %v", name, value, allowed)
			}
		}
		if pattern := parameters.text(name, "AllowedPattern"); !regexp.MustCompile(pattern).MatchString(value) {
			f.add("%s: %s does not match %s", name, value, pattern)
		}
		if number, err := strconv.Atoi(value); err == nil {
			if least, ok := parameters.at(name, "MinValue").(int); ok && number < least {
				f.add("%s: %d is less than %d", name, number, least)
			}
			if most, ok := parameters.at(name, "MaxValue").(int); ok && number > most {
				f.add("%s: %d is more than %d", name, number, most)
			}
			text = regexp.MustCompile(`(?m)^(  `+name+`:\n    Type: Number\n    Default: ')\d+'$`).ReplaceAllString(text, "${1}"+value+"'")
		}
	}
	overridden, err := parse(text)
	if err != nil {
		f.add("%v", err)
		return f
	}
	return append(f, settleTimes(overridden)...)
}
