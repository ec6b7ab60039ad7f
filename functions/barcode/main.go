// The function barcode draws barcodes and QR codes.
package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/functions/barcode/draw"
	"svcapi/shared/api"
	"svcapi/shared/pattern"
)

func main() {
	api.Main(
		func(c api.Config) api.Config { return c },
		func(api.Config, *api.Service, aws.Config) ([]api.Route, error) {
			return []api.Route{generateBarcode(), generateQRCode()}, nil
		},
	)
}

// leastContrast is the contrast ratio below which scanners may fail (docs/decisions/pictures.md#low-contrast).
const leastContrast = 3

// Rules of fields that both operations have.
var (
	formatField  = api.Text{OneOf: []string{"png", "svg"}, Default: "png"}
	colorPattern = pattern.New(`^#?[0-9a-fA-F]{6}$`)
	dpiField     = api.Number{Min: 72, Max: 1200, Integer: true}
)

// colorField is the rule of a field for a colour.
func colorField(standard string) api.Text {
	return api.Text{Pattern: colorPattern, Message: "must be six hexadecimal digits, with or without #", Default: standard}
}

// drawn returns the job that responds with a picture, or the client's error (docs/decisions/pictures.md#drawn-first).
func drawn(call *api.Call, picture *draw.Picture, format string, err error) (*api.Job, error) {
	if _, internal := errors.AsType[*api.Error](err); internal {
		return nil, err
	}
	if err != nil {
		return nil, &api.Error{Status: 400, Code: api.CodeHTTPError, Reason: api.ReasonRenderRejected,
			Message: err.Error() + "."}
	}
	media := &api.Media{Type: "image/png", Disposition: "inline"}
	if format == "svg" {
		media.Type, media.Body = "image/svg+xml", picture.SVG()
	} else {
		media.Body = picture.PNG()
	}
	result := &api.Result{Media: media, Vendor: call.Integrations[0].Vendor}
	if picture.Contrast() < leastContrast {
		result.Header = http.Header{"X-SVC-Warnings": {"low-contrast"}}
	}
	return &api.Job{Credits: call.Credits(1), Run: func(context.Context) (*api.Result, error) { return result, nil }}, nil
}
