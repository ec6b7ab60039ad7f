package browser

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/matrix"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"svcapi/functions/pdf/render/event"
)

// maxStream bounds the content of a page that marks are added to.
const maxStream = 64 << 20

// stream returns the content of a stream, nil where there is none, or too much.
func (o objects) stream(n int) []byte {
	head, content, _ := bytes.Cut(o.at(n), []byte("stream\n"))
	if !bytes.Contains(head, []byte("/Filter /FlateDecode")) {
		return content[:max(0, min(number(length, head), len(content)))]
	}
	if text := o.inflate(n, maxStream); len(text) < maxStream {
		return text
	}
	return nil
}

// markArtifacts marks what the pages show without a tag as artifacts. The result is false where a page has text among
// that and not in a margin, which assistive technology would not read, or a group with tags of its own.
func (u *update) markArtifacts(m event.Margins) bool {
	plain := true
	for n := range u.of("XObject") {
		plain = plain && !isTagged(u.object(n))
	}
	for n := range u.of("Page") {
		page := u.get(n)
		box := mediaBox.FindStringSubmatch(page)
		number := number(contents, []byte(page))
		if box == nil {
			return false
		}
		height, _ := strconv.ParseFloat(box[2], 64)
		c := content{objects: u.objects, text: u.stream(number), top: height - m.Top*points, bottom: m.Bottom * points}
		if marked := c.mark(); marked != nil {
			var packed bytes.Buffer
			w := zlib.NewWriter(&packed)
			_, _ = w.Write(marked)
			_ = w.Close() // a Buffer returns no error
			u.changed[number] = fmt.Sprintf("<</Filter /FlateDecode\n/Length %d>> stream\n%s\nendstream",
				packed.Len(), packed.Bytes())
		}
		plain = plain && !c.lost && c.text != nil
	}
	return plain
}

// isTagged reports whether an object is a group of drawings with tags.
func isTagged(object []byte) bool { return bytes.Contains(object, []byte("\n/StructParents ")) }

// content is the content of a page as Chromium writes one, with an operator at the end of each line.
type content struct {
	objects
	text        []byte
	top, bottom float64 // where the margins begin, in points
	lost        bool    // text outside of the margins has no tag

	now       matrix.Matrix // of coordinates (ISO 32000-1, 8.3.4)
	saved     []matrix.Matrix
	depth     int     // of marked content
	start     int     // of the present drawing without a tag; -1: none
	low, high float64 // of that drawing
	words     bool    // that drawing may have text that is no space
	font      int     // object of the present font
}

// painting are the operators that end a drawing.
const painting = " f F f* B B* b b* S s sh Do ET "

// mark returns the content with each drawing outside of marked content (ISO 32000-1, 14.6) as an artifact (14.8.2.2),
// in a margin as header or footer (PDF/UA-1, 7.8); nil where there is none.
func (c *content) mark() []byte {
	var out []byte
	c.now, c.start = matrix.IdentMatrix, -1
	written := 0
	for at := 0; at < len(c.text); {
		line, _, _ := bytes.Cut(c.text[at:], []byte("\n"))
		operator := string(line[bytes.LastIndexByte(line, ' ')+1:])
		if strings.HasSuffix(operator, "BDC") {
			operator = "BDC"
		}
		c.step(at, operator, line)
		at = min(at+len(line)+1, len(c.text))
		if c.start >= 0 && strings.Contains(painting, " "+operator+" ") {
			out = append(append(out, c.text[written:c.start]...), c.artifact()...)
			out = append(append(out, c.text[c.start:at]...), "EMC\n"...)
			written, c.start = at, -1
		}
	}
	if out == nil {
		return nil
	}
	return append(out, c.text[written:]...)
}

// step follows an operator, whose line starts at a place of the text.
func (c *content) step(at int, operator string, line []byte) {
	switch operator {
	case "BDC", "BMC":
		c.depth++
	case "EMC":
		c.depth--
	case "q":
		c.saved = append(c.saved, c.now)
	case "Q":
		last := max(0, len(c.saved)-1)
		for _, m := range c.saved[last:] {
			c.now = m
		}
		c.saved = c.saved[:last]
	case "cm":
		m := operands(line, 6)
		c.now = matrix.Matrix{{m[0], m[1], 0}, {m[2], m[3], 0}, {m[4], m[5], 1}}.Multiply(c.now)
	case "n":
		c.start = -1
	}
	if c.depth > 0 {
		return
	}
	switch operator {
	case "BT":
		c.begin(at, false)
	case "Tf":
		c.font = number(resource, line)
	case "Tj":
		c.words = c.words || !c.lost && !c.isSpace(line)
	case "TJ":
		c.words = true
	case "Tm":
		c.reach(operands(line, 6)[4:])
	case "Do":
		if object := c.object(number(resource, line)); !isTagged(object) {
			c.begin(at, bytes.Contains(object, []byte("\n/Subtype /Form\n")))
			c.reach([]float64{0, 0, 1, 1})
		}
	case "sh":
		c.begin(at, false)
	case "re":
		r := operands(line, 4)
		c.path(at, []float64{r[0], r[1], r[0] + r[2], r[1] + r[3]})
	case "m", "l", "c", "v", "y":
		c.path(at, operands(line, bytes.Count(line, []byte(" "))))
	}
}

func (c *content) begin(at int, words bool) {
	c.start, c.words, c.low, c.high = at, words, math.Inf(1), math.Inf(-1)
}

func (c *content) path(at int, points []float64) {
	if c.start < 0 {
		c.begin(at, false)
	}
	c.reach(points)
}

// reach adds points to the heights of the present drawing.
func (c *content) reach(points []float64) {
	for ; len(points) > 1; points = points[2:] {
		y := c.now.Transform(types.Point{X: points[0], Y: points[1]}).Y
		c.low, c.high = min(c.low, y), max(c.high, y)
	}
}

// artifact returns the start of an artifact with the present drawing.
func (c *content) artifact() string {
	switch {
	case c.low >= c.top && c.high >= c.top:
		return "/Artifact <</Type /Pagination /Subtype /Header>> BDC\n"
	case c.high <= c.bottom && c.low <= c.bottom:
		return "/Artifact <</Type /Pagination /Subtype /Footer>> BDC\n"
	}
	c.lost = c.lost || c.words
	return "/Artifact BMC\n"
}

// isSpace reports whether a text is one space.
func (c *content) isSpace(line []byte) bool {
	glyph := strings.TrimSuffix(string(line), " Tj")
	if len(glyph) != len("<0000>") {
		return false
	}
	text := c.stream(number(toUnicode, c.object(c.font)))
	at := bytes.Index(text, []byte("\n"+glyph+" "))
	return at >= 0 && space.Match(text[at:])
}

// space begins a line of a map from glyphs to characters, of a glyph or of several, with a space.
var space = regexp.MustCompile(`^\n<\w+> (?:<\w+> )?<(?:0020|00A0)>\n`)

// resource matches the number of the object that Chromium names in a line such as "/F4 16 Tf".
var resource = regexp.MustCompile(`^/[A-Z](\d+) `)

// operands returns the n numbers before an operator.
func operands(line []byte, n int) []float64 {
	numbers := make([]float64, n)
	for i, text := range strings.Fields(string(line)) {
		if i < n {
			numbers[i], _ = strconv.ParseFloat(text, 64)
		}
	}
	return numbers
}
