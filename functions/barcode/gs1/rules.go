package gs1

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"
)

const (
	digits  = "0123456789"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	// set82 is character set 82 in the order of its values (GS1 General Specifications, 7.11 and 7.9.5).
	set82 = `!"%&'()*+,-./` + digits + ":;<=>?" + letters + "_abcdefghijklmnopqrstuvwxyz"
)

// sets are the characters of a component by its letter in the table.
var sets = map[byte]struct{ name, characters string }{
	'N': {"digits", digits},
	'X': {"characters of GS1's set 82", set82},
	'Y': {"characters of GS1's set 39", "#-/" + digits + letters},
	'Z': {"characters of base64url", "-_=" + digits + letters + strings.ToLower(letters)},
}

// rules check a component whose characters are valid. The codes of countries, currencies, package types and coupons are
// not checked (docs/decisions/pictures.md#gs1).
var rules = map[string]func(string) error{
	"csum":         checkDigit,
	"csumalpha":    checkPair,
	"iban":         iban,
	"pieceoftotal": pieceOfTotal,
	"yymmdd":       date("060102", false),
	"yymmd0":       date("060102", true),
	"yyyymmdd":     date("20060102", false),
	"hhmi":         like(`^([01]\d|2[0-3])[0-5]\d$`, "a time, HHMM"),
	"hh":           like(`^([01]\d|2[0-3])$`, "an hour"),
	"mi":           like(`^[0-5]\d$`, "minutes"),
	"ss":           like(`^[0-5]\d$`, "seconds"),

	"gcppos1":       like(`^\d{4}`, "a company prefix first"),
	"hasnondigit":   like(`\D`, "a character that is no digit"),
	"hyphen":        like(`^-$`, "a minus sign"),
	"importeridx":   like(`^[\w-]$`, "a letter, a digit, - or _"),
	"iso3166alpha2": like(`^[A-Z]{2}$`, "two capital letters"),
	"iso5218":       like(`^[0129]$`, "0, 1, 2 or 9"),
	"latitude":      like(`^(0\d{9}|1[0-7]\d{8}|1800000000)$`, "at most 1800000000"),
	"longitude":     like(`^([0-2]\d{9}|3[0-5]\d{8}|3600000000)$`, "at most 3600000000"),
	"mediatype":     like(`^(0[1-9]|10|[89]\d)$`, "01 to 10 or 80 to 99"),
	"nonzero":       like(`[1-9]`, "a number above 0"),
	"nozeroprefix":  like(`^(0|[1-9]\d*)$`, "a number without leading zeros"),
	"pcenc":         like(`^([^%]|%[0-9A-Fa-f]{2})*$`, "percent signs with two hexadecimal digits only"),
	"posinseqslash": like(`^[1-9]/[1-9]$`, "a position and a count, such as 1/2"),
	"winding":       like(`^[019]$`, "0, 1 or 9"),
	"yesno":         like(`^[01]$`, "0 or 1"),
	"zero":          like(`^0$`, "0"),

	"couponcode": unchecked, "couponposoffer": unchecked, "iso3166": unchecked, "iso3166999": unchecked,
	"iso4217": unchecked, "packagetype": unchecked,
}

func unchecked(string) error { return nil }

// like returns the rule that a part matches an expression.
func like(expression, what string) func(string) error {
	return func(part string) error {
		if !regexp.MustCompile(expression).MatchString(part) {
			return fmt.Errorf("needs %s", what)
		}
		return nil
	}
}

// date returns the rule of a date. With anyDay the day 00 is the whole month.
func date(layout string, anyDay bool) func(string) error {
	return func(part string) error {
		if month, ok := strings.CutSuffix(part, "00"); ok && anyDay {
			part = month + "01"
		}
		if _, err := time.Parse(layout, part); err != nil {
			return errors.New("has no date of the calendar")
		}
		return nil
	}
}

// CheckDigit returns the check digit of digits: weights 3, 1, 3, ... from the right, then the rest to a multiple of ten
// (GS1 General Specifications, 7.9.1).
func CheckDigit(digits string) byte {
	sum, weight := 0, 3
	for i := len(digits) - 1; i >= 0; i-- {
		sum += weight * int(digits[i]-'0')
		weight = 4 - weight
	}
	return '0' + byte((10-sum%10)%10)
}

func checkDigit(part string) error {
	last := len(part) - 1
	if want := CheckDigit(part[:last]); part[last] != want {
		return fmt.Errorf("the check digit must be %c; found %c", want, part[last])
	}
	return nil
}

// checkPair checks the two last characters of a Global Model Number: prime weights from the right, modulo 1021, as two
// characters of a set of 32 (GS1 General Specifications, 7.9.5).
func checkPair(part string) error {
	const set32 = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
	body := len(part) - 2
	if body < 0 {
		return errors.New("lacks its two check characters")
	}
	sum, prime := 0, int64(1)
	for i := body - 1; i >= 0; i-- {
		for prime++; !big.NewInt(prime).ProbablyPrime(0); prime++ {
		}
		sum += strings.IndexByte(set82, part[i]) * int(prime)
	}
	sum %= 1021
	if want := string([]byte{set32[sum>>5], set32[sum&31]}); part[body:] != want {
		return fmt.Errorf("the check characters must be %s; found %s", want, part[body:])
	}
	return nil
}

// iban checks the check digits of an International Bank Account Number (ISO 13616-1).
func iban(part string) error {
	if !regexp.MustCompile(`^[A-Z]{2}\d\d[0-9A-Z]+$`).MatchString(part) {
		return errors.New("is no IBAN")
	}
	var number strings.Builder
	for _, r := range part[4:] + part[:4] {
		fmt.Fprint(&number, strings.IndexRune(digits+letters, r))
	}
	n, _ := new(big.Int).SetString(number.String(), 10)
	if n.Mod(n, big.NewInt(97)).Int64() != 1 {
		return errors.New("the check digits of the IBAN are wrong")
	}
	return nil
}

func pieceOfTotal(part string) error {
	piece, total := part[:len(part)/2], part[len(part)/2:]
	if strings.Trim(piece, "0") == "" || piece > total {
		return errors.New("needs the number of a piece, from 1 to the total")
	}
	return nil
}
