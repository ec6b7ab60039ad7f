package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/fault"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
	"golang.org/x/text/unicode/norm"

	"svcapi/functions/pdf/render/browser"
	"svcapi/functions/pdf/render/event"
	"svcapi/functions/pdf/render/fetch"
	"svcapi/functions/pdf/render/limits"
	"svcapi/shared/afterresponse"
)

// renderer turns a document into a PDF, within all limits.
type renderer struct {
	browser *browser.Renderer
	images  *fetch.Client
	after   afterResponse
}

// afterResponse runs work when the response to an event has been sent.
type afterResponse func(ctx context.Context, w afterresponse.Work)

// readyTime is how long the init of the function waits for the browser. The first request waits for a slower start.
const readyTime = 8 * time.Second

// newRenderer starts the browser and waits for the start, because init has the whole processor.
func newRenderer(c config, log *slog.Logger, protections []slog.Attr, after afterResponse) (*renderer, error) {
	images, err := c.fetcher()
	if err != nil {
		return nil, err
	}
	log.LogAttrs(context.Background(), slog.LevelInfo, "browser protections", protections...)
	if err := browser.RemoveStale(os.TempDir()); err != nil {
		log.Warn("stale folders were not removed", "error", err.Error())
	}
	r := &renderer{images: images, after: after, browser: browser.New(browser.Options{
		Path: c.Browser, Dir: os.TempDir(), Log: log, Protections: protections,
		Time: time.Duration(c.RenderSeconds) * time.Second, Memory: int64(float64(c.MemoryMB<<20) * memoryShare),
		Pages: c.MaxPages, RecycleAfter: recycleAfter, RecycleMemory: recycleMemory,
	})}
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	// A failed start is not an error of newRenderer: each request tries again.
	if err := r.browser.Ready(ctx); err != nil {
		log.Error("browser did not start", "error", err.Error())
	}
	return r, nil
}

// handle returns the response to an event. An error is a failure of the renderer, or of the operation that sent the
// event.
func (r *renderer) handle(ctx context.Context, text json.RawMessage) (*events.APIGatewayProxyStreamingResponse, error) {
	e, err := event.Parse(text)
	if err != nil {
		return nil, err
	}
	if e.Deadline != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, time.UnixMilli(e.Deadline))
		defer cancel()
	}
	var finish func(pdf []byte) ([]byte, error)
	if e.Password != "" {
		finish = func(pdf []byte) ([]byte, error) { return encrypt(pdf, e.Password, e.MaxBytes) }
	}
	pdf, warnings, err := r.render(ctx, browser.Document{Event: e, Finish: finish})
	if rejection, ok := errors.AsType[*event.RejectionError](err); ok {
		return event.Result{Rejection: rejection}.Response()
	}
	if err != nil {
		return nil, err
	}
	return event.Result{PDF: pdf, Warnings: warnings}.Response()
}

// render returns the PDF of a document with its warnings. The document causes every error that wraps an
// *event.RejectionError.
func (r *renderer) render(ctx context.Context, d browser.Document) (pdf []byte, warnings string, err error) {
	if err := documentLimits.Check(d.Files, string(d.HTML), string(d.Header), string(d.Footer)); err != nil {
		return nil, "", err
	}
	d.HTML = []byte(limits.Block(string(d.HTML), func(address *url.URL, image bool) bool {
		return d.File(address) != "" || image && r.images.Permitted(address)
	}))
	// The browser gets its next page beside the response. A freeze before that page is ready would delay the next event.
	defer r.after(ctx, afterresponse.Work{Name: "renew page", RequestID: d.RequestID, Run: r.browser.Ready})
	d.Images = r.images.Document()
	if pdf, warnings, err = r.browser.Render(ctx, d); err != nil {
		return nil, "", fmt.Errorf("render: %w", err)
	}
	return pdf, warnings, nil
}

// encrypt returns the PDF, encrypted with AES-256 in revision 6 (ISO 32000-2, 7.6.4), which belongs to PDF 2.0. The
// password opens the PDF for reading, printing and copying. Nothing knows the owner's password.
func encrypt(pdf []byte, password event.Password, maxBytes int64) (encrypted []byte, err error) {
	defer func() {
		if err != nil && !errors.As(err, new(*event.RejectionError)) {
			err = errors.New("encrypt: the library failed") // its errors may quote the password
		}
	}()
	defer fault.Catch(&err)
	const version = "%PDF-2.0"
	user := norm.NFKC.Bytes([]byte(password)) // a part of SASLprep, which readers apply
	conf := &model.Configuration{
		Cmd: model.ENCRYPT, Reader15: true, ValidationMode: model.ValidationRelaxed, Eol: types.EolLF, Offline: true,
		UserPW: string(user[:min(len(user), event.MaxPassword)]), OwnerPW: rand.Text(),
		EncryptUsingAES: true, EncryptKeyLength: 256,
		Permissions: model.PermissionsPrint | model.PermissionExtract | model.PermissionExtractRev3,
		Limits:      model.DefaultResourceLimits(),
	}
	document, err := pdfcpu.ReadWithContext(context.Background(),
		bytes.NewReader(append([]byte(version), pdf[len(version):]...)), conf)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	document.Write.Writer = bufio.NewWriter(&out)
	if err := errors.Join(pdfcpu.WriteContext(document), document.Write.Flush()); err != nil {
		return nil, err
	}
	if int64(out.Len()) > maxBytes {
		return nil, event.TooLarge(int64(out.Len()), maxBytes)
	}
	return out.Bytes(), nil
}
