// Package policy holds the rules that the compiler, sam validate and cfn-lint do not check: over
// template.yaml, openapi.yaml, the events, and which package may import which. It has tests only;
// this file reads the files that they check.
package policy

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// root is a path inside the repository, seen from this package's folder.
func root(elements ...string) string {
	return filepath.Join(append([]string{"..", ".."}, elements...)...)
}

// object is a YAML mapping. An intrinsic in short form, such as !Ref Stage, is one too:
// {"Ref": "Stage"}.
type object map[string]any

// templateFile is a CloudFormation template as written, intrinsics unresolved.
type templateFile struct {
	text string
	doc  object
}

// resource is one resource of a stack.
type resource struct {
	id         string
	kind       string
	attributes object // DeletionPolicy, Metadata and their like
	properties object // with what Globals gives a function
}

// parse reads a template.
func parse(text string) (*templateFile, error) {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	if len(node.Content) == 0 {
		return nil, errors.New("template: empty")
	}
	value, err := plain(node.Content[0])
	if err != nil {
		return nil, err
	}
	doc, ok := value.(object)
	if !ok {
		return nil, errors.New("template: no mapping")
	}
	return &templateFile{text: text, doc: doc}, nil
}

// readTemplate reads template.yaml.
func readTemplate() (*templateFile, error) {
	text, err := os.ReadFile(root("template.yaml"))
	if err != nil {
		return nil, err
	}
	return parse(string(text))
}

// plain turns a YAML node into objects, []any and scalars.
func plain(node *yaml.Node) (any, error) {
	value, err := bare(node)
	if err != nil || !strings.HasPrefix(node.Tag, "!") || strings.HasPrefix(node.Tag, "!!") {
		return value, err
	}
	name := strings.TrimPrefix(node.Tag, "!")
	if text, ok := value.(string); ok && name == "GetAtt" {
		id, attribute, _ := strings.Cut(text, ".")
		value = []any{id, attribute}
	}
	if name != "Ref" && name != "Condition" {
		name = "Fn::" + name
	}
	return object{name: value}, nil
}

func bare(node *yaml.Node) (any, error) {
	switch node.Kind {
	case yaml.MappingNode:
		out := object{}
		for i := 0; i < len(node.Content); i += 2 {
			key := node.Content[i].Value
			if _, twice := out[key]; twice {
				return nil, fmt.Errorf("line %d: %s occurs twice", node.Content[i].Line, key)
			}
			value, err := plain(node.Content[i+1])
			if err != nil {
				return nil, err
			}
			out[key] = value
		}
		return out, nil
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range node.Content {
			value, err := plain(item)
			if err != nil {
				return nil, err
			}
			out = append(out, value)
		}
		return out, nil
	case yaml.ScalarNode:
		if strings.HasPrefix(node.Tag, "!") && !strings.HasPrefix(node.Tag, "!!") {
			return node.Value, nil
		}
		var value any
		if err := node.Decode(&value); err != nil {
			return nil, fmt.Errorf("line %d: %w", node.Line, err)
		}
		return value, nil
	default:
		return nil, fmt.Errorf("line %d: anchors and aliases are not used here", node.Line)
	}
}

// at follows keys into nested objects; nil where one is absent.
func (o object) at(keys ...string) any {
	var value any = o
	for _, key := range keys {
		inner, ok := value.(object)
		if !ok {
			return nil
		}
		value = inner[key]
	}
	return value
}

// object is the object at keys, empty where there is none.
func (o object) object(keys ...string) object {
	value, _ := o.at(keys...).(object)
	return value
}

// list is the list at keys. One value counts as a list of itself.
func (o object) list(keys ...string) []any {
	switch value := o.at(keys...).(type) {
	case nil:
		return nil
	case []any:
		return value
	default:
		return []any{value}
	}
}

// text is the string at keys, empty where there is none.
func (o object) text(keys ...string) string {
	value, _ := o.at(keys...).(string)
	return value
}

// ref is the name that {"Ref": name} holds, else empty.
func ref(value any) string {
	inner, _ := value.(object)
	return inner.text("Ref")
}

// names are an object's keys in order.
func (o object) names() []string {
	out := make([]string, 0, len(o))
	for name := range o {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// resources are the resources of one type, by logical ID.
func (s *templateFile) resources(kind string) []resource {
	var out []resource
	all := s.doc.object("Resources")
	for _, id := range all.names() {
		attributes := all.object(id)
		if attributes.text("Type") != kind {
			continue
		}
		properties := object{}
		if kind == "AWS::Serverless::Function" {
			properties = merge(properties, s.doc.object("Globals", "Function"))
		}
		properties = merge(properties, attributes.object("Properties"))
		out = append(out, resource{id: id, kind: kind, attributes: attributes, properties: properties})
	}
	return out
}

// functions are the stack's functions.
func (s *templateFile) functions() []resource { return s.resources("AWS::Serverless::Function") }

// merge lays b over a. Objects merge, all else replaces, as SAM does with Globals.
func merge(a, b object) object {
	out := maps.Clone(a)
	if out == nil {
		out = object{}
	}
	for key, value := range b {
		below, isBelow := out[key].(object)
		above, isAbove := value.(object)
		if isBelow && isAbove && ref(value) == "" {
			value = merge(below, above)
		}
		out[key] = value
	}
	return out
}

// folder is the name of a function in events, logs and alarms: its logical ID without "Function".
func (r resource) folder() string {
	return strings.ToLower(strings.TrimSuffix(r.id, "Function"))
}

// events are a function's events of one type.
func (r resource) events(kind string) []object {
	var out []object
	events := r.properties.object("Events")
	for _, name := range events.names() {
		if events.text(name, "Type") == kind {
			out = append(out, events.object(name, "Properties"))
		}
	}
	return out
}

// routes maps the path of every Api event to the function that serves it.
func (s *templateFile) routes() map[string]string {
	out := map[string]string{}
	for _, function := range s.functions() {
		for _, event := range function.events("Api") {
			out[event.text("Path")] = function.id
		}
	}
	return out
}

// walk calls visit for every key of every object in value, with the path to it.
func walk(value any, path string, visit func(path, key string, value any)) {
	switch value := value.(type) {
	case object:
		for _, key := range value.names() {
			visit(path, key, value[key])
			walk(value[key], path+"/"+key, visit)
		}
	case []any:
		for i, item := range value {
			walk(item, fmt.Sprintf("%s/%d", path, i), visit)
		}
	}
}

// role is the role that a function names, the zero resource where it names none of the template.
func (s *templateFile) role(function resource) resource {
	parts := function.properties.list("Role", "Fn::GetAtt")
	for _, role := range s.resources("AWS::IAM::Role") {
		if len(parts) == 2 && parts[0] == role.id && parts[1] == "Arn" {
			return role
		}
	}
	return resource{}
}

// policies are the documents of the policies that a function's role has under any parameters: its own, and the managed
// policies of the template that it names without a condition.
func (s *templateFile) policies(function resource) []object {
	role := s.role(function).properties
	var out []object
	for _, item := range role.list("Policies") {
		policy, _ := item.(object)
		out = append(out, policy.object("PolicyDocument"))
	}
	for _, item := range role.list("ManagedPolicyArns") {
		if id := ref(item); id != "" {
			out = append(out, s.doc.object("Resources", id, "Properties", "PolicyDocument"))
		}
	}
	return out
}
