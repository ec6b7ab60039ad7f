package policy

import (
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"svcapi/shared/request"
	"svcapi/test/must"
)

// gatewayReason matches the reason in a response of the gateway's own.
var gatewayReason = regexp.MustCompile(`"reason":"([a-z_]+)"`)

// docs/decisions/requests.md#error-reasons: openapi.yaml lists the reasons of the code, the code uses each of them, and
// every error with the code http_error has one.
func TestErrorReasons(t *testing.T) {
	constants := reasons(t)
	var documented []request.Reason
	schema := document().Components.Schemas["ErrorReason"].Value
	for _, value := range schema.Enum {
		reason := request.Reason(value.(string))
		documented = append(documented, reason)
		if !strings.Contains(schema.Description, "| `"+string(reason)+"` |") {
			t.Errorf("openapi.yaml does not describe the reason %s", reason)
		}
	}
	var used []request.Reason
	for _, match := range gatewayReason.FindAllStringSubmatch(read("template.yaml"), -1) {
		used = append(used, request.Reason(match[1]))
	}
	for name, syntax := range product() {
		ast.Inspect(syntax, func(node ast.Node) bool {
			if isReason(node) {
				return false
			}
			if constant, ok := node.(*ast.Ident); ok && constants[constant.Name] != "" {
				used = append(used, constants[constant.Name])
			}
			literal, ok := node.(*ast.CompositeLit)
			if !ok {
				return true
			}
			fields := map[string]string{}
			for _, element := range literal.Elts {
				if pair, ok := element.(*ast.KeyValueExpr); ok {
					fields[text(pair.Key)] = text(pair.Value)
				}
			}
			if fields["Code"] == "CodeHTTPError" && fields["Reason"] == "" {
				t.Errorf("%s: an http_error without a reason", name)
			}
			return true
		})
	}
	for _, reason := range used {
		if !slices.Contains(documented, reason) {
			t.Errorf("openapi.yaml lacks the reason %s", reason)
		}
	}
	for _, reason := range constants {
		if !slices.Contains(documented, reason) {
			t.Errorf("openapi.yaml lacks the reason %s", reason)
		}
		if !slices.Contains(used, reason) {
			t.Errorf("no code uses the reason %s", reason)
		}
	}
	if len(documented) != len(constants) {
		t.Errorf("openapi.yaml has %d reasons, the code %d", len(documented), len(constants))
	}
}

// reasons returns the constants of the type request.Reason by name.
func reasons(t *testing.T) map[string]request.Reason {
	t.Helper()
	found := map[string]request.Reason{}
	ast.Inspect(product()["shared/request/errors.go"], func(node ast.Node) bool {
		if isReason(node) {
			spec := node.(*ast.ValueSpec)
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			must.Succeed(t, err)
			found[spec.Names[0].Name] = request.Reason(value)
		}
		return true
	})
	return found
}

// isReason reports whether a node declares a constant of the type request.Reason.
func isReason(node ast.Node) bool {
	spec, ok := node.(*ast.ValueSpec)
	return ok && text(spec.Type) == "Reason"
}

// text returns the last name of an identifier or a selector, "…" for any other expression, and "" for none.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case nil:
		return ""
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return "…"
}
