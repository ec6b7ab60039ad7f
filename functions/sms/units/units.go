// Package units counts the SMS units of a text.
package units

import "unicode/utf16"

// A unit holds 153 septets of the GSM 7-bit default alphabet (3GPP TS 23.038), or 67 UTF-16 code units of other text,
// also where the message has one unit only (docs/decisions/sms.md#units).
const (
	septetsPerUnit = 153
	ucs2PerUnit    = 67
)

// Most is the maximum of units of a message to one recipient (openapi.yaml#sendSms).
const Most = 3

// septets holds the length of each GSM 7-bit character, 2 with an escape (3GPP TS 23.038, 6.2.1 and 6.2.1.1).
var septets = alphabet(
	"@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"+
		"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà",
	"\f^{}\\[~]|€")

func alphabet(basic, extension string) map[rune]int {
	lengths := map[rune]int{}
	for _, r := range basic {
		lengths[r] = 1
	}
	for _, r := range extension {
		lengths[r] = 2
	}
	return lengths
}

// Use is the space that a text takes: its characters as they count, and the characters of a unit.
type Use struct {
	Characters, Unit int
	Alphabet         string // for people
}

// Length returns the space that a text takes. A character of the extension table counts 2, and so does one beyond the
// Basic Multilingual Plane.
func Length(text string) Use {
	length, size, unicode := measure(text)
	use := Use{Unit: size, Alphabet: "GSM alphabet"}
	if unicode {
		use.Alphabet = "Unicode"
	}
	for _, r := range text {
		use.Characters += length(r)
	}
	return use
}

// measure returns the length of a character of the text, and the size of a unit.
func measure(text string) (length func(rune) int, size int, unicode bool) {
	for _, r := range text {
		if septets[r] == 0 {
			return utf16.RuneLen, ucs2PerUnit, true
		}
	}
	return func(r rune) int { return septets[r] }, septetsPerUnit, false
}

// Count returns the units of a text and whether the text needs UCS-2. No escape or surrogate pair is split.
func Count(text string) (count int, unicode bool) {
	length, size, unicode := measure(text)
	used := size // the first character opens the first unit
	for _, r := range text {
		n := length(r)
		if used+n > size {
			count, used = count+1, 0
		}
		used += n
	}
	return count, unicode
}
