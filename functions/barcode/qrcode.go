package main

import (
	"context"
	"fmt"

	"svcapi/functions/barcode/draw"
	"svcapi/functions/barcode/qrcode"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/wallet"
)

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
