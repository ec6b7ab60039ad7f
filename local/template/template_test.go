package template_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/local/template"
	"svcapi/test/must"
)

const sample = `
Parameters:
  Stage: {Type: String, Default: dev}
  Price: {Type: Number, Default: 10000}
  Endpoint: {Type: String, Default: ''}
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
  IsDev: !Not [!Condition IsProd]
  Both: !And [!Condition IsDev, !Equals [a, a]]
Globals:
  Function:
    Timeout: 28
    Environment: {Variables: {STAGE: !Ref Stage, SHARED: globals}}
    LoggingConfig: {LogFormat: JSON, ApplicationLogLevel: WARN}
Resources:
  Api:
    Type: AWS::Serverless::Api
    Properties:
      StageName: !Ref Stage
      BinaryMediaTypes: ['*/*']
      MethodSettings: [{ResourcePath: /*, HttpMethod: '*', ThrottlingRateLimit: 20, ThrottlingBurstLimit: 40}, {ResourcePath: /~1sms, HttpMethod: GET, MetricsEnabled: true}, {ResourcePath: /~1sms~1send, HttpMethod: POST, ThrottlingRateLimit: 1, ThrottlingBurstLimit: 2}]
      GatewayResponses:
        DEFAULT_5XX:
          StatusCode: '500'
          ResponseParameters: {Headers: {X-ID: context.requestId}}
          ResponseTemplates: {application/json: '{"id":"$context.requestId"}'}
  SmsFunction:
    Type: AWS::Serverless::Function
    Properties:
      MemorySize: !If [IsProd, 1024, 256]
      FunctionName: !Sub '${AWS::StackName}-sms'
      Policies: [!ImportValue nobody-reads-this]
      Environment:
        Variables:
          SHARED: own
          PRICE: !Ref Price
          TABLE: !Ref Wallets
          ARN: !GetAtt Wallets.Arn
          ARN2: !Sub '${Wallets.Arn}/${Stage}'
          IF: !If [IsProd, yes, !If [Both, both, no]]
          GONE: !If [IsProd, x, !Ref AWS::NoValue]
          FLAG: true
          DECIMAL: 1.50
          EMPTY: !Ref Endpoint
      Events:
        Send: {Type: Api, Properties: {Path: /sms/send, Method: any}}
        Fast: {Type: Api, Properties: {Path: '/sms/{id}', Method: get, TimeoutInMillis: 5000, ResponseTransferMode: RESPONSE_STREAM}}
      LoggingConfig: {LogGroup: !Ref SmsLogGroup}
  SettleFunction:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 55
      ReservedConcurrentExecutions: 3
      LoggingConfig: {LogGroup: !Ref SettleLogGroup}
      EventInvokeConfig: {MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60}
      Events:
        Often: {Type: ScheduleV2, Properties: {ScheduleExpression: rate(1 minute), Input: '{}', State: ENABLED}}
        Never: {Type: ScheduleV2, Properties: {ScheduleExpression: rate(1 minute), State: DISABLED}}
  ProdFunction:
    Type: AWS::Serverless::Function
    Condition: IsProd
    Properties: {LoggingConfig: {LogGroup: !Ref ProdLogGroup}}
  SmsRole:
    Type: AWS::IAM::Role
    Properties:
      ManagedPolicyArns: [!Ref Reading, !If [IsProd, !Ref Tracing, !Ref AWS::NoValue],
        'arn:aws:iam::aws:policy/service-role/Other']
      Policies: [{PolicyDocument: {Statement: [
        {Sid: Own, Action: dynamodb:PutItem, Resource: !GetAtt Wallets.Arn, Condition: {ForAllValues:StringLike: {dynamodb:LeadingKeys: own#*}}}]}}]
  Reading: {Type: AWS::IAM::ManagedPolicy, Properties: {PolicyDocument: {Statement: [{Sid: Read, Action: dynamodb:GetItem, Resource: !GetAtt Wallets.Arn}]}}}
  Tracing: {Type: AWS::IAM::ManagedPolicy, Condition: IsProd, Properties: {PolicyDocument: {Statement: [{Sid: Trace, Action: xray:PutTraceSegments, Resource: '*'}]}}}
  Unused: {Type: AWS::IAM::ManagedPolicy, Properties: {PolicyDocument: {Statement: [{Sid: Unused, Action: dynamodb:Scan, Resource: !GetAtt Wallets.Arn}]}}}
  SmsLogGroup: {Type: AWS::Logs::LogGroup, Properties: &log {LogGroupName: /logs/sms}}
  SettleLogGroup: {Type: AWS::Logs::LogGroup, Properties: {<<: *log, LogGroupName: /logs/settle}}
  ProdLogGroup: {Type: AWS::Logs::LogGroup, Properties: {RetentionInDays: 1, <<: *log}}
  Wallets:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: !Sub svc-${Stage}-wallets
      TimeToLiveSpecification: {Enabled: true, AttributeName: expires}
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}, {AttributeName: at, AttributeType: N}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      GlobalSecondaryIndexes:
        - IndexName: late
          KeySchema: [{AttributeName: at, KeyType: HASH}]
          Projection: {ProjectionType: INCLUDE, NonKeyAttributes: [x]}
`

// TestParse checks every intrinsic and every property that the local stack reads.
func TestParse(t *testing.T) {
	got := must.Get(template.Parse([]byte(sample), map[string]string{"Price": "7"})).Or(t)
	arn := "arn:aws:dynamodb:eu-west-1:123456789012:table/svc-dev-wallets"
	want := &template.Template{
		Parameters: map[string]string{"Stage": "dev", "Price": "7", "Endpoint": ""},
		API: template.API{
			LogicalID: "Api", Stage: "dev", Throttles: map[string]template.Throttle{"* /*": {PerSecond: 20, Burst: 40},
				"POST /sms/send": {PerSecond: 1, Burst: 2}},
			Responses: map[string]template.GatewayResponse{"DEFAULT_5XX": {
				Status: 500, Headers: map[string]string{"X-ID": "context.requestId"}, Body: `{"id":"$context.requestId"}`,
			}},
		},
		Functions: []template.Function{{
			LogicalID: "SettleFunction", Name: "local-SettleFunction", Folder: "settle", Package: "settle",
			Timeout: 55 * time.Second, MemoryMB: 128, LogFormat: "JSON", LogLevel: "WARN", LogGroup: "/logs/settle",
			Environment: map[string]string{"STAGE": "dev", "SHARED": "globals"},
			Schedules:   []template.Schedule{{Every: time.Minute, Input: "{}"}},
			Reserved:    3, Asynchronous: template.Asynchronous{MaxAge: time.Minute},
		}, {
			LogicalID: "SmsFunction", Name: "local-sms", Folder: "sms", Package: "sms",
			Asynchronous: template.Asynchronous{Retries: 2, MaxAge: 6 * time.Hour},
			Timeout:      28 * time.Second, MemoryMB: 256, LogFormat: "JSON", LogLevel: "WARN", LogGroup: "/logs/sms",
			Environment: map[string]string{
				"STAGE": "dev", "SHARED": "own", "PRICE": "7", "TABLE": "svc-dev-wallets", "ARN": arn, "ARN2": arn + "/dev",
				"IF": "both", "FLAG": "true",
				"DECIMAL": "1.50", "EMPTY": "",
			},
			Routes: []template.Route{
				{Method: "GET", Path: "/sms/{id}", TransferMode: "RESPONSE_STREAM", Timeout: 5 * time.Second},
				{Method: "ANY", Path: "/sms/send", TransferMode: "BUFFERED", Timeout: 29 * time.Second},
			},
			Permissions: []template.Permission{
				{Sid: "Own", Action: "dynamodb:PutItem", Resource: arn, LeadingKey: "own#*"},
				{Sid: "Read", Action: "dynamodb:GetItem", Resource: arn},
			},
		}},
		Tables: []template.Table{{
			LogicalID: "Wallets", Name: "svc-dev-wallets", TTL: "expires",
			Attributes: []types.AttributeDefinition{
				{AttributeName: new("pk"), AttributeType: "S"}, {AttributeName: new("at"), AttributeType: "N"},
			},
			Keys: []types.KeySchemaElement{{AttributeName: new("pk"), KeyType: "HASH"}},
			Indexes: []types.GlobalSecondaryIndex{{
				IndexName:  new("late"),
				KeySchema:  []types.KeySchemaElement{{AttributeName: new("at"), KeyType: "HASH"}},
				Projection: &types.Projection{ProjectionType: "INCLUDE", NonKeyAttributes: []string{"x"}},
			}},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if _, ok := got.Function("sms"); !ok {
		t.Error("no function by its folder")
	}
	prod := must.Get(template.Parse([]byte(sample), map[string]string{"Stage": "prod"})).Or(t)
	if f, ok := prod.Function("ProdFunction"); !ok || f.Timeout != 28*time.Second || f.LogGroup != "/logs/sms" {
		t.Errorf("function under a condition that holds: %+v", f)
	}
	if f, _ := prod.Function("sms"); f.MemoryMB != 1024 || f.Environment["IF"] != "yes" || f.Environment["GONE"] != "x" ||
		len(f.Permissions) != 3 {
		t.Errorf("sms in prod: %+v", f)
	}
}

// TestMistakes checks that what the local stack cannot know is a clear error that says where.
func TestMistakes(t *testing.T) {
	function := func(property string) string {
		return "Resources:\n  AFunction:\n    Type: AWS::Serverless::Function\n    Properties:\n      " + property
	}
	for _, c := range []struct{ name, text, message string }{
		{"unknown intrinsic", function("Environment: {Variables: {A: !ImportValue x}}"),
			"AFunction.Properties.Environment.Variables.A: the local stack does not know the intrinsic !ImportValue"},
		{"unknown Ref", function("Timeout: !Ref Nothing"), `there is no parameter or resource "Nothing"`},
		{"unknown in Sub", function("FunctionName: !Sub '${Nothing}'\n      Environment: {Variables: {A: !Sub '${B}'}}"),
			`!Sub: there is no parameter or resource "B"`},
		{"unknown attribute", function("Environment: {Variables: {A: !GetAtt AFunction.Version}}"),
			"does not know Version of a AWS::Serverless::Function"},
		{"unknown condition", function("Timeout: !If [Nope, 1, 2]"), `there is no condition "Nope"`},
		{"no number", function("Timeout: soon"), `"soon" is no integer`},
		{"cron", function("Events: {A: {Type: ScheduleV2, Properties: {ScheduleExpression: 'cron(0 1 * * ? *)'}}}"),
			"the local stack plays rate(1 minute)"},
		{"wrong plural", function("Events: {A: {Type: ScheduleV2, Properties: {ScheduleExpression: rate(1 hours)}}}"),
			`schedule "rate(1 hours)"`},
		{"other event", function("Events: {A: {Type: SQS}}"), `does not play events of type "SQS"`},
		{"schedule of SAM's older type", function("Events: {A: {Type: Schedule, Properties: {Schedule: rate(2 hours)}}}"),
			`does not play events of type "Schedule"`},
		{"schedule with a state", function("Events: {A: {Type: ScheduleV2, Properties: {ScheduleExpression: rate(2 hours), " +
			"State: PAUSED}}}"), `state "PAUSED"`},
		{"long form", function("Timeout: {Ref: AWS::Region}"), "does not know the intrinsic Ref"},
		{"Or", function("Timeout: !Or [a, b]"), "does not know the intrinsic !Or"},
		{"Sub with variables", function("Handler: !Sub ['${a}', {a: b}]"),
			"!Sub: the local stack knows Sub of one text alone"},
		{"literal in Sub", function("Handler: !Sub '${!a}'"), `there is no parameter or resource "!a"`},
		{"parameter of a list", "Parameters: {A: {Type: CommaDelimitedList, Default: a}}\nResources: {}",
			`does not know the type "CommaDelimitedList"`},
		{"list for a text", function("Handler: [a]"), "AFunction.Properties.Handler: a single value is wanted"},
		{"text for a mapping", function("Environment: a"), "AFunction.Properties.Environment: a mapping is wanted"},
		{"text for a list", "Resources: {Api: {Type: AWS::Serverless::Api, Properties: {BinaryMediaTypes: a}}}",
			"BinaryMediaTypes: a list is wanted"},
		{"some media types", "Resources: {Api: {Type: AWS::Serverless::Api, Properties: {BinaryMediaTypes: [a/b]}}}",
			`plays */* alone, not ["a/b"]`},
		{"throttle of one route", "Resources: {Api: {Type: AWS::Serverless::Api, Properties: {MethodSettings: " +
			"[{ResourcePath: /~1sms, HttpMethod: '*', ThrottlingRateLimit: 1}]}}}",
			"plays throttling of /* or of one method, not of all methods of /~1sms"},
		{"circle", "Conditions: {A: !Not [!Condition A]}\n" + function("Timeout: !If [A, 1, 2]"), "in a circle"},
		{"no default", "Parameters: {A: {Type: String}}\nResources: {}", "parameter A has no default"},
		{"no YAML", "\t", "found character"},
		{"empty", "", "empty"},
	} {
		if _, err := template.Parse([]byte(c.text), nil); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v, want %q", c.name, err, c.message)
		}
	}
	if _, err := template.Parse([]byte("Resources: {}"), map[string]string{"A": "1"}); err == nil {
		t.Error("an override of nothing is no error")
	}
}

// TestProduct checks that the product's template can be played.
func TestProduct(t *testing.T) {
	got := must.Get(template.Load(nil)).Or(t)
	if len(got.Functions) == 0 || len(got.Tables) == 0 || got.API.Stage == "" {
		t.Errorf("%d functions, %d tables, stage %q", len(got.Functions), len(got.Tables), got.API.Stage)
	}
}

// The folder of a function's code follows from its logical ID.
func TestPackage(t *testing.T) {
	for id, want := range map[string]string{
		"SmsFunction": "sms", "PdfRenderFunction": "pdf/render", "SecurityListsyncFunction": "security/listsync",
		"SmsResolveFunction": "sms/resolve",
	} {
		if got := template.Package(id); got != want {
			t.Errorf("%s is built from %s, want %s", id, got, want)
		}
	}
}
