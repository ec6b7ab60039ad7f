package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"unicode/utf8"

	"svcapi/functions/pdf/render/event"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/wallet"
)

const (
	// maxBuffered is the largest PDF in bytes of a response that Lambda buffers. Lambda accepts a response of 6,291,556
	// bytes, with Base64 and headers.
	maxBuffered = 4_700_000
	// mostStreamed is the largest PDF in bytes that an operator may permit: it is in the memory of the function before it
	// is streamed, and Lambda streams two megabytes a second to this function.
	mostStreamed = 48 << 20

	paths = "/api/v1/utilities/pdf"
)

// document is a decoded request.
type document struct {
	event  event.Event
	base64 bool // the response is JSON
}

// operations returns openapi.yaml#generatePdf and openapi.yaml#streamPdf, which differ in the bytes of their PDFs only.
func (r *renderer) operations(resultBytes int) []request.Route {
	advice := fmt.Sprintf(" POST %s/stream returns PDFs of up to %d bytes.", paths, resultBytes)
	return []request.Route{
		r.operation(&request.Operation[document]{Name: "pdf_generate", Method: "POST", Path: paths + "/generate",
			Kind: project.PDF, Price: wallet.PDF, Decode: decode}, maxBuffered, advice),
		r.operation(&request.Operation[document]{Name: "pdf_stream", Method: "POST", Path: paths + "/stream", Streams: true,
			Kind: project.PDF, Price: wallet.PDF, Decode: decode}, int64(resultBytes), ""),
	}
}

// operation completes the operation that makes PDFs of a number of bytes at most. The advice follows the message about
// a PDF with more bytes. The pipeline runs the job after rate limit and reservation have succeeded.
func (r *renderer) operation(o *request.Operation[document], maxBytes int64, advice string) request.Route {
	o.Prepare = func(_ context.Context, call *request.Call, d document) (*request.Job, error) {
		d.event.RequestID, d.event.MaxBytes = call.RequestID, maxBytes
		return &request.Job{Credits: call.Credits(1), Run: func(ctx context.Context) (*request.Result, error) {
			return r.run(ctx, call, d, advice)
		}}, nil
	}
	return o
}

// decode reads the fields of openapi.yaml#PdfRequest, where a new field begins. The field also has its place in
// render/event/event.go, and in browser/page.go below it where Chromium prints it.
func decode(in *request.Input) (document, error) {
	in.Means("html", "url", "content")
	isBase64 := in.Bool("is_base64")
	d := document{event: event.Event{
		HTML: html(in, "html", true, isBase64), Header: html(in, "header_html", false, isBase64), Footer: html(in,
			"footer_html", false, isBase64),
	}}
	d.event.Files = files(in)
	decodePage(in, &d.event)
	d.event.PageRanges = in.Text("page_ranges", request.Text{Min: 1, Max: event.MaxRanges})
	if _, _, ok := event.Pages(d.event.PageRanges); !ok && d.event.PageRanges != "" {
		in.Problem("page_ranges", "must be page numbers and ranges of them, such as 1-3,5")
	}
	d.event.Scale = in.Number("scale", request.Number{Min: event.MinScale, Max: event.MaxScale, Default: 1})
	metadata := in.Object.Object("metadata")
	about := func(name string) string { return metadata.Text(name, request.Text{Max: event.MaxMetadata}) }
	d.event.Metadata = event.Metadata{Title: about("title"), Author: about("author"), Subject: about("subject"),
		Keywords: about("keywords")}
	d.event.Tagged, d.event.Outline, d.event.Strict = in.Bool("tagged"), in.Bool("outline"), in.Bool("strict")
	d.event.Password = event.Password(in.Text("password", request.Text{Min: 1}))
	if n := len(d.event.Password); n > 0 && n < event.MinPassword || n > event.MaxPassword {
		in.Problem("password", fmt.Sprintf("must be %d to %d bytes", event.MinPassword, event.MaxPassword))
	}
	d.base64 = in.Text("response_type", request.Text{OneOf: []string{"binary", "base64"}, Default: "binary"}) == "base64"
	in.Bool("privacy_mode")
	return d, nil
}

// decodePage reads the size, the orientation and the margins of the pages.
func decodePage(in *request.Input, e *event.Event) {
	e.PageSize = in.Text("page_size", request.Text{OneOf: event.PageSizes, Default: "A4"})
	e.Landscape = in.Text("orientation",
		request.Text{OneOf: []string{"portrait", "landscape"}, Default: "portrait"}) == "landscape"
	side := request.Number{Min: event.MinSide, Max: event.MaxSide}
	e.PageWidth = in.Number("page_width", side)
	short := e.PageWidth
	if e.ContentHeight = in.Is("page_height", "content"); !e.ContentHeight {
		side.Type = `a number or "content"`
		e.PageHeight = in.Number("page_height", side)
		short = min(short, e.PageHeight)
	}
	margins, usual := in.Object.Object("margins"), event.UsualMargin
	if short > 0 {
		usual = min(usual, short/4) // a small label has room for its text, too
	}
	margin := func(name string) float64 {
		return margins.Number(name, request.Number{Min: 0, Max: event.MaxMargin, Default: usual})
	}
	m := event.Margins{Top: margin("top"), Right: margin("right"), Bottom: margin("bottom"), Left: margin("left")}
	e.Margins = m
	if in.Has("page_width") || in.Has("page_height") && !e.ContentHeight {
		e.PageSize = ""
		for name, sides := range map[string][2]float64{ // the side, and its margins
			"page_width": {e.PageWidth, m.Left + m.Right}, "page_height": {e.PageHeight, m.Top + m.Bottom},
		} {
			if !in.Has(name) {
				in.Problem(name, "is required, as the other side of the page is given")
			} else if short > 0 && sides[0] > 0 && sides[0] <= sides[1] {
				in.Problem(name, "must be more than the margins on both of its sides")
			}
		}
		for _, name := range []string{"page_size", "orientation"} {
			if in.Has(name) {
				in.Problem(name, "must not be given with page_width and page_height")
			}
		}
	}
	if e.CSSSize = in.Bool("prefer_css_page_size"); e.CSSSize && e.ContentHeight {
		in.Problem("prefer_css_page_size", "must not be true where page_height is content")
	}
}

// html reads a field with HTML. The limit of its length is in bytes after decoding.
func html(in *request.Input, name string, required, isBase64 bool) []byte {
	text := in.Text(name, request.Text{Required: required, Min: 1})
	if !in.Has(name) || text == "" {
		return nil
	}
	if isBase64 {
		plain, err := decodeBase64(text)
		switch {
		case err != nil:
			in.Problem(name, "must be Base64, as is_base64 is true")
			return nil
		case len(plain) == 0:
			in.Problem(name, "must not be empty")
		case !utf8.Valid(plain):
			in.Problem(name, "must be UTF-8 text, in Base64")
		}
		text = string(plain)
	}
	if len(text) > event.MaxHTML {
		in.Problem(name, fmt.Sprintf("must be at most %d bytes", event.MaxHTML))
	}
	return []byte(text)
}

// files reads the files of a document by their normal names.
func files(in *request.Input) map[string][]byte {
	sent := in.Object.Object("files")
	names := sent.Names()
	if len(names) > event.MaxFiles {
		in.Problem("files", fmt.Sprintf("must have at most %d files", event.MaxFiles))
		return nil
	}
	if len(names) == 0 {
		return nil
	}
	files := map[string][]byte{}
	for _, name := range names {
		if len(name) > event.MaxFileName {
			in.Problem("files", fmt.Sprintf("must have names of at most %d bytes", event.MaxFileName))
			continue
		}
		text := sent.Text(name, request.Text{Required: true, Min: 1})
		body, err := decodeBase64(text)
		normal, ok := event.FileName(name)
		mediaType := event.MediaType(normal)
		switch {
		case !ok:
			sent.Problem(name, `must be named by a relative path without "..", backslash, query or fragment`)
		case mediaType == "":
			sent.Problem(name, "must be named *.png, jpg, jpeg, gif, webp, svg, css, ttf, otf, woff or woff2")
		case files[normal] != nil:
			sent.Problem(name, "is another name of the file "+normal)
		case text == "":
		case err != nil:
			sent.Problem(name, "must be Base64")
		case !event.Matches(mediaType, body):
			sent.Problem(name, "must be "+mediaType+", as its name says")
		}
		files[normal] = body
	}
	return files
}

var removeSpace = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", "\f", "", "\v", "")

// decodeBase64 decodes standard Base64, padded or not, and ignores white space in the text.
func decodeBase64(text string) ([]byte, error) {
	text = removeSpace.Replace(text)
	encoding := base64.StdEncoding
	if !strings.HasSuffix(text, "=") {
		encoding = base64.RawStdEncoding
	}
	return encoding.DecodeString(text)
}

// run renders a document, and returns the response.
func (r *renderer) run(ctx context.Context, call *request.Call, d document, advice string) (*request.Result, error) {
	vendor := call.Integrations[0].Vendor
	rendered, err := r.render(ctx, call.Project, d.event)
	if err != nil {
		return nil, request.ErrInternal.WithCause(err) // of the service: its renderer is no vendor
	}
	if rejected := rendered.Rejection; rejected != nil {
		message, reason := "The PDF was not made: "+rejected.Message+".", request.ReasonRenderRejected
		if rejected.ExceedsLimit {
			reason = request.ReasonLimitExceeded
		}
		if rejected.TooLarge {
			message += advice
		}
		return nil, &request.Error{
			Status: 400, Code: request.CodeHTTPError, Reason: reason, Message: message, Vendor: vendor, Quoted: rejected.Address,
			Cause: fmt.Errorf("render: %w", rejected),
		}
	}
	result := &request.Result{
		Vendor: vendor, Attributes: []slog.Attr{slog.Int("pdf_bytes", len(rendered.PDF))},
		Media: &request.Media{Type: "application/pdf", Disposition: `inline; filename="svc-document.pdf"`,
			Body: rendered.PDF, Base64: d.base64},
	}
	if rendered.Warnings != "" {
		result.Header = http.Header{"X-SVC-Warnings": {rendered.Warnings}}
	}
	return result, nil
}
