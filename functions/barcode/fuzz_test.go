package main

import (
	"regexp"
	"testing"
	"unicode/utf8"

	"svcapi/shared/request"
	"svcapi/test/fuzztest"
)

// A body that decodes without a problem is within the limits of openapi.yaml#BarcodeRequest, and is drawn or rejected.
func FuzzBarcode(f *testing.F) {
	color := regexp.MustCompile(`\A#?[0-9a-fA-F]{6}\z`) // openapi.yaml#Color
	fuzztest.Bodies(f, decodeBarcode, func(t *testing.T, _ *request.Input, r barcodeRequest) {
		if r.factor < 1 || r.factor > 4 || r.height < 20 || r.height > 300 || utf8.RuneCountInString(r.data) > 80 ||
			r.data == "" || !color.MatchString(r.color) {
			t.Fatalf("%+v", r)
		}
		if picture, _, err := r.picture(); err == nil && r.kind == "DATAMATRIX" {
			if width, height := picture.Size(); width < 8*r.factor || width > 66*r.factor || height < 8*r.factor ||
				height > 66*r.factor || r.text {
				t.Errorf("%d by %d pixels: %+v", width, height, r)
			}
		} else if err == nil && (picture.Height > r.height) != r.text {
			t.Errorf("%d pixels high, want %d and the text: %v", picture.Height, r.height, r.text)
		} else if err != nil && !utf8.ValidString(err.Error()) {
			t.Error(err)
		}
	}, `{"data":"12345670","type":"EAN8","format":"svg","width_factor":3.9999999999999999999999,"height":8e1,`+
		`"color":"#00FF7f","quiet_zone":true,"text":true}`,
		`{"data":"A\u0000é","width_factor":1e999999,"height":20.0}`, `{"data":"","type":"c128"}`,
		`{"data":"1","color":"12345"}`, `{"data":"1","color":"#0000000"}`, `{"data":"1","color":"00000g"}`,
		`{"data":"0","type":"POSTNET","height":300.5}`, `{"data":"日本","format":"png","privacy_mode":"x"}`,
		`{"data":["1"]}`,
		`{"data":"(01)09506000134352(10)A\\\\(","gs1":true,"rotation":270,"background":"transparent","text":true}`,
		`{"data":"é1234\\u0080","type":"DATAMATRIX","shape":"rectangle","quiet_zone":true,"rotation":90.0}`,
		`{"data":"(3103)123456","type":"DATAMATRIX","gs1":true,"shape":"x","rotation":45}`)
}

// A body that decodes without a problem is within the limits of openapi.yaml#QrCodeRequest, and is drawn or rejected.
func FuzzQRCode(f *testing.F) {
	fuzztest.Bodies(f, decodeQRCode, func(t *testing.T, _ *request.Input, q qrRequest) {
		if q.size < 64 || q.size > 1024 || q.margin < 0 || q.margin > 10 || q.data == "" {
			t.Fatalf("%+v", q)
		}
		if picture, err := q.picture(); err == nil && (picture.Width != q.size || picture.Height != q.size) {
			t.Errorf("%d × %d pixels, want %d", picture.Width, picture.Height, q.size)
		}
	}, `{"data":"A\u0000é","size":64,"margin":0,"error_correction":"H","background":"ffffff"}`,
		`{"data":"0","size":1024.0000000000000000000001,"margin":-0}`, `{"data":"日本","format":"png","privacy_mode":"x"}`,
		`{"data":""}`, `{"data":["1"]}`)
}
