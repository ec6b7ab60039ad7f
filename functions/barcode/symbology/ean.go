package symbology

import (
	"fmt"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/ean"
)

// ean13 follows GS1 General Specifications, 5.2.1: 95 modules.
func ean13(data string) (barcode.Barcode, error) { return eanOf(13, data) }

// ean8 follows GS1 General Specifications, 5.2.1: 67 modules.
func ean8(data string) (barcode.Barcode, error) { return eanOf(8, data) }

func eanOf(length int, data string) (barcode.Barcode, error) {
	number, err := withCheckDigit(data, length)
	if err != nil {
		return nil, err
	}
	return ean.Encode(number)
}

// upcA returns the EAN-13 of 0 and the number: the same 95 modules, read as 12 digits.
func upcA(data string) (barcode.Barcode, error) {
	number, err := withCheckDigit(data, 12)
	if err != nil {
		return nil, err
	}
	code, err := ean.Encode("0" + number)
	if err != nil {
		return nil, err
	}
	return readAs{code, number}, nil
}

// readAs is a symbol that is read as another text than its encoder was given.
type readAs struct {
	barcode.Barcode
	text string
}

// Content returns the text that a reader gives.
func (r readAs) Content() string { return r.text }

// checkDigit returns the GS1 check digit of digits: weights 3, 1, 3, ... from the right, then the rest to
// a multiple of ten (GS1 General Specifications, 7.9.1).
func checkDigit(digits string) byte {
	sum, weight := 0, 3
	for i := len(digits) - 1; i >= 0; i-- {
		sum += weight * int(digits[i]-'0')
		weight = 4 - weight
	}
	return '0' + byte((10-sum%10)%10)
}

// withCheckDigit completes a number of length digits: a missing check digit is added, a wrong one is an
// error. Shorter numbers are not padded, since padding hides typing errors.
func withCheckDigit(data string, length int) (string, error) {
	if err := onlyDigits(data); err != nil {
		return "", err
	}
	switch len(data) {
	case length - 1:
		return data + string(checkDigit(data)), nil
	case length:
		return data, wantCheckDigit(data, checkDigit(data[:length-1]))
	}
	return "", fmt.Errorf("takes %d digits, or %d with the check digit; found %d", length-1, length, len(data))
}

// wantCheckDigit rejects a number whose last digit is not the expected check digit.
func wantCheckDigit(number string, expected byte) error {
	last := len(number) - 1
	if number[last] == expected {
		return nil
	}
	return fmt.Errorf("the check digit of %s must be %c; found %c", number[:last], expected, number[last])
}
