package gateway

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"svcapi/local/template"
)

const apiID = "local"

// event is the input of a Lambda function for proxy integration. Its own fields are those that AWS sends as null or
// false, where package events leaves them out.
type event struct {
	events.APIGatewayProxyRequest
	RequestContext  map[string]any `json:"requestContext"`
	Body            *string        `json:"body"`
	IsBase64Encoded bool           `json:"isBase64Encoded"`
}

// notPassed are the headers that the gateway does not pass on.
var notPassed = []string{"Connection", "Content-Length", "Expect", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade"}

func newEvent(state *requestState) event {
	r := state.request
	headers := r.Header.Clone()
	for _, name := range notPassed {
		headers.Del(name)
	}
	address := sourceIP(r)
	if forwarded := headers.Values("X-Forwarded-For"); len(forwarded) > 0 {
		address = strings.Join(forwarded, ", ") + ", " + address
	}
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	headers.Set("Host", r.Host)
	headers.Set("X-Amzn-Trace-Id",
		fmt.Sprintf("Root=1-%08x-%s", state.at.Unix(), strings.ReplaceAll(state.id, "-", "")[:24]))
	headers.Set("X-Forwarded-For", address)
	headers.Set("X-Forwarded-Port", port)
	headers.Set("X-Forwarded-Proto", "http")
	query := query(r.URL.RawQuery)
	e := event{
		APIGatewayProxyRequest: events.APIGatewayProxyRequest{
			Resource: state.route.Path, Path: state.path, HTTPMethod: r.Method,
			Headers: last(headers), MultiValueHeaders: headers,
			QueryStringParameters: last(query), MultiValueQueryStringParameters: query,
		},
		RequestContext: map[string]any{
			"accountId":         template.AccountID,
			"apiId":             apiID,
			"domainName":        r.Host,
			"domainPrefix":      apiID,
			"extendedRequestId": state.extendedID,
			"httpMethod":        r.Method,
			"identity":          identity(r),
			"path":              "/" + state.api.Stage + state.path,
			"protocol":          r.Proto,
			"requestId":         state.id,
			"requestTime":       state.at.UTC().Format("02/Jan/2006:15:04:05 +0000"),
			"requestTimeEpoch":  state.at.UnixMilli(),
			"resourceId":        "local",
			"resourcePath":      state.route.Path,
			"stage":             state.api.Stage,
		},
	}
	if len(state.parameters) > 0 {
		e.PathParameters = state.parameters
	}
	if len(state.body) > 0 { // each media type of the API is binary
		body := base64.StdEncoding.EncodeToString(state.body)
		e.Body, e.IsBase64Encoded = &body, true
	}
	return e
}

// identity returns the client's identity, with null for what only an authorizer finds out.
func identity(r *http.Request) map[string]any {
	fields := map[string]any{
		"accessKey": nil, "accountId": nil, "caller": nil, "cognitoAuthenticationProvider": nil,
		"cognitoAuthenticationType": nil,
		"cognitoIdentityId":         nil, "cognitoIdentityPoolId": nil, "principalOrgId": nil, "sourceIp": sourceIP(r),
		"user":      nil,
		"userAgent": nil, "userArn": nil,
	}
	if agent := r.UserAgent(); agent != "" {
		fields["userAgent"] = agent
	}
	return fields
}

// query decodes a query once. What cannot be decoded stays as it is; nil where there is none.
func query(raw string) map[string][]string {
	values := url.Values{}
	for pair := range strings.SplitSeq(raw, "&") {
		if name, v, _ := strings.Cut(pair, "="); pair != "" {
			values.Add(unescape(name), unescape(v))
		}
	}
	if len(values) == 0 {
		return nil
	}
	return values
}

func unescape(s string) string {
	if decoded, err := url.QueryUnescape(s); err == nil {
		return decoded
	}
	return s
}

// last gives the last value of each name, as AWS fills the fields of single values.
func last(values map[string][]string) map[string]string {
	if values == nil {
		return nil
	}
	single := make(map[string]string, len(values))
	for name, list := range values {
		single[name] = list[len(list)-1]
	}
	return single
}

func sourceIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
