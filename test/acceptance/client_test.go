package acceptance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// client waits longer than the gateway, which responds within 29 s.
var client = &http.Client{
	Timeout:   40 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	},
}

// request is one request of a test.
type request struct {
	method string // empty: POST
	path   string // below the base URL; as it is sent, escapes and all
	body   string
	as     credential
	header map[string]string // in addition to the credentials
	base   string            // another base URL than that of the system under test
	about  string            // what a generator did, for messages
}

// response is an HTTP response, with the envelope of a JSON body.
type response struct {
	sent   *http.Request
	status int
	header http.Header
	body   []byte

	Success   bool   `json:"success"`
	RequestID string `json:"request_id"`
	Data      struct {
		MessageCount     int             `json:"message_count"`
		CreditsCharged   int64           `json:"credits_charged"`
		ProviderResponse json.RawMessage `json:"provider_response"`
	} `json:"data"`
	Error struct {
		Code    string  `json:"code"`
		Message string  `json:"message"`
		Details details `json:"details"`
	} `json:"error"`
}

// details is error.details: messages by field path, or the reason of the error.
type details struct {
	fields     map[string][]string
	Reason     string `json:"reason"`
	Vendor     string `json:"vendor"`
	VendorCode string `json:"vendor_code"`
	Reference  string `json:"reference"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *details) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &d.fields) == nil {
		return nil
	}
	type plain details
	d.fields = nil
	return json.Unmarshal(text, (*plain)(d))
}

// is reports whether the response has a status and an error code; "" is success.
func (a *response) is(status int, code string) bool {
	return a.status == status && a.Error.Code == code && a.Success == (code == "")
}

// fields returns the fields that the response names as wrong, sorted.
func (a *response) fields() string {
	return strings.Join(slices.Sorted(maps.Keys(a.Error.Details.fields)), " ")
}

// provider decodes the provider_response.
func (a *response) provider(t *testing.T) (p struct {
	Status, Vendor, Reference string
	Results                   []struct{ To, Status string }
}) {
	t.Helper()
	if err := json.Unmarshal(a.Data.ProviderResponse, &p); err != nil {
		t.Errorf("provider_response %s: %v", a.Data.ProviderResponse, err)
	}
	return p
}

// do sends the request and checks that openapi.yaml documents the response.
func (r request) do(t *testing.T) *response {
	t.Helper()
	a := r.send(t)
	if a.status != 0 && r.method != http.MethodHead {
		a.check(t, r)
	}
	return a
}

// failsOn checks that the response is 422 validation_failed and names exactly the fields.
func (r request) failsOn(t *testing.T, fields string) {
	t.Helper()
	if a := r.do(t); !a.is(422, "validation_failed") || a.fields() != fields {
		t.Errorf("%.100s: %d %s, want 422 validation_failed on %s", r.body, a.status, a.body, fields)
	}
}

// send sends the request, also from a goroutine: a failure is an error of the test, and a response without a status.
func (r request) send(t testing.TB) *response {
	t.Helper()
	r.method, r.base = cmp.Or(r.method, http.MethodPost), cmp.Or(r.base, fixture.baseURL)
	fixture.payloads.remember(r.body)
	in, err := http.NewRequestWithContext(t.Context(), r.method, r.base, strings.NewReader(r.body))
	if err != nil {
		t.Error(err)
		return &response{sent: &http.Request{}}
	}
	in.URL.Opaque = in.URL.Path + r.path // nothing is escaped or tidied
	if r.as.ID != "" {
		in.Header.Set("X-API-KEY", r.as.ID)
	}
	if r.as.Secret != "" {
		in.Header.Set("X-API-SECRET", r.as.Secret)
	}
	if r.body != "" {
		in.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.header {
		in.Header[http.CanonicalHeaderKey(name)] = []string{value}
	}
	out, err := client.Do(in)
	if err != nil {
		t.Errorf("%s %s: %v", r.method, r.path, err)
		return &response{sent: in}
	}
	defer out.Body.Close()
	a := &response{sent: in, status: out.StatusCode, header: out.Header}
	if a.body, err = io.ReadAll(out.Body); err != nil {
		t.Errorf("%s %s: %v", r.method, r.path, err)
		return &response{sent: in}
	}
	isJSON := strings.HasPrefix(a.header.Get("Content-Type"), "application/json") && a.header.Get("Content-Encoding") == ""
	if len(a.body) > 0 && isJSON {
		if err := json.Unmarshal(a.body, a); err != nil {
			t.Errorf("%s %s: %d %s: %v", r.method, r.path, a.status, a.body, err)
		}
	}
	return a
}

// check compares the response with openapi.yaml, and the request ID of the header with the envelope's.
func (a *response) check(t *testing.T, r request) {
	t.Helper()
	wrong := func(what string, details ...any) {
		t.Helper()
		t.Errorf("%s%s %s: response %d %.300s: %s %v", r.about, r.method, r.path, a.status, a.body, what, details)
	}
	ids := a.header.Values("X-SVC-Request-ID")
	if _, err := uuid.Parse(a.RequestID); err != nil || len(ids) != 1 || ids[0] != a.RequestID {
		wrong("request_id, header:", ids)
	}
	documented := fixture.documented(r, a.status)
	if documented == nil {
		wrong("status is not documented")
		return
	}
	if err := fixture.fits(r); a.status == http.StatusOK && err != nil {
		wrong("the request is none that openapi.yaml describes:", r.body, err)
	}
	only := openapi3.NewResponses(openapi3.WithStatus(a.status, &openapi3.ResponseRef{Value: documented}))
	if err := openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: a.sent, Route: &routers.Route{Spec: fixture.spec, Operation: &openapi3.Operation{Responses: only}},
		},
		Status: a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)),
		Options: &openapi3filter.Options{MultiError: true},
	}); err != nil {
		wrong("not as documented:", err)
	}
	var envelope map[string]any
	if err := json.Unmarshal(a.body, &envelope); err != nil {
		wrong("body:", err)
	}
	if result, ok := envelope["data"].(map[string]any); ok && r.path == "/sms/send" {
		if missing := lacking(result); missing != "" {
			wrong("provider_response lacks", missing)
		}
	}
	if a.Error.Details.Reason == "outcome_uncertain" && a.Error.Details.Vendor != "" && a.Error.Details.Reference == "" {
		wrong("error.details lacks reference")
	}
	if failure, ok := envelope["error"].(map[string]any); ok && !explained(failure) {
		wrong("the details do not fit the code")
	}
}

// explained reports whether an error has the details of its code: messages by field, or a reason. openapi.yaml
// describes them for responses with one code alone.
func explained(failure map[string]any) bool {
	details, _ := failure["details"].(map[string]any)
	switch failure["code"] {
	case "http_error":
		return slices.Contains(fixture.spec.Components.Schemas["ErrorReason"].Value.Enum, details["reason"])
	case "validation_failed":
		for _, value := range details {
			messages, _ := value.([]any)
			if len(messages) == 0 || slices.ContainsFunc(messages,
				func(m any) bool { text, ok := m.(string); return !ok || text == "" }) {
				return false
			}
		}
		return len(details) > 0
	}
	return true
}

// lacking returns a field that the response of a send lacks. openapi.yaml describes the three forms of
// provider_response in one schema, because generators of clients know no alternatives.
func lacking(result map[string]any) string {
	response, _ := result["provider_response"].(map[string]any)
	needed := []string{"status", "id", "vendor"}
	if result["send_method"] == "single" {
		needed = append(needed, "reference")
	}
	if result["send_method"] != "single" {
		needed = append(needed, "results")
	}
	if response["status"] == "partial" && result["send_method"] != "single" {
		needed = append(needed, "counts")
	}
	if response["campaign_data"] != nil {
		needed = []string{"status"}
	}
	for _, name := range needed {
		if response[name] == nil {
			return name
		}
	}
	return ""
}

// fits compares the body of a request with openapi.yaml. A null counts as absent.
func (s *system) fits(r request) error {
	item := s.item(r.path)
	if item == nil || item.Post == nil || r.body == "" {
		return nil
	}
	var body any
	decoder := json.NewDecoder(strings.NewReader(r.body))
	decoder.UseNumber() // an unknown field may hold a number that no float64 holds
	if err := decoder.Decode(&body); err != nil {
		return err
	}
	return item.Post.RequestBody.Value.Content["application/json"].Schema.Value.VisitJSON(withoutNull(body),
		openapi3.VisitAsRequest())
}

func withoutNull(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if field == nil {
				delete(value, name)
			}
			withoutNull(field)
		}
	case []any:
		for _, item := range value {
			withoutNull(item)
		}
	}
	return value
}

// documented finds a response in openapi.yaml: the operation's own, or one that any path may return.
func (s *system) documented(r request, status int) *openapi3.Response {
	if item := s.item(r.path); item != nil {
		if operation := item.GetOperation(cmp.Or(r.method, http.MethodPost)); operation != nil {
			if documented := operation.Responses.Status(status); documented != nil {
				return documented.Value
			}
			return nil
		}
	}
	everywhere := map[int]string{404: "NotFound", 405: "MethodNotAllowed", 413: "TooLarge"}
	if documented := s.spec.Components.Responses[everywhere[status]]; documented != nil {
		return documented.Value
	}
	return nil
}

// item finds a path of openapi.yaml. A segment in braces matches any segment that is not empty.
func (s *system) item(path string) *openapi3.PathItem {
	path, _, _ = strings.Cut(path, "?")
	if item := s.spec.Paths.Value(path); item != nil {
		return item
	}
	segments := strings.Split(path, "/")
	for pattern, item := range s.spec.Paths.Map() {
		if slices.EqualFunc(strings.Split(pattern, "/"), segments, func(p, segment string) bool {
			return p == segment || strings.HasPrefix(p, "{") && segment != ""
		}) {
			return item
		}
	}
	return nil
}

// without returns the body without its request ID.
func (a *response) without() string {
	return string(bytes.ReplaceAll(a.body, []byte(a.RequestID), nil))
}

// single is the body of a send of one message.
func single(to, message string) string {
	return object(map[string]any{"send_method": "single", "to": to, "message": message})
}

func bulkSame(to []string, message string) string {
	return object(map[string]any{"send_method": "bulk_same", "recipients": to, "message": message})
}

func object(fields map[string]any) string {
	text, _ := json.Marshal(fields) // texts, numbers and lists of them
	return string(text)
}

// atOnce runs n requests, some of them in parallel, and returns their responses.
func atOnce(n, parallel int, do func(i int) *response) []*response {
	responses := make([]*response, n)
	var running errgroup.Group
	running.SetLimit(parallel)
	for i := range n {
		running.Go(func() error {
			responses[i] = do(i)
			return nil
		})
	}
	_ = running.Wait() // no function returns an error
	return responses
}
