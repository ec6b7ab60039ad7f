package browser

import (
	"fmt"
	"html"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"svcapi/test/pdftest"
)

// hasFonts skips a test of the layer's fonts where CHROMIUM names another browser, which draws with the system's fonts.
func hasFonts(t *testing.T) {
	t.Helper()
	if !exists(filepath.Join(filepath.Dir(pdftest.Browser()), "fonts")) {
		t.Skip("CHROMIUM names a browser without the layer's fonts")
	}
}

// drawing returns the renderer of beside, for a test of the layer's fonts.
func drawing(t *testing.T) *Renderer {
	t.Helper()
	hasFonts(t)
	return beside(t)
}

// The cells of a sheet: 30 points each, drawn as 60 pixels.
const (
	cellPoints, cellPixels = 30, 60
	columns, rows          = 19, 28
)

// cells draws each text in the middle of a cell of its own, and returns the pixels of the cells.
func cells(t *testing.T, r *Renderer, style string, texts []string) (all []string) {
	t.Helper()
	if len(texts) > columns*rows { // of one sheet
		return append(cells(t, r, style, texts[:columns*rows]), cells(t, r, style, texts[columns*rows:])...)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE html><meta charset=utf-8><style>body{margin:0;width:%dpt;font:14pt/30pt %s}",
		columns*cellPoints, style)
	fmt.Fprintf(&b, "div{float:left;width:%[1]dpt;height:%[1]dpt;overflow:hidden;text-align:center;"+
		"white-space:pre}</style>", cellPoints)
	for _, text := range texts {
		b.WriteString("<div>" + html.EscapeString(text) + "</div>")
	}
	d := a4(b.String())
	d.Margins = margins(0, 0, 0, 0)
	pdf := printed(t, r, d)
	sheet := pdftest.Gray(t, pdf, 72*cellPixels/cellPoints)
	for i := range texts {
		x, y := i%columns*cellPixels, i/columns*cellPixels
		cell := make([]byte, 0, cellPixels*cellPixels)
		for dy := range cellPixels {
			cell = append(cell, sheet.Pix[sheet.PixOffset(x, y+dy):sheet.PixOffset(x+cellPixels, y+dy)]...)
		}
		all = append(all, string(cell))
	}
	return all
}

func inked(cell string) bool {
	return strings.IndexFunc(cell, func(r rune) bool { return r < 200 }) >= 0
}

// letters returns the characters of a range that draw something by themselves: no marks, spaces and controls.
func letters(first, last rune) []string {
	var all []string
	for c := first; c <= last; c++ {
		if unicode.IsGraphic(c) && !unicode.In(c, unicode.M, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point) {
			all = append(all, string(c))
		}
	}
	return all
}

// marks returns the marks of a range, each on the same letter, and the letter alone.
func marks(letter string, first, last rune) []string {
	all := []string{letter}
	for c := first; c <= last; c++ {
		if unicode.Is(unicode.M, c) {
			all = append(all, letter+string(c))
		}
	}
	return all
}

// sample returns every so many characters of a range.
func sample(first, last, every rune) []string {
	var all []string
	for c := first; c <= last; c += every {
		all = append(all, string(c))
	}
	return all
}

// Every character of the covered scripts has ink of its own, is not the box of a missing character, and looks like no
// other character of its block (docs/decisions/pdf.md#pdf-fonts).
func TestFonts(t *testing.T) {
	r := drawing(t)
	const missing = "\u0378" // never assigned
	type block struct {
		name   string
		texts  []string
		absent string // characters that no font of the layer has
		same   string // characters with the shape of another one of the block, by Unicode or by the design of the font
	}
	blocks := []block{
		{"ASCII", letters(0x21, 0x7e), "", ""},
		{"Latin-1", letters(0xa1, 0xff), "", ""},
		{"Latin Extended-A", letters(0x100, 0x17f), "", ""},
		{"Greek", letters(0x37a, 0x3ff), "", ""},
		{"Cyrillic", letters(0x400, 0x4ff), "", "Ӏ"},
		{"Hebrew", letters(0x5d0, 0x5ea), "", ""},
		{"Arabic", letters(0x600, 0x6ff), "", "ھۂۃیە۰۱۲۳۷۸۹"},
		{"Arabic marks", marks("ب", 0x64b, 0x65f), "", ""},
		{"punctuation", letters(0x2010, 0x205e), "", "‑–―⁃"},
		{"currency", letters(0x20a0, 0x20bf), "", ""},
		{"letter-like", letters(0x2100, 0x214f), "", ""},
		{"number forms", letters(0x2150, 0x218b), "", ""},
		{"arrows", letters(0x2190, 0x21ff), "", ""},
		{"mathematics", letters(0x2200, 0x22ff), "", ""},
		{"technical", letters(0x2300, 0x23ff), "⎺⎻⎼⎽", ""},
		{"enclosed", letters(0x2460, 0x24ff), "", ""},
		{"box drawing", letters(0x2500, 0x257f), "", ""},
		{"blocks, geometry", letters(0x2580, 0x25ff), "", ""},
		{"symbols", letters(0x2600, 0x26ff), "", ""},
		{"dingbats", letters(0x2700, 0x27bf), "", ""},
		{"CJK punctuation", letters(0x3001, 0x303f), "", ""},
		{"Hiragana", letters(0x3041, 0x309f), "", ""},
		{"Katakana", letters(0x30a0, 0x30ff), "", ""},
		{"Han", sample(0x4e00, 0x9fa5, 40), "", ""},
		{"Hangul", sample(0xac00, 0xd7a3, 25), "", ""},
		{"full width", letters(0xff01, 0xff60), "", ""},
		{"pictographs", letters(0x1f300, 0x1f3ff), "", ""},
		{"pictographs", letters(0x1f400, 0x1f5ff), "", "👬👭🕺"},
		{"emoticons", letters(0x1f600, 0x1f64f), "", ""},
		{"transport", letters(0x1f680, 0x1f6ff), "", ""},
		{"more pictographs", letters(0x1f900, 0x1f9ff), "", ""},
		{"sequences", []string{"👨\u200d👩\u200d👧", "🇱🇰", "🇮🇳", "👍", "1️⃣", "ක්\u200dෂ", "ශ්\u200dරී", "क्ष", "الله"}, "", ""},
	}
	for _, letter := range "कকਕકகకಕകකก" { // one of each script of South Asia and of Thai
		first := letter &^ 0x7f // of the script's 128 characters
		blocks = append(blocks, block{"script of " + string(letter), letters(first, first+0x7f), "", "௧௭"},
			block{"marks on " + string(letter), marks(string(letter), first, first+0x7f), "", ""})
	}
	severalFonts := []string{"ASCII", "Latin-1", "Latin Extended-A", "Greek", "Cyrillic", "Hebrew", "currency"}
	for _, family := range []string{"sans-serif", "serif", "monospace"} {
		texts := []string{missing, missing}
		for _, block := range blocks {
			if family == "sans-serif" || slices.Contains(severalFonts, block.name) {
				texts = append(texts, block.texts...)
			}
		}
		drawn := cells(t, r, family, texts)
		box := drawn[0]
		if !inked(box) || drawn[1] != box {
			t.Fatal("a missing character does not show the same box twice")
		}
		drawn = drawn[2:]
		for _, block := range blocks {
			if family != "sans-serif" && !slices.Contains(severalFonts, block.name) {
				continue
			}
			seen := map[string]string{}
			for i, text := range block.texts {
				switch other, known := seen[drawn[i]]; {
				case !inked(drawn[i]):
					t.Errorf("%s, %s: %q (%+q) has no ink", family, block.name, text, text)
				case (drawn[i] == box) != strings.Contains(block.absent, text):
					t.Errorf("%s, %s: %q (%+q) is a box: %v", family, block.name, text, text, drawn[i] == box)
				case drawn[i] != box && known != strings.Contains(block.same, text):
					t.Errorf("%s, %s: %q (%+q) looks like %q (%+q)", family, block.name, text, text, other, other)
				}
				seen[drawn[i]] = text
			}
			drawn = drawn[len(block.texts):]
		}
	}
}

var word = regexp.MustCompile(`<word xMin="([\d.]+)" yMin="[\d.]+" xMax="([\d.]+)"`)

// Text in Arial, Times New Roman and Courier New has their widths, in 1/2048 of the font size.
func TestMetrics(t *testing.T) {
	r := drawing(t)
	const repeats, size = 20, 20.48
	for _, test := range []struct {
		style  string
		widths map[rune]float64
	}{
		{"Arial", map[rune]float64{'A': 1366, 'C': 1479, 'M': 1706, 'W': 1933, 'a': 1139, 'c': 1024, 'i': 455, 'm': 1706,
			'0': 1139, '.': 569, '@': 2079}},
		{"Arial;font-weight:bold", map[rune]float64{'A': 1479, 'b': 1251, 'i': 569, 'm': 1821, 'W': 1933}},
		{"Arial;font-style:italic", map[rune]float64{'A': 1366, 'i': 455, 'm': 1706}},
		{"Times New Roman", map[rune]float64{'A': 1479, 'W': 1933, 'a': 909, 'i': 569, 'm': 1593, '0': 1024, '.': 512}},
		{"Times New Roman;font-weight:bold", map[rune]float64{'A': 1479, 'W': 2048, 'a': 1024, 'm': 1706}},
		{"Times New Roman;font-style:italic", map[rune]float64{'A': 1251, 'W': 1706, 'a': 1024, 'm': 1479}},
		{"Courier New", map[rune]float64{'A': 1229, 'W': 1229, 'i': 1229, '.': 1229}},
		{"Courier New;font-weight:bold", map[rune]float64{'A': 1229, 'W': 1229, 'i': 1229, '.': 1229}},
	} {
		characters := slices.Sorted(maps.Keys(test.widths))
		html := fmt.Sprintf("<!DOCTYPE html><body style='font-family:%s;font-size:%vpt;white-space:nowrap'>", test.style,
			size)
		for _, c := range characters {
			html += "<p>" + strings.Repeat(string(c), repeats)
		}
		words := word.FindAllSubmatch(pdftest.Tool(t, render(t, r, html), "pdftotext", "-bbox"), -1)
		if len(words) != len(characters) {
			t.Fatalf("%s: %d words", test.style, len(words))
		}
		for i, c := range characters {
			left, _ := strconv.ParseFloat(string(words[i][1]), 64)
			right, _ := strconv.ParseFloat(string(words[i][2]), 64)
			if got, want := (right-left)/repeats/size*2048, test.widths[c]; got < want-1 || got > want+1 {
				t.Errorf("%s: %q is %.1f wide, want %v", test.style, c, got, want)
			}
		}
	}
}

// The columns of monospace text are aligned: a bar after as many characters is in the same column of pixels.
func TestMonospace(t *testing.T) {
	r := drawing(t)
	for _, style := range []string{"monospace", "'Courier New'", "monospace;font-weight:bold",
		"monospace;font-style:normal;font-size:13.3px"} {
		var lines []string
		for _, c := range "iMW.,0@lжщΩéŁ→─ " {
			lines = append(lines, strings.Repeat(string(c), 30)+"|")
		}
		pdf := render(t, r, "<!DOCTYPE html><meta charset=utf-8><pre style=\"font-family:"+style+";line-height:30pt\">"+
			strings.Join(lines, "\n"))
		sheet := pdftest.Gray(t, pdf, 144)
		found := map[int]int{} // lines by the column of their last ink
		for y := range sheet.Rect.Dy() {
			for x := sheet.Rect.Dx() - 1; x >= 0; x-- {
				if sheet.GrayAt(x, y).Y < 100 {
					found[x]++
					break
				}
			}
		}
		if rows := slices.Collect(maps.Values(found)); len(found) != 1 || rows[0] < 10*len(lines) {
			t.Errorf("%s: the bars end in the columns %v", style, found)
		}
	}
}

// families are the families that documents name, by the font of the layer that draws them.
var families = map[string]string{
	"Arimo": "sans-serif,system-ui,ui-sans-serif,ui-rounded,fantasy,BlinkMacSystemFont,Arial,Calibri,Helvetica," +
		"Helvetica Neue,Inter,Roboto,Tahoma",
	"OpenSans":     "Open Sans,Noto Sans,Segoe UI,Verdana,Iskoola Pota,Nirmala UI,Latha,Mangal,Vrinda",
	"Tinos":        "No such font,serif,ui-serif,cursive,Cambria,Garamond,Georgia,Times,Times New Roman",
	"Cousine":      "monospace,ui-monospace,Consolas,Menlo,Courier New",
	"NotoSansMath": "math,Cambria Math",
}

// bolds are words with conjuncts and marks, by the font of their script.
var bolds = map[string][]string{
	"'Noto Sans Sinhala'":    {"ශ්\u200dරී", "ක්\u200dෂු", "ඤ්ඤා", "දෙය", "රූ"},
	"'Noto Sans Tamil'":      {"ஸ்ரீ", "க்ஷ", "கௌ", "டி"},
	"'Noto Sans Devanagari'": {"क्षे", "द्ध", "र्\u200dय", "र्य", "कि", "श्री", "है।"},
	"'Noto Sans Arabic'":     {"الله", "فَاتُ", "گچ", "١٢٣"},
	"'Noto Sans Thai'":       {"น้ำ", "ปู่", "ญุ", "ที่"},
	"'Noto Sans Bengali'":    {"ক্ষি", "স্ত্রী", "র্য", "জ্ঞান", "ড়ো।"},
	"'Noto Sans Telugu'":     {"క్ష", "స్త్రీ", "జ్ఞా", "కృ"},
	"'Noto Sans Malayalam'":  {"ക്ഷ", "സ്ത്രീ", "ന്ത", "ൽകൊ"},
	"'Noto Sans Kannada'":    {"ಕ್ಷ", "ಸ್ತ್ರೀ", "ರ್ಕ", "ಜ್ಞಾ"},
	"'Noto Sans Gujarati'":   {"ક્ષ", "શ્રી", "ર્કિ", "ત્ર"},
	"'Noto Sans Gurmukhi'":   {"ਸ੍ਰੀ", "ਕਿੰ", "ਪ੍ਰ", "ੴ"},
}

// ink draws each text and returns how much ink it has.
func ink(t *testing.T, r *Renderer, style string, texts []string) (sums []int) {
	t.Helper()
	for _, cell := range cells(t, r, style, texts) {
		sums = append(sums, 0)
		for _, value := range []byte(cell) {
			sums[len(sums)-1] += 255 - int(value)
		}
	}
	return sums
}

// near reports whether two sums of ink differ by at most 3 %.
func near(a, b int) bool { return a*100 >= b*97 && a*100 <= b*103 }

// Each family has the nearest font, and text of each script has the ink of that script's font, regular or bold. No text
// is a Type 3 font, which Chromium writes for a bold of its own (docs/decisions/pdf.md#pdf-fonts).
func TestFamilies(t *testing.T) {
	r := drawing(t)
	var texts []string
	var regular, bold []int
	for family, words := range bolds {
		texts = append(texts, words...)
		regular = append(regular, ink(t, r, family, words)...)
		bold = append(bold, ink(t, r, family+";font-weight:bold", words)...)
	}
	all := strings.Join(texts, " ")
	for font, names := range families {
		for name := range strings.SplitSeq(names, ",") {
			const html = `<!DOCTYPE html><meta charset=utf-8><body style="font-family:%s">A <i>%s</i> <b>%[2]s Ω✓→★₹😀 <i>%[2]s ₹`
			const header = `<div style="font-size:9pt;font-family:%s">A <i>%s</i> <b>%[2]s <i>%[2]s`
			const footer = `<style>p{font:bold 9pt %s}</style><p>%s<p><font face="%[1]s">%[2]s</font></p><b ` +
				`style="font-size:9pt">%[2]s`
			d := a4(fmt.Sprintf(html, name, all))
			d.Header, d.Footer = fmt.Appendf(nil, header, name, all), fmt.Appendf(nil, footer, name, all)
			pdf := printed(t, r, d)
			fonts := string(pdftest.Tool(t, pdf, "pdffonts"))
			if !strings.Contains(fonts, "+"+font+"-Regular") || strings.Contains(fonts, "Type 3") {
				t.Errorf("%s: want %s and no Type 3 font:\n%s", name, font, fonts)
			}
			thin, thick := ink(t, r, name, texts), ink(t, r, name+";font-weight:bold", texts)
			for i, text := range texts {
				if !near(thin[i], regular[i]) || !near(thick[i], bold[i]) || bold[i]*100 < regular[i]*108 {
					t.Errorf("%s: %s has ink %d and %d, want %d and %d", name, text, thin[i], thick[i], regular[i], bold[i])
				}
			}
		}
	}
}

// MathML has the font of mathematics: parentheses and roots are as high as their content, and limits are above and
// below.
func TestMath(t *testing.T) {
	r := drawing(t)
	drawn := func(math string) (width, height float64) {
		pdf := render(t, r, "<!DOCTYPE html><meta charset=utf-8><math display=block>"+math)
		if fonts := strings.Split(string(pdftest.Tool(t, pdf, "pdffonts")), "\n"); len(fonts) != 4 {
			t.Errorf("%s: %q", math, fonts)
		}
		m := pdftest.Inked(t, pdf)
		return 210 - m[1] - m[3], 297 - m[0] - m[2]
	}
	const tall = "<mspace height=30mm width=1em></mspace>"
	_, brackets := drawn("<mo>(</mo>" + tall + "<mo>)</mo>")
	_, root := drawn("<msqrt>" + tall + "</msqrt>")
	wide, low := drawn("<msubsup><mo>∑</mo><mi>i</mi><mi>n</mi></msubsup>")
	narrow, high := drawn("<munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover>")
	if brackets < 30 || brackets > 70 || root < 30 || root > 40 || narrow > 0.8*wide || high < 1.2*low {
		t.Errorf("heights %.1f and %.1f, limits %.1f × %.1f and %.1f × %.1f mm", brackets, root, narrow, high, wide, low)
	}
}

// A PDF contains the glyphs that it shows, and not a whole font.
func TestSmallPDF(t *testing.T) {
	r := drawing(t)
	for _, html := range []string{"<h1>ශ්\u200dරී ලංකාවේ බිල්පත</h1>", "<p>የኢትዮጵያ ቋንቋ ነው።", "<p>\U0010ffff",
		"<b>✓ ★ ₹ 😀"} {
		if pdf := render(t, r, "<!DOCTYPE html><meta charset=utf-8>"+html); len(pdf) > 20_000 {
			t.Errorf("%s: %d bytes", html, len(pdf))
		}
	}
}

// Han characters have the shapes of the document's language (docs/decisions/pdf.md#pdf-fonts).
func TestHanShapes(t *testing.T) {
	hasFonts(t)
	r := run(t, limitsOf(t))
	for lang, want := range map[string]string{"": "NotoSansSC", "en": "NotoSansSC", "zh": "NotoSansSC",
		"ja": "NotoSansJP", "ko": "NotoSansKR"} {
		if fonts := pdftest.Tool(t, render(t, r, "<!DOCTYPE html><meta charset=utf-8><p lang='"+lang+"'>直"),
			"pdffonts"); !strings.Contains(string(fonts), want) {
			t.Errorf("%q: %s", lang, fonts)
		}
	}
}

// A shown character that no font has causes a warning, and no text that is not shown does
// (docs/decisions/pdf.md#pdf-missing-glyphs).
func TestMissingGlyphs(t *testing.T) {
	r := drawing(t)
	for html, want := range map[string]bool{
		"<p>Amharic: አማርኛ":                   true,
		"<b>አ</b>":                           true,
		"<b><i>አ":                            true,
		"<p lang=am>አ":                       true,
		"<p>\u0378":                          true, // not assigned
		"<p>&#x12a0;":                        true,
		"<p>A\u1780\u17b6":                   true, // Khmer
		"<svg><text y=20>አ":                  true,
		"<input value=አ>":                    true,
		"<ul style=\"list-style:'አ'\"><li>A": true,
		"<style>p::before{content:'\\12a0'}</style><p>A":        true,
		"<style>@page{@bottom-center{content:'አ'}}</style><p>A": true,
		"<p style='font-family:monospace'>\u0378":               true,
		// In one document: not one of them is a glyph that is missed.
		`<title>አ</title><p lang=am>✓ A<p>Rs. 1,250 ✓ ☐ → ★ ₨ 😀 ශ්` + "\u200d" +
			`රී தமிழ் العربية हिन्दी ภาษาไทย বাংলা తెలుగు മലയാളം ಕನ್ನಡ ગુજરાતી ਪੰਜਾਬੀ 中文 日本語 한국어` +
			"<p>A\u00a0\u200bB\u00adC\u200c\u200dD\u2060E\u200e\u200f\u202a\u202c\u2066\u2069\ufe0f\ufeffF\u034f\u061c\u180e\u3000\u2003\U000e0041\U000e0100" +
			"<p>A\u0001\u007f\u0085\u2028\u2029\ufdd0\ufffe" +
			"<!-- አ --><p style='display:none'>አ</p><p style='visibility:hidden'>አ</p><p title=አ data-x=አ>A" +
			"<style>/* አ */</style><script>'አ'</script><details><summary>A</summary>አ</details>": false,
		"<title>x\n/FontName /AAAAAA+SVCMissingGlyph\n</title><p>A": false,
	} {
		_, warnings, err := r.Render(t.Context(), a4("<!DOCTYPE html><meta charset=utf-8>"+html))
		if err != nil || strings.Contains(warnings, missingGlyphsWarning) != want {
			t.Errorf("%q: %q, %v", html, warnings, err)
		}
	}
}
