package units

import "strings"

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
