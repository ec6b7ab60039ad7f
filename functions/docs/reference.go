package main

import (
	"bytes"
	"cmp"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"go.yaml.in/yaml/v3"

	"svcapi/functions/docs/samples"
	"svcapi/shared/wallet"
)

// group is one tag of the document with its operations.
type group struct {
	Name       string
	Operations []entry
}

// entry is an operation as the page shows it.
type entry struct {
	ID, Method, Path, Summary, Price string
	Anchor                           template.URL // also the ID of the operation's element
	Extension                        bool
	Description                      template.HTML
	Parameters                       map[string][]field // by their place: path, query, header
	Bodies                           []variant
	Success                          response
	Errors                           []response // those that few other operations have, too
}

// field is a parameter, a header, or a field of a body.
type field struct {
	ID, Name, Type, Rule, Default, Pattern string
	Required, Extension                    bool
	Description                            template.HTML
}

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
	markdown goldmark.Markdown   // nil: descriptions stay as the document has them
	users    map[string][]string // tags that use a shared response, by its name
	statuses map[string]string   // of shared responses, by name
}

// newReference returns the reference of a document. markdown converts the descriptions.
func newReference(d *document, markdown goldmark.Markdown) *reference {
	r := &reference{
		document: d, markdown: markdown,
		users: map[string][]string{}, statuses: map[string]string{},
	}
	for _, o := range d.operations() {
		for status, node := range pairs(at(o.node, "responses")) {
			name := last(text(at(node, "$ref")))
			r.statuses[name] = status
			if !slices.Contains(r.users[name], tag(o)) {
				r.users[name] = append(r.users[name], tag(o))
			}
		}
	}
	return r
}

// shared reports whether operations of more than two groups have a response. The page shows such a response once.
func (r *reference) shared(name string) bool { return name != "" && len(r.users[name]) > 2 }

// groups returns the operations under their tags, in the document's order of tags.
func (r *reference) groups() []group {
	var list []group
	for _, t := range children(at(r.root, "tags")) {
		g := group{Name: text(at(t, "name"))}
		for _, o := range r.operations() {
			if tag(o) == g.Name {
				g.Operations = append(g.Operations, r.entry(o))
			}
		}
		list = append(list, g)
	}
	return list
}

func (r *reference) entry(o operation) entry {
	id := text(at(o.node, "operationId"))
	e := entry{
		ID:     id,
		Anchor: template.URL("/" + url.PathEscape(tag(o)) + "/" + id), //nolint:gosec // names of openapi.yaml
		Method: o.method, Path: o.path, Summary: text(at(o.node, "summary")), Price: price(o),
		Extension: marked(o.node) || marked(o.item), Parameters: map[string][]field{}, Description: r.html(o.node),
	}
	for _, node := range r.parameters(o) {
		place := text(at(node, "in"))
		e.Parameters[place] = append(e.Parameters[place], r.parameter(id+".", text(at(node, "name")), node))
	}
	e.Bodies = r.variants(id+".", at(r.resolve(at(o.node, "requestBody")), "content", "application/json", "schema"))
	for status, node := range pairs(at(o.node, "responses")) {
		if r.shared(last(text(at(node, "$ref")))) {
			continue
		}
		if shown := r.response(id+"."+status, status, node); status == "200" {
			e.Success = shown
		} else {
			e.Errors = append(e.Errors, shown)
		}
	}
	return e
}

// common returns the responses that operations of many groups share, in the document's order.
func (r *reference) common() (list []response) {
	for name, node := range pairs(at(r.root, "components", "responses")) {
		if r.shared(name) {
			list = append(list, r.response("error."+name, r.statuses[name], node))
		}
	}
	return list
}

// response describes one response. The fields of an error's envelope are the same everywhere, so errors have none.
func (r *reference) response(id, status string, node *yaml.Node) response {
	node = r.resolve(node)
	shown := response{ID: id, Status: status, Extension: marked(node), Description: r.html(node)}
	for name, header := range pairs(at(node, "headers")) {
		shown.Headers = append(shown.Headers, r.parameter(id+".", name, r.resolve(header)))
	}
	for kind, m := range pairs(at(node, "content")) {
		form := media{Type: kind}
		if status < "400" {
			// The fields of a success are those of its envelope's field data.
			schema := at(m, "schema")
			form.Variants = r.variants(id+".", cmp.Or(at(r.resolve(schema), "properties", "data"), schema))
		}
		shown.Media = append(shown.Media, form)
		for _, e := range pairs(at(m, "examples")) {
			e = r.resolve(e)
			shown.add(text(at(e, "summary")), at(e, "value"))
		}
		if value := at(m, "example"); value != nil {
			shown.add("Example", value)
		}
	}
	return shown
}

// add adds an example, and the error code and the reason of the example.
func (r *response) add(title string, value *yaml.Node) {
	r.Examples = append(r.Examples, example{title, samples.Pretty(value)})
	for _, code := range []string{text(at(value, "error", "code")), text(at(value, "error", "details", "reason"))} {
		if code != "" && !slices.Contains(r.Codes, code) {
			r.Codes = append(r.Codes, code)
		}
	}
}

// variants returns the forms of a body: one for each alternative that a field of one value selects, otherwise one.
func (r *reference) variants(prefix string, schema *yaml.Node) (list []variant) {
	schema = r.resolve(schema)
	for _, alternative := range children(at(schema, "oneOf")) {
		for name, property := range pairs(at(r.resolve(alternative), "properties")) {
			if values := values(at(r.resolve(property), "enum")); len(values) == 1 {
				list = append(list, variant{name + ": " + values[0], r.fields(prefix+values[0]+".", "", alternative)})
				break
			}
		}
	}
	if len(list) > 0 {
		return list
	}
	if fields := r.fields(prefix, "", schema); len(fields) > 0 {
		list = []variant{{Fields: fields}}
	}
	return list
}

// fields returns the fields of a schema and of the objects within it; path is the name of the object, empty for the
// body.
func (r *reference) fields(prefix, path string, schema *yaml.Node) (list []field) {
	schema = r.resolve(schema)
	add := func(more ...field) {
		for _, f := range more {
			if !slices.ContainsFunc(list, func(known field) bool { return known.Name == f.Name }) {
				list = append(list, f)
			}
		}
	}
	for _, part := range slices.Concat(children(at(schema, "allOf")), children(at(schema, "oneOf"))) {
		add(r.fields(prefix, path, part)...)
	}
	if items := at(schema, "items"); items != nil {
		add(r.fields(prefix, path+"[]", items)...)
	}
	for name, property := range pairs(at(schema, "properties")) {
		required := slices.Contains(values(at(schema, "required")), name)
		name = strings.TrimPrefix(path+"."+name, ".")
		add(r.field(prefix, name, r.resolve(property), property, required))
		add(r.fields(prefix, name, property)...)
	}
	return list
}

// parameter describes a parameter or header.
func (r *reference) parameter(prefix, name string, node *yaml.Node) field {
	return r.field(prefix, name, node, at(node, "schema"), text(at(node, "required")) == "true")
}

// field describes a field or parameter; described is the node that has the description.
func (r *reference) field(prefix, name string, described, schema *yaml.Node, required bool) field {
	schema = r.resolve(schema)
	typed := schema
	for at(typed, "type") == nil && len(children(at(typed, "allOf"))) > 0 { // a schema that gives another one a default
		typed = r.resolve(children(at(typed, "allOf"))[0])
	}
	return field{
		ID: prefix + name, Name: name, Type: r.kind(typed), Rule: rule(typed,
			r.resolve(at(typed, "items"))), Default: text(at(schema, "default")),
		Pattern:  cmp.Or(text(at(typed, "pattern")), text(at(r.resolve(at(typed, "items")), "pattern"))),
		Required: required, Extension: marked(described), Description: r.html(described, schema, typed),
	}
}

// kind names the type of a schema.
func (r *reference) kind(schema *yaml.Node) string {
	kind := text(at(schema, "type"))
	switch kind {
	case "array":
		kind = "array of " + r.kind(r.resolve(at(schema, "items")))
	case "":
		var kinds []string
		for _, alternative := range children(at(schema, "oneOf")) {
			kinds = append(kinds, r.kind(r.resolve(alternative)))
		}
		kind = cmp.Or(strings.Join(slices.Compact(kinds), " or "), "object")
	}
	if text(at(schema, "nullable")) == "true" {
		kind += " or null"
	}
	return kind
}

// rule says which values a schema permits; items is the schema of an array's items, nil otherwise.
func rule(schema, items *yaml.Node) string {
	var rules []string
	if names := values(at(schema, "enum")); len(names) == 1 {
		rules = names
	} else if len(names) > 1 {
		rules = []string{"one of " + strings.Join(names, ", ")}
	}
	for _, limit := range []struct{ least, most, unit string }{
		{"minimum", "maximum", ""}, {"minLength", "maxLength", " characters"}, {"minItems", "maxItems", " items"},
	} {
		least, most := grouped(at(schema, limit.least)), grouped(at(schema, limit.most))
		switch {
		case least != "" && most != "":
			rules = append(rules, least+" to "+most+limit.unit)
		case least == "1":
			rules = append(rules, "at least 1"+strings.TrimSuffix(limit.unit, "s"))
		case least != "":
			rules = append(rules, "at least "+least+limit.unit)
		case most != "":
			rules = append(rules, "at most "+most+limit.unit)
		}
	}
	if items != nil {
		if each := rule(items, nil); each != "" {
			rules = append(rules, "each "+each)
		}
	}
	return strings.Join(rules, "; ")
}

// grouped returns a number with its digits in groups of three, or the text of another scalar.
func grouped(node *yaml.Node) string {
	if n, err := strconv.ParseInt(text(node), 10, 64); err == nil {
		return wallet.Grouped(n)
	}
	return text(node)
}

// html renders the first description of the nodes, which is CommonMark with tables.
func (r *reference) html(nodes ...*yaml.Node) template.HTML {
	source := ""
	for _, node := range nodes {
		source = cmp.Or(source, text(at(node, "description")))
	}
	if r.markdown == nil {
		return template.HTML(strings.TrimSpace(source)) //nolint:gosec // llms.txt is plain text
	}
	var out bytes.Buffer
	_ = r.markdown.Convert([]byte(source), &out) // a write into memory cannot fail
	return template.HTML(out.String())           //nolint:gosec // openapi.yaml's text, without raw HTML
}

// tag is the first tag of an operation, empty for none.
func tag(o operation) string { return append(values(at(o.node, "tags")), "")[0] }

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
	cost := wallet.Grouped(credits) + " credits"
	name, rows := text(at(o.node, "x-svc-price")), wallet.PriceList()
	if i := slices.IndexFunc(rows, func(p wallet.Price) bool { return p.Name == name }); i >= 0 && rows[i].Unit != "" {
		cost += " a " + rows[i].Unit
	}
	return cost
}
