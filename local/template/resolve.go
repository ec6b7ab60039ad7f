package template

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Where the local stack says it is.
const (
	Region    = "eu-west-1"
	AccountID = "123456789012"
	stackName = "local"
)

// pseudo are the parameters that CloudFormation sets.
var pseudo = map[string]string{
	"AWS::AccountId": AccountID,
	"AWS::Partition": "aws",
	"AWS::Region":    Region,
	"AWS::StackId":   "arn:aws:cloudformation:" + Region + ":" + AccountID + ":stack/" + stackName + "/1",
	"AWS::StackName": stackName,
	"AWS::URLSuffix": "amazonaws.com",
}

// arns are the forms of GetAtt X.Arn by resource type; the name goes in.
var arns = map[string]string{
	"AWS::Serverless::Function": "arn:aws:lambda:" + Region + ":" + AccountID + ":function:%s",
	"AWS::DynamoDB::Table":      "arn:aws:dynamodb:" + Region + ":" + AccountID + ":table/%s",
	"AWS::SQS::Queue":           "arn:aws:sqs:" + Region + ":" + AccountID + ":%s",
	"AWS::SNS::Topic":           "arn:aws:sns:" + Region + ":" + AccountID + ":%s",
	"AWS::Logs::LogGroup":       "arn:aws:logs:" + Region + ":" + AccountID + ":log-group:%s:*",
	"AWS::IAM::Role":            "arn:aws:iam::" + AccountID + ":role/%s",
	"AWS::S3::Bucket":           "arn:aws:s3:::%s",
}

// names are the properties that name a resource, by type. Ref gives that name.
var names = map[string]string{
	"AWS::Serverless::Function": "FunctionName",
	"AWS::DynamoDB::Table":      "TableName",
	"AWS::SQS::Queue":           "QueueName",
	"AWS::SNS::Topic":           "TopicName",
	"AWS::Logs::LogGroup":       "LogGroupName",
	"AWS::IAM::Role":            "RoleName",
	"AWS::S3::Bucket":           "BucketName",
}

type object = map[string]any

// resolver holds what intrinsics refer to. Values are resolved when asked for, so that an intrinsic in a part that the
// local stack does not play need not be known.
type resolver struct {
	parameters map[string]string
	lists      map[string]bool // parameters of a list type
	mappings   object
	conditions object
	resources  object
	globals    object
	depth      int
	problems   []error
}

// noValue is what AWS::NoValue resolves to: the property is not there.
type noValue struct{}

func newResolver(root any, overrides map[string]string) (*resolver, error) {
	top, ok := root.(object)
	if !ok {
		return nil, errors.New("the template is no mapping")
	}
	section := func(name string) object { m, _ := top[name].(object); return m }
	r := &resolver{
		parameters: map[string]string{},
		lists:      map[string]bool{},
		mappings:   section("Mappings"),
		conditions: section("Conditions"),
		resources:  section("Resources"),
		globals:    section("Globals"),
	}
	for name, definition := range section("Parameters") {
		fields, _ := definition.(object)
		if override, ok := overrides[name]; ok {
			r.parameters[name] = override
		} else if preset, ok := fields["Default"]; ok {
			r.parameters[name] = text(preset)
		} else {
			return nil, fmt.Errorf("parameter %s has no default and was given no value", name)
		}
		kind := text(fields["Type"])
		r.lists[name] = kind == "CommaDelimitedList" || strings.HasPrefix(kind, "List<")
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

// resolve replaces the intrinsic at the top of a value, if it is one. What a mapping or list holds stays as it is.
func (r *resolver) resolve(v any) (any, error) {
	name, argument, is := intrinsic(v)
	if !is {
		return v, nil
	}
	if r.depth++; r.depth > 100 {
		return nil, errors.New("intrinsics refer to one another in a circle")
	}
	defer func() { r.depth-- }()
	meaning := known(name)
	if meaning == nil {
		return nil, fmt.Errorf("the local stack does not know the intrinsic %s", name)
	}
	result, err := meaning(r, argument)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return result, nil
}

// intrinsic tells whether a value is a mapping with an intrinsic's name as its only key.
func intrinsic(v any) (string, any, bool) {
	if m, ok := v.(object); ok && len(m) == 1 {
		for name, argument := range m {
			if name == "Ref" || strings.HasPrefix(name, "Fn::") {
				return name, argument, true
			}
			if _, isName := argument.(string); name == "Condition" && isName {
				return name, argument, true
			}
		}
	}
	return "", nil, false
}

// known is the meaning of an intrinsic; nil where the local stack has none.
func known(name string) func(*resolver, any) (any, error) {
	switch name {
	case "Ref":
		return func(r *resolver, v any) (any, error) { return r.ref(text(v)) }
	case "Condition":
		return func(r *resolver, v any) (any, error) { return r.condition(text(v)) }
	case "Fn::GetAtt":
		return (*resolver).getAtt
	case "Fn::Sub":
		return (*resolver).sub
	case "Fn::If":
		return (*resolver).branch
	case "Fn::Join":
		return (*resolver).join
	case "Fn::Select":
		return (*resolver).selected
	case "Fn::Split":
		return (*resolver).split
	case "Fn::FindInMap":
		return (*resolver).findInMap
	case "Fn::Equals":
		return (*resolver).equals
	case "Fn::Not", "Fn::And":
		return func(r *resolver, v any) (any, error) {
			n, err := r.count(v, false)
			return (n > 0) == (name == "Fn::Not"), err
		}
	case "Fn::Or":
		return func(r *resolver, v any) (any, error) { n, err := r.count(v, true); return n > 0, err }
	}
	return nil
}

func (r *resolver) ref(name string) (any, error) {
	if name == "AWS::NoValue" {
		return noValue{}, nil
	}
	if v, ok := pseudo[name]; ok {
		return v, nil
	}
	if v, ok := r.parameters[name]; ok {
		if !r.lists[name] {
			return v, nil
		}
		var list []any
		for item := range strings.SplitSeq(v, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		return list, nil
	}
	if _, ok := r.resources[name]; ok {
		return r.name(name), nil
	}
	return nil, fmt.Errorf("there is no parameter or resource %q", name)
}

// name is a resource's name: as it declares, else made from the stack's and its logical ID.
func (r *resolver) name(id string) string {
	resource, _ := r.resources[id].(object)
	if property, ok := names[text(resource["Type"])]; ok {
		properties, _ := resource["Properties"].(object)
		if v, err := r.resolve(properties[property]); err == nil && text(v) != "" {
			return text(v)
		}
	}
	return stackName + "-" + id
}

func (r *resolver) getAtt(argument any) (any, error) {
	id, attribute, _ := strings.Cut(text(argument), ".")
	if list, ok := argument.([]any); ok && len(list) == 2 {
		id, attribute = text(list[0]), text(list[1])
	}
	resource, ok := r.resources[id].(object)
	if !ok {
		return nil, fmt.Errorf("there is no resource %q", id)
	}
	format, ok := arns[text(resource["Type"])]
	if !ok || attribute != "Arn" {
		return nil, fmt.Errorf("the local stack does not know %s of a %s", attribute, text(resource["Type"]))
	}
	return fmt.Sprintf(format, r.name(id)), nil
}

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

func (r *resolver) sub(argument any) (any, error) {
	format, variables := argument, object{}
	if list, ok := argument.([]any); ok {
		if len(list) != 2 {
			return nil, errors.New("wants a text, or a text and a mapping")
		}
		format = list[0]
		variables, _ = list[1].(object)
	}
	var failed error
	result := placeholder.ReplaceAllStringFunc(text(format), func(found string) string {
		name := strings.TrimSpace(found[2 : len(found)-1])
		if literal, ok := strings.CutPrefix(name, "!"); ok {
			return "${" + literal + "}"
		}
		var v any
		var err error
		if own, ok := variables[name]; ok {
			v, err = r.resolve(own)
		} else if strings.Contains(name, ".") {
			v, err = r.getAtt(name)
		} else {
			v, err = r.ref(name)
		}
		failed = errors.Join(failed, err)
		return text(v)
	})
	return result, failed
}

func (r *resolver) branch(argument any) (any, error) {
	list, ok := argument.([]any)
	if !ok || len(list) != 3 {
		return nil, errors.New("wants a condition and two values")
	}
	holds, err := r.condition(text(list[0]))
	if err != nil {
		return nil, err
	}
	if holds {
		return r.resolve(list[1])
	}
	return r.resolve(list[2])
}

// list resolves a value to a list, and each of its items.
func (r *resolver) list(v any) ([]any, error) {
	v, err := r.resolve(v)
	if err != nil {
		return nil, err
	}
	items, ok := v.([]any)
	if !ok {
		return nil, errors.New("wants a list")
	}
	resolved := make([]any, 0, len(items))
	for _, item := range items {
		if item, err = r.resolve(item); err != nil {
			return nil, err
		}
		if _, absent := item.(noValue); !absent {
			resolved = append(resolved, item)
		}
	}
	return resolved, nil
}

// arguments resolves the argument list of an intrinsic that takes n.
func (r *resolver) arguments(v any, n int) ([]any, error) {
	list, err := r.list(v)
	if err == nil && len(list) != n {
		err = fmt.Errorf("wants %d arguments", n)
	}
	return list, err
}

func (r *resolver) join(argument any) (any, error) {
	list, err := r.arguments(argument, 2)
	if err != nil {
		return nil, err
	}
	items, err := r.list(list[1])
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = text(item)
	}
	return strings.Join(texts, text(list[0])), nil
}

func (r *resolver) selected(argument any) (any, error) {
	list, err := r.arguments(argument, 2)
	if err != nil {
		return nil, err
	}
	items, err := r.list(list[1])
	if err != nil {
		return nil, err
	}
	i, err := strconv.Atoi(text(list[0]))
	if err != nil || i < 0 || i >= len(items) {
		return nil, fmt.Errorf("no item %s in a list of %d", text(list[0]), len(items))
	}
	return items[i], nil
}

func (r *resolver) split(argument any) (any, error) {
	list, err := r.arguments(argument, 2)
	if err != nil {
		return nil, err
	}
	var items []any
	for item := range strings.SplitSeq(text(list[1]), text(list[0])) {
		items = append(items, item)
	}
	return items, nil
}

func (r *resolver) findInMap(argument any) (any, error) {
	list, err := r.arguments(argument, 3)
	if err != nil {
		return nil, err
	}
	var at any = r.mappings
	for _, key := range list {
		level, _ := at.(object)
		if at = level[text(key)]; at == nil {
			return nil, fmt.Errorf("no %q in the mapping", text(key))
		}
	}
	return at, nil
}

func (r *resolver) equals(argument any) (any, error) {
	list, err := r.arguments(argument, 2)
	if err != nil {
		return nil, err
	}
	return text(list[0]) == text(list[1]), nil
}

// count tells how many of a list of conditions are as wanted.
func (r *resolver) count(argument any, wanted bool) (int, error) {
	list, err := r.list(argument)
	n := 0
	for _, item := range list {
		if (text(item) == "true") == wanted {
			n++
		}
	}
	return n, err
}

func (r *resolver) condition(name string) (bool, error) {
	definition, ok := r.conditions[name]
	if !ok {
		return false, fmt.Errorf("there is no condition %q", name)
	}
	v, err := r.resolve(definition)
	if err != nil {
		return false, fmt.Errorf("condition %s: %w", name, err)
	}
	return text(v) == "true", nil
}

// value is a place in the template. Reading resolves; a mistake is noted in the resolver and reads as absent.
type value struct {
	root *resolver
	path string
	raw  any
}

func (v value) resolved() any {
	resolved, err := v.root.resolve(v.raw)
	if err != nil {
		v.root.problem(v.path, err)
		return nil
	}
	if _, absent := resolved.(noValue); absent {
		return nil
	}
	return resolved
}

func (v value) absent() bool { return v.resolved() == nil }

func (v value) field(name string) value {
	mapping, _ := v.resolved().(object)
	return value{v.root, v.path + "." + name, mapping[name]}
}

// keys are the keys of a mapping, sorted.
func (v value) keys() []string {
	mapping, _ := v.resolved().(object)
	return sortedKeys(mapping)
}

func (v value) items() []value {
	list, _ := v.resolved().([]any)
	items := make([]value, 0, len(list))
	for i, item := range list {
		if item := (value{v.root, fmt.Sprintf("%s[%d]", v.path, i), item}); !item.absent() {
			items = append(items, item)
		}
	}
	return items
}

// text is a scalar as CloudFormation would pass it on; empty when absent.
func (v value) text() string {
	resolved := v.resolved()
	switch resolved.(type) {
	case object, []any:
		v.root.problem(v.path, errors.New("a single value is wanted here"))
		return ""
	}
	return text(resolved)
}

// number is a whole number; 0 when absent.
func (v value) number() int {
	written := v.text()
	if written == "" {
		return 0
	}
	n, err := strconv.Atoi(written)
	if err != nil {
		v.root.problem(v.path, fmt.Errorf("%q is no whole number", written))
	}
	return n
}

func (v value) texts() []string {
	var list []string
	for _, item := range v.items() {
		list = append(list, item.text())
	}
	return list
}

func (v value) pairs() map[string]string {
	pairs := map[string]string{}
	for _, key := range v.keys() {
		pairs[key] = v.field(key).text()
	}
	return pairs
}

func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func sortedKeys(m object) []string { return slices.Sorted(maps.Keys(m)) }

// plain turns YAML into mappings, lists and scalars, with short tags (!Ref) in their long form.
func plain(node *yaml.Node) (any, error) {
	if node.Kind == yaml.AliasNode {
		return plain(node.Alias)
	}
	content, err := content(node)
	if err != nil {
		return nil, err
	}
	tag, short := strings.CutPrefix(node.Tag, "!")
	switch {
	case !short || strings.HasPrefix(tag, "!") || tag == "":
		return content, nil
	case tag == "Ref" || tag == "Condition":
		return object{tag: content}, nil
	}
	return object{"Fn::" + tag: content}, nil
}

func content(node *yaml.Node) (any, error) {
	switch node.Kind {
	case yaml.MappingNode:
		mapping := object{}
		for i := 0; i < len(node.Content); i += 2 {
			v, err := plain(node.Content[i+1])
			if err != nil {
				return nil, err
			}
			mapping[node.Content[i].Value] = v
		}
		return mapping, nil
	case yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, item := range node.Content {
			v, err := plain(item)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	}
	switch node.Tag {
	case "!!null":
		return nil, nil
	case "!!bool":
		var is bool
		err := node.Decode(&is)
		return is, err
	}
	return node.Value, nil // numbers and dates stay as they are written
}
