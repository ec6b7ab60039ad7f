package symbology

import (
	"fmt"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/ean"

	"svcapi/functions/barcode/gs1"
)

// eanCode follows GS1 General Specifications, 5.2.1: EAN-13 has 95 modules, EAN-8 has 67.
func eanCode(number string) (barcode.Barcode, error) { return ean.Encode(number) }

// upcA returns the EAN-13 of 0 and the number: the same 95 modules, read as 12 digits.
func upcA(number string) (barcode.Barcode, error) {
	code, err := ean.Encode("0" + number)
	return readAs{code, number}, err
}

// readAs is a symbol that is read as another text than its encoder was given.
type readAs struct {
	barcode.Barcode
	text string
}

// Content returns the text that a reader gives.
func (r readAs) Content() string { return r.text }

// checked returns the encoder of a number of length digits, the last of which is the check digit.
func checked(length int, encode encoder) encoder {
	return func(data string) (barcode.Barcode, error) {
		number, err := withCheckDigit(data, length)
		if err != nil {
			return nil, err
		}
		return encode(number)
	}
}

// withCheckDigit completes a number of length digits: a missing check digit is added, a wrong one is an
// error. Shorter numbers are not padded, since padding hides typing errors.
func withCheckDigit(data string, length int) (string, error) {
	switch len(data) {
	case length - 1:
		return data + string(gs1.CheckDigit(data)), nil
	case length:
		return data, wantCheckDigit(data, gs1.CheckDigit(data[:length-1]))
	}
	return "", fmt.Errorf("takes %d digits, or %d with the check digit; found %d", length-1, length, len(data))
}

// wantCheckDigit rejects a number whose last digit is not the expected check digit. The message does not repeat the
// data, as logs hold the message.
func wantCheckDigit(number string, expected byte) error {
	if found := number[len(number)-1]; found != expected {
		return fmt.Errorf("the check digit must be %c; found %c", expected, found)
	}
	return nil
}
