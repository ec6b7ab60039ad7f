package sandbox

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// gsmAlphabet is the basic table of GSM 03.38 and its extension (3GPP TS 23.038).
const gsmAlphabet = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§" +
	"¿abcdefghijklmnopqrstuvwxyzäöñüà" + "\f^{}\\[~]|€"

// gsm tells whether a text needs no Unicode.
func gsm(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return !strings.ContainsRune(gsmAlphabet, c) })
}

// parts is how many parts a vendor bills for a text, by plain division.
func parts(text string) int {
	size, part := utf8.RuneCountInString(text), 153
	if !gsm(text) {
		size, part = len(utf16.Encode([]rune(text))), 67
	}
	return (size + part - 1) / part
}

// number makes a message's ID as the vendors that count do.
func number() string { return strconv.Itoa(100_000_000 + rand.IntN(900_000_000)) }
