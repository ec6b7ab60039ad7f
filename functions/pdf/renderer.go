package main

import (
	"context"
	"errors"
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

// readyTime is how long the function's init waits for the browser. The first request waits on where it takes longer.
const readyTime = 8 * time.Second

// newRenderer starts the browser, and waits for it while init has the whole processor.
func newRenderer(c config, protections []browser.Protection, after afterResponse) (*renderer, error) {
	images, err := c.fetcher()
	if err != nil {
		return nil, err
	}
	o := c.browserOptions()
	o.Log = slog.New(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: lambdaKeys}))
	o.Protections = protections
	o.Log.Info("browser protections", inForce(protections)...)
	if err := browser.Sweep(o.Dir); err != nil {
		o.Log.Warn("folders of dead browsers are left", "error", err.Error())
	}
	r := &renderer{browser: browser.New(o), images: images, limits: documentLimits, after: after}
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	// A start that fails now is not for ever: each request tries again.
	if err := r.browser.Ready(ctx); err != nil {
		o.Log.Error("browser did not start", "error", err.Error())
	}
	return r, nil
}

// inForce says of each protection whether it is in force, or why it is not.
func inForce(protections []browser.Protection) []any {
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

// lambdaKeys names a log entry's time and text as Lambda does, which filters entries by level.
func lambdaKeys(groups []string, a slog.Attr) slog.Attr {
	if names := map[string]string{slog.TimeKey: "timestamp", slog.MessageKey: "message"}; len(groups) == 0 && names[a.Key] != "" {
		a.Key = names[a.Key]
	}
	return a
}

// refusal is what each package's error about a document has: words for the client.
type refusal interface {
	error
	Refusal() string
}

// render returns the PDF of a document. An error that has a refusal in it is the document's doing.
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

// refused returns the words for the client, if the document itself is why there is no PDF.
func refused(err error) (string, bool) {
	var r refusal
	if !errors.As(err, &r) {
		return "", false
	}
	return r.Refusal(), true
}
