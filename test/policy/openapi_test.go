package policy

import (
	"context"
	"go/ast"
	"go/token"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"

	"svcapi/shared/request"
	"svcapi/shared/wallet"
	"svcapi/test/must"
)

// apiRoot is where the paths of openapi.yaml begin.
const apiRoot = "/api/v1"

// document is openapi.yaml, which is checked against OpenAPI 3.0, examples included.
var document = sync.OnceValue(func() *openapi3.T {
	doc, err := openapi3.NewLoader().LoadFromFile(root("openapi.yaml"))
	if err == nil {
		err = doc.Validate(context.Background(), openapi3.EnableExamplesValidation())
	}
	if err != nil {
		panic(err)
	}
	return doc
})

// The errors of every operation, and those of each besides, as status and code. openapi.yaml must have these and no
// others.
var (
	commonErrors = []string{
		"401 unauthorized", "413 http_error", "422 provider_selection_failed", "429 rate_limit_exceeded",
		"500 internal_error", "503 project_paused",
	}
	contractErrors = map[string][]string{
		"sendSms": {"402 insufficient_funds", "403 forbidden", "409 http_error", "422 http_error", "422 validation_failed",
			"428 send_confirmation_required", "502 http_error", "503 http_error"},
		"getLatestRates":    {"400 http_error", "400 invalid_currency_code", "422 validation_failed"},
		"getRateHistory":    {"400 http_error", "400 invalid_currency_code", "422 validation_failed"},
		"getPairRate":       {"400 http_error", "400 invalid_currency_code", "422 validation_failed"},
		"convertPairRate":   {"400 http_error", "400 invalid_currency_code", "422 validation_failed"},
		"listCurrencyCodes": {},
		"getSmsBalance":     {"422 http_error", "422 validation_failed", "503 http_error"},
		"getSmsStatus":      {"404 http_error", "422 http_error", "502 http_error", "503 http_error"},
		"checkBurnerEmail":  {"402 insufficient_funds", "422 validation_failed"},
		"checkVpn":          {"402 insufficient_funds", "422 validation_failed", "503 service_unavailable"},
		"lookUpLocation":    {"402 insufficient_funds", "422 validation_failed"},
		"generateBarcode":   {"400 http_error", "402 insufficient_funds", "422 validation_failed"},
		"generatePdf":       {"400 http_error", "402 insufficient_funds", "422 validation_failed"},
		"streamPdf":         {"400 http_error", "402 insufficient_funds", "422 validation_failed"},
		"generateQrCode":    {"400 http_error", "402 insufficient_funds", "422 validation_failed"},
	}
)

// docs/decisions/requests.md#request-id: every error uses the error envelope with its HTTP status, X-SVC-Request-ID is
// on every response. docs/decisions/requests.md#rate-limit: Retry-After on 429.
func TestDocumentNamesEveryError(t *testing.T) {
	absent := maps.Clone(contractErrors)
	for path, item := range document().Paths.Map() {
		for method, operation := range item.Operations() {
			name := operation.OperationID
			delete(absent, name)
			want, ok := contractErrors[name]
			if !ok {
				t.Errorf("%s %s: operationId %q is not in the table of this test", method, path, name)
				continue
			}
			var got []string
			for status, response := range operation.Responses.Map() {
				headers := response.Value.Headers
				if headers["X-SVC-Request-ID"] == nil || status == "429" && headers["Retry-After"] == nil {
					t.Errorf("%s: status %s has the headers %v alone", name, status, headers)
				}
				if status == "200" {
					continue
				}
				for _, code := range codes(response.Value) {
					got = append(got, status+" "+code)
				}
			}
			want = append(slices.Clone(want), commonErrors...)
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s has the errors %q, want %q", name, got, want)
			}
		}
	}
	if len(absent) > 0 {
		t.Errorf("openapi.yaml has no operation of %v", absent)
	}
}

// Every operation that can end in 402 names its row of the price list, which the function that serves it and the
// documentation page read from the row's parameter; no operation of another function does. Every row has an operation.
func TestDocumentNamesPrices(t *testing.T) {
	doc, s := document(), current()
	variables := map[string]object{}
	for _, function := range s.functions() {
		variables[function.id] = function.properties.object("Environment", "Variables")
	}
	routes, prices, served := s.routes(), wallet.PriceList(), map[string]string{} // the function of each price
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			price, named := operation.Extensions["x-svc-price"].(string)
			if paid := operation.Responses.Value("402") != nil; paid != named {
				t.Errorf("%s %s: paid is %v, x-svc-price is %q", method, path, paid, price)
			}
			if !named {
				continue
			}
			row := slices.IndexFunc(prices, func(p wallet.Price) bool { return p.Name == price })
			function := routes[apiRoot+path]
			if before, shared := served[price]; row < 0 || shared && before != function {
				t.Errorf("%s %s: %s is not on the price list, or is another function's", method, path, price)
				continue
			}
			served[price] = function
			for _, function := range []string{function, "DocsFunction"} {
				if p := prices[row]; show(variables[function][p.Variable()]) != "${"+p.Parameter+"}" {
					t.Errorf("%s %s: %s does not read %s from %s", method, path, function, p.Variable(), p.Parameter)
				}
			}
		}
	}
	for _, p := range prices {
		if served[p.Name] == "" {
			t.Errorf("no operation has the price %v", p)
		}
	}
}

// codes are the error codes that a response permits.
func codes(response *openapi3.Response) []string {
	var out []string
	schema := response.Content.Get("application/json").Schema.Value
	for _, variant := range append(openapi3.SchemaRefs{{Value: schema}}, schema.OneOf...) {
		for _, part := range variant.Value.AllOf {
			// The shared envelope lists every code and its message; a variant narrows the code.
			failure := part.Value.Properties["error"]
			if failure == nil || failure.Value.Properties["message"] != nil {
				continue
			}
			for _, code := range failure.Value.Properties["code"].Value.Enum {
				out = append(out, code.(string))
			}
		}
	}
	if out == nil {
		return []string{"without a code"}
	}
	return out
}

// docs/decisions/requests.md#credentials: every operation requires both credentials, unless the operation overrides
// this.
func TestDocumentRequiresCredentials(t *testing.T) {
	doc := document()
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.Security != nil {
				t.Errorf("%s %s overrides the credentials of every operation", method, path)
			}
		}
	}
	if len(doc.Security) != 1 || len(doc.Security[0]) != 2 {
		t.Errorf("security is %v, want both headers together", doc.Security)
	}
	want := map[string]string{"ApiKey": "X-API-KEY", "ApiSecret": "X-API-SECRET"}
	for scheme, header := range want {
		if got := doc.Components.SecuritySchemes[scheme].Value; got.In != "header" || got.Name != header {
			t.Errorf("%s is the %s %s, want the header %s", scheme, got.In, got.Name, header)
		}
	}
}

// Every path of the document is a route of the template with a function folder behind it, and the
// other way round (docs/decisions/operating.md#rest-api).
func TestRoutesAgree(t *testing.T) {
	doc := document()
	routes := current().routes()
	for path, item := range doc.Paths.Map() {
		route := apiRoot + path
		if _, ok := routes[route]; !ok {
			t.Errorf("openapi.yaml has %s, template.yaml has no route %s", path, route)
		}
		delete(routes, route)
		for method := range item.Operations() {
			if method != http.MethodPost && method != http.MethodGet {
				t.Errorf("%s has the method %s", path, method)
			}
		}
	}
	for route, function := range routes {
		if function == "DocsFunction" {
			continue // it serves the document, and 404 at /utilities/currency
		}
		t.Errorf("template.yaml routes %s to %s, openapi.yaml does not have it", route, function)
	}
}

// The paths of the contract, version 1.0.0. Any other is an extension and is marked as one
// (docs/decisions/extensions.md#extensions).
var contractPaths = []string{
	"/sms/send", "/sms/balance", "/security/burner-email-shield", "/security/vpn-shield", "/location/lookup",
	"/utilities/barcode/generate", "/utilities/pdf/generate", "/utility/currency/latest/{base}",
	"/utility/currency/pair/{base}/{target}", "/utility/currency/pair/{base}/{target}/{amount}",
	"/utility/currency/codes",
}

// The header parameters of the contract besides the credentials, its response headers, and the statuses of its errors;
// 413 may be on every path (docs/decisions/requests.md#routes).
var (
	contractParameters = []string{"X-ENV", "X-Privacy-Mode", "X-Confirm-Send"}
	contractHeaders    = []string{"X-SVC-Request-ID", "Retry-After", "Content-Length",
		"Content-Disposition", "Cache-Control"}
	contractStatuses = []string{"200", "400", "401", "402", "403", "413", "422", "428", "429", "500", "502", "503"}
)

func TestExtensionsAreMarked(t *testing.T) {
	check := func(what string, extensions map[string]any, known bool) {
		t.Helper()
		if marked := extensions["x-svc-extension"] == true; marked == known {
			t.Errorf("%s: x-svc-extension is %v, want %v", what, marked, !known)
		}
	}
	for path, item := range document().Paths.Map() {
		known := slices.Contains(contractPaths, path)
		check(path, item.Extensions, known)
		if !known {
			continue // all of it is one
		}
		for method, operation := range item.Operations() {
			where := method + " " + path + ": "
			for _, p := range operation.Parameters {
				if p.Value.In == "header" {
					check(where+p.Value.Name, p.Value.Extensions, slices.Contains(contractParameters, p.Value.Name))
				}
			}
			for status, response := range operation.Responses.Map() {
				check(where+status, response.Value.Extensions, slices.Contains(contractStatuses, status))
				for name, header := range response.Value.Headers {
					check(where+status+" "+name, header.Value.Extensions, slices.Contains(contractHeaders, name))
				}
			}
		}
	}
}

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

// texts returns the texts of the product's files as patterns, from constants and joined constants. A verb of a format,
// and each value that is no constant, matches any text.
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
