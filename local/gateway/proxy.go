package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"svcapi/local/lambda"
)

// response is the HTTP response to the client.
type response struct {
	status  int
	headers http.Header
	body    []byte
}

// remapped are the headers of a function that reach the client under another name: x-amzn-Remapped-<name>.
var remapped = []string{"Authorization", "Connection", "Content-Length", "Date", "Expect", "Host", "Max-Forwards",
	"Proxy-Authenticate", "Server", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "Www-Authenticate"}

// proxyResponse is the output of a Lambda function for proxy integration.
type proxyResponse struct {
	StatusCode        json.RawMessage            `json:"statusCode"`
	Headers           map[string]json.RawMessage `json:"headers"`
	MultiValueHeaders map[string][]string        `json:"multiValueHeaders"`
	Cookies           []string                   `json:"cookies"` // of streams only
	Body              *string                    `json:"body"`
	IsBase64Encoded   bool                       `json:"isBase64Encoded"`
}

// separator ends the prelude of a streamed response.
var separator = make([]byte, 8)

// parse reads a function's result. An error means that the result is malformed.
func parse(result lambda.Result, state *requestState) (*response, error) {
	payload, stream, isStream := result.Payload, []byte(nil), false
	if result.Streamed {
		if payload, stream, isStream = bytes.Cut(result.Payload, separator); !isStream {
			return nil, errors.New("the function's stream has no prelude")
		}
	}
	var p *proxyResponse
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil || p == nil {
		return nil, errors.New("the function's result is no proxy response")
	}
	status, err := strconv.Atoi(scalar(p.StatusCode))
	if err != nil || status < 200 || status > 599 {
		return nil, fmt.Errorf("the function's response has status code %s", p.StatusCode)
	}
	out := &response{status: status, headers: http.Header{}}
	for name, v := range p.Headers {
		out.headers.Set(name, scalar(v))
	}
	for name, list := range p.MultiValueHeaders { // these take precedence over single values
		for _, v := range list {
			if !slices.Contains(out.headers.Values(name), v) {
				out.headers.Add(name, v)
			}
		}
	}
	for _, name := range remapped {
		if list := out.headers.Values(name); len(list) > 0 {
			out.headers["X-Amzn-Remapped-"+name] = list
			out.headers.Del(name)
		}
	}
	switch {
	case isStream:
		out.body = stream
	case p.Body == nil:
	case p.IsBase64Encoded && state.binary(accepted(state.request)):
		if out.body, err = base64.StdEncoding.DecodeString(*p.Body); err != nil {
			return nil, errors.New("the function's response has a body that is not Base64")
		}
	default:
		out.body = []byte(*p.Body)
	}
	if out.headers.Get("Content-Type") == "" {
		out.headers.Set("Content-Type", "application/json")
	}
	return out, nil
}

// scalar is the text of a JSON string, number or boolean.
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// accepted is the first media type that a client accepts: the gateway looks at no other.
func accepted(r *http.Request) string {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	return first
}

// write sends the response with the headers that the gateway adds.
func (out *response) write(w http.ResponseWriter, state *requestState) {
	header := w.Header()
	maps.Copy(header, out.headers)
	header.Set("X-Amzn-Requestid", state.id)
	header.Set("X-Amz-Apigw-Id", state.extendedID)
	if len(out.body) > 0 {
		header.Set("Content-Length", strconv.Itoa(len(out.body))) // of any length: net/http sets the header for short bodies only
	}
	w.WriteHeader(out.status)
	_, _ = w.Write(out.body) // the client may have closed the connection
}
