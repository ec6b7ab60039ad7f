package units

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"svcapi/test/must"
)

func repeat(s string, n int) string { return strings.Repeat(s, n) }

// Boundaries of 3GPP TS 23.038 with units of 153 septets or 67 UTF-16 code units, also for a single unit.
var unitCases = []struct {
	name    string
	text    string
	units   int
	unicode bool
}{
	{"153 letters", repeat("a", 153), 1, false},
	{"154 letters", repeat("a", 154), 2, false},
	{"307 letters", repeat("a", 307), 3, false},
	{"459 letters", repeat("a", 459), 3, false},
	{"460 letters", repeat("a", 460), 4, false},
	{"4096 letters", repeat("a", 4096), 27, false},
	{"Greek capitals of the alphabet", repeat("ΔΦΓΛΩΠΨΣΘΞ", 15) + "ΔΦΓ", 1, false},
	{"a Greek capital outside the alphabet", "Α", 1, true},
	{"Western accents of the alphabet", "èéùìòÇØøÅåÆæßÉÄÖÑÜ§¿äöñüà", 1, false},

	{"76 euros and a letter fill a unit", repeat("€", 76) + "a", 1, false},
	{"77 euros: the pair is not split", repeat("€", 77), 2, false},
	{"152 letters and a euro: the pair moves on", repeat("a", 152) + "€", 2, false},
	{"151 letters and a euro fit", repeat("a", 151) + "€", 1, false},
	{"a pair at each border", repeat("a", 152) + "€" + repeat("a", 150) + "€" + repeat("a", 151), 3, false},
	{"a pair at each border costs a fourth unit",
		repeat("a", 152) + "€" + repeat("a", 150) + "€" + repeat("a", 152), 4, false},
	{"229 euros", repeat("€", 229), 4, false},
	{"braces and backslash", `{}\`, 1, false},
	{"tilde, bar, caret", "~|^", 1, false},
	{"all of the default alphabet", strings.ReplaceAll(gsm, "\x1b", ""), 1, false},
	{"all of the extension table", "\f^{}\\[~]|€", 1, false},

	{"a backtick forces UCS-2", "`", 1, true},
	{"lower-case cedilla forces UCS-2", "ç", 1, true},
	{"upper-case cedilla does not", "Ç", 1, false},
	{"an ellipsis forces UCS-2", "…", 1, true},
	{"a tab forces UCS-2", "a\tb", 1, true},
	{"the escape character is none", "\x1b", 1, true},
	{"NUL is none", "\x00", 1, true},
	{"66 and one", repeat("a", 66) + "ç", 1, true},
	{"67 and one", repeat("a", 67) + "ç", 2, true},
	{"67 of UCS-2", repeat("ක", 67), 1, true},
	{"68 of UCS-2", repeat("ක", 68), 2, true},
	{"201 of UCS-2", repeat("ක", 201), 3, true},
	{"202 of UCS-2", repeat("ක", 202), 4, true},
	{"extension characters count one in UCS-2", repeat("€", 66) + "ç", 1, true},
	{"Sinhala with combining marks: code units count", repeat("කි", 34), 2, true},
	{"e and a combining accent", repeat("e\u0301", 33), 1, true},
	{"e and a combining accent, over", repeat("e\u0301", 34), 2, true},
	{"composed e-acute is of the alphabet", repeat("é", 153), 1, false},
	{"33 emoji and a letter", repeat("😀", 33) + "a", 1, true},
	{"34 emoji: the pair is not split", repeat("😀", 34), 2, true},
	{"66 letters and an emoji: the pair moves on", repeat("a", 66) + "😀", 2, true},
	{"65 letters and an emoji fit", repeat("a", 65) + "😀", 1, true},
	{"100 emoji", repeat("😀", 100), 4, true},
	{"pairs at the borders cost a fourth unit", repeat("a", 66) + repeat("😀", 67), 4, true},
	{"a family of joined emoji", "👨‍👩‍👧", 1, true},
	{"empty", "", 0, false},
}

// docs/decisions/sms.md#units
func TestUnits(t *testing.T) {
	for _, c := range unitCases {
		n, unicode := Count(c.text)
		if n != c.units || unicode != c.unicode {
			t.Errorf("%s: %d units, unicode %v; want %d, %v", c.name, n, unicode, c.units, c.unicode)
		}
		other := parts(c.text)
		if characters := len(slices.Concat(other...)); len(other) != n || Length(c.text).Characters != characters {
			t.Errorf("%s: the second implementation cuts %d parts of %d characters, not %d", c.name, len(other), characters, n)
		}
	}
}

// The replacements of docs/sms.md#smart-encoding, and no others: each replaced text has a character that is not in the
// alphabet, and each replacement is in the alphabet.
func TestPlain(t *testing.T) {
	document, err := os.ReadFile("../../../docs/sms.md")
	must.Succeed(t, err)
	_, table, _ := strings.Cut(string(document), "| Replaced | By |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	documented := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		var by string
		for _, code := range regexp.MustCompile(`U\+([0-9A-F]{4})`).FindAllStringSubmatch(cells[2], -1) {
			by += string(character(t, code[1]))
		}
		for _, codes := range regexp.MustCompile(`U\+([0-9A-F]{4})(?:(–| )U\+([0-9A-F]{4}))?`).FindAllStringSubmatch(cells[1],
			-1) {
			first, last := character(t, codes[1]), character(t, cmp.Or(codes[3], codes[1]))
			if codes[2] == " " {
				documented[string(first)+string(last)] = by
				continue
			}
			for r := first; r <= last; r++ {
				documented[string(r)] = by
			}
		}
	}
	for _, row := range replacements {
		for _, replaced := range row[1:] {
			by, ok := documented[replaced]
			delete(documented, replaced)
			n, _ := Count(row[0] + "x")
			if _, unicode := Count(row[0]); !ok || by != row[0] || unicode || n != 1 {
				t.Errorf("%+q is replaced by %q; the document says %q, %t", replaced, row[0], by, ok)
			}
			if _, unicode := Count(replaced); !unicode {
				t.Errorf("%+q is in the alphabet", replaced)
			}
			if plain, ok := Plain("a" + replaced + "b"); !ok || plain != "a"+row[0]+"b" {
				t.Errorf("%+q becomes %q, %t", replaced, plain, ok)
			}
		}
	}
	if len(documented) > 0 {
		t.Errorf("documented only: %+q", documented)
	}
	for text, want := range map[string]string{
		"It’s “here” – now…": `It's "here" - now...`, "cafe\u0301\u00a0é": "café é", "’ක": "", "c\u0327": "", "\u200b": "",
		"plain": "plain",
	} {
		if plain, ok := Plain(text); ok != (want != "") || ok && plain != want {
			t.Errorf("%+q becomes %q, %t; want %q", text, plain, ok, want)
		}
	}
}

func character(t *testing.T, code string) rune {
	n, err := strconv.ParseUint(code, 16, 32)
	must.Succeed(t, err)
	return rune(n)
}

// gsm is the default alphabet by septet value, the table of 3GPP TS 23.038, 6.2.1, for a second implementation.
const gsm = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ " +
	"!\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"

var escaped = map[rune]byte{'\f': 0x0a, '^': 0x14, '{': 0x28, '}': 0x29, '\\': 0x2f, '[': 0x3c, '~': 0x3d, ']': 0x3e,
	'|': 0x40, '€': 0x65}

// parts is a second implementation: parts encodes the text and splits the code units, never inside a pair.
func parts(text string) [][]uint16 {
	table := []rune(gsm)
	var codes []uint16
	size := 153
	for _, r := range text {
		if code, ok := escaped[r]; ok {
			codes = append(codes, 0x1b, uint16(code))
		} else if at := slices.Index(table, r); at >= 0 && r != 0x1b {
			codes = append(codes, uint16(at))
		} else {
			codes, size = utf16.Encode([]rune(text)), 67
			break
		}
	}
	var cut [][]uint16
	for len(codes) > size {
		at := size
		last := codes[at-1]
		if size == 153 && last == 0x1b || size == 67 && last >= 0xd800 && last < 0xdc00 {
			at--
		}
		cut, codes = append(cut, codes[:at]), codes[at:]
	}
	if len(codes) > 0 {
		cut = append(cut, codes)
	}
	return cut
}

func FuzzUnits(f *testing.F) {
	for _, c := range unitCases {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, _ := Count(text)
		if want := len(parts(text)); n != want {
			t.Errorf("%q: %d units, the second implementation cuts %d parts", text, n, want)
		}
	})
}
