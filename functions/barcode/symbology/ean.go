package symbology

import (
	"errors"
	"fmt"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/ean"
	"github.com/boombuler/barcode/utils"

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
		return data, gs1.ValidateCheckDigit(data)
	}
	return "", fmt.Errorf("takes %d digits, or %d with the check digit; found %d", length-1, length, len(data))
}

// upceDigits are a digit's seven modules in number sets A (odd parity) and B (even parity).
var upceDigits = [2][10]int{
	{0b0001101, 0b0011001, 0b0010011, 0b0111101, 0b0100011, 0b0110001, 0b0101111, 0b0111011, 0b0110111, 0b0001011},
	{0b0100111, 0b0110011, 0b0011011, 0b0100001, 0b0011101, 0b0111001, 0b0000101, 0b0010001, 0b0001001, 0b0010111},
}

// upceParities has, by check digit, a bit for each of the six digits: 1 is set B in number system 0, and set A in
// number system 1.
var upceParities = [10]int{
	0b111000, 0b110100, 0b110010, 0b110001, 0b101100, 0b100110, 0b100011, 0b101010, 0b101001, 0b100101,
}

// upcE follows GS1 General Specifications, 5.2.1: 51 modules. The data is 6 digits (number system 0), 7 (with the
// number system), 8 (with the check digit as well), or 11 or 12 digits of a UPC-A that compresses. The check digit is
// that of the UPC-A.
func upcE(data string) (barcode.Barcode, error) {
	number := data // number system, six digits, perhaps the check digit
	switch len(data) {
	case 6:
		number = "0" + data
	case 7, 8:
	case 11, 12:
		full, err := withCheckDigit(data, 12)
		if err != nil {
			return nil, err
		}
		if number, err = compressUPCA(full); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("takes 6, 7, 8, 11 or 12 digits; found %d", len(data))
	}

	system, six := number[0], number[1:7]
	if system > '1' {
		return nil, fmt.Errorf("the number system (first digit) must be 0 or 1; found %c", system)
	}
	full, err := expandUPCE(system, six)
	if err != nil {
		return nil, err
	}
	check := gs1.CheckDigit(full)
	if len(number) == 8 {
		if err := gs1.ValidateCheckDigit(full + number[7:]); err != nil {
			return nil, err
		}
	}

	parity := upceParities[check-'0']
	if system == '1' {
		parity = ^parity
	}
	bars := new(utils.BitList)
	bars.AddBits(0b101, 3)
	for i := range six {
		bars.AddBits(upceDigits[parity>>(5-i)&1][six[i]-'0'], 7)
	}
	bars.AddBits(0b010101, 6)
	return utils.New1DCode("UPC E", string(system)+six+string(check), bars), nil
}

// expandUPCE returns the 11 digits of the UPC-A that system and six encode. Six digits are forbidden where
// a shorter suppression encodes the same number.
func expandUPCE(system byte, six string) (string, error) {
	s, last := string(system), six[5]
	switch {
	case last <= '2':
		return s + six[:2] + six[5:] + "0000" + six[2:5], nil
	case last == '3' && six[2] <= '2':
		return "", fmt.Errorf("where the sixth digit is 3, the third must be 3 to 9; found %c", six[2])
	case last == '3':
		return s + six[:3] + "00000" + six[3:5], nil
	case last == '4' && six[3] == '0':
		return "", errors.New("where the sixth digit is 4, the fourth must be 1 to 9; found 0")
	case last == '4':
		return s + six[:4] + "00000" + six[4:5], nil
	case six[4] == '0':
		return "", fmt.Errorf("where the sixth digit is %c, the fifth must be 1 to 9; found 0", last)
	}
	return s + six[:5] + "0000" + six[5:], nil
}

// compressUPCA returns number system and six digits of the UPC-E that encodes the 12 digits of full.
func compressUPCA(full string) (string, error) {
	if full[0] > '1' {
		return "", fmt.Errorf("only a UPC-A of number system 0 or 1 compresses; found %c", full[0])
	}
	for _, six := range []string{
		full[1:3] + full[8:11] + full[3:4], full[1:4] + full[9:11] + "3", full[1:5] + full[10:11] +
			"4", full[1:6] + full[10:11],
	} {
		if expanded, err := expandUPCE(full[0], six); err == nil && expanded == full[:11] {
			return full[:1] + six, nil
		}
	}
	return "", errors.New("the UPC-A has too few zeros in the right places to compress")
}
