package symbology

import (
	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/twooffive"
)

// interleaved follows ISO/IEC 16390 (Interleaved 2 of 5), wide elements 3 modules: 9n+9 modules. Digits come in
// pairs, so that an odd count gets a leading zero. ITF-14 (GS1 General Specifications, 5.3) has 135 modules here.
func interleaved(data string) (barcode.Barcode, error) {
	if len(data)%2 == 1 {
		data = "0" + data
	}
	return twooffive.Encode(data, true)
}
