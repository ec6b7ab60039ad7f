package main

import (
	"context"
	"fmt"

	"svcapi/functions/barcode/draw"
	"svcapi/functions/barcode/qrcode"
	"svcapi/functions/barcode/symbology"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/wallet"
)

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
	return picture, kind.Warnings(r.data), nil
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
	code, err := qrcode.Encode(r.data, qrcode.ParseLevel(r.level))
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
