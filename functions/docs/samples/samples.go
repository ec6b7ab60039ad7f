// Package samples writes an example request as code in several languages.
package samples

import (
	"bytes"
	"embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"text/template"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// Request is an example request of an operation.
type Request struct {
	Method    string
	URL       string
	Body      *yaml.Node // of a POST; nil: none
	MediaType string     // of the response
}

// Sample is one item of the extension x-codeSamples, which documentation tools know.
type Sample struct {
	Lang   string `yaml:"lang"`
	Label  string `yaml:"label"`
	Source string `yaml:"source"`
}

// Header is a header of a request.
type Header struct{ Name, Value string }

// labels are listed in the order of the page. Each has a template of its name in lower case, which receives a Request.
var labels = []string{"curl", "JavaScript", "Python", "Go", "PHP"}

//go:embed templates
var files embed.FS

// templates parses the templates at its first call, and not before the function asks for its first event.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("samples").Funcs(template.FuncMap{
		"indent": indent, "json": Pretty, "lower": strings.ToLower, "phpQuoted": phpQuoted, "python": python,
		"quoted": quoted, "raw": raw, "shell": shell,
	}).ParseFS(files, "templates/*.tmpl"))
})

// All returns the request in every language.
func All(r Request) ([]Sample, error) {
	var list []Sample
	for _, label := range labels {
		var source bytes.Buffer
		if err := templates().ExecuteTemplate(&source, strings.ToLower(label)+".tmpl", r); err != nil {
			return nil, fmt.Errorf("code sample: %w", err)
		}
		lang := strings.Replace(label, "curl", "Shell", 1)
		list = append(list, Sample{lang, label, strings.TrimRight(source.String(), "\n")})
	}
	return list, nil
}

// Headers returns the headers of every sample. The values are placeholders that a reader recognises as such.
func (r Request) Headers() []Header {
	list := []Header{{"X-API-KEY", "<API_KEY>"}, {"X-API-SECRET", "<API_SECRET>"}, {"X-ENV", "development"}}
	if r.Body != nil {
		list = append(list, Header{"Content-Type", "application/json"})
	}
	return list
}

// File returns the file into which a sample saves the response, or nothing for JSON.
func (r Request) File() string {
	return map[string]string{"image/png": "code.png", "image/svg+xml": "code.svg",
		"application/pdf": "document.pdf"}[r.MediaType]
}

// shell returns a literal in single quotes, where a shell replaces nothing.
func shell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// raw returns a Go raw string literal, or an interpreted literal for text with a back quote.
func raw(s string) string {
	if strings.ContainsAny(s, "`\r") {
		return quoted(s)
	}
	return "`" + s + "`"
}

// WriteJSON writes a YAML value as JSON in the order of the YAML value.
func WriteJSON(encoder *jsontext.Encoder, node *yaml.Node) error {
	open, closing := jsontext.BeginObject, jsontext.EndObject
	switch node.Kind {
	case yaml.SequenceNode:
		open, closing = jsontext.BeginArray, jsontext.EndArray
	case yaml.MappingNode:
	case yaml.ScalarNode:
		return encoder.WriteToken(token(node))
	default:
		return fmt.Errorf("line %d: anchors and aliases are not used here", node.Line)
	}
	if err := encoder.WriteToken(open); err != nil {
		return err
	}
	for i, child := range node.Content {
		var err error
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			err = encoder.WriteToken(jsontext.String(child.Value)) // also the number 200 of a response is a name
		} else {
			err = WriteJSON(encoder, child)
		}
		if err != nil {
			return err
		}
	}
	return encoder.WriteToken(closing)
}

func token(node *yaml.Node) jsontext.Token {
	switch node.Tag {
	case "!!null":
		return jsontext.Null
	case "!!bool":
		return jsontext.Bool(strings.EqualFold(node.Value, "true"))
	case "!!int", "!!float":
		var n float64
		if node.Decode(&n) == nil {
			return jsontext.Float(n)
		}
	}
	return jsontext.String(node.Value)
}

// Pretty returns a value as JSON over several lines, in the order of the YAML value.
func Pretty(node *yaml.Node) string {
	var out bytes.Buffer
	// the same example has been written in the document
	_ = WriteJSON(jsontext.NewEncoder(&out, jsontext.WithIndent("  ")), node)
	text := strings.TrimRight(out.String(), "\n")
	if len(node.Content) == 0 {
		return strings.ReplaceAll(text, "\n", "")
	}
	return text
}

// quoted returns a string literal in double quotes, which is the same in JSON, JavaScript, Python and Go.
func quoted(s string) string {
	out, _ := jsontext.AppendQuote(nil, s) // a YAML document contains valid UTF-8 alone
	return string(out)
}

// phpQuoted returns a literal in single quotes, where PHP replaces nothing.
func phpQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

// word matches a word of JSON over several lines: each scalar ends its line, and a string ends with a quote.
var word = regexp.MustCompile(`(?m)(?:true|false|null),?$`)

// python returns a value as a Python literal, which is JSON with other words.
func python(node *yaml.Node) string {
	words := strings.NewReplacer("true", "True", "false", "False", "null", "None")
	return word.ReplaceAllStringFunc(Pretty(node), words.Replace)
}

// indent moves all lines except the first to the right.
func indent(by, text string) string { return strings.ReplaceAll(text, "\n", "\n"+by) }
