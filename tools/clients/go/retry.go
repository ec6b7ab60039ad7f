// Package svcapi is the client of SVC API. All files but this one are generated from the API's OpenAPI document.
package svcapi

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// timeout bounds one attempt: the API ends a request after 29 seconds, and a stream after 60.
	timeout = 65 * time.Second
	// longestPause bounds a pause. A response with a longer Retry-After goes to the caller.
	longestPause = time.Minute
)

// Connect returns a client whose requests follow the retry rules of RetryTransport, with three attempts. The base URL
// ends in /api/v1. The environment is the value of X-ENV: dev or prod.
func Connect(baseURL, clientID, clientSecret, environment string) (*ClientWithResponses, error) {
	credentials := func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-API-KEY", clientID)
		r.Header.Set("X-API-SECRET", clientSecret)
		r.Header.Set("X-ENV", environment)
		return nil
	}
	retries := &http.Client{Transport: &RetryTransport{Attempts: 3}}
	return NewClientWithResponses(baseURL, WithHTTPClient(retries), WithRequestEditorFn(credentials))
}

// RetryTransport repeats a request after 409, 429, 5xx and a lost connection, after the seconds of Retry-After or else
// after 1, 2, 4 seconds. RetryTransport never repeats an SMS without an Idempotency-Key: the SMS could be sent twice. A
// response with Idempotency-Replayed is final.
type RetryTransport struct {
	Next     http.RoundTripper // nil: http.DefaultTransport
	Attempts int               // the number of attempts of a request, the first included
}

// RoundTrip implements http.RoundTripper.
func (t *RetryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	once := strings.HasSuffix(r.URL.Path, "/sms/send") && r.Header.Get("Idempotency-Key") == ""
	for attempt := 1; ; attempt++ {
		response, err := t.attempt(r)
		pause, again := time.Duration(1<<(attempt-1))*time.Second, true
		if err == nil {
			pause, again = pauseAfter(response, pause)
		}
		if once || !again || attempt >= t.Attempts || r.Context().Err() != nil {
			return response, err
		}
		if err == nil {
			_ = response.Body.Close() // the next response takes its place
		}
		select {
		case <-time.After(pause):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// attempt sends the request once. The end of the response's body ends the attempt's time.
func (t *RetryTransport) attempt(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	r = r.Clone(ctx)
	if r.GetBody != nil {
		var err error
		if r.Body, err = r.GetBody(); err != nil {
			cancel()
			return nil, err
		}
	}
	response, err := cmp.Or(t.Next, http.DefaultTransport).RoundTrip(r)
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = body{response.Body, cancel}
	return response, nil
}

// body is a response's body. Close also ends the time of the attempt.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// pauseAfter returns the pause before the next attempt, and whether a response permits one.
func pauseAfter(response *http.Response, pause time.Duration) (time.Duration, bool) {
	switch response.StatusCode {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return 0, false
	}
	if after := response.Header.Get("Retry-After"); after != "" {
		seconds, err := strconv.Atoi(after)
		if err != nil {
			return 0, false
		}
		pause = time.Duration(seconds) * time.Second
	}
	return pause, response.Header.Get("Idempotency-Replayed") == "" && pause <= longestPause
}
