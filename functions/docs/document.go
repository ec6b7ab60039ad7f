package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"svcapi/functions/docs/samples"
	"svcapi/shared/credit"
)

// placeholder stands for the API's root in the document. The page replaces it by the address it was loaded from.
const placeholder = "{base_url}"

// document is an OpenAPI document in the order in which it was written.
type document struct{ root *yaml.Node }

// operation is one operation of a document.
type operation struct {
	node         *yaml.Node
	method, path string
	shared       *yaml.Node // parameters of its path; nil: none
}

func parse(text []byte) (*document, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, fmt.Errorf("openapi document: %w", err)
	}
	if len(node.Content) == 0 || node.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("openapi document: no mapping")
	}
	return &document{node.Content[0]}, nil
}

// methods are the keys of a path item that are operations (OpenAPI 3.0, "Path Item Object").
var methods = map[string]bool{"get": true, "put": true, "post": true, "delete": true, "options": true, "head": true, "patch": true, "trace": true}

func (d *document) operations() []operation {
	var list []operation
	for path, item := range pairs(at(d.root, "paths")) {
		for method, node := range pairs(item) {
			if methods[method] {
				list = append(list, operation{node, strings.ToUpper(method), path, at(item, "parameters")})
			}
		}
	}
	return list
}

// complete adds what the page shows beside the document: where the API is, what each operation costs on this stack,
// and code samples.
func (d *document) complete(prices credit.Prices) error {
	servers, err := nodeOf([]map[string]string{{"url": "../api/v1", "description": "The stack that serves this document."}})
	if err != nil {
		return err
	}
	set(d.root, "servers", servers)
	sayExtensions(d.root)
	for _, o := range d.operations() {
		if name := text(at(o.node, "x-svc-price")); name != "" {
			price, ok := prices[name]
			if !ok {
				return fmt.Errorf("the environment has no price of %s", name)
			}
			credits, err := nodeOf(price)
			if err != nil {
				return err
			}
			set(o.node, "x-svc-credits", credits)
		}
		written, err := nodeOf(samples.All(d.request(o)))
		if err != nil {
			return err
		}
		set(o.node, "x-codeSamples", written)
	}
	return nil
}

// sayExtensions says in the descriptions what the document marks as an extension: the page shows no marks.
func sayExtensions(node *yaml.Node) {
	const sentence = "*An extension, beyond version 1.0.0 of the contract.*"
	if node.Kind == yaml.MappingNode && text(at(node, "x-svc-extension")) == "true" {
		described := []*yaml.Node{at(node, "description")}
		for method, operation := range pairs(node) { // of a path
			if methods[method] {
				described = append(described, at(operation, "description"))
			}
		}
		for _, description := range described {
			if description != nil {
				description.Value = strings.TrimRight(description.Value, "\n") + "\n\n" + sentence
			}
		}
	}
	for _, child := range node.Content {
		sayExtensions(child)
	}
}

// request is the operation's first example as a request.
func (d *document) request(o operation) samples.Request {
	r := samples.Request{Method: o.method, URL: placeholder + o.path}
	for _, list := range []*yaml.Node{o.shared, at(o.node, "parameters")} {
		for _, parameter := range children(list) {
			parameter = d.resolve(parameter)
			if text(at(parameter, "in")) != "path" {
				continue
			}
			r.URL = strings.ReplaceAll(r.URL, "{"+text(at(parameter, "name"))+"}", text(d.example(parameter)))
		}
	}
	r.Body = d.example(at(d.resolve(at(o.node, "requestBody")), "content", "application/json"))
	for kind := range pairs(at(d.resolve(at(o.node, "responses", "200")), "content")) {
		r.Answer = kind // the first one is what the API answers by default
		break
	}
	return r
}

// example is the example of a parameter or media type, or of its schema; the first where there are several.
func (d *document) example(of *yaml.Node) *yaml.Node {
	for _, one := range pairs(at(of, "examples")) {
		return at(d.resolve(one), "value")
	}
	if one := at(of, "example"); one != nil {
		return one
	}
	return at(d.resolve(at(of, "schema")), "example")
}

// resolve follows a reference within the document.
func (d *document) resolve(node *yaml.Node) *yaml.Node {
	reference := text(at(node, "$ref"))
	if reference == "" {
		return node
	}
	return d.resolve(at(d.root, strings.Split(strings.TrimPrefix(reference, "#/"), "/")...))
}

// json writes the document with its order kept.
func (d *document) json() ([]byte, error) {
	var out bytes.Buffer
	encoder := jsontext.NewEncoder(&out)
	if err := samples.WriteJSON(encoder, d.root); err != nil {
		return nil, fmt.Errorf("openapi document: %w", err)
	}
	return out.Bytes(), nil
}

// pairs are the keys and values of a mapping.
func pairs(mapping *yaml.Node) func(func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		list := children(mapping)
		for i := 0; i+1 < len(list); i += 2 {
			if !yield(list[i].Value, list[i+1]) {
				return
			}
		}
	}
}

func children(node *yaml.Node) []*yaml.Node {
	if node == nil {
		return nil
	}
	return node.Content
}

// at follows keys into nested mappings; nil where one is absent.
func at(node *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var next *yaml.Node
		for name, value := range pairs(node) {
			if name == key {
				next = value
			}
		}
		node = next
	}
	return node
}

// text is the value of a scalar, empty where there is none.
func text(node *yaml.Node) string {
	if node == nil {
		return ""
	}
	return node.Value
}

// set replaces a mapping's value or adds one.
func set(mapping *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content[i+1] = value
			return
		}
	}
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

func nodeOf(value any) (*yaml.Node, error) {
	var node yaml.Node
	err := node.Encode(value)
	return &node, err
}
