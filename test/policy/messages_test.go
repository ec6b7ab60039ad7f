package policy

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"svcapi/test/must"
)

// texts returns the texts of the product's files as patterns: constants and joined constants, in which a verb of a
// format and anything that is no constant stand for some text.
func texts() []*regexp.Regexp {
	verb := regexp.MustCompile(`%(\[\d\])?[+#.\d]*[a-z]`)
	var text func(e ast.Expr) string
	text = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
				return s
			}
		case *ast.BinaryExpr:
			return text(e.X) + text(e.Y)
		}
		return "%s"
	}
	var found []*regexp.Regexp
	for _, syntax := range product() {
		ast.Inspect(syntax, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			s := strings.TrimSuffix(text(e), ".")
			if len(verb.ReplaceAllString(s, "")) >= len("is required") {
				parts := verb.Split(s, -1)
				for i := range parts {
					parts[i] = regexp.QuoteMeta(parts[i])
				}
				found = append(found, regexp.MustCompile(`^(?:[A-Z][^:]*: )?`+strings.Join(parts, `.+`)+`\.?$`))
			}
			return true
		})
	}
	return found
}

// TestDocumentedMessages: each message of an error in openapi.yaml's examples is one that the code has.
func TestDocumentedMessages(t *testing.T) {
	sent := texts()
	has := func(message string) bool {
		return slices.ContainsFunc(sent, func(p *regexp.Regexp) bool { return p.MatchString(message) })
	}
	check := func(message string) {
		if !has(message) {
			t.Errorf("no code sends %q", message)
		}
	}
	seen := 0
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if message, ok := value["message"].(string); ok && value["code"] != nil {
				seen++
				check(message)
				details, _ := value["details"].(map[string]any)
				for _, messages := range details {
					list, _ := messages.([]any)
					for _, message := range list {
						check(message.(string))
					}
				}
			}
			for _, inner := range value {
				walk(inner)
			}
		case []any:
			for _, inner := range value {
				walk(inner)
			}
		}
	}
	var all map[string]any
	must.Succeed(t, yaml.Unmarshal([]byte(read("openapi.yaml")), &all))
	walk(all)
	if seen < 40 {
		t.Errorf("%d examples of errors", seen)
	}
	if has("There is no such message.") || has("The project has too few credits.") {
		t.Error("a message that no code sends is found")
	}
}
