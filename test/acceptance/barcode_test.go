package acceptance

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
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

// openapi.yaml#generateBarcode, docs/decisions.md#barcode-pictures: the body is the image, Content-Type image/png or
// image/svg+xml, with Content-Length, Cache-Control no-store, Content-Disposition inline and X-SVC-Request-ID. Width is
// modules times width_factor, height is height. The same request gives the same bytes.
func TestBarcode(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).drawing(t, project.BYOK)
	for _, c := range []struct {
		fields        string
		width, height int
	}{
		{`"data":"Hello"`, 180, 80}, // 90 modules
		{`"data":"Hello","format":"svg"`, 180, 80},
		{`"data":"Hello","type":"C128","width_factor":1,"height":20`, 90, 20},
		{`"data":"Hello","width_factor":4,"height":300`, 360, 300},
		{`"data":"Hello","width_factor":2.9,"height":80.0`, 180, 80},
		{`"data":"Hello","width_factor":4.0,"color":"#Ff00aA"`, 360, 80},
		{`"data":"Hello","color":"00ff00","privacy_mode":false`, 180, 80},
		{`"data":"Hello","quiet_zone":true`, 220, 80},
		{`"data":"Hello","quiet_zone":null,"type":null,"format":null,"width_factor":null,"height":null,"color":null,"privacy_mode":null`, 180, 80},
		{`"data":"Hello","text":false`, 180, 80},
		{`"data":"Hello","text":true`, 180, 101},
		{`"data":"Hello","text":true,"format":"svg"`, 180, 101},
		{`"data":"5901234123457","type":"EAN13","text":true,"width_factor":4`, 380, 122},
		{`"data":"5901234123457","type":"EAN13","text":true,"width_factor":4,"quiet_zone":true,"format":"svg"`, 452, 122},
		{`"data":"\u0000\t","text":true,"format":"svg"`, 0, 101},
		{`"data":"Hello","unknown":{"x":[1]}`, 180, 80},
		{`"data":"ABC","type":"C128A"`, 136, 80},
		{`"data":"abc","type":"C128B"`, 136, 80},
		{`"data":"123456","type":"C128C"`, 136, 80},
		{`"data":"400638133393","type":"EAN13"`, 190, 80},
		{`"data":"4006381333931","type":"EAN13","quiet_zone":true`, 226, 80},
		{`"data":"7351353","type":"EAN8","quiet_zone":true`, 162, 80},
		{`"data":"03600029145","type":"UPCA","quiet_zone":true`, 226, 80},
		{`"data":"654321","type":"UPCE","quiet_zone":true`, 134, 80},
		{`"data":"ABC","type":"C39"`, 158, 80},
		{`"data":"ABC","type":"C39+"`, 190, 80},
		{`"data":"123","type":"I25"`, 90, 80},
		{`"data":"1540014128876","type":"ITF14"`, 270, 80},
		{`"data":"123","type":"MSI","quiet_zone":true`, 134, 80},
		{`"data":"12345-6789","type":"POSTNET"`, 206, 80},
		{`"data":"` + strings.Repeat("x", 80) + `","width_factor":4,"height":300`, 3660, 300},
		{`"data":"\u0000\t\u007f<&>"`, 0, 80},
		{`"data":"\u0000\t\u007f<&>","format":"svg"`, 0, 80},
	} {
		body := "{" + c.fields + "}"
		first, width, height := picture(t, barcodes, body, p.dev)
		if height != c.height || c.width != 0 && width != c.width {
			t.Errorf("%s: %d by %d pixels, want %d by %d", body, width, height, c.width, c.height)
		}
		if again, _, _ := picture(t, barcodes, body, p.dev); !bytes.Equal(first, again) {
			t.Errorf("%s: other bytes the second time", body)
		}
	}
}

// docs/decisions.md#qr-codes: PNG or SVG, size exact, every level, what fits 2,953 bytes.
func TestQRCode(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).drawing(t, project.BYOK)
	for _, c := range []struct {
		fields string
		size   int
	}{
		{`"data":"x"`, 256},
		{`"data":"x","format":"svg"`, 256},
		{`"data":"x","size":64`, 64},
		{`"data":"x","size":1024,"margin":0`, 1024},
		{`"data":"x","size":333.0,"margin":10`, 333},
		{`"data":"x","error_correction":"L"`, 256},
		{`"data":"x","error_correction":"Q","color":"#14213D","background":"fca311"`, 256},
		{`"data":"x","error_correction":"H","privacy_mode":true`, 256},
		{`"data":"\ud83d\ude00 ශ්\u200dරී ලංකා\r\n\u0000","format":"svg"`, 256},
		{`"data":"` + strings.Repeat("x", 2953) + `","error_correction":"L","size":1024`, 1024},
		{`"data":"` + strings.Repeat("7", 2953) + `","error_correction":"H","size":1024`, 1024}, // 3,057 digits fit
	} {
		body := "{" + c.fields + "}"
		first, width, height := picture(t, qrcodes, body, p.dev)
		if width != c.size || height != c.size {
			t.Errorf("%.80s: %d by %d pixels, want %d", body, width, height, c.size)
		}
		if again, _, _ := picture(t, qrcodes, body, p.dev); !bytes.Equal(first, again) {
			t.Errorf("%.80s: other bytes the second time", body)
		}
	}
}

// openapi.yaml#BarcodeRequest, docs/decisions.md#error-details: the fields' rules, 422 with all failing fields at once.
func TestPictureFields(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).drawing(t, project.BYOK)
	for _, c := range []struct {
		path, body string
		fields     string // those that fail, sorted
	}{
		{barcodes, ``, "data"},
		{barcodes, `{}`, "data"},
		{barcodes, `[]`, "body"},
		{barcodes, `{"data":null}`, "data"},
		{barcodes, `{"data":""}`, "data"},
		{barcodes, `{"data":12345}`, "data"},
		{barcodes, `{"data":"` + strings.Repeat("x", 81) + `"}`, "data"},
		{barcodes, `{"data":"x","type":""}`, "type"},
		{barcodes, `{"data":"x","type":"c128"}`, "type"},
		{barcodes, `{"data":"x","type":"QR"}`, "type"},
		{barcodes, `{"data":"x","type":128}`, "type"},
		{barcodes, `{"data":"x","format":"PNG"}`, "format"},
		{barcodes, `{"data":"x","format":"jpg"}`, "format"},
		{barcodes, `{"data":"x","width_factor":0.9}`, "width_factor"},
		{barcodes, `{"data":"x","width_factor":4.5}`, "width_factor"}, // the range comes before the cut
		{barcodes, `{"data":"x","width_factor":4.0001}`, "width_factor"},
		{barcodes, `{"data":"x","width_factor":-1}`, "width_factor"},
		{barcodes, `{"data":"x","width_factor":1e999}`, "width_factor"},
		{barcodes, `{"data":"x","width_factor":"2"}`, "width_factor"},
		{barcodes, `{"data":"x","height":19}`, "height"},
		{barcodes, `{"data":"x","height":301}`, "height"},
		{barcodes, `{"data":"x","height":80.5}`, "height"},
		{barcodes, `{"data":"x","height":true}`, "height"},
		{barcodes, `{"data":"x","color":""}`, "color"},
		{barcodes, `{"data":"x","color":"red"}`, "color"},
		{barcodes, `{"data":"x","color":"##000000"}`, "color"},
		{barcodes, `{"data":"x","color":"00000"}`, "color"},
		{barcodes, `{"data":"x","color":"000000\n"}`, "color"},
		{barcodes, `{"data":"x","color":0}`, "color"},
		{barcodes, `{"data":"x","privacy_mode":1}`, "privacy_mode"},
		{barcodes, `{"data":"x","privacy_mode":"true"}`, "privacy_mode"},
		{barcodes, `{"data":"x","quiet_zone":"yes"}`, "quiet_zone"},
		{barcodes, `{"data":"x","text":"x"}`, "text"},
		{barcodes, `{"data":[],"type":[],"format":[],"width_factor":[],"height":[],"color":[],"privacy_mode":[],"quiet_zone":[]}`,
			"color data format height privacy_mode quiet_zone type width_factor"},
		{qrcodes, `{}`, "data"},
		{qrcodes, `{"data":""}`, "data"},
		{qrcodes, `{"data":"` + strings.Repeat("x", 2954) + `"}`, "data"},
		{qrcodes, `{"data":"` + strings.Repeat("é", 1477) + `"}`, "data"}, // bytes, not characters
		{qrcodes, `{"data":"x","size":63}`, "size"},
		{qrcodes, `{"data":"x","size":1025}`, "size"},
		{qrcodes, `{"data":"x","size":256.5}`, "size"},
		{qrcodes, `{"data":"x","margin":-1}`, "margin"},
		{qrcodes, `{"data":"x","margin":11}`, "margin"},
		{qrcodes, `{"data":"x","margin":1.5}`, "margin"},
		{qrcodes, `{"data":"x","error_correction":"m"}`, "error_correction"},
		{qrcodes, `{"data":"x","error_correction":"LM"}`, "error_correction"},
		{qrcodes, `{"data":"x","error_correction":""}`, "error_correction"},
		{qrcodes, `{"data":"x","background":"white","color":"#12345G"}`, "background color"},
		{qrcodes, `{"data":7,"format":7,"size":"7","margin":"7","error_correction":7,"color":7,"background":7,"privacy_mode":7}`,
			"background color data error_correction format margin privacy_mode size"},
	} {
		request{path: c.path, body: c.body, as: p.dev}.failsOn(t, c.fields)
	}
}

// openapi.yaml#BarcodeRejected, docs/decisions.md#drawn-first: 400 http_error. The message names the rule and the
// character or the check digit, and for QR codes what would fit.
func TestPictureRejected(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).drawing(t, project.BYOK)
	for _, c := range []struct{ path, body, message string }{
		{barcodes, `{"data":"naïve"}`, "C128: takes ASCII characters 0 to 127 only; found 'ï' at position 3."},
		{barcodes, `{"data":"abc","type":"C128A"}`, "C128A: takes ASCII characters 0 to 95 only; found 'a' at position 1."},
		{barcodes, `{"data":"a\tb","type":"C128B"}`, `C128B: takes ASCII characters 32 to 127 only; found '\t' at position 2.`},
		{barcodes, `{"data":"123","type":"C128C"}`, "C128C: takes an even count of digits; found 3."},
		{barcodes, `{"data":"4006381333932","type":"EAN13"}`, "EAN13: the check digit of 400638133393 must be 1; found 2."},
		{barcodes, `{"data":"735135","type":"EAN8"}`, "EAN8: takes 7 digits, or 8 with the check digit; found 6."},
		{barcodes, `{"data":"036000291453","type":"UPCA"}`, "UPCA: the check digit of 03600029145 must be 2; found 3."},
		{barcodes, `{"data":"122003","type":"UPCE"}`, "UPCE: where the sixth digit is 3, the third must be 3 to 9; found 2."},
		{barcodes, `{"data":"a","type":"C39"}`, "C39: takes 0-9, A-Z, - . $ / + % and space only; found 'a' at position 1."},
		{barcodes, `{"data":"*","type":"C39+"}`, "C39+: takes 0-9, A-Z, - . $ / + % and space only; found '*' at position 1."},
		{barcodes, `{"data":"12 4","type":"I25"}`, "I25: takes digits only; found ' ' at position 3."},
		{barcodes, `{"data":"15400141288764","type":"ITF14"}`, "ITF14: the check digit of 1540014128876 must be 3; found 4."},
		{barcodes, `{"data":"1x","type":"MSI"}`, "MSI: takes digits only; found 'x' at position 2."},
		{barcodes, `{"data":"1234","type":"POSTNET"}`, "POSTNET: takes 5, 9 or 11 digits, not counting - and space; found 4."},
		{qrcodes, `{"data":"` + strings.Repeat("x", 2332) + `","size":1024}`,
			"QR code: 2332 bytes are too much for error correction M, which holds 2331 bytes, 3391 capital letters or 5596 digits; error correction L holds them."},
		{qrcodes, `{"data":"` + strings.Repeat("x", 2953) + `","size":184,"error_correction":"L"}`,
			"QR code: 177 modules and margins of 4 do not fit 184 pixels; size must be at least 185."},
	} {
		a := request{path: c.path, body: c.body, as: p.dev}.do(t)
		if a != nil && (!a.is(400, "http_error") || a.Error.Message != c.message) {
			t.Errorf("%.100s: %d %s, want 400 http_error: %s", c.body, a.status, a.body, c.message)
		}
	}
}

// openapi.yaml#generateBarcode: 401, 402, 422 provider_selection_failed, 429, 503 project_paused; a wrong method is
// 405. docs/decisions.md#order-of-checks: of two reasons to refuse a request the response names the earlier one.
func TestPictureErrors(t *testing.T) {
	t.Parallel()
	bare := plan{credits: 1000}.make(t)
	poor := plan{}.make(t).drawing(t, project.Managed)
	paused := plan{}.make(t).drawing(t, project.BYOK)
	svc[any](t, "", "project", "pause", paused.id)
	limited := plan{limit: 2}.make(t).drawing(t, project.BYOK)
	const good, invalid, rejected = `{"data":"12345"}`, `{"data":""}`, `{"data":"12345","type":"EAN13"}`
	large := `{"data":"` + strings.Repeat("x", 2000) + `","error_correction":"H"}`
	for i, path := range []string{barcodes, qrcodes} {
		reject := []string{rejected, large}[i]
		for _, c := range []struct {
			name   string
			r      request
			status int
			code   string
		}{
			{"wrong secret", request{body: invalid, as: credential{poor.dev.ID, "wrong"}}, 401, "unauthorized"},
			{"production", request{body: good, as: poor.dev, header: map[string]string{"X-ENV": "production"}}, 401, "unauthorized"},
			{"paused before body", request{body: invalid, as: paused.dev}, 503, "project_paused"},
			{"body before integration", request{body: invalid, as: bare.dev}, 422, "validation_failed"},
			{"integration before rejection", request{body: reject, as: bare.dev}, 422, "provider_selection_failed"},
			{"no integration", request{body: good, as: bare.dev}, 422, "provider_selection_failed"},
			{"rejection before credits", request{body: reject, as: poor.dev}, 400, "http_error"},
			{"no credits", request{body: good, as: poor.dev}, 402, "insufficient_funds"},
			{"wrong method", request{method: "GET", as: poor.dev}, 405, "http_error"},
			{"too large", request{body: good + strings.Repeat(" ", 4<<20), as: poor.dev}, 413, "http_error"},
			{"playground needs no confirmation", request{body: good, as: poor.dev, header: map[string]string{"X-SVC-Client": "playground"}}, 402, "insufficient_funds"},
		} {
			c.r.path = path
			if a := c.r.do(t); a != nil && !a.is(c.status, c.code) {
				t.Errorf("%s, %s: %d %s, want %d %s", path, c.name, a.status, a.body, c.status, c.code)
			}
		}
		picture(t, path, good, limited.dev)
	}
	if a := (request{path: barcodes, body: good, as: limited.dev}).do(t); a != nil && !a.is(429, "rate_limit_exceeded") {
		t.Errorf("the third request of two: %d %s, want 429", a.status, a.body)
	}
}

// docs/decisions.md#modes: Managed charges credits, Manual 0. docs/decisions.md#what-is-charged: a request that fails
// is not charged; concurrent requests never spend more than there is.
func TestPictureMoney(t *testing.T) {
	t.Parallel()
	const price, affordable = 100, 12
	p := plan{credits: price * affordable}.make(t).drawing(t, project.Managed)
	for _, body := range []string{`{"data":""}`, `{"data":"x","type":"EAN13"}`} {
		if a := (request{path: barcodes, body: body, as: p.dev}).do(t); a != nil && a.status == 200 {
			t.Errorf("%s succeeds", body)
		}
	}
	if b := p.balance(t); b != price*affordable {
		t.Errorf("refused requests leave %d credits", b)
	}
	drawn := 0
	for _, a := range atOnce(3*affordable, 12, func(i int) *response {
		return request{path: []string{barcodes, qrcodes}[i%2], body: fmt.Sprintf(`{"data":"%d"}`, i), as: p.dev}.send(t)
	}) {
		switch {
		case a == nil:
		case a.status == 200:
			drawn++
		case !a.is(402, "insufficient_funds"):
			t.Errorf("%d %s, want 200 or 402", a.status, a.body)
		}
	}
	if drawn != affordable {
		t.Errorf("%d pictures for the price of %d", drawn, affordable)
	}
	if b := p.balance(t); b != 0 {
		t.Errorf("%d credits are left", b)
	}
	charged := map[string]int{}
	for _, e := range p.ledger(t) {
		if e.State == "captured" {
			charged[e.Operation]++
			if e.Credits != price || e.Vendor != "builtin" || e.Environment != "development" {
				t.Errorf("ledger: %+v", e)
			}
		}
	}
	if charged["barcode"]+charged["qrcode"] != affordable || charged["barcode"] == 0 || charged["qrcode"] == 0 {
		t.Errorf("charged: %v", charged)
	}

	manual := plan{credits: price}.make(t).drawing(t, project.BYOK)
	picture(t, barcodes, `{"data":"x"}`, manual.dev)
	picture(t, qrcodes, `{"data":"x"}`, manual.dev)
	if b := manual.balance(t); b != price {
		t.Errorf("Manual (BYOK): %d credits are left of %d", b, price)
	}
}

// Random data of every type, over HTTP: 200 or 400 and nothing else.
func TestBarcodeAnyData(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).drawing(t, project.BYOK)
	types := []string{"C128", "C128A", "C128B", "C128C", "EAN13", "EAN8", "UPCA", "UPCE", "C39", "C39+", "I25", "ITF14", "MSI", "POSTNET"}
	alphabets := []string{"0123456789", "0123456789-ABC $", "abc\x00\x1f~é日😀\"\\<"}
	r := rand.New(rand.NewPCG(1, 2))
	bodies := make([]string, 420)
	for i := range bodies {
		characters := []rune(alphabets[r.IntN(len(alphabets))])
		data := make([]rune, 1+r.IntN(14))
		for j := range data {
			data[j] = characters[r.IntN(len(characters))]
		}
		bodies[i] = object(map[string]any{"data": string(data), "type": types[i%len(types)], "format": []string{"png", "svg"}[i%2]})
	}
	drawn := 0
	for i, a := range atOnce(len(bodies), 8, func(i int) *response {
		return request{path: barcodes, body: bodies[i], as: p.dev}.send(t)
	}) {
		switch {
		case a == nil:
		case a.status == 200:
			drawn++
		case !a.is(400, "http_error"):
			t.Errorf("%s: %d %s, want 200 or 400", bodies[i], a.status, a.body)
		}
	}
	if drawn == 0 || drawn == len(bodies) {
		t.Errorf("%d of %d are drawn", drawn, len(bodies))
	}
}

// docs/decisions.md#privacy-mode: the header and the field privacy_mode keep the payload out of the logs, also where
// the request is refused and the refusal quotes the data.
func TestPicturePrivacy(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{}.make(t).drawing(t, project.BYOK)
	header := map[string]string{"X-Privacy-Mode": "1"}
	hidden, shown := "hidden"+p.id, "shown"+p.id
	for _, path := range []string{barcodes, qrcodes} {
		for _, r := range []request{
			{body: object(map[string]any{"data": hidden, "privacy_mode": true})},
			{body: object(map[string]any{"data": hidden}), header: header},
			{body: object(map[string]any{"data": hidden, "privacy_mode": true, "format": hidden})},
			{body: object(map[string]any{"data": hidden, "privacy_mode": hidden})},
			{body: object(map[string]any{"data": hidden, "type": "EAN13", "size": 64, "margin": 10, "privacy_mode": true})},
			{body: object(map[string]any{"data": shown})},
		} {
			r.path, r.as = path, p.dev
			r.send(t)
		}
	}
	log, err := os.ReadFile(filepath.Join(fixture.stack.LogDir, "barcode.log"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(log, []byte(hidden)) {
		t.Error("the log holds the payload of a private request")
	}
	if !bytes.Contains(log, []byte(shown)) {
		t.Error("the log does not hold the payload of a request that is not private")
	}
}
