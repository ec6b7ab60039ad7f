// The function barcode draws barcodes and QR codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/functions/barcode/draw"
	"svcapi/functions/barcode/qrcode"
	"svcapi/functions/barcode/symbology"
	"svcapi/shared/pattern"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/wallet"
)

func main() {
	request.Main(
		func(c request.Config) request.Config { return c },
		func(request.Config, *request.Service, aws.Config) ([]request.Route, error) {
			return []request.Route{generateBarcode(), generateQRCode()}, nil
		},
	)
}

// leastContrast is the contrast ratio below which scanners may fail (docs/decisions/pictures.md#low-contrast).
const leastContrast = 3

// Rules of fields that both operations have.
var (
	formatField = request.Text{OneOf: []string{"png", "svg"}, Default: "png"}
	dpiField    = request.Number{Min: 72, Max: 1200, Integer: true}
	colorField  = request.Text{Pattern: pattern.New(`^#?[0-9a-fA-F]{6}$`),
		Message: "must be six hexadecimal digits, with or without #", Default: "000000"}
	backgroundField = request.Text{Pattern: pattern.New(`^(#?[0-9a-fA-F]{6}|transparent)$`),
		Message: "must be six hexadecimal digits, with or without #, or transparent", Default: "FFFFFF"}
)

// setColors sets the colours of a picture. The background of a transparent picture stays white.
func setColors(p *draw.Picture, color, background string) {
	p.Foreground = draw.ParseColor(color)
	if p.Transparent = background == "transparent"; !p.Transparent {
		p.Background = draw.ParseColor(background)
	}
}

// drawn returns the job that responds with a picture, or the client's error (docs/decisions/pictures.md#drawn-first).
func drawn(call *request.Call, picture *draw.Picture, format string, warnings []string,
	err error) (*request.Job, error) {
	if _, internal := errors.AsType[*request.Error](err); internal {
		return nil, err
	}
	if err != nil {
		return nil, &request.Error{Status: 400, Code: request.CodeHTTPError, Reason: request.ReasonRenderRejected,
			Message: err.Error() + "."}
	}
	media := &request.Media{Type: "image/png", Disposition: "inline"}
	if format == "svg" {
		media.Type, media.Body = "image/svg+xml", picture.SVG()
	} else {
		media.Body = picture.PNG()
	}
	result := &request.Result{Media: media, Vendor: call.Integrations[0].Vendor}
	if picture.Contrast() < leastContrast {
		warnings = append(warnings, "low-contrast")
	}
	if len(warnings) > 0 {
		result.Header = http.Header{"X-SVC-Warnings": {strings.Join(warnings, ", ")}}
	}
	return &request.Job{Credits: call.Credits(1),
		Run: func(context.Context) (*request.Result, error) { return result, nil }}, nil
}

// barcodeRequest is the decoded body of POST /utilities/barcode/generate.
type barcodeRequest struct {
	data, kind, format string
	factor, height     int // pixels
	color, background  string
	quietZone, text    bool
	dpi                int  // 0: none
	gs1, rectangle     bool // which symbol of the type
	rotation           int  // degrees clockwise
}

func generateBarcode() request.Route {
	return &request.Operation[barcodeRequest]{
		Name: "barcode_generate", Method: "POST", Path: "/api/v1/utilities/barcode/generate",
		Kind: project.Barcode, Price: wallet.Barcode,
		Decode: decodeBarcode,
		Prepare: func(_ context.Context, call *request.Call, r barcodeRequest) (*request.Job, error) {
			picture, warnings, err := r.picture()
			return drawn(call, picture, r.format, warnings, err)
		},
	}
}

func decodeBarcode(in *request.Input) (barcodeRequest, error) {
	in.Bool("privacy_mode") // the pipeline acts on it
	in.Means("data", "content", "code")
	r := barcodeRequest{
		data:       in.Text("data", request.Text{Required: true, Min: 1, Max: 80}),
		kind:       in.Text("type", request.Text{OneOf: symbology.Names(), Default: "C128"}),
		format:     in.Text("format", formatField),
		factor:     int(in.Number("width_factor", request.Number{Min: 1, Max: 4, Truncate: true, Default: 2})),
		height:     int(in.Number("height", request.Number{Min: 20, Max: 300, Integer: true, Default: 80})),
		color:      in.Text("color", colorField),
		background: in.Text("background", backgroundField),
		quietZone:  in.Bool("quiet_zone"),
		text:       in.Bool("text"),
		dpi:        int(in.Number("dpi", dpiField)),
		gs1:        in.Bool("gs1"),
		rectangle:  in.Text("shape", request.Text{OneOf: []string{"square", "rectangle"}, Default: "square"}) == "rectangle",
		rotation:   int(in.Number("rotation", request.Number{Min: 0, Max: 270, Integer: true})),
	}
	if r.rotation%90 != 0 {
		in.Problem("rotation", "must be 0, 90, 180 or 270")
	}
	if kind, ok := symbology.Lookup(r.kind); ok {
		if _, ok := symbology.Variant(r.kind, r.rectangle, r.gs1); !ok {
			in.Problem("gs1", "needs the type C128, GS1128 or DATAMATRIX")
		}
		if r.text && kind.Matrix() {
			in.Problem("text", "is not available for DATAMATRIX")
		}
	}
	return r, nil
}

// picture draws the barcode, and returns the warnings about its data. The error is a client message, the type rejected
// the data, or an *request.Error.
func (r *barcodeRequest) picture() (*draw.Picture, []string, error) {
	kind, _ := symbology.Variant(r.kind, r.rectangle, r.gs1)
	code, err := kind.Encode(r.data)
	if err != nil {
		return nil, nil, err
	}
	left, right := 0, 0
	if r.quietZone {
		left, right = kind.QuietLeft, kind.QuietRight
	}
	picture := draw.Linear(kind.Name, code, r.factor, r.height, left, right)
	if kind.Matrix() {
		picture = draw.Matrix("Data Matrix", code, r.factor, left)
	}
	if r.text {
		if err := picture.Print(kind.Labels(code, r.quietZone), kind.Guards(), kind.Bearer()); err != nil {
			return nil, nil, request.ErrInternal.WithCause(err)
		}
	}
	picture.DPI, picture.Quarters = r.dpi, r.rotation/90
	setColors(picture, r.color, r.background)
	return picture, code.Warnings(), nil
}

// qrRequest is the decoded body of POST /utilities/qrcode/generate.
type qrRequest struct {
	data, format, level string
	size                int // pixels
	margin              int // modules
	color, background   string
	dpi                 int // 0: none
}

func generateQRCode() request.Route {
	return &request.Operation[qrRequest]{
		Name: "qrcode_generate", Method: "POST", Path: "/api/v1/utilities/qrcode/generate",
		Kind: project.Barcode, Price: wallet.QRCode,
		Decode: decodeQRCode,
		Prepare: func(_ context.Context, call *request.Call, r qrRequest) (*request.Job, error) {
			picture, err := r.picture()
			return drawn(call, picture, r.format, nil, err)
		},
	}
}

func decodeQRCode(in *request.Input) (qrRequest, error) {
	in.Bool("privacy_mode") // the pipeline acts on it
	in.Means("data", "text", "content", "url")
	r := qrRequest{
		data:       in.Text("data", request.Text{Required: true, Min: 1}),
		format:     in.Text("format", formatField),
		level:      in.Text("error_correction", request.Text{OneOf: []string{"L", "M", "Q", "H"}, Default: "M"}),
		size:       int(in.Number("size", request.Number{Min: 64, Max: 1024, Integer: true, Default: 256})),
		margin:     int(in.Number("margin", request.Number{Min: 0, Max: 10, Integer: true, Default: 4})),
		color:      in.Text("color", colorField),
		background: in.Text("background", backgroundField),
		dpi:        int(in.Number("dpi", dpiField)),
	}
	if !qrcode.Fits(r.data) {
		in.Problem("data", "must be at most 2,953 bytes, 4,296 capital letters or 7,089 digits")
	}
	return r, nil
}

// picture draws the QR code. The error is a client message: the data or the symbol does not fit.
func (r *qrRequest) picture() (*draw.Picture, error) {
	code, err := qrcode.Encode(r.data, r.level)
	if err != nil {
		return nil, fmt.Errorf("QR code: %w", err)
	}
	picture, err := draw.Square("QR code", code, r.size, r.margin)
	if err != nil {
		return nil, fmt.Errorf("QR code: %w", err)
	}
	picture.DPI = r.dpi
	setColors(picture, r.color, r.background)
	return picture, nil
}
