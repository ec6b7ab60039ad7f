package acceptance

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"svcapi/shared/project"
)

// Errors say what would be right: docs/decisions.md#malformed-json, docs/decisions.md#number-proposals,
// docs/decisions.md#currency-path, docs/decisions.md#error-details.
func TestHelpfulErrors(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	bad := slices.Repeat([]string{"no"}, 10_000)
	for _, c := range []struct {
		r             request
		status        int
		code, message string // the message of error.details where path is set, else error.message
		path          string
	}{
		{request{path: send, body: "{\n  \"to\": \"0771234567\",\n}"}, 422, "validation_failed",
			"must be well-formed JSON; line 3, column 1 cannot be read: trailing comma", "body"},
		{request{path: balance, body: `{'to': 1}`}, 422, "validation_failed",
			"must be well-formed JSON; line 1, column 2 cannot be read: single quotes; names and texts need double quotes", "body"},
		{request{path: location, body: "ip=8.8.8.8"}, 422, "validation_failed",
			"must be well-formed JSON; line 1, column 1 cannot be read: the body is form data, such as a=b&c=d; send a JSON object", "body"},
		{request{path: send, body: single("077 123 4567", "m")}, 422, "validation_failed",
			"must be 07XXXXXXXX or +947XXXXXXXX; did you mean +94771234567?", "to"},
		{request{path: send, body: bulkSame([]string{"0771234567", "0094771234568"}, "m")}, 422, "validation_failed",
			"must be 07XXXXXXXX or +947XXXXXXXX; did you mean +94771234568?", "recipients.1"},
		{request{path: send, body: bulkSame(bad, "m")}, 422, "validation_failed", "The request has missing or invalid fields, and 9980 more in recipients.", ""},
		{request{path: send, body: `{"send_method":"bulk_same","recipients":["0771234567"],"message":"m","checkcost":true}`}, 422, "validation_failed",
			`unknown field; did you mean "check_cost"?`, "checkcost"},
		{request{method: "GET", path: "/utilities/currency/latest/USD"}, 404, "http_error",
			"There is no such resource. Currency operations are under /api/v1/utility/currency, and not under /utilities.", ""},
		{request{method: "POST", path: "/utilities/currency"}, 404, "http_error",
			"There is no such resource. Currency operations are under /api/v1/utility/currency, and not under /utilities.", ""},
		{request{method: "GET", path: "/utility/currency/pair/LKR-SELL/USD"}, 400, "invalid_currency_code",
			`The currency code "LKR-SELL" is invalid: a base is three letters.`, ""},
	} {
		c.r.as = p.dev
		a := c.r.do(t)
		if a == nil {
			continue
		}
		got := a.Error.Message
		if c.path != "" {
			got = strings.Join(a.Error.Details.fields[c.path], "; ")
		}
		if !a.is(c.status, c.code) || got != c.message {
			t.Errorf("%s %.100s: %d %.300s, want %d %s: %s", c.r.path, c.r.body, a.status, a.body, c.status, c.code, c.message)
		}
	}
}

// openapi.yaml#InvalidCurrencyCode: the message names the code that is not active.
func TestBadCurrencyCodeIsNamed(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{integrations: []integration{{kind: project.Currency, vendor: "openexchangerates", mode: project.Managed}}}.make(t)
	for path, code := range map[string]string{"/pair/XYZ/LKR": "XYZ", "/pair/USD/XYZ": "XYZ", "/pair/XXY/LKR-SELL/5": "XXY", "/latest/XYZ": "XYZ"} {
		a := request{method: "GET", path: "/utility/currency" + path, as: p.dev}.do(t)
		if want := `The currency code "` + code + `" is unknown or inactive.`; a != nil && (!a.is(400, "invalid_currency_code") || a.Error.Message != want) {
			t.Errorf("%s: %d %s, want %s", path, a.status, a.body, want)
		}
	}
}

// docs/decisions.md#misspelt-fields, for every field of every POST of openapi.yaml.
func TestMisspeltFields(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	spell := map[string]func(string) string{
		"in upper case":        strings.ToUpper,
		"with a hyphen":        func(name string) string { return name[:1] + "-" + name[1:] },
		"without underscores":  func(name string) string { return strings.ReplaceAll(name, "_", "") },
		"without its last":     func(name string) string { return name[:len(name)-1] },
		"with one letter more": func(name string) string { return name + "q" },
		"with another letter":  func(name string) string { return "q" + name[1:] },
		"transposed":           func(name string) string { return name[1:2] + name[:1] + name[2:] },
		"with two more":        func(name string) string { return name + "qq" }, // ignored
	}
	for path, item := range fixture.spec.Paths.Map() {
		if item.Post == nil {
			continue
		}
		known := properties(item.Post.RequestBody.Value.Content["application/json"].Schema.Value)
		for how, change := range spell {
			body, want := map[string]any{}, map[string]string{}
			for _, name := range known {
				sent := change(name)
				if slices.Contains(known, sent) {
					continue
				}
				body[sent] = 1
				edited := !slices.Contains([]string{"in upper case", "with a hyphen", "without underscores"}, how)
				if how != "with two more" && (len(name) >= 4 || !edited) {
					want[sent] = `unknown field; did you mean "` + name + `"?`
				}
			}
			a := request{path: path, body: object(body), as: p.dev}.send(t)
			if a == nil {
				continue
			}
			got := map[string]string{}
			for name, messages := range a.Error.Details.fields {
				if text := strings.Join(messages, "; "); strings.HasPrefix(text, "unknown field") {
					got[name] = text
				}
			}
			if a.status != http.StatusUnprocessableEntity || !maps.Equal(got, want) {
				t.Errorf("%s, names %s: %d %v, want %v", path, how, a.status, got, want)
			}
		}
	}
}

// properties returns the fields of an object's schema and of its variants.
func properties(schema *openapi3.Schema) []string {
	names := slices.Collect(maps.Keys(schema.Properties))
	for _, variant := range append(schema.OneOf, schema.AllOf...) {
		names = append(names, properties(variant.Value)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
