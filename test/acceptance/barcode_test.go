package acceptance

import (
	"bytes"
	"image/png"
	"strconv"
	"testing"

	"svcapi/shared/project"
)

const (
	barcodes = "/utilities/barcode/generate"
	qrcodes  = "/utilities/qrcode/generate"
)

// drawing connects the project to the built-in renderer.
func (p *tenant) drawing(t *testing.T, mode project.Mode) *tenant {
	t.Helper()
	svc[any](t, "", "integration", "set", p.id, "barcode", "builtin", "--env", "development", "--mode", string(mode))
	return p
}

// openapi.yaml#generateBarcode, openapi.yaml#generateQrCode: a picture arrives in bytes, also through API Gateway.
// functions/barcode has the tests of every type, option and size.
func TestPictures(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).drawing(t, project.BYOK) // without credits: Manual (BYOK) is free
	for body, warning := range map[string]string{`{"data":"x"}`: "", `{"data":"x","color":"ffff00"}`: "low-contrast"} {
		for path, want := range map[string]int{barcodes: 92, qrcodes: 256} {
			a := request{path: path, body: body, as: p.dev}.send(t)
			size, err := png.DecodeConfig(bytes.NewReader(a.body))
			length, warned := a.header.Get("Content-Length"), a.header.Get("X-SVC-Warnings")
			if err != nil || a.status != 200 || size.Width != want || length != strconv.Itoa(len(a.body)) || warned != warning {
				t.Errorf("%s: %d %v, %d pixels, %v", path, a.status, a.header, size.Width, err)
			}
		}
	}
}
