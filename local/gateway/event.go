package gateway

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"svcapi/local/template"
)

const apiID = "local"

// event is the input of a Lambda function for proxy integration, as AWS documents it for REST APIs.
type event struct {
	Resource                        string              `json:"resource"`
	Path                            string              `json:"path"`
	HTTPMethod                      string              `json:"httpMethod"`
	Headers                         map[string]string   `json:"headers"`
	MultiValueHeaders               map[string][]string `json:"multiValueHeaders"`
	QueryStringParameters           map[string]string   `json:"queryStringParameters"`
	MultiValueQueryStringParameters map[string][]string `json:"multiValueQueryStringParameters"`
	PathParameters                  map[string]string   `json:"pathParameters"`
	StageVariables                  map[string]string   `json:"stageVariables"`
	RequestContext                  requestContext      `json:"requestContext"`
	Body                            *string             `json:"body"`
	IsBase64Encoded                 bool                `json:"isBase64Encoded"`
}

type requestContext struct {
	AccountID         string   `json:"accountId"`
	APIID             string   `json:"apiId"`
	DomainName        string   `json:"domainName"`
	DomainPrefix      string   `json:"domainPrefix"`
	ExtendedRequestID string   `json:"extendedRequestId"`
	HTTPMethod        string   `json:"httpMethod"`
	Identity          identity `json:"identity"`
	Path              string   `json:"path"`
	Protocol          string   `json:"protocol"`
	RequestID         string   `json:"requestId"`
	RequestTime       string   `json:"requestTime"`
	RequestTimeEpoch  int64    `json:"requestTimeEpoch"`
	ResourceID        string   `json:"resourceId"`
	ResourcePath      string   `json:"resourcePath"`
	Stage             string   `json:"stage"`
}

// identity has null for what no authorizer has found out.
type identity struct {
	AccessKey                     *string `json:"accessKey"`
	AccountID                     *string `json:"accountId"`
	Caller                        *string `json:"caller"`
	CognitoAuthenticationProvider *string `json:"cognitoAuthenticationProvider"`
	CognitoAuthenticationType     *string `json:"cognitoAuthenticationType"`
	CognitoIdentityID             *string `json:"cognitoIdentityId"`
	CognitoIdentityPoolID         *string `json:"cognitoIdentityPoolId"`
	PrincipalOrgID                *string `json:"principalOrgId"`
	SourceIP                      string  `json:"sourceIp"`
	User                          *string `json:"user"`
	UserAgent                     *string `json:"userAgent"`
	UserARN                       *string `json:"userArn"`
}

// notPassed are the headers that end at the gateway.
var notPassed = []string{"Connection", "Content-Length", "Expect", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade"}

func newEvent(x *exchange) event {
	r := x.request
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
	headers.Set("X-Amzn-Trace-Id", fmt.Sprintf("Root=1-%08x-%s", x.at.Unix(), strings.ReplaceAll(x.id, "-", "")[:24]))
	headers.Set("X-Forwarded-For", address)
	headers.Set("X-Forwarded-Port", port)
	headers.Set("X-Forwarded-Proto", "http")
	query := query(r.URL.RawQuery)
	e := event{
		Resource:                        x.route.path,
		Path:                            x.path,
		HTTPMethod:                      r.Method,
		Headers:                         last(headers),
		MultiValueHeaders:               headers,
		QueryStringParameters:           last(query),
		MultiValueQueryStringParameters: query,
		PathParameters:                  x.parameters,
		RequestContext: requestContext{
			AccountID:         template.AccountID,
			APIID:             apiID,
			DomainName:        r.Host,
			DomainPrefix:      apiID,
			ExtendedRequestID: x.extendedID,
			HTTPMethod:        r.Method,
			Identity:          identity{SourceIP: sourceIP(r)},
			Path:              "/" + x.api.Stage + x.path,
			Protocol:          r.Proto,
			RequestID:         x.id,
			RequestTime:       x.at.UTC().Format("02/Jan/2006:15:04:05 +0000"),
			RequestTimeEpoch:  x.at.UnixMilli(),
			ResourceID:        "local",
			ResourcePath:      x.route.path,
			Stage:             x.api.Stage,
		},
	}
	if len(x.parameters) == 0 {
		e.PathParameters = nil
	}
	if agent := r.UserAgent(); agent != "" {
		e.RequestContext.Identity.UserAgent = &agent
	}
	if len(x.body) > 0 {
		body := string(x.body)
		if e.IsBase64Encoded = x.binary(r.Header.Get("Content-Type")); e.IsBase64Encoded {
			body = base64.StdEncoding.EncodeToString(x.body)
		} else if !utf8.ValidString(body) {
			body = strings.ToValidUTF8(body, "\uFFFD")
		}
		e.Body = &body
	}
	return e
}

// binary tells whether the API's binary media types hold a type; none counts as JSON.
func (x *exchange) binary(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType = "application/json"
	}
	return slices.ContainsFunc(x.api.BinaryMediaTypes, func(binary string) bool {
		return binary == "*/*" || strings.EqualFold(binary, mediaType)
	})
}

// query decodes a query once. What cannot be decoded stays as it is; nil where there is none.
func query(raw string) map[string][]string {
	var values map[string][]string
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, v, _ := strings.Cut(pair, "=")
		if values == nil {
			values = map[string][]string{}
		}
		name = unescape(name)
		values[name] = append(values[name], unescape(v))
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
