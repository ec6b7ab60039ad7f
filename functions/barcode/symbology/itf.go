package symbology

import (
	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/twooffive"
)

// interleaved follows ISO/IEC 16390 (Interleaved 2 of 5), wide elements 3 modules: 9n+9 modules. Digits come in
// pairs, so that an odd count gets a leading zero.
func interleaved(data string) (barcode.Barcode, error) {
	if err := onlyDigits(data); err != nil {
		return nil, err
	}
	if len(data)%2 == 1 {
		data = "0" + data
	}
	return twooffive.Encode(data, true)
}

// itf14 follows GS1 General Specifications, 5.3, without bearer bars: 135 modules.
func itf14(data string) (barcode.Barcode, error) {
	number, err := withCheckDigit(data, 14)
	if err != nil {
		return nil, err
	}
	return twooffive.Encode(number, true)
}
