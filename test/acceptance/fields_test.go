package acceptance

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"svcapi/test/must"
)

// bounds returns values that a schema forbids, and values at its bounds that the schema permits.
func bounds(s *openapi3.Schema, required bool) (wrong, right []any) {
	for _, part := range slices.Concat(s.AllOf, s.OneOf) { // a reference beside a default; a number or a word
		return bounds(part.Value, required)
	}
	if required {
		wrong = append(wrong, nil)
	} else {
		right = append(right, nil)
	}
	switch {
	case s.Type.Is("string"):
		wrong = append(wrong, 7, []any{})
		if s.MinLength > 0 {
			wrong = append(wrong, "")
		}
		if s.MaxLength != nil {
			wrong = append(wrong, strings.Repeat("é", int(*s.MaxLength)+1))
			if longest := strings.Repeat("x", int(*s.MaxLength)); s.Pattern == "" ||
				regexp.MustCompile(s.Pattern).MatchString(longest) {
				right = append(right, longest)
			}
		}
		if s.Pattern != "" || len(s.Enum) > 0 {
			wrong = append(wrong, "é\n", "")
		}
		right = append(right, s.Enum...)
	case s.Type.Is("boolean"):
		wrong, right = append(wrong, "true", 1), append(right, true, false)
	case s.Type.Is("array"):
		wrong = append(wrong, "x", map[string]any{})
		if s.MinItems > 0 {
			wrong = append(wrong, []any{})
		}
		if s.MaxItems != nil {
			wrong = append(wrong, slices.Repeat([]any{nil}, int(*s.MaxItems)+1))
		}
	case s.Type.Is("object"):
		wrong = append(wrong, 15, []any{})
	default: // a number
		wrong = append(wrong, "7", true, *s.Min-*s.Max-1, *s.Min-0.001, *s.Max+0.001, json.Number("1e999"))
		right = append(right, *s.Min, *s.Max)
		if s.Type.Is("integer") {
			wrong = append(wrong, *s.Min+0.5)
		}
	}
	return wrong, right
}

// changed returns a body with another value at a path. A null is a field that is absent.
func changed(t *testing.T, body string, path []string, value any) string {
	t.Helper()
	var root any
	must.Succeed(t, json.Unmarshal([]byte(body), &root))
	node := root
	for i, name := range path {
		last := i == len(path)-1
		switch at := node.(type) {
		case map[string]any:
			if last {
				at[name] = value
			} else if at[name] == nil {
				at[name] = map[string]any{}
			}
			node = at[name]
		case []any:
			index, _ := strconv.Atoi(name)
			if last {
				at[index] = value
			}
			node = at[index]
		}
	}
	return string(must.Get(json.Marshal(root)).Or(t))
}

// walk sends a request for each value of bounds, for every field of a schema.
func walk(t *testing.T, r request, s *openapi3.Schema, at []string) {
	t.Helper()
	try := func(s *openapi3.Schema, path []string, required bool) {
		wrong, right := bounds(s, required)
		send := r
		// both or none
		other := map[string]string{"page_width": "page_height", "page_height": "page_width"}[path[len(path)-1]]
		body := r.body
		if other != "" {
			body = changed(t, body, []string{other}, 500)
		}
		for _, value := range wrong {
			send.body = changed(t, body, path, value)
			send.failsOn(t, strings.Join(path, "."))
		}
		for _, value := range right {
			if send.body = changed(t, body, path, value); value == nil {
				send.body = r.body
			}
			if a := send.do(t); !a.is(422, "provider_selection_failed") { // the next check: there is no integration
				t.Errorf("%s %.200s: %d %s", r.path, send.body, a.status, a.body)
			}
		}
		walk(t, r, s, path)
	}
	for name, field := range s.Properties {
		try(field.Value, append(slices.Clone(at), name), slices.Contains(s.Required, name))
		if len(at) == 0 && len(name) > 2 { // docs/decisions/requests.md#misspelt-fields
			send := r
			send.body = changed(t, r.body, []string{strings.ToUpper(name)}, 1)
			send.failsOn(t, strings.ToUpper(name))
		}
	}
	if s.Items != nil {
		try(s.Items.Value, append(slices.Clone(at), "0"), true)
	}
}

// TestFieldsOfTheContract checks every field of every POST of openapi.yaml: each bound of its schema, one step beyond,
// other types, null and a misspelt name. error.details name exactly the field. The readers of fields have tests of
// their own in shared/request (docs/decisions/pictures.md#barcode-fields).
func TestFieldsOfTheContract(t *testing.T) {
	t.Parallel()
	const html = `{"html":"PHA+eA=="}` // also Base64
	bodies := map[string][]string{
		send: {single("0771234567", "m"), bulkSame([]string{"0771234567"}, "m"),
			bulkDifferent([]string{"0771234567"}, []string{"m"})}, balance: {"{}"},
		burner: {email("a@example.com")}, vpn: {ip("1.2.3.4")}, location: {ip("1.2.3.4")}, barcodes: {`{"data":"1"}`},
		qrcodes: {`{"data":"1"}`},
		pdfs:    {html}, streamed: {html},
	}
	for path, item := range fixture.spec.Paths.Map() {
		if item.Post == nil {
			continue
		}
		schema := item.Post.RequestBody.Value.Content["application/json"].Schema
		variants := openapi3.SchemaRefs{schema}
		if len(schema.Value.OneOf) > 0 {
			variants = schema.Value.OneOf
		}
		if len(variants) != len(bodies[path]) {
			t.Errorf("%s: %d schemas, %d bodies", path, len(variants), len(bodies[path]))
			continue
		}
		for i, variant := range variants {
			walk(t, request{path: path, body: bodies[path][i], as: plainProject(t).dev}, variant.Value, nil)
		}
	}
}

// TestFields checks the messages of error.details, and what no schema says (docs/decisions/currency.md#currency-path).
func TestFields(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]string{"0771234567"}, 10_000)
	oneBad, allBad := slices.Clone(many), slices.Repeat([]string{"no"}, 10_000)
	oneBad[7654] = "0671234567"
	const largest = 524_288
	encoded := func(n int) string {
		return object(map[string]any{"is_base64": true,
			"html": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", n)))})
	}
	for _, c := range []struct{ path, body, fields, message string }{ // fields: the sorted names, or the last one of 20
		{send, ``, "send_method", "is required"},
		{send, `{"send_method":"single","recipients":7}`, "message to", "is required"},
		{send, `{"send_method":"single","to":"0771234567","message":"m","recipients":7,"msg_list":"x","check_cost":"no"}`, "",
			""},
		{send, single("077 123 4567", "m"), "to", "must be 07XXXXXXXX or +947XXXXXXXX; did you mean +94771234567?"},
		{send, bulkSame(many, "m"), "", ""},
		{send, bulkSame(oneBad, "m"), "recipients.7654", ""},
		{send, bulkSame(allBad, "m"), "recipients.9", ""},
		{send, `{"send_method":"bulk_same","recipients":["0771234567"],"message":"m","checkcost":true}`, "checkcost",
			`unknown field; did you mean "check_cost"?`},
		{send, "{\n  \"to\": \"0771234567\",\n}", "body",
			"must be well-formed JSON; line 3, column 1 cannot be read: trailing comma"},
		{balance, `[]`, "body", ""}, {balance, ` {"x":{"a":[null]}}`, "", ""},
		{burner, email("a@example"), "email", ""}, {burner, email("a@bücher.example"), "", ""},
		{vpn, ip("1.2.3.256"), "ip", ""}, {location, `{"ip":"x","provider":""}`, "ip provider", ""},
		{barcodes, `{"data":"x","width_factor":3.9999,"height":80.0}`, "", ""},
		{qrcodes, `{"data":"` + strings.Repeat("é", 1477) + `"}`, "data",
			"must be at most 2,953 bytes, 4,296 capital letters or 7,089 digits"},
		{qrcodes, `{"data":"` + strings.Repeat("1", 7090) + `"}`, "data",
			"must be at most 2,953 bytes, 4,296 capital letters or 7,089 digits"},
		{pdfs, encoded(largest), "", ""}, {pdfs, encoded(largest + 1), "html", "must be at most 524288 bytes"},
		{pdfs, object(map[string]any{"html": strings.Repeat("ශ", largest/3+1)}), "html", "must be at most 524288 bytes"},
		{pdfs, `{"html":"%%%","is_base64":true}`, "html", "must be Base64, as is_base64 is true"},
		{pdfs, `{"html":"x","files":{"../a.png":"iVBORw0KGgo="}}`, "files.../a.png", ""},
		{pdfs, `{"html":"x","files":{"a.png?v=1":"iVBORw0KGgo="}}`, "files.a.png?v=1", ""},
		{pdfs, `{"html":"x","files":{"a.exe":"iVBORw0KGgo="}}`, "files.a.exe", ""},
		{pdfs, `{"html":"x","files":{"a.jpg":"iVBORw0KGgo="}}`, "files.a.jpg", "must be image/jpeg, as its name says"},
		{pdfs, `{"html":"x","files":{"a.css":"/w=="}}`, "files.a.css", "must be text/css; charset=utf-8, as its name says"},
		{pdfs, `{"html":"x","files":{"./a.css":"YQ==","a.css":"YQ=="}}`, "files.a.css", "is another name of the file a.css"},
		{pdfs, `{"html":"x","files":{"` + strings.Repeat("a", 256) + `.css":"YQ=="}}`, "files",
			"must have names of at most 255 bytes"},
		{pdfs, `{"html":"x","files":{` + manyNames(101) + `}}`, "files", "must have at most 100 files"},
		{pdfs, `{"html":"x","page_ranges":"3-1"}`, "page_ranges", ""},
		{pdfs, `{"html":"x","page_height":10}`, "page_width", "is required, as the other side of the page is given"},
		{pdfs, `{"html":"x","page_width":10,"page_height":10}`, "", ""},
		{pdfs, `{"html":"x","page_width":10,"page_height":"content"}`, "", ""},
		{pdfs, `{"html":"x","page_size":"Legal","orientation":"landscape","page_height":"content"}`, "", ""},
		{pdfs, `{"html":"x","page_height":"auto"}`, "page_height page_width", ""},
		{pdfs, `{"html":"x","page_width":10,"page_height":"Content"}`, "page_height", `must be a number or "content"`},
		{pdfs, `{"html":"x","page_width":10,"page_height":"content","margins":{"left":5,"right":5}}`, "page_width", ""},
		{pdfs, `{"html":"x","page_width":80,"page_height":"content","orientation":"portrait"}`, "orientation", ""},
		{pdfs, `{"html":"x","page_height":"content","prefer_css_page_size":true}`, "prefer_css_page_size", ""},
		{pdfs, `{"html":"x","page_width":10,"page_height":20,"margins":{"left":5,"right":5}}`, "page_width",
			"must be more than the margins on both of its sides"},
		{pdfs, `{"html":"x","page_width":80,"page_height":80,"page_size":"A4","orientation":"portrait"}`,
			"orientation page_size", ""},
		{pdfs, `{"html":"x","password":"ශ"}`, "password", "must be 4 to 127 bytes"}, {pdfs,
			`{"html":"x","password":"ශශ"}`, "", ""},
		{pdfs, `{"html":"x","password":"` + strings.Repeat("x", 128) + `"}`, "password", "must be 4 to 127 bytes"},
	} {
		a := request{path: c.path, body: c.body, as: plainProject(t).dev}.do(t)
		code, names := "validation_failed", strings.Fields(a.fields())
		if c.fields == "" {
			code = "provider_selection_failed"
		}
		if len(names) == 20 {
			names = names[19:]
		}
		last := ""
		if len(names) > 0 {
			last = strings.Join(a.Error.Details.fields[names[0]], "; ")
		}
		if !a.is(422, code) || strings.Join(names, " ") != c.fields || c.message != "" && last != c.message {
			t.Errorf("%s %.100s: %d %.300s, want %s on %q: %s", c.path, c.body, a.status, a.body, code, c.fields, c.message)
		}
	}
	// docs/decisions/extensions.md#idempotency-key; a balance keeps nothing and takes any key.
	bad := keyed(plainProject(t), "a b", `{"send_method":"single"}`)
	bad.failsOn(t, "Idempotency-Key message to")
	bad.path, bad.body = balance, ""
	if a := bad.do(t); !a.is(422, "provider_selection_failed") {
		t.Errorf("balance: %d %s", a.status, a.body)
	}
	// "Accept and Content-Type never refuse a request" (docs/decisions/requests.md#json-bodies).
	for _, h := range []map[string]string{{"Content-Type": "text/plain"}, {"Content-Type": ""}, {"Accept": "image/png"},
		{"Content-Type": "application/json; charset=utf-16"}} {
		a := request{path: balance, body: "{}", as: plainProject(t).dev, header: h}.do(t)
		if !a.is(422, "provider_selection_failed") {
			t.Errorf("%v: %d %s", h, a.status, a.body)
		}
	}
}
