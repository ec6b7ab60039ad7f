package main

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"svcapi/functions/docs/samples"
	"svcapi/shared/wallet"
)

// placeholder is the root of the API in code samples. The page replaces the placeholder by its own address.
const placeholder = "{base_url}"

// document is an OpenAPI document with its keys in their original order.
type document struct{ root *yaml.Node }

// operation is one operation of a document.
type operation struct {
	node, item   *yaml.Node // the operation, and the path's item around it
	method, path string
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

func (d *document) operations() []operation {
	var list []operation
	for path, item := range pairs(at(d.root, "paths")) {
		for method, node := range pairs(item) {
			if at(node, "responses") != nil { // only an operation has responses (OpenAPI 3.0, "Path Item Object")
				list = append(list, operation{node, item, strings.ToUpper(method), path})
			}
		}
	}
	return list
}

// complete adds to the document the address of the API, the price of each operation on this stack, and code samples.
func (d *document) complete(prices wallet.Prices) error {
	set(d.root, "servers", []map[string]string{{"url": "../api/v1",
		"description": "The stack that serves this document."}})
	for _, o := range d.operations() {
		if name := text(at(o.node, "x-svc-price")); name != "" {
			price, ok := prices[name]
			if !ok {
				return fmt.Errorf("the environment has no price of %s", name)
			}
			set(o.node, "x-svc-credits", price)
		}
		list, err := samples.All(d.request(o))
		if err != nil {
			return err
		}
		set(o.node, "x-codeSamples", list)
	}
	return nil
}

// request returns the first example of an operation.
func (d *document) request(o operation) samples.Request {
	r := samples.Request{Method: o.method, URL: placeholder + o.path}
	for _, parameter := range d.parameters(o) {
		if text(at(parameter, "in")) == "path" {
			r.URL = strings.ReplaceAll(r.URL, "{"+text(at(parameter, "name"))+"}", text(d.example(parameter)))
		}
	}
	r.Body = d.example(at(d.resolve(at(o.node, "requestBody")), "content", "application/json"))
	for kind := range pairs(at(d.resolve(at(o.node, "responses", "200")), "content")) {
		r.MediaType = kind // the first media type is the default of the API
		break
	}
	return r
}

// parameters returns the parameters of an operation, first those of its path.
func (d *document) parameters(o operation) []*yaml.Node {
	list := slices.Concat(children(at(o.item, "parameters")), children(at(o.node, "parameters")))
	for i, parameter := range list {
		list[i] = d.resolve(parameter)
	}
	return list
}

// example returns the first example of a parameter or media type, or of its schema.
func (d *document) example(of *yaml.Node) *yaml.Node {
	for _, first := range pairs(at(of, "examples")) {
		return at(d.resolve(first), "value")
	}
	return cmp.Or(at(of, "example"), at(d.resolve(at(of, "schema")), "example"))
}

// resolve follows a reference within the document.
func (d *document) resolve(node *yaml.Node) *yaml.Node {
	reference := text(at(node, "$ref"))
	if reference == "" {
		return node
	}
	return d.resolve(at(d.root, strings.Split(strings.TrimPrefix(reference, "#/"), "/")...))
}

// json returns the document as JSON in its original order.
func (d *document) json() ([]byte, error) {
	var out bytes.Buffer
	err := samples.WriteJSON(jsontext.NewEncoder(&out), d.root)
	return out.Bytes(), err
}

// playground removes everything that the playgrounds of the page do not need, and returns the document.
func (d *document) playground() *document {
	for _, o := range d.operations() {
		set(o.node, "description", "")
		set(o.node, "responses", "")
	}
	for _, part := range []string{"headers", "responses", "schemas"} {
		set(at(d.root, "components"), part, "")
	}
	return d
}

// pairs iterates over the keys and values of a mapping.
func pairs(mapping *yaml.Node) iter.Seq2[string, *yaml.Node] {
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

// at follows keys into nested mappings and returns the value, nil where a key is absent.
func at(node *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		mapping := node
		node = nil
		for name, value := range pairs(mapping) {
			if name == key {
				node = value
			}
		}
	}
	return node
}

// values returns the values of a list of scalars.
func values(list *yaml.Node) (values []string) {
	for _, node := range children(list) {
		values = append(values, node.Value)
	}
	return values
}

// text returns the value of a scalar, empty for nil.
func text(node *yaml.Node) string {
	if node == nil {
		return ""
	}
	return node.Value
}

// set replaces or adds a value of a mapping.
func set(mapping *yaml.Node, key string, value any) {
	var node yaml.Node
	_ = node.Encode(value) // the values of this package have a form in YAML
	if existing := at(mapping, key); existing != nil {
		*existing = node
	} else {
		mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, &node)
	}
}
