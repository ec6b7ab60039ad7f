// Package template reads the parts of template.yaml that the local stack plays: functions with their routes and
// schedules, the API's own answers, and tables. Nothing that the template declares is repeated elsewhere.
package template

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Template is what the local stack needs to know of a SAM template, with every intrinsic resolved.
type Template struct {
	Parameters map[string]string // by name: the overrides, else the defaults
	Functions  []Function        // in the order of their logical IDs
	Tables     []Table           // in the order of their logical IDs
	API        API
}

// Function is an AWS::Serverless::Function, Globals included.
type Function struct {
	LogicalID     string
	Name          string // FunctionName, or one made from the stack's name
	Folder        string // below functions/: SmsFunction is built from sms
	Handler       string
	Architectures []string
	Timeout       time.Duration
	MemoryMB      int
	Environment   map[string]string // Globals' and its own, its own first
	LogFormat     string            // Text or JSON
	LogLevel      string            // ApplicationLogLevel; it counts where LogFormat is JSON
	LogGroup      string
	Routes        []Route
	Schedules     []Schedule
	Permissions   []Permission
	Asynchronous  Asynchronous
	// Reserved is how many events may run at once, taken out of the account's concurrency; 0: no reservation.
	Reserved int
}

// Asynchronous is what Lambda does with an event that nobody waits for: EventInvokeConfig.
type Asynchronous struct {
	Retries int           // of a failed run
	MaxAge  time.Duration // of an event that could not run, or whose run is to be repeated
}

// Permission is one statement of the role that a function has, <stem>Role for <stem>Function: of the role's own
// policies, or of a managed policy of the template that the role names.
type Permission struct {
	Sid, Action string
	Resource    string   // an ARN, * for any text
	LeadingKeys []string // of the partition keys that it is bounded to, * for any text; none: not bounded
}

// Route is an event of type Api.
type Route struct {
	Method       string // upper case; ANY for every method
	Path         string // with {name} for path parameters
	TransferMode string // ResponseTransferMode: BUFFERED or RESPONSE_STREAM
	Timeout      time.Duration
}

// Schedule is an event of type Schedule or ScheduleV2 that is not switched off.
type Schedule struct {
	Expression string // as declared: rate(1 minute)
	Every      time.Duration
	Input      string // JSON; empty where none is declared
}

// API is the AWS::Serverless::Api.
type API struct {
	LogicalID        string
	Stage            string
	BinaryMediaTypes []string
	Throttle         Throttle
	Responses        map[string]GatewayResponse // by response type, DEFAULT_4XX for example
}

// Throttle is what a stage lets through of each route, over all clients. The zero value lets everything through.
type Throttle struct {
	PerSecond int
	Burst     int
}

// GatewayResponse shapes an answer that the gateway gives by itself.
type GatewayResponse struct {
	Status    int               // 0: the response type's own
	Headers   map[string]string // 'static' in single quotes, or context.requestId
	Templates map[string]string // by media type
}

// Table is an AWS::DynamoDB::Table.
type Table struct {
	LogicalID  string
	Name       string // TableName, or one made from the stack's name
	Attributes map[string]string
	Keys       []Key
	Indexes    []Index
	TTL        string // the attribute that holds the time of expiry; empty: none
}

// Key is one attribute of a key.
type Key struct {
	Attribute string
	Type      string // HASH or RANGE
}

// Index is a global secondary index.
type Index struct {
	Name       string
	Keys       []Key
	Projection string   // ALL, KEYS_ONLY or INCLUDE
	Include    []string // the attributes of INCLUDE
}

// integrationTimeout is API Gateway's default and most.
const integrationTimeout = 29 * time.Second

// Function is the one with a logical ID, or with a folder, of that name.
func (t *Template) Function(name string) (Function, bool) {
	i := slices.IndexFunc(t.Functions, func(f Function) bool { return f.LogicalID == name || f.Folder == name })
	if i < 0 {
		return Function{}, false
	}
	return t.Functions[i], true
}

// Load reads a template and resolves it with parameter overrides. An override that names no parameter is an error, as
// is an intrinsic, or an attribute of GetAtt, that the local stack does not know where one of its values needs it.
func Load(path string, overrides map[string]string) (*Template, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := Parse(text, overrides)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Parse is Load for a template in memory.
func Parse(text []byte, overrides map[string]string) (*Template, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	if len(node.Content) == 0 {
		return nil, errors.New("the template is empty")
	}
	root, err := plain(node.Content[0])
	if err != nil {
		return nil, err
	}
	r, err := newResolver(root, overrides)
	if err != nil {
		return nil, err
	}
	t := &Template{Parameters: r.parameters}
	for _, id := range sortedKeys(r.resources) {
		resource := value{root: r, path: id, raw: r.resources[id]}
		if condition := resource.field("Condition"); !condition.absent() {
			holds, err := r.condition(condition.text())
			if err != nil {
				return nil, err
			}
			if !holds {
				continue
			}
		}
		properties := resource.field("Properties")
		switch resource.field("Type").text() {
		case "AWS::Serverless::Function":
			t.Functions = append(t.Functions, function(r, id, properties))
		case "AWS::DynamoDB::Table":
			t.Tables = append(t.Tables, table(r, id, properties))
		case "AWS::Serverless::Api":
			if t.API.LogicalID != "" {
				return nil, errors.New("two AWS::Serverless::Api: the local stack plays one")
			}
			t.API = api(r, id, properties)
		}
	}
	if err := errors.Join(r.problems...); err != nil {
		return nil, err
	}
	return t, nil
}

func function(r *resolver, id string, properties value) Function {
	globals := value{root: r, path: "Globals.Function", raw: r.globals["Function"]}
	setting := func(name string) value {
		if own := properties.field(name); !own.absent() {
			return own
		}
		return globals.field(name)
	}
	f := Function{
		LogicalID:     id,
		Name:          r.name(id),
		Folder:        strings.ToLower(strings.TrimSuffix(id, "Function")),
		Handler:       setting("Handler").text(),
		Architectures: setting("Architectures").texts(),
		Timeout:       time.Duration(cmp.Or(setting("Timeout").number(), 3)) * time.Second,
		MemoryMB:      cmp.Or(setting("MemorySize").number(), 128),
		Environment:   map[string]string{},
		Reserved:      properties.field("ReservedConcurrentExecutions").number(),
	}
	f.Asynchronous = Asynchronous{Retries: 2, MaxAge: 6 * time.Hour} // Lambda's defaults
	invoke := properties.field("EventInvokeConfig")
	if retries := invoke.field("MaximumRetryAttempts"); !retries.absent() {
		f.Asynchronous.Retries = retries.number()
	}
	if age := invoke.field("MaximumEventAgeInSeconds"); !age.absent() {
		f.Asynchronous.MaxAge = time.Duration(age.number()) * time.Second
	}
	logging := func(name string) string {
		return cmp.Or(properties.field("LoggingConfig").field(name).text(), globals.field("LoggingConfig").field(name).text())
	}
	f.LogFormat = cmp.Or(logging("LogFormat"), "Text")
	f.LogLevel = cmp.Or(logging("ApplicationLogLevel"), "INFO")
	f.LogGroup = cmp.Or(logging("LogGroup"), "/aws/lambda/"+f.Name)
	for _, layer := range []value{globals, properties} { // a function's own variables beat Globals'
		variables := layer.field("Environment").field("Variables")
		for _, name := range variables.keys() {
			if v := variables.field(name); !v.absent() {
				f.Environment[name] = v.text()
			}
		}
	}
	f.Permissions = permissions(r, strings.TrimSuffix(id, "Function")+"Role")
	events := properties.field("Events")
	for _, name := range events.keys() {
		details := events.field(name).field("Properties")
		switch kind := events.field(name).field("Type").text(); kind {
		case "Api":
			timeout := time.Duration(details.field("TimeoutInMillis").number()) * time.Millisecond
			f.Routes = append(f.Routes, Route{
				Method:       strings.ToUpper(details.field("Method").text()),
				Path:         details.field("Path").text(),
				TransferMode: cmp.Or(details.field("ResponseTransferMode").text(), "BUFFERED"),
				Timeout:      cmp.Or(timeout, integrationTimeout),
			})
		case "Schedule", "ScheduleV2":
			if details.field("State").text() == "DISABLED" || details.field("Enabled").text() == "false" {
				continue
			}
			expression := cmp.Or(details.field("Schedule").text(), details.field("ScheduleExpression").text())
			every, err := rate(expression)
			if err != nil {
				r.problem(details.path, err)
			}
			f.Schedules = append(f.Schedules, Schedule{expression, every, details.field("Input").text()})
		default:
			r.problem(events.field(name).path, fmt.Errorf("the local stack does not play events of type %q", kind))
		}
	}
	return f
}

func permissions(r *resolver, role string) []Permission {
	properties := value{root: r, path: role, raw: r.resources[role]}.field("Properties")
	policies := properties.field("Policies").items()
	attached := properties.field("ManagedPolicyArns").texts()
	for _, id := range sortedKeys(r.resources) {
		policy := value{root: r, path: id, raw: r.resources[id]}
		if policy.field("Type").text() == "AWS::IAM::ManagedPolicy" && slices.Contains(attached, r.name(id)) {
			policies = append(policies, policy.field("Properties"))
		}
	}
	var list []Permission
	for _, policy := range policies {
		for _, statement := range policy.field("PolicyDocument").field("Statement").items() {
			p := Permission{Sid: statement.field("Sid").text(), Action: statement.field("Action").text(), Resource: statement.field("Resource").text()}
			// "Condition" with a text would be an intrinsic; this one is a mapping.
			if keys := statement.field("Condition").field("ForAllValues:StringLike").field("dynamodb:LeadingKeys"); !keys.absent() {
				if _, one := keys.resolved().(string); one {
					p.LeadingKeys = []string{keys.text()}
				} else {
					p.LeadingKeys = keys.texts()
				}
			}
			list = append(list, p)
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

func api(r *resolver, id string, properties value) API {
	a := API{LogicalID: id, Stage: properties.field("StageName").text(), Responses: map[string]GatewayResponse{}}
	for _, mediaType := range properties.field("BinaryMediaTypes").texts() {
		a.BinaryMediaTypes = append(a.BinaryMediaTypes, strings.ReplaceAll(mediaType, "~1", "/"))
	}
	for _, setting := range properties.field("MethodSettings").items() {
		throttle := Throttle{setting.field("ThrottlingRateLimit").number(), setting.field("ThrottlingBurstLimit").number()}
		if throttle == (Throttle{}) {
			continue
		}
		if path, method := setting.field("ResourcePath").text(), setting.field("HttpMethod").text(); path != "/*" || method != "*" {
			r.problem(setting.path, fmt.Errorf("the local stack plays throttling of /* and *, not of %s and %s", path, method))
		}
		a.Throttle = throttle
	}
	responses := properties.field("GatewayResponses")
	for _, kind := range responses.keys() {
		response := responses.field(kind)
		a.Responses[kind] = GatewayResponse{
			Status:    response.field("StatusCode").number(),
			Headers:   response.field("ResponseParameters").field("Headers").pairs(),
			Templates: response.field("ResponseTemplates").pairs(),
		}
	}
	return a
}

func table(r *resolver, id string, properties value) Table {
	t := Table{LogicalID: id, Name: r.name(id), Attributes: map[string]string{}, Keys: keys(properties)}
	for _, attribute := range properties.field("AttributeDefinitions").items() {
		t.Attributes[attribute.field("AttributeName").text()] = attribute.field("AttributeType").text()
	}
	for _, index := range properties.field("GlobalSecondaryIndexes").items() {
		projection := index.field("Projection")
		t.Indexes = append(t.Indexes, Index{
			Name:       index.field("IndexName").text(),
			Keys:       keys(index),
			Projection: projection.field("ProjectionType").text(),
			Include:    projection.field("NonKeyAttributes").texts(),
		})
	}
	if ttl := properties.field("TimeToLiveSpecification"); ttl.field("Enabled").text() == "true" {
		t.TTL = ttl.field("AttributeName").text()
	}
	return t
}

func keys(of value) []Key {
	var list []Key
	for _, key := range of.field("KeySchema").items() {
		list = append(list, Key{key.field("AttributeName").text(), key.field("KeyType").text()})
	}
	return list
}
