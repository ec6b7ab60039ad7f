package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"svcapi/functions/pdf/browser"
	"svcapi/functions/pdf/fetch"
	"svcapi/functions/pdf/limits"
)

// renderer turns a document into a PDF, within all limits.
type renderer struct {
	browser *browser.Renderer
	images  *fetch.Client
	limits  limits.Limits
	after   afterResponse
}

// afterResponse runs work when the response to a request has been sent, as api.Service does.
type afterResponse func(ctx context.Context, name string, work func(context.Context) error)

// readyTime is how long the init of the function waits for the browser. The first request waits for a slower start.
const readyTime = 8 * time.Second

// newRenderer starts the browser and waits for the start, because init has the whole processor.
func newRenderer(c config, protections []browser.Protection, after afterResponse) (*renderer, error) {
	images, err := c.fetcher()
	if err != nil {
		return nil, err
	}
	o := c.browserOptions()
	o.Log = slog.New(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: lambdaKeys}))
	o.Protections = protections
	o.Log.Info("browser protections", protectionStates(protections)...)
	if err := browser.RemoveStale(o.Dir); err != nil {
		o.Log.Warn("stale folders were not removed", "error", err.Error())
	}
	r := &renderer{browser: browser.New(o), images: images, limits: documentLimits, after: after}
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	// A failed start is not an error of newRenderer: each request tries again.
	if err := r.browser.Ready(ctx); err != nil {
		o.Log.Error("browser did not start", "error", err.Error())
	}
	return r, nil
}

// protectionStates returns for each protection that it is in force, or why it is not.
func protectionStates(protections []browser.Protection) []any {
	var attributes []any
	for _, p := range protections {
		state := "in force"
		if p.Denied != nil {
			state = p.Denied.Error()
		}
		attributes = append(attributes, p.Name, state)
	}
	return attributes
}

// lambdaKeys gives the time and the text of a log entry Lambda's names, because Lambda filters entries by level.
func lambdaKeys(groups []string, a slog.Attr) slog.Attr {
	if names := map[string]string{slog.TimeKey: "timestamp", slog.MessageKey: "message"}; len(groups) == 0 && names[a.Key] != "" {
		a.Key = names[a.Key]
	}
	return a
}

// documentError is an error that the document causes: *browser.DocumentError, *fetch.Error and *limits.Error.
type documentError interface {
	error
	ClientMessage() string
	ExceedsLimit() bool
}

// render returns the PDF of a document. The document causes every error that wraps a documentError.
func (r *renderer) render(ctx context.Context, html string, g browser.Geometry) ([]byte, error) {
	if err := r.limits.Check(html); err != nil {
		return nil, err
	}
	// The browser gets its next page beside the capture. A freeze before that page is ready would delay the next request.
	defer r.after(ctx, "renew page", r.browser.Ready)
	pdf, err := r.browser.Render(ctx, browser.Document{HTML: html, Geometry: g, Images: r.images.Document()})
	if err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	return pdf, nil
}
