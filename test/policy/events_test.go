package policy

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"svcapi/local/demo"
	"svcapi/local/events"
	"svcapi/local/template"
	"svcapi/shared/project"
	"svcapi/test/must"
)

// proxyEvent holds the fields of a REST proxy event that identify the request.
type proxyEvent struct {
	Resource          string
	Path              string
	HTTPMethod        string
	Headers           map[string]string
	MultiValueHeaders map[string][]string
	PathParameters    map[string]string
	RequestContext    struct{ ResourcePath, HTTPMethod, RequestID, Path string }
	Body              *string
	IsBase64Encoded   bool
}

// maxEventFiles is the most files of the folder events: an event for each operation and schedule, and the lists.
const maxEventFiles = 24

// TestEvents checks that every event has its expected response and the other way round, that both fit the template and
// openapi.yaml, and that each operation and each schedule has a file.
func TestEvents(t *testing.T) {
	all, err := events.Read(root("events"))
	must.Succeed(t, err)
	product, err := template.Load(nil)
	must.Succeed(t, err)
	files, err := os.ReadDir(root("events"))
	if err != nil || len(files) > maxEventFiles {
		t.Errorf("%d files, want at most %d: %v", len(files), maxEventFiles, err)
	}
	for _, file := range files {
		name := file.Name()
		if _, ok := all[name]; !ok && !slices.Contains([]string{"README.md", "responses.json", "cases.json"}, name) {
			t.Errorf("responses.json does not have %s", name)
		}
	}
	s, doc := current(), document()
	routes, called := s.routes(), map[string]bool{} // functions, and routes with a file
	for name, c := range all {
		if c.About == "" {
			t.Errorf("%s is not described", name)
		}
		called[c.Function] = true
		t.Run(name, func(t *testing.T) {
			var text []byte
			var err error
			if events.IsFile(name) {
				text, err = events.Load(product, root("events"), root("events", name))
			} else {
				_, text, err = c.Event(product)
			}
			var event proxyEvent
			if err == nil {
				err = json.Unmarshal(text, &event)
			}
			must.Succeed(t, err)
			if c.Expected.Status == 0 {
				return // no request
			}
			if events.IsFile(name) {
				called[event.Resource] = true
			}
			if event.Body != nil && event.IsBase64Encoded {
				decoded, err := base64.StdEncoding.DecodeString(*event.Body)
				must.Succeed(t, err)
				event.Body = new(string(decoded))
			}
			checkRequest(t, event, c, routes)
			checkBodies(t, event, c.Expected, doc)
		})
	}
	for _, function := range s.functions() {
		if !called[function.id] {
			t.Errorf("%s has no event", function.id)
		}
	}
	for route, function := range routes {
		if strings.HasPrefix(route, apiRoot) && function != "DocsFunction" && !called[route] {
			t.Errorf("%s has no file", route)
		}
	}
}

// checkRequest checks that the event is consistent and fits the template's routes and the demo projects.
func checkRequest(t *testing.T, event proxyEvent, want events.Case, routes map[string]string) {
	t.Helper()
	if routes[event.Resource] != want.Function {
		t.Errorf("%s is a route of %q, want %q", event.Resource, routes[event.Resource], want.Function)
	}
	context, path := event.RequestContext, event.Resource
	for name, value := range event.PathParameters {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	if event.Path != path || context.ResourcePath != event.Resource || context.HTTPMethod != event.HTTPMethod ||
		!strings.HasSuffix(context.Path, event.Path) || len(context.RequestID) != 36 {
		t.Error("the request context is that of another request")
	}
	single := map[string]string{}
	for name, values := range event.MultiValueHeaders {
		single[name] = values[len(values)-1]
	}
	if !reflect.DeepEqual(single, event.Headers) {
		t.Error("headers and multiValueHeaders differ")
	}
	if !strings.HasPrefix(event.Resource, apiRoot) {
		return // the route needs no credentials
	}
	owner := strings.Split(event.Headers["X-API-KEY"], "_")
	if len(owner) != 3 {
		t.Fatalf("X-API-KEY is %q", event.Headers["X-API-KEY"])
	}
	credential := demo.CredentialOf(strings.TrimPrefix(owner[1], "demo-"), project.Environment(event.Headers["X-ENV"]))
	if event.Headers["X-API-KEY"] != credential.ClientID {
		t.Errorf("X-API-KEY is %q, the demo project's is %q", event.Headers["X-API-KEY"], credential.ClientID)
	}
	if right := event.Headers["X-API-SECRET"] == credential.ClientSecret; right == (want.Expected.Status == 401) {
		t.Errorf("the secret is the demo project's: %v", right)
	}
}

// checkBodies checks the request's and the response's body against openapi.yaml.
func checkBodies(t *testing.T, event proxyEvent, want events.Expected, doc *openapi3.T) {
	t.Helper()
	path, documented := strings.CutPrefix(event.Resource, apiRoot)
	if !documented {
		return // pages and files
	}
	item := doc.Paths.Value(path)
	response := doc.Components.Responses["MethodNotAllowed"]
	if operation := item.GetOperation(event.HTTPMethod); operation != nil {
		response = operation.Responses.Value(strconv.Itoa(want.Status))
		if operation.RequestBody != nil && event.Body != nil {
			var body any
			must.Succeed(t, json.Unmarshal([]byte(*event.Body), &body))
			schema := operation.RequestBody.Value.Content.Get("application/json").Schema.Value
			invalid := want.Status == 422 && at(want.Body, "error", "code") == "validation_failed"
			if err := schema.VisitJSON(body, openapi3.MultiErrors()); (err != nil) != invalid {
				t.Errorf("the request's body: %v", err)
			}
		}
	}
	if response == nil {
		t.Fatalf("openapi.yaml has no status %d here", want.Status)
	}
	media := "application/json"
	if other, ok := want.Headers["Content-Type"]; ok {
		media = other
	}
	if err := response.Value.Content.Get(media).Schema.Value.VisitJSON(want.Body, openapi3.MultiErrors()); err != nil {
		t.Errorf("the response's body: %v", err)
	}
}
