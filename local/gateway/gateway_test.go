package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svcapi/local/gateway"
	"svcapi/local/lambda"
	"svcapi/local/template"
	"svcapi/test/logtest"
	"svcapi/test/must"
	"svcapi/test/probetest"
)

const stack = `
Resources:
  Api:
    Type: AWS::Serverless::Api
    Properties:
      StageName: dev
      BinaryMediaTypes: ['*/*']
      GatewayResponses:
        DEFAULT_4XX:
          ResponseParameters: {Headers: {X-SVC-Request-ID: context.requestId}}
          ResponseTemplates: {application/json: '{"code":"http_error","id":"$context.requestId"}'}
        DEFAULT_5XX:
          StatusCode: '500'
          ResponseParameters: {Headers: {X-SVC-Request-ID: context.requestId}}
          ResponseTemplates: {application/json: '{"code":"internal_error","id":"$context.requestId"}'}
        MISSING_AUTHENTICATION_TOKEN:
          StatusCode: '404'
          ResponseParameters: {Headers: {X-SVC-Request-ID: context.requestId, Static: "'1'"}}
          ResponseTemplates: {application/json: '{"code":"none"}'}
        INTEGRATION_TIMEOUT:
          StatusCode: '503'
          ResponseTemplates: {application/json: '{"code":"late"}'}
  ProbeFunction:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 900
      Events:
        Echo: {Type: Api, Properties: {Path: /api/v1/echo, Method: any}}
        Hasty: {Type: Api, Properties: {Path: /api/v1/hasty, Method: any, TimeoutInMillis: 100}}
        Get: {Type: Api, Properties: {Path: /api/v1/only-get, Method: get}}
        Pair: {Type: Api, Properties: {Path: '/api/v1/pair/{base}/{target}', Method: any}}
        Known: {Type: Api, Properties: {Path: '/api/v1/pair/{base}/codes', Method: any}}
        Rest: {Type: Api, Properties: {Path: '/rest/{proxy+}', Method: any}}
  HastyFunction:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 1
      Events:
        Short: {Type: Api, Properties: {Path: /short, Method: any}}
  StreamFunction:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 900
      Environment: {Variables: {PROBE_STREAM: 1}}
      Events:
        Stream: {Type: Api, Properties: {Path: /stream, Method: any, ResponseTransferMode: RESPONSE_STREAM}}
        Buffered: {Type: Api, Properties: {Path: /not-stream, Method: any}}
  InitFunction:
    Type: AWS::Serverless::Function
    Properties:
      Environment: {Variables: {PROBE_INIT: exit}}
      Events:
        Dead: {Type: Api, Properties: {Path: /dead, Method: any}}
`

func TestMain(m *testing.M) { probetest.Main(m) }

// start gives the root URL of the stack above, and its access log.
func start(t *testing.T) (string, *logtest.Buffer) {
	t.Helper()
	return serve(t, stack, lambda.Options{})
}

func serve(t *testing.T, text string, options lambda.Options) (string, *logtest.Buffer) {
	t.Helper()
	loaded := must.Get(template.Parse([]byte(text), nil)).Or(t)
	options.LogDir, options.Jail = t.TempDir(), probetest.Jail
	host := must.Get(lambda.NewHost(options)).Or(t)
	t.Cleanup(host.Close)
	for _, function := range loaded.Functions {
		must.Succeed(t, host.Add(function, probetest.Bootstrap))
	}
	log := &logtest.Buffer{}
	server := must.Get(gateway.Start("127.0.0.1:0", loaded, host, log)).Or(t)
	t.Cleanup(func() { server.Close() })
	return server.URL, log
}

// send sends a request with the path and headers exactly as given.
func send(t *testing.T, url, method, target string, body io.Reader, headers ...string) (*http.Response, string) {
	t.Helper()
	request := must.Get(http.NewRequest(method, url, body)).Or(t)
	request.URL.Opaque = target
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	response := must.Get(http.DefaultTransport.RoundTrip(request)).Or(t)
	defer response.Body.Close()
	return response, string(must.Get(io.ReadAll(response.Body)).Or(t))
}

// event sends a request to a function that returns its event.
func event(t *testing.T, url, method, target string, body io.Reader, headers ...string) map[string]any {
	t.Helper()
	response, text := send(t, url, method, target, body, headers...)
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, target, response.StatusCode, text)
	}
	return got
}

// flatten lists the fields of an event with their types. What is a table of names and values stays one field.
func flatten(prefix string, fields map[string]any, types map[string]string) {
	for name, v := range fields {
		name = prefix + name
		switch v := v.(type) {
		case nil:
			types[name] = "null"
		case bool:
			types[name] = "boolean"
		case float64:
			types[name] = "number"
		case string:
			types[name] = "string"
		case map[string]any:
			if name == "requestContext" || name == "requestContext.identity" {
				flatten(name+".", v, types)
				continue
			}
			types[name] = "strings"
			for _, item := range v {
				if _, ok := item.([]any); ok {
					types[name] = "lists"
				}
			}
		}
	}
}

// TestEventShape compares an event, field by field, with the one of `sam local generate-event apigateway aws-proxy`
// (testdata/aws-proxy.json: its fields and their types), plus what AWS documents beyond it for REST APIs.
func TestEventShape(t *testing.T) {
	url, _ := start(t)
	got := map[string]string{}
	flatten("", event(t, url, "POST", "/api/v1/pair/USD/LKR?a=1", strings.NewReader("{}")), got)
	text := must.Get(os.ReadFile("testdata/aws-proxy.json")).Or(t)
	want := map[string]string{
		"requestContext.domainName": "string", "requestContext.domainPrefix": "string",
		"requestContext.extendedRequestId": "string", "requestContext.identity.principalOrgId": "null",
	}
	must.Succeed(t, json.Unmarshal(text, &want))
	for name, kind := range want {
		if got[name] == "" || !slices.Contains(strings.Split(kind, " or "), got[name]) {
			t.Errorf("%s is %q, want %s", name, got[name], kind)
		}
		delete(got, name)
	}
	if len(got) != 0 {
		t.Errorf("fields that AWS does not send: %v", slices.Sorted(maps.Keys(got)))
	}
}

// TestEvent checks an event's values.
func TestEvent(t *testing.T) {
	url, _ := start(t)
	got := event(t, url, "PUT", "/api/v1/pair/a%2Fb/x?q=1&q=a%20b+c&empty&bad=%zz", strings.NewReader("\xff\x00"),
		"X-Two", "1", "X-Two", "2", "X-Forwarded-For", "10.0.0.1", "User-Agent", "probe")
	body, _ := base64.StdEncoding.DecodeString(got["body"].(string))
	context := got["requestContext"].(map[string]any)
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"resource", got["resource"], "/api/v1/pair/{base}/{target}"},
		{"path", got["path"], "/api/v1/pair/a%2Fb/x"},
		{"method", got["httpMethod"], "PUT"},
		{"path parameters", got["pathParameters"], map[string]any{"base": "a%2Fb", "target": "x"}},
		{"query", got["queryStringParameters"], map[string]any{"q": "a b c", "empty": "", "bad": "%zz"}},
		{"query lists", got["multiValueQueryStringParameters"],
			map[string]any{"q": []any{"1", "a b c"}, "empty": []any{""}, "bad": []any{"%zz"}}},
		{"header", got["headers"].(map[string]any)["X-Two"], "2"},
		{"header list", got["multiValueHeaders"].(map[string]any)["X-Two"], []any{"1", "2"}},
		{"forwarded", got["headers"].(map[string]any)["X-Forwarded-For"], "10.0.0.1, 127.0.0.1"},
		{"body", string(body), "\xff\x00"},
		{"base64", got["isBase64Encoded"], true},
		{"context path", context["path"], "/dev/api/v1/pair/a%2Fb/x"},
		{"source", context["identity"].(map[string]any)["sourceIp"], "127.0.0.1"},
		{"agent", context["identity"].(map[string]any)["userAgent"], "probe"},
	} {
		if fmt.Sprint(c.got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	bare := event(t, url, "GET", "/api/v1/echo", nil)
	for _, name := range []string{"body", "queryStringParameters", "multiValueQueryStringParameters",
		"pathParameters", "stageVariables"} {
		if v, ok := bare[name]; !ok || v != nil {
			t.Errorf("%s of a bare request: %v", name, v)
		}
	}
	if bare["isBase64Encoded"] != false {
		t.Error("no body, but base64")
	}
}

// TestRoutes checks which resource a path reaches, "" for none: paths stay encoded.
func TestRoutes(t *testing.T) {
	url, _ := start(t)
	for _, c := range []struct{ method, target, resource string }{
		{"GET", "/api/v1/echo", "/api/v1/echo"},
		{"OPTIONS", "/api/v1/echo", "/api/v1/echo"},
		{"GET", "/api/v1/echo/", "/api/v1/echo"},
		{"GET", "/api/v1/echo//", ""},
		{"GET", "//api/v1/echo", ""},
		{"GET", "/api/v1//echo", ""},
		{"GET", "/api/v1/echo%3Fx", ""},
		{"GET", "/api/v1%2Fecho", ""},
		{"GET", "/API/v1/echo", ""},
		{"GET", "/api/v1/only-get", "/api/v1/only-get"},
		{"POST", "/api/v1/only-get", ""},
		{"GET", "/api/v1/pair/USD/LKR", "/api/v1/pair/{base}/{target}"},
		{"GET", "/api/v1/pair/USD/codes", "/api/v1/pair/{base}/codes"},
		{"GET", "/api/v1/pair/USD%3F/%2F", "/api/v1/pair/{base}/{target}"},
		{"GET", "/api/v1/pair//LKR", ""},
		{"GET", "/rest/a/b//c", "/rest/{proxy+}"},
		{"GET", "/rest/", ""},
		{"GET", "/", ""},
	} {
		response, text := send(t, url, c.method, c.target, nil)
		var got struct{ Resource, Path string }
		err := json.Unmarshal([]byte(text), &got)
		if err != nil || got.Resource != c.resource || (response.StatusCode == http.StatusNotFound) != (c.resource == "") {
			t.Errorf("%s %s: %d %s", c.method, c.target, response.StatusCode, text)
		}
		if c.resource != "" && got.Path != c.target {
			t.Errorf("%s reached the function as %s", c.target, got.Path)
		}
	}
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// TestGatewayResponses checks that status, headers and body of the gateway's own responses are the template's.
func TestGatewayResponses(t *testing.T) {
	url, log := start(t)
	large := func(n int) io.Reader { return strings.NewReader(strings.Repeat("x", n)) }
	for _, c := range []struct {
		name, target, probe string
		body                io.Reader
		header              string
		status              int
		want                string
	}{
		{"unknown route", "/nothing", "", nil, "", 404, `{"code":"none"}`},
		{"unknown route with a signature", "/nothing", "", nil, "Authorization", 403, `{"code":"http_error","id":"ID"}`},
		{"over 10 MB", "/api/v1/echo", "", large(10<<20 + 1), "", 413, `{"code":"http_error","id":"ID"}`},
		{"over 6 MB as an event", "/api/v1/echo", "", large(5 << 20), "", 413, `{"code":"http_error","id":"ID"}`},
		{"error", "/api/v1/echo", `{"do":"error"}`, nil, "", 500, `{"code":"internal_error","id":"ID"}`},
		{"death", "/api/v1/echo", `{"do":"exit","n":1}`, nil, "", 500, `{"code":"internal_error","id":"ID"}`},
		{"init", "/dead", ``, nil, "", 500, `{"code":"internal_error","id":"ID"}`},
		{"function's time-out", "/short", `{"do":"sleep","n":60000}`, nil, "", 500,
			`{"code":"internal_error","id":"ID"}`},
		{"integration's time-out", "/api/v1/hasty", `{"do":"sleep","n":3000}`, nil, "", 503, `{"code":"late"}`},
		{"over 6 MB out", "/api/v1/echo", `{"do":"big","n":6300000}`, nil, "", 500, `{"code":"internal_error","id":"ID"}`},
		{"no object", "/api/v1/echo", `{"do":"respond","response":null}`, nil, "", 500,
			`{"code":"internal_error","id":"ID"}`},
		{"no status", "/api/v1/echo", `{"do":"respond","response":{"body":"x"}}`, nil, "", 500,
			`{"code":"internal_error","id":"ID"}`},
		{"body no text", "/api/v1/echo", `{"do":"respond","response":{"statusCode":200,"body":{}}}`, nil, "", 500,
			`{"code":"internal_error","id":"ID"}`},
		{"unknown field", "/api/v1/echo", `{"do":"respond","response":{"statusCode":200,"status":1}}`, nil, "", 500,
			`{"code":"internal_error","id":"ID"}`},
		{"no base64", "/api/v1/echo", `{"do":"respond","response":{"statusCode":200,"body":"!","isBase64Encoded":true}}`, nil,
			"", 500, `{"code":"internal_error","id":"ID"}`},
		{"a stream where none belongs", "/not-stream", ``, nil, "", 500, `{"code":"internal_error","id":"ID"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			headers := []string{"X-Probe", c.probe}
			if c.header != "" {
				headers = append(headers, c.header, "x")
			}
			response, text := send(t, url, "POST", c.target, c.body, headers...)
			if masked := uuid.ReplaceAllString(text, "ID"); response.StatusCode != c.status || masked != c.want {
				t.Errorf("%d %s, want %d %s", response.StatusCode, masked, c.status, c.want)
			}
			if id := response.Header.Get("X-SVC-Request-ID"); !uuid.MatchString(id) && c.status != 503 {
				t.Errorf("request ID %q", id)
			} else if !strings.Contains(log.String(), id) {
				t.Errorf("request %s is not in the access log", id)
			}
		})
	}
}

// TestThrottle checks that a route lets its burst through and then its rate, whatever is asked of the others.
func TestThrottle(t *testing.T) {
	text := strings.Replace(stack, "      GatewayResponses:",
		`      MethodSettings: [{ResourcePath: /*, HttpMethod: '*', ThrottlingRateLimit: 2, ThrottlingBurstLimit: 5}, {ResourcePath: /~1api~1v1~1only-get, HttpMethod: GET, ThrottlingRateLimit: 1, ThrottlingBurstLimit: 1}]
      GatewayResponses:
        THROTTLED:
          StatusCode: '429'
          ResponseParameters: {Headers: {X-SVC-Request-ID: context.requestId, Retry-After: "'1'"}}
          ResponseTemplates: {application/json: '{"code":"slow down","id":"$context.requestId"}'}`, 1)
	url, log := serve(t, text, lambda.Options{})
	ask := func(target string) int {
		response, text := send(t, url, "POST", target, strings.NewReader(strings.Repeat("x", 1<<20)), "X-Probe",
			`{"do":"respond","response":{"statusCode":200}}`)
		if id := response.Header.Get("X-SVC-Request-ID"); response.StatusCode == http.StatusTooManyRequests &&
			(response.Header.Get("Retry-After") != "1" || text != `{"code":"slow down","id":"`+id+`"}` ||
				!strings.Contains(log.String(), id)) {
			t.Errorf("throttled: %v %s", response.Header, text)
		}
		return response.StatusCode
	}
	began := time.Now()
	passed := 0
	for range 50 {
		if ask("/api/v1/echo") == http.StatusOK {
			passed++
		}
	}
	if most := 5 + int(2*time.Since(began).Seconds()) + 1; passed < 5 || passed > most {
		t.Errorf("%d passed in %s, want 5 and 2 a second", passed, time.Since(began))
	}
	if got := ask("/rest/other"); got != http.StatusOK {
		t.Errorf("another route: %d", got)
	}
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} { // a throttle of its own
		if got, _ := send(t, url, "GET", "/api/v1/only-get", nil, "X-Probe",
			`{"do":"respond","response":{"statusCode":200}}`); got.StatusCode != want {
			t.Errorf("the method with a throttle of its own: %d, want %d", got.StatusCode, want)
		}
	}
	time.Sleep(time.Second) // two requests' time
	if got := ask("/api/v1/echo"); got != http.StatusOK {
		t.Errorf("after a second: %d", got)
	}
}

// TestNoConcurrencyLeft checks that an event for which the account has no room is refused at once: with a 500, as AWS
// refuses it, though it is Lambda's 429.
func TestNoConcurrencyLeft(t *testing.T) {
	url, log := serve(t, stack, lambda.Options{Account: 1})
	begun, release := make(chan struct{}), make(chan struct{})
	holder := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-release
	}))
	defer holder.Close()
	var running sync.WaitGroup
	running.Go(func() {
		response, text := send(t, url, "POST", "/api/v1/echo", nil, "X-Probe",
			`{"do":"wait","url":"`+holder.URL+`","response":{"statusCode":200}}`)
		if response.StatusCode != http.StatusOK {
			t.Errorf("an event that waits: %d %s", response.StatusCode, text)
		}
	})
	<-begun
	response, text := send(t, url, "POST", "/rest/other", nil)
	if response.StatusCode != http.StatusInternalServerError ||
		text != `{"code":"internal_error","id":"`+response.Header.Get("X-SVC-Request-ID")+`"}` ||
		!strings.Contains(log.String(), "no concurrency is left") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	close(release)
	running.Wait()
	event(t, url, "POST", "/rest/other", nil)
}

// TestClientGoesAway checks that the gateway waits for a function whose client has hung up.
func TestClientGoesAway(t *testing.T) {
	url, log := start(t)
	ctx, hangUp := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer hangUp()
	in := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/v1/echo", nil)).Or(t)
	in.Header.Set("X-Probe", `{"do":"sleep","n":800}`)
	if response, err := http.DefaultTransport.RoundTrip(in); err == nil {
		t.Error("a response before the client hangs up:", response.Status)
	}
	for log.String() == "" {
		time.Sleep(10 * time.Millisecond)
	}
	if strings.Contains(log.String(), context.Canceled.Error()) {
		t.Error(log.String())
	}
}

// TestFunctionResponses checks how the gateway converts a function's result.
func TestFunctionResponses(t *testing.T) {
	url, _ := start(t)
	for _, c := range []struct {
		name, response string
		status         int
		headers        http.Header
		want           string
	}{
		{"text", `{"statusCode":201,"body":"é"}`, 201, http.Header{"Content-Type": {"application/json"}}, "é"},
		{"base64", `{"statusCode":200,"headers":{"Content-Type":"image/png"},"body":"/wA=","isBase64Encoded":true}`, 200,
			http.Header{"Content-Type": {"image/png"}}, "\xff\x00"},
		{"long", `{"statusCode":200,"body":"` + strings.Repeat("x", 10_000) + `"}`, 200,
			http.Header{"Content-Length": {"10000"}}, strings.Repeat("x", 10_000)},
		{"no body", `{"statusCode":"204","body":null}`, 204, http.Header{}, ""},
		{"headers", `{"statusCode":200,"headers":{"A":"1","B":2},"multiValueHeaders":{"A":["1","3"]}}`, 200,
			http.Header{"A": {"1", "3"}, "B": {"2"}}, ""},
		{"remapped", `{"statusCode":401,"headers":{"WWW-Authenticate":"x","Content-Length":"7"}}`, 401,
			http.Header{"X-Amzn-Remapped-Www-Authenticate": {"x"}, "Www-Authenticate": nil}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			response, text := send(t, url, "POST", "/api/v1/echo", nil, "X-Probe", `{"do":"respond","response":`+c.response+`}`)
			if response.StatusCode != c.status || text != c.want {
				t.Errorf("%d %q", response.StatusCode, text)
			}
			for name, want := range c.headers {
				if got := response.Header[name]; !slices.Equal(got, want) {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// TestStream checks that the gateway sends a streamed response in chunks as it comes, and no end of a stream that
// breaks off.
func TestStream(t *testing.T) {
	url, log := start(t)
	read := make(chan struct{}, 3)
	half := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-read }))
	defer half.Close()
	for do, whole := range map[string]bool{"": true, "fail": false, "exit": false} {
		probe := `{"do":"` + do + `","url":"` + half.URL + `"}`
		in := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/stream", nil)).Or(t)
		in.Header.Set("X-Probe", probe)
		response := must.Get(http.DefaultClient.Do(in)).Or(t)
		first := make([]byte, 1)
		if _, err := io.ReadFull(response.Body, first); err != nil {
			t.Errorf("%s: %v", probe, err)
		}
		read <- struct{}{} // the function goes on after the client has the first byte
		rest, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusCreated || response.Header.Get("Content-Type") != "application/pdf" {
			t.Errorf("%s: %d %v", probe, response.StatusCode, response.Header)
		}
		if !slices.Equal(response.TransferEncoding, []string{"chunked"}) || (err == nil) != whole ||
			(len(rest) == 7<<20-1) != whole {
			t.Errorf("%s: %v, %d bytes, %v", probe, response.TransferEncoding, len(rest), err)
		}
	}
	if n := strings.Count(log.String(), "the stream broke off"); n != 2 {
		t.Errorf("%d broken streams in the log: %s", n, log.String())
	}
}

// TestResponsesAreChecked checks that a gateway response with a mistake is found at start, and a throttle of no method.
func TestResponsesAreChecked(t *testing.T) {
	for name, c := range map[string]struct{ old, mistake, message string }{
		"unknown variable": {"$context.requestId", "$context.requestID", "no variable but"},
		"header":           {"ID: context.requestId", "ID: $context.requestId", "in single quotes"},
		"header variable":  {"ID: context.requestId", "ID: context.nothing", "in single quotes"},
		"no default":       {"DEFAULT_4XX", "WAF_FILTERED", "no gateway response DEFAULT_4XX"},
		"a throttle of no method": {"      StageName:",
			"      MethodSettings: [{ResourcePath: /docs, HttpMethod: ANY, ThrottlingRateLimit: 1}]\n      StageName:",
			"no route has, or ANY"},
	} {
		broken := must.Get(template.Parse([]byte(strings.ReplaceAll(stack, c.old, c.mistake)), nil)).Or(t)
		if _, err := gateway.New(broken, nil, io.Discard); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOddRequests checks that the gateway responds, at once and in its own form, to requests that net/http would
// refuse, respond to itself or wait for.
func TestOddRequests(t *testing.T) {
	url, log := start(t)
	for request, want := range map[string]int{
		"GET /api/v1/%zz HTTP/1.1\r\nHost: x\r\n\r\n": http.StatusBadRequest,
		"GET /api/v1/echo HTTP/1.1\r\n\r\n":           http.StatusBadRequest,
		"nonsense\r\n\r\n":                            http.StatusBadRequest,
		"GET /api/v1/echo HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 20<<10) +
			"\r\n\r\n": http.StatusRequestHeaderFieldsTooLarge,
		"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n":                              http.StatusNotFound,
		"POST /api/v1/echo HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nContent-Length: 1\r\n\r\nx": http.StatusExpectationFailed,
		"POST /api/v1/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\nx":           http.StatusRequestEntityTooLarge,
	} {
		body := `{"code":"http_error","id":"ID"}`
		if want == http.StatusNotFound {
			body = `{"code":"none"}`
		}
		conn := must.Get(net.Dial("tcp", strings.TrimPrefix(url, "http://"))).Or(t)
		defer conn.Close()
		must.Succeed(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		must.Get(io.WriteString(conn, request)).Or(t)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%.40q: %v", request, err)
			continue
		}
		text, err := io.ReadAll(response.Body)
		id := response.Header.Get("X-SVC-Request-ID")
		if err != nil || response.StatusCode != want || strings.ReplaceAll(string(text), id, "ID") != body ||
			!uuid.MatchString(id) || !strings.Contains(log.String(), id) {
			t.Errorf("%.40q: %d %v %s %v", request, response.StatusCode, response.Header, text, err)
		}
	}
	// A client that still sends its body gets the response, too.
	for range 100 {
		r := must.Get(http.NewRequest(http.MethodPost, url, bytes.NewReader(make([]byte, 3<<20)))).Or(t)
		r.URL.Opaque = "/api/v1/%zz"
		response := must.Get(http.DefaultClient.Do(r)).Or(t)
		if response.Body.Close(); response.StatusCode != http.StatusBadRequest {
			t.Error(response.Status)
		}
	}
}
