// Package template reads what the local stack needs of template.yaml: functions with their routes, schedules and
// rights, the API's own responses, and tables. The package knows the intrinsics that template.yaml uses, and refuses
// all others.
//
// Tags declare the properties that the local stack reads. The rest of the package resolves intrinsics where a field
// needs them, because the other properties of template.yaml may use what only AWS knows, and names the place of each
// mistake.
package template

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.yaml.in/yaml/v3"

	"svcapi/local/workdir"
)

// Template holds the part of a SAM template that the local stack uses, with every intrinsic resolved.
type Template struct {
	Parameters map[string]string // by name: the overrides, else the defaults
	Functions  []Function        // in the order of their logical IDs
	Tables     []Table           // in the order of their logical IDs
	API        API
}

// Function is an AWS::Serverless::Function, Globals included. A tag names the property that a field is read from.
type Function struct {
	LogicalID    string
	Name         string            // FunctionName, or a name generated from the stack's name
	Folder       string            // the name of its log: sms for SmsFunction, pdfrender for PdfRenderFunction
	Package      string            // below functions/: SmsFunction is built from sms, PdfRenderFunction from pdf/render
	Handler      string            `cfn:"Handler"`
	Timeout      time.Duration     `cfn:"Timeout"`
	MemoryMB     int               `cfn:"MemorySize"`
	Environment  map[string]string `cfn:"Environment.Variables"` // Globals' and its own, its own first
	LogFormat    string            `cfn:"LoggingConfig.LogFormat"`
	LogLevel     string            `cfn:"LoggingConfig.ApplicationLogLevel"` // applies where LogFormat is JSON
	LogGroup     string            `cfn:"LoggingConfig.LogGroup"`
	Routes       []Route
	Schedules    []Schedule
	Permissions  []Permission
	Asynchronous Asynchronous `cfn:"EventInvokeConfig"`
	// Reserved is how many events may run at once, taken out of the account's concurrency; 0: no reservation.
	Reserved int `cfn:"ReservedConcurrentExecutions"`
	// Isolation is PER_TENANT for a function whose processes serve one tenant each. Else the function takes no tenant ID.
	Isolation string `cfn:"TenancyConfig.TenantIsolationMode"`
}

// Asynchronous holds the rules of Lambda for an event whose caller does not wait.
type Asynchronous struct {
	Retries int           `cfn:"MaximumRetryAttempts"`     // of a failed run
	MaxAge  time.Duration `cfn:"MaximumEventAgeInSeconds"` // of an event whose run waits or is to be repeated
}

// Permission is one statement of the role that a function has, <stem>Role for <stem>Function: of the role's own
// policies, or of a managed policy of the template that the role names.
type Permission struct {
	Sid        string `cfn:"Sid"`
	Action     string `cfn:"Action"`
	Resource   string `cfn:"Resource"`                                               // an ARN, * for any text
	LeadingKey string `cfn:"Condition.ForAllValues:StringLike.dynamodb:LeadingKeys"` // * for any text; empty: any key
}

// Route is an event of type Api.
type Route struct {
	Method       string        `cfn:"Method"`               // upper case; ANY for every method
	Path         string        `cfn:"Path"`                 // with {name} for path parameters
	TransferMode string        `cfn:"ResponseTransferMode"` // BUFFERED or RESPONSE_STREAM
	Timeout      time.Duration `cfn:"TimeoutInMillis"`
}

// Schedule is an event of type ScheduleV2.
type Schedule struct {
	Every time.Duration
	Input string `cfn:"Input"` // JSON; empty where none is declared
}

// API is the AWS::Serverless::Api.
type API struct {
	LogicalID string
	Stage     string                     `cfn:"StageName"`
	Throttles map[string]Throttle        // by method and path, such as GET /docs; "* /*" is that of all others
	Responses map[string]GatewayResponse `cfn:"GatewayResponses"` // by response type, DEFAULT_4XX for example
}

// Throttle limits the requests of each route of a stage, over all clients. The zero value has no limit.
type Throttle struct {
	PerSecond int
	Burst     int
}

// GatewayResponse shapes a response that the gateway gives by itself.
type GatewayResponse struct {
	Status  int               `cfn:"StatusCode"`                         // 0: the response type's own
	Headers map[string]string `cfn:"ResponseParameters.Headers"`         // 'static' in single quotes, or context.requestId
	Body    string            `cfn:"ResponseTemplates.application/json"` // may contain $context.requestId
}

// Table is an AWS::DynamoDB::Table: what CreateTable takes of its properties.
type Table struct {
	LogicalID string
	Name      string // TableName, or a name generated from the stack's name
	TTL       string // the attribute that holds the time of expiry; empty: none

	Attributes []types.AttributeDefinition  `cfn:"AttributeDefinitions"`
	Keys       []types.KeySchemaElement     `cfn:"KeySchema"`
	Indexes    []types.GlobalSecondaryIndex `cfn:"GlobalSecondaryIndexes"`
}

// integrationTimeout is API Gateway's default and longest.
const integrationTimeout = 29 * time.Second

// Function returns the function with a logical ID, or with a folder, of that name.
func (t *Template) Function(name string) (Function, bool) {
	i := slices.IndexFunc(t.Functions, func(f Function) bool { return f.LogicalID == name || f.Folder == name })
	if i < 0 {
		return Function{}, false
	}
	return t.Functions[i], true
}

// Load reads the module's template.yaml and resolves its values with parameter overrides. An override that names no
// parameter is an error, as is an intrinsic that the local stack does not know where the local stack needs the value.
func Load(overrides map[string]string) (*Template, error) {
	root, err := workdir.Root()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(root, "template.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := Parse(text, overrides)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return t, err
}

// Parse is Load for a template in memory.
func Parse(text []byte, overrides map[string]string) (*Template, error) {
	var from document
	if err := yaml.Unmarshal(text, &from); err != nil {
		return nil, err
	}
	if from.Resources == nil {
		return nil, errors.New("the template is empty")
	}
	r, err := newResolver(from, overrides)
	if err != nil {
		return nil, err
	}
	t := &Template{Parameters: r.parameters}
	for _, id := range slices.Sorted(maps.Keys(r.Resources)) {
		var resource struct {
			Type      string `cfn:"Type"`
			Condition string `cfn:"Condition"`
		}
		r.decode(id, r.resource(id), &resource)
		if resource.Condition != "" {
			if holds, err := r.condition(resource.Condition); err != nil {
				return nil, err
			} else if !holds {
				continue
			}
		}
		properties := r.at(id, r.resource(id), "Properties")
		switch resource.Type {
		case "AWS::Serverless::Function":
			t.Functions = append(t.Functions, r.function(id, properties))
		case "AWS::DynamoDB::Table":
			t.Tables = append(t.Tables, r.table(id, properties))
		case "AWS::Serverless::Api":
			if t.API.LogicalID != "" {
				return nil, errors.New("two AWS::Serverless::Api: the local stack plays one")
			}
			t.API = r.api(id, properties)
		}
	}
	return t, errors.Join(r.problems...)
}

func (r *resolver) function(id string, properties *yaml.Node) Function {
	name, stem, path := r.name(id), strings.TrimSuffix(id, "Function"), id+".Properties"
	f := Function{
		LogicalID: id, Name: name, Folder: strings.ToLower(stem), Package: Package(id), Permissions: r.permissions(stem +
			"Role"),
		// The rest is Lambda's defaults.
		Timeout: 3 * time.Second, MemoryMB: 128, Environment: map[string]string{},
		LogFormat: "Text", LogLevel: "INFO", LogGroup: "/aws/lambda/" + name,
		Asynchronous: Asynchronous{Retries: 2, MaxAge: 6 * time.Hour},
	}
	r.decode("Globals.Function", &r.Globals.Function, &f)
	r.decode(path, properties, &f)
	path += ".Events"
	events := r.fields(path, r.at(id, properties, "Events"))
	for _, name := range slices.Sorted(maps.Keys(events)) {
		var event struct {
			Type       string   `cfn:"Type"`
			Expression string   `cfn:"Properties.ScheduleExpression"`
			State      string   `cfn:"Properties.State"`
			Route      Route    `cfn:"Properties"`
			Schedule   Schedule `cfn:"Properties"`
		}
		event.Route = Route{TransferMode: "BUFFERED", Timeout: integrationTimeout}
		declared, err := events[name], error(nil)
		r.decode(path+"."+name, &declared, &event)
		switch {
		case event.Type == "Api":
			event.Route.Method = strings.ToUpper(event.Route.Method)
			f.Routes = append(f.Routes, event.Route)
		case event.Type == "ScheduleV2" && event.State == "DISABLED":
		case event.Type != "ScheduleV2" || event.State != "" && event.State != "ENABLED":
			err = fmt.Errorf("the local stack does not play events of type %q, state %q", event.Type, event.State)
		default:
			event.Schedule.Every, err = rate(event.Expression)
			f.Schedules = append(f.Schedules, event.Schedule)
		}
		if err != nil {
			r.problem(path+"."+name, err)
		}
	}
	return f
}

// word is a word of a logical ID after the first.
var word = regexp.MustCompile(`.[A-Z]`)

// Package returns the folder below functions/ that a function is built from, by the function's logical ID.
func Package(id string) string {
	return strings.ToLower(word.ReplaceAllStringFunc(strings.TrimSuffix(id, "Function"),
		func(at string) string { return at[:1] + "/" + at[1:] }))
}

func (r *resolver) permissions(role string) []Permission {
	var inline []struct {
		Statements []Permission `cfn:"PolicyDocument.Statement"`
	}
	var attached []string
	r.decode(role, r.at(role, r.resource(role), "Properties.Policies"), &inline)
	r.decode(role, r.at(role, r.resource(role), "Properties.ManagedPolicyArns"), &attached)
	var list []Permission
	for _, policy := range inline {
		list = append(list, policy.Statements...)
	}
	for _, id := range slices.Sorted(maps.Keys(r.Resources)) {
		var policy struct {
			Type       string       `cfn:"Type"`
			Statements []Permission `cfn:"Properties.PolicyDocument.Statement"`
		}
		if slices.Contains(attached, r.name(id)) {
			if r.decode(id, r.resource(id), &policy); policy.Type == "AWS::IAM::ManagedPolicy" {
				list = append(list, policy.Statements...)
			}
		}
	}
	return list
}

// rate reads a schedule expression of the form rate(5 minutes).
func rate(expression string) (time.Duration, error) {
	units := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}
	var n int
	var unit string
	body, isRate := strings.CutPrefix(strings.TrimSuffix(expression, ")"), "rate(")
	if _, err := fmt.Sscanf(body, "%d %s", &n, &unit); isRate && err == nil && n > 0 {
		if length, known := units[strings.TrimSuffix(unit, "s")]; known && (n == 1) != strings.HasSuffix(unit, "s") {
			return time.Duration(n) * length, nil
		}
	}
	return 0, fmt.Errorf("schedule %q: the local stack plays rate(1 minute), rate(2 hours) and the like", expression)
}

func (r *resolver) api(id string, properties *yaml.Node) API {
	a := API{LogicalID: id, Throttles: map[string]Throttle{}, Responses: map[string]GatewayResponse{}}
	path := id + ".Properties"
	r.decode(path, properties, &a)
	var binary []string
	r.decode(path+".BinaryMediaTypes", r.at(path, properties, "BinaryMediaTypes"), &binary)
	if !slices.Equal(binary, []string{"*/*"}) {
		r.problem(path+".BinaryMediaTypes", fmt.Errorf("the local stack plays */* alone, not %q", binary))
	}
	var settings []struct {
		Path      string `cfn:"ResourcePath"`
		Method    string `cfn:"HttpMethod"`
		PerSecond int    `cfn:"ThrottlingRateLimit"`
		Burst     int    `cfn:"ThrottlingBurstLimit"`
	}
	r.decode(path+".MethodSettings", r.at(path, properties, "MethodSettings"), &settings)
	for _, s := range settings {
		throttle := Throttle{s.PerSecond, s.Burst}
		if throttle == (Throttle{}) {
			continue
		}
		if s.Path != "/*" && s.Method == "*" {
			r.problem(path+".MethodSettings",
				fmt.Errorf("the local stack plays throttling of /* or of one method, not of all methods of %s", s.Path))
		}
		if s.Path != "/*" {
			s.Path = strings.ReplaceAll(strings.TrimPrefix(s.Path, "/"), "~1", "/")
		}
		a.Throttles[strings.ToUpper(s.Method)+" "+s.Path] = throttle
	}
	return a
}

func (r *resolver) table(id string, properties *yaml.Node) Table {
	t := Table{LogicalID: id, Name: r.name(id)}
	var expiry struct {
		Enabled   string `cfn:"TimeToLiveSpecification.Enabled"`
		Attribute string `cfn:"TimeToLiveSpecification.AttributeName"`
	}
	r.decode(id+".Properties", properties, &t)
	r.decode(id+".Properties", properties, &expiry)
	if expiry.Enabled == "true" {
		t.TTL = expiry.Attribute
	}
	return t
}
