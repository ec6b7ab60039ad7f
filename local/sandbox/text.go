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

// gsm reports whether a text needs no Unicode.
func gsm(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return !strings.ContainsRune(gsmAlphabet, c) })
}

// segments returns how many segments a vendor bills for a text, by plain division.
func segments(text string) int {
	size, limit := utf8.RuneCountInString(text), 153
	if !gsm(text) {
		size, limit = len(utf16.Encode([]rune(text))), 67
	}
	return (size + limit - 1) / limit
}

// messageID returns a message ID of digits.
func messageID() string { return strconv.Itoa(100_000_000 + rand.IntN(900_000_000)) }

// split returns the texts that commas separate, none of an empty list.
func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
