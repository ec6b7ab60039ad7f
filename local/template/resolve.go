package template

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Region and AccountID are where the local stack claims to run.
const (
	Region    = "eu-west-1"
	AccountID = "123456789012"
	stackName = "local"
)

// pseudo holds the parameters that CloudFormation sets.
var pseudo = map[string]string{
	"AWS::AccountId": AccountID,
	"AWS::Partition": "aws",
	"AWS::Region":    Region,
	"AWS::StackName": stackName,
}

// named holds, by resource type, the property that names a resource and the pattern of the resource's ARN.
var named = map[string]struct{ property, arn string }{
	"AWS::Serverless::Function": {"FunctionName", "arn:aws:lambda:" + Region + ":" + AccountID + ":function:%s"},
	"AWS::DynamoDB::Table":      {"TableName", "arn:aws:dynamodb:" + Region + ":" + AccountID + ":table/%s"},
	"AWS::Logs::LogGroup":       {"LogGroupName", "arn:aws:logs:" + Region + ":" + AccountID + ":log-group:%s:*"},
}

// document is the template before any intrinsic is resolved.
type document struct {
	Parameters map[string]struct {
		Type    string  `yaml:"Type"`
		Default *string `yaml:"Default"`
	} `yaml:"Parameters"`
	Conditions map[string]yaml.Node `yaml:"Conditions"`
	Globals    struct {
		Function yaml.Node `yaml:"Function"`
	} `yaml:"Globals"`
	Resources map[string]yaml.Node `yaml:"Resources"`
}

// resource returns the declaration of a resource, or an absent node.
func (d *document) resource(id string) *yaml.Node {
	n := d.Resources[id]
	return &n
}

// resolver resolves a value when decode or an intrinsic needs the value, so that properties that the local stack does
// not read may use any intrinsic. A node that is nil or zero is absent.
type resolver struct {
	document
	parameters map[string]string
	intrinsics map[string]func(*yaml.Node) (*yaml.Node, error) // by the tag of their short form
	depth      int
	problems   []error
}

func newResolver(from document, overrides map[string]string) (*resolver, error) {
	r := &resolver{document: from, parameters: map[string]string{}}
	r.intrinsics = map[string]func(*yaml.Node) (*yaml.Node, error){
		"!Ref":    func(n *yaml.Node) (*yaml.Node, error) { return r.ref(n.Value) },
		"!GetAtt": func(n *yaml.Node) (*yaml.Node, error) { return r.attribute(n.Value) },
		"!Sub":    r.substitute,
		"!If":     r.branch,
		"!Condition": func(n *yaml.Node) (*yaml.Node, error) {
			holds, err := r.condition(n.Value)
			return scalar(strconv.FormatBool(holds)), err
		},
		"!Equals": r.logical(2, func(texts []string) bool { return texts[0] == texts[1] }),
		"!Not":    r.logical(1, func(texts []string) bool { return texts[0] != "true" }),
		"!And": r.logical(0, func(texts []string) bool {
			return !slices.ContainsFunc(texts, func(text string) bool { return text != "true" })
		}),
	}
	for name, parameter := range from.Parameters {
		switch override, ok := overrides[name]; {
		case parameter.Type != "String" && parameter.Type != "Number":
			return nil, fmt.Errorf("parameter %s: the local stack does not know the type %q", name, parameter.Type)
		case ok:
			r.parameters[name] = override
		case parameter.Default != nil:
			r.parameters[name] = *parameter.Default
		default:
			return nil, fmt.Errorf("parameter %s has no default and was given no value", name)
		}
	}
	for name := range overrides {
		if _, ok := r.parameters[name]; !ok {
			return nil, fmt.Errorf("there is no parameter %s to override", name)
		}
	}
	return r, nil
}

func (r *resolver) problem(path string, err error) {
	r.problems = append(r.problems, fmt.Errorf("%s: %w", path, err))
}

// resolve replaces the intrinsic at the top of a value, if there is one, and leaves the content of the value as it is.
func (r *resolver) resolve(n *yaml.Node) (*yaml.Node, error) {
	if n == nil || n.IsZero() || n.ShortTag() == "!!null" {
		return nil, nil
	}
	if n.Kind == yaml.AliasNode {
		return r.resolve(n.Alias)
	}
	tag := n.ShortTag()
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 &&
		(n.Content[0].Value == "Ref" || strings.HasPrefix(n.Content[0].Value, "Fn::")) {
		tag = n.Content[0].Value
	} else if strings.HasPrefix(tag, "!!") {
		return n, nil
	}
	intrinsic := r.intrinsics[tag]
	if intrinsic == nil {
		return nil, fmt.Errorf("the local stack does not know the intrinsic %s", tag)
	}
	if r.depth++; r.depth > 100 {
		return nil, errors.New("intrinsics refer to one another in a circle")
	}
	defer func() { r.depth-- }()
	result, err := intrinsic(n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tag, err)
	}
	return r.resolve(result)
}

// text resolves a value to a scalar as CloudFormation passes the scalar on; an absent value is empty.
func (r *resolver) text(n *yaml.Node) (string, error) {
	n, err := r.resolve(n)
	switch {
	case err != nil || n == nil:
		return "", err
	case n.Kind != yaml.ScalarNode:
		return "", errors.New("a single value is wanted here")
	case n.ShortTag() == "!!bool":
		return strings.ToLower(n.Value), nil
	}
	return n.Value, nil // numbers and dates stay as they are written
}

// logical returns an intrinsic of n arguments, or of any number where n is 0, whose value is true or false.
func (r *resolver) logical(n int, holds func(texts []string) bool) func(*yaml.Node) (*yaml.Node, error) {
	return func(arguments *yaml.Node) (*yaml.Node, error) {
		if arguments.Kind != yaml.SequenceNode || n > 0 && len(arguments.Content) != n {
			return nil, fmt.Errorf("%d arguments are wanted in a list", n)
		}
		texts, errs := make([]string, len(arguments.Content)), make([]error, len(arguments.Content))
		for i, argument := range arguments.Content {
			texts[i], errs[i] = r.text(argument)
		}
		return scalar(strconv.FormatBool(holds(texts))), errors.Join(errs...)
	}
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

func (r *resolver) ref(name string) (*yaml.Node, error) {
	if name == "AWS::NoValue" {
		return nil, nil
	}
	if v, ok := pseudo[name]; ok {
		return scalar(v), nil
	}
	if v, ok := r.parameters[name]; ok {
		return scalar(v), nil
	}
	if _, ok := r.Resources[name]; ok {
		return scalar(r.name(name)), nil
	}
	return nil, fmt.Errorf("there is no parameter or resource %q", name)
}

// name returns a resource's name: the declared one, or one generated from the stack's name and the logical ID.
func (r *resolver) name(id string) string {
	var resource struct {
		Type string `cfn:"Type"`
	}
	r.decode(id, r.resource(id), &resource)
	name := stackName + "-" + id
	if property := named[resource.Type].property; property != "" {
		r.decode(id+".Properties."+property, r.at(id, r.resource(id), "Properties."+property), &name)
	}
	return name
}

// attribute resolves ID.Arn.
func (r *resolver) attribute(of string) (*yaml.Node, error) {
	id, attribute, _ := strings.Cut(of, ".")
	if _, ok := r.Resources[id]; !ok {
		return nil, fmt.Errorf("there is no resource %q", id)
	}
	kind, err := r.text(r.at(id, r.resource(id), "Type"))
	if err == nil && (named[kind].arn == "" || attribute != "Arn") {
		err = fmt.Errorf("the local stack does not know %s of a %s", attribute, kind)
	}
	if err != nil {
		return nil, err
	}
	return scalar(fmt.Sprintf(named[kind].arn, r.name(id))), nil
}

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// substitute resolves the form of Sub that is one text.
func (r *resolver) substitute(n *yaml.Node) (*yaml.Node, error) {
	if n.Kind != yaml.ScalarNode {
		return nil, errors.New("the local stack knows Sub of one text alone")
	}
	var failed error
	result := placeholder.ReplaceAllStringFunc(n.Value, func(found string) string {
		name := found[2 : len(found)-1]
		resolve := r.ref
		if strings.Contains(name, ".") {
			resolve = r.attribute
		}
		v, err := resolve(name)
		text, _ := r.text(v)
		failed = errors.Join(failed, err)
		return text
	})
	return scalar(result), failed
}

func (r *resolver) branch(n *yaml.Node) (*yaml.Node, error) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 3 {
		return nil, errors.New("a condition and two values are wanted")
	}
	holds, err := r.condition(n.Content[0].Value)
	if err != nil {
		return nil, err
	}
	if holds {
		return n.Content[1], nil
	}
	return n.Content[2], nil
}

func (r *resolver) condition(name string) (bool, error) {
	definition, ok := r.Conditions[name]
	if !ok {
		return false, fmt.Errorf("there is no condition %q", name)
	}
	text, err := r.text(&definition)
	if err != nil {
		return false, fmt.Errorf("condition %s: %w", name, err)
	}
	return text == "true", nil
}

// at returns the value below a mapping at a path of keys such as Properties.Timeout.
func (r *resolver) at(path string, n *yaml.Node, keys string) *yaml.Node {
	for key := range strings.SplitSeq(keys, ".") {
		field := r.fields(path, n)[key]
		n = &field
		path += "." + key
	}
	return n
}

// fields returns the values of a mapping by key.
func (r *resolver) fields(path string, n *yaml.Node) (fields map[string]yaml.Node) {
	n, err := r.resolve(n)
	switch {
	case err != nil || n == nil:
	case n.Kind != yaml.MappingNode:
		err = errors.New("a mapping is wanted here")
	default:
		err = n.Decode(&fields)
	}
	if err != nil {
		r.problem(path, err)
	}
	return fields
}

// decode sets what the pointer points to: of a struct each field from the property that the field's tag names, of a
// struct of the SDK each field from the property of its name, of a map the entries that are present. A value that is
// absent leaves the target as it is; decode notes a mistake as a problem.
func (r *resolver) decode(path string, n *yaml.Node, into any) {
	r.set(path, n, reflect.ValueOf(into).Elem())
}

// set is decode for a value of the target. The result is false where there is no value to decode: the value is absent,
// cannot be resolved, or is no list where a list is wanted.
func (r *resolver) set(path string, n *yaml.Node, into reflect.Value) (present bool) {
	n, err := r.resolve(n)
	if err != nil {
		r.problem(path, err)
	}
	if err != nil || n == nil {
		return false
	}
	switch into.Kind() {
	case reflect.Struct:
		sdk := strings.HasPrefix(into.Type().PkgPath(), "github.com/aws/")
		for field, v := range into.Fields() {
			keys := field.Tag.Get("cfn")
			if sdk && field.IsExported() {
				keys = field.Name
			}
			if keys != "" {
				r.set(path+"."+keys, r.at(path, n, keys), v)
			}
		}
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		r.set(path, n, into.Elem())
	case reflect.Map:
		if into.IsNil() {
			into.Set(reflect.MakeMap(into.Type()))
		}
		fields := r.fields(path, n)
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			field, element := fields[key], reflect.New(into.Type().Elem()).Elem()
			if r.set(path+"."+key, &field, element) {
				into.SetMapIndex(reflect.ValueOf(key), element)
			}
		}
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			r.problem(path, errors.New("a list is wanted here"))
			return false
		}
		into.SetZero()
		for i, item := range n.Content {
			if element := reflect.New(into.Type().Elem()).Elem(); r.set(fmt.Sprintf("%s[%d]", path, i), item, element) {
				into.Set(reflect.Append(into, element))
			}
		}
	default:
		text, err := r.text(n)
		switch {
		case err != nil:
		case into.Kind() == reflect.String:
			into.SetString(text)
		default:
			var number int
			if number, err = strconv.Atoi(text); err != nil {
				err = fmt.Errorf("%q is no integer", text)
			}
			into.SetInt(int64(number) * unit(path, into.Type()))
		}
		if err != nil {
			r.problem(path, err)
		}
	}
	return true
}

// unit returns what 1 in a property is: a duration's unit is seconds, unless the property's name has another.
func unit(path string, of reflect.Type) int64 {
	switch {
	case of != reflect.TypeFor[time.Duration]():
		return 1
	case strings.HasSuffix(path, "Millis"):
		return int64(time.Millisecond)
	}
	return int64(time.Second)
}
