// The function barcode draws barcodes and QR codes.
package main

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/functions/barcode/draw"
	"svcapi/shared/pattern"
	"svcapi/shared/request"
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

// transparent is the value of a background that is left out.
const transparent = "transparent"

// setColors sets the colours of a picture. The background of a transparent picture stays white.
func setColors(p *draw.Picture, color, background string) {
	p.Foreground = draw.ParseColor(color)
	if p.Transparent = background == transparent; !p.Transparent {
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
