// Package units counts the SMS units of a text.
package units

import (
	"strings"
	"unicode/utf16"
)

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

// replacements are the texts in the GSM alphabet for characters that are not in it: quotes, dashes, the ellipsis,
// spaces, and letters of the alphabet in two characters (docs/sms.md#smart-encoding). Each row has the replacement and
// what it replaces.
var replacements = [][]string{
	{"'", "‘", "’", "‚", "‛", "′", "‵", "‹", "›", "ʹ", "ʻ", "ʼ", "ˈ", "`", "´", "＇"},
	{`"`, "“", "”", "„", "‟", "″", "‶", "«", "»", "ʺ", "〝", "〞", "＂"},
	{"-", "‐", "‑", "‒", "–", "—", "―", "⁃", "−", "﹘", "﹣", "－"},
	{"...", "…"},
	{" ", "\t", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007",
		"\u2008", "\u2009", "\u200a", "\u202f", "\u205f", "\u3000"},
	{"\n", "\u2028", "\u2029"},
	{"", "\u00ad", "\u200b", "\u2060", "\ufeff"},
	{"à", "a\u0300"}, {"è", "e\u0300"}, {"ì", "i\u0300"}, {"ò", "o\u0300"}, {"ù", "u\u0300"}, {"é", "e\u0301"},
	{"É", "E\u0301"}, {"ä", "a\u0308"}, {"ö", "o\u0308"}, {"ü", "u\u0308"}, {"Ä", "A\u0308"}, {"Ö", "O\u0308"},
	{"Ü", "U\u0308"}, {"ñ", "n\u0303"}, {"Ñ", "N\u0303"}, {"å", "a\u030a"}, {"Å", "A\u030a", "\u212b"},
	{"Ç", "C\u0327"}, {"Ω", "\u2126"},
}

var replacer = func() *strings.Replacer {
	var pairs []string
	for _, row := range replacements {
		for _, replaced := range row[1:] {
			pairs = append(pairs, replaced, row[0])
		}
	}
	return strings.NewReplacer(pairs...)
}()

// InGSM reports whether a character is in the GSM 7-bit default alphabet or its extension.
func InGSM(r rune) bool { return septets[r] > 0 }

// Plain returns a text with replacements for characters that are not in the GSM alphabet, and whether all characters of
// the result are in it.
func Plain(text string) (plain string, inGSM bool) {
	plain = replacer.Replace(text)
	_, _, unicode := measure(plain)
	return plain, plain != "" && !unicode
}
