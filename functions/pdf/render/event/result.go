package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/aws/aws-lambda-go/events"
)

// Result is what a renderer returns: a PDF, or the reason in the document why there is none.
type Result struct {
	PDF       []byte
	Warnings  string // about what the PDF does not show, for the client (openapi.yaml#Warnings)
	Rejection *RejectionError
}

// RejectionError is the error of a document that was not rendered for a reason in the document.
type RejectionError struct {
	Reason       string `json:"-"`                      // short and fixed, such as ReasonSize
	Message      string `json:"message"`                // for the client, without a full stop
	ExceedsLimit bool   `json:"exceeds_limit,omitzero"` // the document exceeds a limit
	TooLarge     bool   `json:"too_large,omitzero"`     // that limit is MaxBytes of the event
	Address      string `json:"address,omitzero"`       // of an image, in the message
}

// ReasonSize is the reason of a PDF with too many bytes.
const ReasonSize = "size"

// Exceeded returns the rejection of a document that exceeds a limit.
func Exceeded(reason, format string, values ...any) *RejectionError {
	return &RejectionError{Reason: reason, Message: fmt.Sprintf(format, values...), ExceedsLimit: true}
}

// TooLarge returns the rejection of a document whose PDF has too many bytes.
func TooLarge(size, limit int64) *RejectionError {
	r := Exceeded(ReasonSize, "the PDF has %d bytes; at most %d are allowed", size, limit)
	r.TooLarge = true
	return r
}

// Error implements error.
func (r *RejectionError) Error() string { return r.Message }

const (
	lengthHeader   = "Content-Length"
	warningsHeader = "Warnings"
	// maxHead is the largest head of a result, and the largest rejection, in bytes.
	maxHead = 64 << 10
)

// separator ends the head of a streamed response (AWS Lambda, HTTP integration responses).
var separator = make([]byte, 8)

// Response returns the result in the form that Lambda streams: a head in JSON, a separator, and the body as it is.
func (r Result) Response() (*events.APIGatewayProxyStreamingResponse, error) {
	status, body, headers := http.StatusOK, r.PDF, map[string]string{}
	if r.Warnings != "" {
		headers[warningsHeader] = r.Warnings
	}
	if r.Rejection != nil {
		status = http.StatusBadRequest
		var err error
		if body, err = json.Marshal(r.Rejection); err != nil {
			return nil, fmt.Errorf("result: %w", err)
		}
	}
	headers[lengthHeader] = strconv.Itoa(len(body))
	return &events.APIGatewayProxyStreamingResponse{StatusCode: status, Headers: headers, Body: bytes.NewReader(body)}, nil
}

// errResult is the error of a stream that is no complete result.
var errResult = errors.New("result: not of the expected form")

// Read reads a result from the stream of a renderer, with a PDF of at most maxBytes. Read returns when the last byte of
// the result has come, which may be before the end of the stream.
func Read(stream io.Reader, maxBytes int64) (Result, error) {
	head := json.NewDecoder(io.LimitReader(stream, maxHead))
	var form struct {
		StatusCode int               `json:"statusCode"`
		Headers    map[string]string `json:"headers"`
	}
	if err := head.Decode(&form); err != nil {
		return Result{}, fmt.Errorf("%w: %w", errResult, err)
	}
	in, end := io.MultiReader(head.Buffered(), stream), make([]byte, len(separator))
	if _, err := io.ReadFull(in, end); err != nil || !bytes.Equal(end, separator) {
		return Result{}, errors.Join(fmt.Errorf("%w: the head has no end", errResult), err)
	}
	rejected := form.StatusCode == http.StatusBadRequest
	if rejected {
		maxBytes = maxHead
	}
	length, err := strconv.ParseInt(form.Headers[lengthHeader], 10, 64)
	if err != nil || length < 1 || length > maxBytes || !rejected && form.StatusCode != http.StatusOK {
		return Result{}, fmt.Errorf("%w: status %d, %q bytes", errResult, form.StatusCode, form.Headers[lengthHeader])
	}
	body := make([]byte, length)
	if n, err := io.ReadFull(in, body); err != nil {
		return Result{}, fmt.Errorf("%w: %d of %d bytes: %w", errResult, n, length, err)
	}
	if !rejected {
		return Result{PDF: body, Warnings: form.Headers[warningsHeader]}, nil
	}
	result := Result{Rejection: &RejectionError{}}
	if err := json.Unmarshal(body, result.Rejection); err != nil {
		return Result{}, fmt.Errorf("%w: %w", errResult, err)
	}
	return result, nil
}
