package main

import (
	"context"

	"svcapi/functions/barcode/draw"
	"svcapi/functions/barcode/symbology"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/wallet"
)

// barcodeRequest is the decoded body of POST /utilities/barcode/generate.
type barcodeRequest struct {
	data, kind, format string
	factor, height     int // pixels
	color              string
	quietZone, text    bool
	dpi                int // 0: none
}

func generateBarcode() request.Route {
	return &request.Operation[barcodeRequest]{
		Name: "barcode_generate", Method: "POST", Path: "/api/v1/utilities/barcode/generate",
		Kind: project.Barcode, Price: wallet.Barcode,
		Decode: decodeBarcode,
		Prepare: func(_ context.Context, call *request.Call, r barcodeRequest) (*request.Job, error) {
			picture, err := r.picture()
			return drawn(call, picture, r.format, err)
		},
	}
}

func decodeBarcode(in *request.Input) (barcodeRequest, error) {
	in.Bool("privacy_mode") // the pipeline acts on it
	return barcodeRequest{
		data:      in.Text("data", request.Text{Required: true, Min: 1, Max: 80}),
		kind:      in.Text("type", request.Text{OneOf: symbology.Names(), Default: "C128"}),
		format:    in.Text("format", formatField),
		factor:    int(in.Number("width_factor", request.Number{Min: 1, Max: 4, Truncate: true, Default: 2})),
		height:    int(in.Number("height", request.Number{Min: 20, Max: 300, Integer: true, Default: 80})),
		color:     in.Text("color", colorField("000000")),
		quietZone: in.Bool("quiet_zone"),
		text:      in.Bool("text"),
		dpi:       int(in.Number("dpi", dpiField)),
	}, nil
}

// picture draws the barcode. The error is a client message, the type rejected the data, or an *request.Error.
func (r *barcodeRequest) picture() (*draw.Picture, error) {
	kind, _ := symbology.Lookup(r.kind)
	code, err := kind.Encode(r.data)
	if err != nil {
		return nil, err
	}
	left, right := 0, 0
	if r.quietZone {
		left, right = kind.QuietLeft, kind.QuietRight
	}
	picture := draw.Linear(kind.Name, code, r.factor, r.height, left, right)
	if r.text {
		if err := picture.Print(kind.Labels(code, r.quietZone), kind.Guards(), kind.Bearer()); err != nil {
			return nil, request.ErrInternal.WithCause(err)
		}
	}
	picture.DPI, picture.Foreground = r.dpi, draw.ParseColor(r.color)
	return picture, nil
}
