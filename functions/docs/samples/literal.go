package samples

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// WriteJSON writes a YAML value as JSON, with its order kept.
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
			err = encoder.WriteToken(jsontext.String(child.Value)) // the number 200 of a response is a name, too
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

// pretty is a value as JSON over several lines.
func pretty(node *yaml.Node) string {
	var out bytes.Buffer
	_ = WriteJSON(jsontext.NewEncoder(&out, jsontext.WithIndent("  ")), node) // an example was written before, in the document
	text := strings.TrimRight(out.String(), "\n")
	if len(node.Content) == 0 {
		return strings.ReplaceAll(text, "\n", "")
	}
	return text
}

// quoted is a string literal in double quotes, which JSON, JavaScript, Python and Go read alike.
func quoted(s string) string {
	out, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return `""` // not valid UTF-8: no YAML document holds it
	}
	return string(out)
}

// syntax is how a language writes values.
type syntax struct {
	null, yes, no               string
	openObject, closeObject, is string
	openList, closeList         string
	quote                       func(string) string
}

var (
	pythonSyntax = syntax{"None", "True", "False", "{", "}", ": ", "[", "]", quoted}
	phpSyntax    = syntax{"null", "true", "false", "[", "]", " => ", "[", "]", phpQuoted}
)

// phpQuoted is a literal in single quotes, where PHP replaces nothing; text with line breaks is in double quotes.
func phpQuoted(s string) string {
	if strings.ContainsAny(s, "\n\r\t") {
		return strings.NewReplacer("$", `\$`).Replace(quoted(s))
	}
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

// literal is a value in a language's syntax, over several lines.
func literal(node *yaml.Node, s syntax) string {
	open, closing := s.openObject, s.closeObject
	switch node.Kind {
	case yaml.SequenceNode:
		open, closing = s.openList, s.closeList
	case yaml.ScalarNode:
		return s.scalar(node)
	}
	if len(node.Content) == 0 {
		if node.Kind == yaml.MappingNode && s.is == phpSyntax.is {
			return "new stdClass()" // an empty array would be a JSON list
		}
		return open + closing
	}
	var out strings.Builder
	out.WriteString(open + "\n")
	for i := 0; i < len(node.Content); i++ {
		out.WriteString("    ")
		if node.Kind == yaml.MappingNode {
			out.WriteString(s.quote(node.Content[i].Value) + s.is)
			i++
		}
		out.WriteString(indented(literal(node.Content[i], s), "    ") + ",\n")
	}
	return out.String() + closing
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

// indented moves all lines but the first to the right.
func indented(text, by string) string { return strings.ReplaceAll(text, "\n", "\n"+by) }
