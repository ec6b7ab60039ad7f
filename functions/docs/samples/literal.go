package samples

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

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

// syntax holds the literals of a language.
type syntax struct {
	null, yes, no       string
	brackets, separator string // of an object; a list is in square brackets
	quote               func(string) string
}

var (
	pythonSyntax = syntax{"None", "True", "False", "{}", ": ", quoted}
	phpSyntax    = syntax{"null", "true", "false", "[]", " => ", phpQuoted}
)

// phpQuoted returns a literal in single quotes, where PHP replaces nothing, or in double quotes for several lines.
func phpQuoted(s string) string {
	if strings.ContainsAny(s, "\n\r\t") {
		return strings.NewReplacer("$", `\$`).Replace(quoted(s))
	}
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

// literal returns a value in the syntax over several lines.
func (s syntax) literal(node *yaml.Node) string {
	brackets := s.brackets
	switch {
	case node.Kind == yaml.ScalarNode:
		return s.scalar(node)
	case node.Kind == yaml.SequenceNode:
		brackets = "[]"
	case len(node.Content) == 0 && brackets == "[]":
		return "new stdClass()" // an empty array would be a JSON list
	}
	if len(node.Content) == 0 {
		return brackets
	}
	var out strings.Builder
	out.WriteString(brackets[:1] + "\n")
	for i := 0; i < len(node.Content); i++ {
		out.WriteString("    ")
		if node.Kind == yaml.MappingNode {
			out.WriteString(s.quote(node.Content[i].Value) + s.separator)
			i++
		}
		out.WriteString(indent("    ", s.literal(node.Content[i])) + ",\n")
	}
	return out.String() + brackets[1:]
}

func (s syntax) scalar(node *yaml.Node) string {
	switch t := token(node); t.Kind() {
	case 'n':
		return s.null
	case 't':
		return s.yes
	case 'f':
		return s.no
	case '0':
		return t.String()
	}
	return s.quote(node.Value)
}

// indent moves all lines except the first to the right.
func indent(by, text string) string { return strings.ReplaceAll(text, "\n", "\n"+by) }
