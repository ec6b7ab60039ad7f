package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"go.yaml.in/yaml/v3"

	"svcapi/functions/docs/samples"
	"svcapi/shared/credit"
)

// group is one tag of the document with its operations.
type group struct {
	Name, ID   string
	Operations []entry
}

// entry is an operation as the page shows it.
type entry struct {
	ID, Method, Path, Summary, Price string
	Anchor                           template.URL // also the ID of the operation's element
	Extension                        bool
	Description                      template.HTML
	Parameters                       map[string][]field // by their place: path, header
	Bodies                           []variant
	Success                          response
	Errors                           []response // those that few other operations have, too
}

// field is a parameter, a header, or a field of a body.
type field struct {
	ID, Name, Type, Rule, Default string
	Required, Extension           bool
	Description                   template.HTML
}

// Parts returns the path cut after each slash, where a narrow page may break it.
func (e entry) Parts() []string { return strings.SplitAfter(e.Path, "/") }

// Parts returns the name cut after each dot, where a narrow page may break it.
func (f field) Parts() []string { return strings.SplitAfter(f.Name, ".") }

// variant is one form of a body, such as that of one send_method.
type variant struct {
	Name   string // empty: the only form
	Fields []field
}

// response is a response of an operation, or one that operations share.
type response struct {
	ID, Status  string
	Codes       []string
	Extension   bool
	Description template.HTML
	Headers     []field
	Media       []media
	Examples    []example
}

// media is a form of a response's body.
type media struct {
	Type     string
	Variants []variant
}

// example is a JSON body with its title.
type example struct{ Title, JSON string }

// reference turns the document into the content of the page.
type reference struct {
	*document
	markdown goldmark.Markdown
	users    map[string]map[string]bool // tags that use a shared response, by its name
	statuses map[string]string          // of shared responses, by name
}

// newReference returns the reference of a document.
func newReference(d *document) *reference {
	r := &reference{
		document: d, markdown: goldmark.New(goldmark.WithExtensions(extension.Table)),
		users: map[string]map[string]bool{}, statuses: map[string]string{},
	}
	for _, o := range d.operations() {
		for status, node := range pairs(at(o.node, "responses")) {
			name := last(text(at(node, "$ref")))
			r.statuses[name] = status
			if r.users[name] == nil {
				r.users[name] = map[string]bool{}
			}
			r.users[name][tag(o)] = true
		}
	}
	return r
}

// shared reports whether operations of more than two groups have a response. The page shows such a response once.
func (r *reference) shared(name string) bool { return name != "" && len(r.users[name]) > 2 }

// groups returns the operations under their tags, in the document's order of tags.
func (r *reference) groups() ([]group, error) {
	var list []group
	for _, t := range children(at(r.root, "tags")) {
		g := group{Name: text(at(t, "name"))}
		g.ID = url.PathEscape(g.Name)
		for _, o := range r.operations() {
			if tag(o) != g.Name {
				continue
			}
			e, err := r.entry(o, g)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.ID, err)
			}
			g.Operations = append(g.Operations, e)
		}
		list = append(list, g)
	}
	return list, nil
}

func (r *reference) entry(o operation, g group) (e entry, err error) {
	id := text(at(o.node, "operationId"))
	e = entry{
		ID: id, Anchor: template.URL("/" + g.ID + "/" + id), //nolint:gosec // the names are those of openapi.yaml
		Method: o.method, Path: o.path, Summary: text(at(o.node, "summary")), Price: price(o),
		Extension: marked(o.node) || marked(o.item), Parameters: map[string][]field{},
	}
	if e.Description, err = r.html(text(at(o.node, "description"))); err != nil {
		return e, err
	}
	for _, list := range []*yaml.Node{at(o.item, "parameters"), at(o.node, "parameters")} {
		for _, node := range children(list) {
			node = r.resolve(node)
			f, err := r.field(id+".", text(at(node, "name")), node, at(node, "schema"), text(at(node, "required")) == "true")
			if err != nil {
				return e, err
			}
			place := text(at(node, "in"))
			e.Parameters[place] = append(e.Parameters[place], f)
		}
	}
	body := at(r.resolve(at(o.node, "requestBody")), "content", "application/json", "schema")
	if e.Bodies, err = r.variants(id+".", body); err != nil {
		return e, err
	}
	for status, node := range pairs(at(o.node, "responses")) {
		if r.shared(last(text(at(node, "$ref")))) {
			continue
		}
		shown, err := r.response(id+"."+status, status, node)
		switch {
		case err != nil:
			return e, err
		case status == "200":
			e.Success = shown
		default:
			e.Errors = append(e.Errors, shown)
		}
	}
	return e, nil
}

// common returns the responses that operations of many groups share, in the document's order.
func (r *reference) common() ([]response, error) {
	var list []response
	for name, node := range pairs(at(r.root, "components", "responses")) {
		if !r.shared(name) {
			continue
		}
		shown, err := r.response("error."+name, r.statuses[name], node)
		if err != nil {
			return nil, err
		}
		list = append(list, shown)
	}
	return list, nil
}

// response describes one response. The fields of an error's envelope are the same everywhere, so errors have none.
func (r *reference) response(id, status string, node *yaml.Node) (response, error) {
	node = r.resolve(node)
	code, _ := strconv.Atoi(status)
	shown := response{ID: id, Status: status, Extension: marked(node)}
	var err error
	if shown.Description, err = r.html(text(at(node, "description"))); err != nil {
		return shown, err
	}
	for name, header := range pairs(at(node, "headers")) {
		header = r.resolve(header)
		f, err := r.field(id+".", name, header, at(header, "schema"), text(at(header, "required")) == "true")
		if err != nil {
			return shown, err
		}
		shown.Headers = append(shown.Headers, f)
	}
	for kind, m := range pairs(at(node, "content")) {
		form := media{Type: kind}
		if code < 400 {
			if form.Variants, err = r.variants(id+".", r.data(at(m, "schema"))); err != nil {
				return shown, err
			}
		}
		shown.Media = append(shown.Media, form)
		shown.Examples = append(shown.Examples, r.examples(m)...)
	}
	shown.Codes = codes(shown.Examples)
	return shown, nil
}

// codes returns the error codes of a response's examples.
func codes(examples []example) []string {
	var list []string
	for _, e := range examples {
		var envelope struct{ Error struct{ Code string } }
		if json.Unmarshal([]byte(e.JSON), &envelope) == nil && envelope.Error.Code != "" && !slices.Contains(list, envelope.Error.Code) {
			list = append(list, envelope.Error.Code)
		}
	}
	return list
}

// examples returns the examples of a media type.
func (r *reference) examples(m *yaml.Node) []example {
	var list []example
	for _, e := range pairs(at(m, "examples")) {
		e = r.resolve(e)
		list = append(list, example{text(at(e, "summary")), samples.Pretty(at(e, "value"))})
	}
	if value := at(m, "example"); value != nil {
		list = append(list, example{"Example", samples.Pretty(value)})
	}
	return list
}

// data returns the schema of the field data where a schema is the envelope of success.
func (r *reference) data(schema *yaml.Node) *yaml.Node {
	if inner := at(r.resolve(schema), "properties", "data"); inner != nil {
		return inner
	}
	return schema
}

// variants returns the forms of a body: one for each alternative that a field of one value selects, otherwise one.
func (r *reference) variants(prefix string, schema *yaml.Node) ([]variant, error) {
	schema = r.resolve(schema)
	var list []variant
	for _, alternative := range children(at(schema, "oneOf")) {
		for name, property := range pairs(at(r.resolve(alternative), "properties")) {
			values := children(at(r.resolve(property), "enum"))
			if len(values) != 1 {
				continue
			}
			fields, err := r.fields(prefix+values[0].Value+".", "", alternative)
			if err != nil {
				return nil, err
			}
			list = append(list, variant{name + ": " + values[0].Value, fields})
			break
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	fields, err := r.fields(prefix, "", schema)
	if err != nil || len(fields) == 0 {
		return nil, err
	}
	return []variant{{Fields: fields}}, nil
}

// fields returns the fields of a schema and of the objects within it; path is the name of the object, empty for the body.
func (r *reference) fields(prefix, path string, schema *yaml.Node) ([]field, error) {
	schema = r.resolve(schema)
	var list []field
	add := func(more []field, err error) error {
		for _, f := range more {
			if !slices.ContainsFunc(list, func(known field) bool { return known.Name == f.Name }) {
				list = append(list, f)
			}
		}
		return err
	}
	for _, key := range []string{"allOf", "oneOf"} {
		for _, part := range children(at(schema, key)) {
			if err := add(r.fields(prefix, path, part)); err != nil {
				return nil, err
			}
		}
	}
	if items := at(schema, "items"); items != nil {
		if err := add(r.fields(prefix, path+"[]", items)); err != nil {
			return nil, err
		}
	}
	for name, property := range pairs(at(schema, "properties")) {
		required := slices.ContainsFunc(children(at(schema, "required")), func(n *yaml.Node) bool { return n.Value == name })
		name = strings.TrimPrefix(path+"."+name, ".")
		f, err := r.field(prefix, name, r.resolve(property), property, required)
		if err := add([]field{f}, err); err != nil {
			return nil, err
		}
		if err := add(r.fields(prefix, name, property)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// field describes a field or parameter; described is the node that has the description.
func (r *reference) field(prefix, name string, described, schema *yaml.Node, required bool) (field, error) {
	schema = r.resolve(schema)
	typed := schema
	for at(typed, "type") == nil && len(children(at(typed, "allOf"))) > 0 { // a schema that gives another one a default
		typed = r.resolve(children(at(typed, "allOf"))[0])
	}
	f := field{
		ID: prefix + name, Name: name, Type: r.kind(typed), Rule: rule(typed, r.resolve(at(typed, "items"))), Default: text(at(schema, "default")),
		Required: required, Extension: marked(described),
	}
	var err error
	for _, node := range []*yaml.Node{described, schema, typed} {
		if f.Description == "" {
			if f.Description, err = r.html(text(at(node, "description"))); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

// kind names the type of a schema.
func (r *reference) kind(schema *yaml.Node) string {
	kind := text(at(schema, "type"))
	switch kind {
	case "array":
		kind = "array of " + r.kind(r.resolve(at(schema, "items")))
	case "":
		kind = "object"
	}
	if text(at(schema, "nullable")) == "true" {
		kind += " or null"
	}
	return kind
}

// rule says which values a schema permits; items is the schema of an array's items, nil otherwise.
func rule(schema, items *yaml.Node) string {
	var rules []string
	if values := children(at(schema, "enum")); len(values) > 0 {
		var names []string
		for _, v := range values {
			names = append(names, v.Value)
		}
		if len(names) > 1 {
			names[0] = "one of " + names[0]
		}
		rules = append(rules, strings.Join(names, ", "))
	}
	for _, limit := range []struct{ least, most, unit string }{
		{"minimum", "maximum", ""}, {"minLength", "maxLength", " characters"}, {"minItems", "maxItems", " items"},
	} {
		least, most := grouped(at(schema, limit.least)), grouped(at(schema, limit.most))
		switch {
		case least != "" && most != "":
			rules = append(rules, least+" to "+most+limit.unit)
		case least != "":
			rules = append(rules, "at least "+least+strings.TrimSuffix(limit.unit, plural(least)))
		case most != "":
			rules = append(rules, "at most "+most+limit.unit)
		}
	}
	if pattern := text(at(schema, "pattern")); pattern != "" {
		rules = append(rules, "matches "+pattern)
	}
	if items != nil {
		if each := rule(items, nil); each != "" {
			rules = append(rules, "each "+each)
		}
	}
	return strings.Join(rules, "; ")
}

// plural returns the ending that a unit loses after the number one.
func plural(number string) string {
	if number == "1" {
		return "s"
	}
	return ""
}

// grouped returns a number with its digits in groups of three, or the text of another scalar.
func grouped(node *yaml.Node) string {
	if n, err := strconv.ParseInt(text(node), 10, 64); err == nil {
		return credit.Grouped(n)
	}
	return text(node)
}

// html renders a description, which is CommonMark with tables.
func (r *reference) html(source string) (template.HTML, error) {
	var out bytes.Buffer
	err := r.markdown.Convert([]byte(source), &out)
	return template.HTML(out.String()), err //nolint:gosec // the text is that of openapi.yaml, and goldmark drops raw HTML
}

// tag is the first tag of an operation.
func tag(o operation) string {
	for _, t := range children(at(o.node, "tags")) {
		return t.Value
	}
	return ""
}

// marked reports whether a part of the document is an extension of version 1.0.0 of the contract.
func marked(node *yaml.Node) bool { return text(at(node, "x-svc-extension")) == "true" }

// last returns the last name of a reference.
func last(reference string) string { return reference[strings.LastIndex(reference, "/")+1:] }

// price returns the price of a call on a Managed integration.
func price(o operation) string {
	credits, err := strconv.ParseInt(text(at(o.node, "x-svc-credits")), 10, 64)
	if err != nil || credits == 0 {
		return "free"
	}
	cost := credit.Grouped(credits) + " credits"
	name, rows := text(at(o.node, "x-svc-price")), credit.PriceList()
	if i := slices.IndexFunc(rows, func(p credit.Price) bool { return p.Operation == name }); i >= 0 && rows[i].Unit != "" {
		cost += " a " + rows[i].Unit
	}
	return cost
}
