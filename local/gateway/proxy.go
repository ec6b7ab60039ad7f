package gateway

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"svcapi/local/lambda"
)

// response is the HTTP response to the client.
type response struct {
	status  int
	headers http.Header
	body    []byte
	stream  io.Reader // in place of body
	size    int64     // of what was sent
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
func parse(result lambda.Result) (*response, error) {
	payload, stream := result.Payload, io.Reader(nil)
	if result.Streamed {
		buffered := bufio.NewReader(result.Stream)
		if payload = prelude(buffered); payload == nil {
			return nil, errors.New("the function's stream has no prelude")
		}
		stream = buffered
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
	case stream != nil:
		out.stream = stream
	case p.Body == nil:
	case p.IsBase64Encoded: // each media type of the API is binary
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

// maxPrelude is the most bytes of a prelude that the local stack takes.
const maxPrelude = 1 << 20

// prelude returns the bytes before the separator of a stream, and nil for a stream without a separator.
func prelude(stream *bufio.Reader) []byte {
	var text []byte
	for len(text) < maxPrelude {
		b, err := stream.ReadByte()
		if err != nil {
			return nil
		}
		if text = append(text, b); bytes.HasSuffix(text, separator) {
			return bytes.TrimSuffix(text, separator)
		}
	}
	return nil
}

// scalar is the text of a JSON string, number or boolean.
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// write sends the response with the headers that the gateway adds. A stream is sent in chunks as it comes. The error is
// that of a function whose stream has no end.
func (out *response) write(w http.ResponseWriter, state *requestState) error {
	header := w.Header()
	maps.Copy(header, out.headers)
	header.Set("X-Amzn-Requestid", state.id)
	header.Set("X-Amz-Apigw-Id", state.extendedID)
	if len(out.body) > 0 {
		// of any length: net/http sets the header for short bodies only
		header.Set("Content-Length", strconv.Itoa(len(out.body)))
	}
	w.WriteHeader(out.status)
	if out.stream == nil {
		_, _ = w.Write(out.body) // the client may have closed the connection
		out.size = int64(len(out.body))
		return nil
	}
	flusher, chunk := http.NewResponseController(w), make([]byte, 32<<10)
	for {
		n, err := out.stream.Read(chunk)
		if n > 0 {
			out.size += int64(n)
			if _, gone := w.Write(chunk[:n]); gone != nil {
				return nil //nolint:nilerr // the client has closed the connection; the function goes on
			}
			_ = flusher.Flush() // the next Write reports a closed connection
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
