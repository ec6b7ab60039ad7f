package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"svcapi/local/demo"
	"svcapi/shared/project"
)

// answer is what events/answers.json says of one event.
type answer struct {
	Function string            `json:"function"`
	About    string            `json:"about"`
	Status   int               `json:"status"`  // of an HTTP request
	Headers  map[string]string `json:"headers"` // beside X-SVC-Request-ID, which every answer has
	Body     any               `json:"body"`
}

// proxyEvent is the part of a REST proxy event that says which request it is.
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

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// Every event has its answer and the other way round; both fit the template and openapi.yaml.
func TestEvents(t *testing.T) {
	answers := map[string]answer{}
	read(t, root("events", "answers.json"), &answers)
	files, err := filepath.Glob(root("events", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	s, doc := current(t), document(t)
	routes, called := s.routes(), map[string]bool{}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "answers.json" {
			continue
		}
		want, ok := answers[name]
		if !ok || want.About == "" {
			t.Errorf("%s has no answer, or it is not described", name)
		}
		delete(answers, name)
		called[want.Function] = true
		if want.Status == 0 {
			continue // no HTTP request
		}
		t.Run(name, func(t *testing.T) {
			var event proxyEvent
			read(t, file, &event)
			checkRequest(t, event, want, routes)
			checkBodies(t, event, want, doc)
		})
	}
	for name := range answers {
		t.Errorf("answers.json has %s, which is no event", name)
	}
	for _, function := range s.functions() {
		if !called[function.id] {
			t.Errorf("%s has no event", function.id)
		}
	}
}

// checkRequest: the event is consistent in itself and fits the template's routes and the demo projects.
func checkRequest(t *testing.T, event proxyEvent, want answer, routes map[string]string) {
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
		return // it needs no credentials
	}
	owner := strings.Split(event.Headers["X-API-KEY"], "_")
	if len(owner) != 3 {
		t.Fatalf("X-API-KEY is %q", event.Headers["X-API-KEY"])
	}
	credential := demo.CredentialOf(strings.TrimPrefix(owner[1], "demo-"), project.Environment(event.Headers["X-ENV"]))
	if event.Headers["X-API-KEY"] != credential.ClientID {
		t.Errorf("X-API-KEY is %q, the demo project's is %q", event.Headers["X-API-KEY"], credential.ClientID)
	}
	if right := event.Headers["X-API-SECRET"] == credential.ClientSecret; right == (want.Status == 401) {
		t.Errorf("the secret is the demo project's: %v", right)
	}
}

// checkBodies: what is sent and what is answered fit openapi.yaml.
func checkBodies(t *testing.T, event proxyEvent, want answer, doc *openapi3.T) {
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
			if err := json.Unmarshal([]byte(*event.Body), &body); err != nil {
				t.Fatal(err)
			}
			schema := operation.RequestBody.Value.Content.Get("application/json").Schema.Value
			if err := schema.VisitJSON(body, openapi3.MultiErrors()); (err != nil) != (want.Status == 422 && invalid(want)) {
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
		t.Errorf("the answer's body: %v", err)
	}
}

// invalid tells whether the answer is validation_failed.
func invalid(want answer) bool {
	body, _ := want.Body.(map[string]any)
	failure, _ := body["error"].(map[string]any)
	return failure["code"] == "validation_failed"
}
