package acceptance

import (
	"bytes"
	"encoding/xml"
	"image/png"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

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

// picture sends a request that must succeed, checks what openapi.yaml#Image requires of every picture, and returns its
// size.
func picture(t *testing.T, path, body string, as credential) (data []byte, width, height int) {
	t.Helper()
	a := request{path: path, body: body, as: as}.send(t)
	if a == nil {
		return nil, 0, 0
	}
	h := a.header
	id, err := uuid.Parse(h.Get("X-SVC-Request-ID"))
	if a.status != 200 || err != nil || id.String() != h.Get("X-SVC-Request-ID") ||
		(h.Get("X-SVC-Warnings") == "low-contrast") != strings.Contains(body, `"color":"f`) ||
		h.Get("Content-Length") != strconv.Itoa(len(a.body)) || h.Get("Cache-Control") != "no-store" || h.Get("Content-Disposition") != "inline" {
		t.Errorf("%s: %d %v %.200s", body, a.status, h, a.body)
		return nil, 0, 0
	}
	if !strings.Contains(body, `"svg"`) {
		size, err := png.DecodeConfig(bytes.NewReader(a.body))
		if err != nil || h.Get("Content-Type") != "image/png" {
			t.Errorf("%s: %s, %v", body, h.Get("Content-Type"), err)
		}
		return a.body, size.Width, size.Height
	}
	var svg struct {
		Width  int `xml:"width,attr"`
		Height int `xml:"height,attr"`
	}
	if err := xml.Unmarshal(a.body, &svg); err != nil || h.Get("Content-Type") != "image/svg+xml" {
		t.Errorf("%s: %s, %v", body, h.Get("Content-Type"), err)
	}
	return a.body, svg.Width, svg.Height
}

// pictures checks the size of each row's picture, and that the same request gives the same bytes.
func pictures(t *testing.T, path string, rows map[string][2]int) {
	t.Helper()
	t.Parallel()
	p := plan{}.make(t).drawing(t, project.BYOK) // without credits: Manual (BYOK) is free
	for fields, size := range rows {
		body := "{" + fields + "}"
		first, width, height := picture(t, path, body, p.dev)
		if width != size[0] || height != size[1] {
			t.Errorf("%.80s: %d by %d pixels, want %v", body, width, height, size)
		}
		if again, _, _ := picture(t, path, body, p.dev); !bytes.Equal(first, again) {
			t.Errorf("%.80s: other bytes the second time", body)
		}
	}
}

// openapi.yaml#generateBarcode, docs/decisions.md#barcode-pictures: width is modules times width_factor, height is
// height. functions/barcode has the tests of every type.
func TestBarcode(t *testing.T) {
	pictures(t, barcodes, map[string][2]int{
		`"data":"Hello"`: {180, 80}, // 90 modules
		`"data":"Hello","type":"C128","format":"svg","width_factor":4.0,"height":300,"color":"#Ff00aA"`:            {360, 300},
		`"data":"Hello","width_factor":2.9,"quiet_zone":true,"text":null,"privacy_mode":false,"unknown":{"x":[1]}`: {220, 80},
		`"data":"5901234123457","type":"EAN13","text":true,"width_factor":4,"quiet_zone":true,"format":"svg"`:      {452, 122},
		`"data":"12345-6789","type":"POSTNET"`:                      {206, 80},
		`"data":"Hello","color":"ffff00"`:                           {180, 80},
		`"data":"` + strings.Repeat("x", 80) + `","width_factor":4`: {3660, 80},
	})
}

// docs/decisions.md#qr-codes: PNG or SVG, and the size is exact.
func TestQRCode(t *testing.T) {
	pictures(t, qrcodes, map[string][2]int{
		`"data":"x"`: {256, 256}, `"data":"x","size":333.0,"margin":10,"error_correction":"H"`: {333, 333},
		`"data":"\ud83d\ude00 ශ්\u200dරී ලංකා\r\n\u0000","format":"svg","color":"#14213D","background":"fca311"`: {256, 256},
		`"data":"x","color":"fca311","background":"ffffff","dpi":72`:                                             {256, 256},
		`"data":"` + strings.Repeat("7", 7089) + `","error_correction":"L","size":1024,"dpi":1200`:               {1024, 1024},
	})
}
