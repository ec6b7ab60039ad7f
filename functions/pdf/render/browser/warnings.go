package browser

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-rod/rod/lib/proto"

	"svcapi/functions/pdf/render/event"
	"svcapi/functions/pdf/render/limits"
)

// The warnings (openapi.yaml#Warnings), in the order of the header.
const (
	missingGlyphsWarning = "missing-glyphs"
	blockedWarning       = "resources-blocked"
	scriptsWarning       = "scripts-ignored"
	unusedWarning        = "unused-files"
	cssWarning           = "unsupported-css"
)

var warningNames = []string{missingGlyphsWarning, blockedWarning, scriptsWarning,
	"content-clipped", "content-shrunk", cssWarning, unusedWarning}

// maxNames bounds the names of unsupported CSS in the header.
const maxNames = 5

const fontFace = "@font-face"

// suspicious are the texts of a document that the program has to measure: of scripts, of boxes that scroll, of fonts,
// and of what limits.Block has renamed. Only fast searches see every document.
var suspicious = []string{
	"<script", "<canvas", "<textarea", "overflow:", "overflow :", "overflow-x", "overflow-y", limits.Blocked, fontFace,
}

// reference matches a private-use character as a reference of HTML or an escape of CSS.
var reference = regexp.MustCompile(`^(?:&#0*(?:[xX]0*[eEfF1][0-9a-fA-F]{3,5}|[5-9][0-9]{4}|[0-9]{6,` +
	`7})|\\0*[eEfF1][0-9a-fA-F]{3,5})`)

// mayBePrivate reports whether a document may show private-use characters.
func mayBePrivate(document string) bool {
	for i, r := range document {
		if r >= 0xe000 && r <= 0xf8ff || r >= 0xf0000 ||
			(r == '&' || r == '\\') && reference.MatchString(document[i:min(i+16, len(document))]) {
			return true
		}
	}
	return false
}

// longestAddress bounds the address that block stores, because a base element can make every address long.
const longestAddress = 512

// block notes an address that the page did not load.
func (p *page) block(address string) {
	if len(address) > longestAddress {
		address = address[:longestAddress/2] + address[len(address)-longestAddress/2:]
	}
	p.note(p.blocked, address)
}

// refused notes the address that the policy of the page refused. The policy refuses fonts that no text needs, too, so
// the program notes fonts.
func (p *page) refused(params json.RawMessage) {
	var added proto.AuditsIssueAdded
	if json.Unmarshal(params, &added) != nil || added.Issue == nil || added.Issue.Details == nil {
		return
	}
	d := added.Issue.Details.ContentSecurityPolicyIssueDetails
	if d != nil && (strings.HasPrefix(d.ViolatedDirective, "style-src") || d.ViolatedDirective == "img-src" ||
		d.ViolatedDirective == "media-src" || d.ViolatedDirective == "object-src") {
		p.block(d.BlockedURL)
	}
}

// measured is the result of the program.
type measured struct {
	Blocked   int                                          // distinct addresses
	Dropped   []string                                     // names of unsupported CSS
	Instances map[string][]struct{ Selector, Mark string } // by warning; elements of a strict document alone
}

// warnings returns what the PDF does not show, for the header of the response; an error if the document is strict. The
// browser may have dropped the declarations.
func (p *page) warnings(d Document, o objects, wanted []int,
	declarations []limits.Declaration) (string, error) {
	blocked := p.noted(p.blocked)
	html := string(d.HTML)
	document, _ := limits.CutFonts(strings.ToLower(html))
	styles, private := len(blocked) > 0 || strings.Contains(document, fontFace), mayBePrivate(html)
	printed := o.printedScale()
	shrunk, missing := printed > 0 && printed < screenScale*cmp.Or(d.Scale, 1)*0.999, o.missGlyphs()
	m := measured{Blocked: len(blocked)}
	named := func(text string) bool { return strings.Contains(document, text) }
	if len(declarations) > 0 || shrunk || styles || private || d.Strict && missing ||
		slices.ContainsFunc(suspicious, named) {
		p.s.page.Store(nil) // the measuring loads nothing
		if err := p.layOut(d, o); err != nil {
			return "", err
		}
		options := map[string]any{
			"boxes": named("overflow") || named("<textarea"), "glyphs": d.Strict && missing || private,
			"images": named("image-set("), "declarations": declarations,
			"refused": blocked, "shrunk": shrunk, "styles": styles, "strict": d.Strict,
		}
		if err := p.call("warnings", options, &m); err != nil {
			return "", err
		}
	}
	var header []string
	numbers := map[string]int{blockedWarning: m.Blocked, unusedWarning: p.unused()}
	for _, name := range warningNames {
		_, found := m.Instances[name]
		switch n, counted := numbers[name]; {
		case n > 0:
			header = append(header, fmt.Sprintf("%s;n=%d", name, n))
		case name == cssWarning && len(m.Dropped) > 0:
			names := strings.Join(m.Dropped[:min(len(m.Dropped), maxNames)], " ")
			header = append(header, fmt.Sprintf("%s;n=%d;names=%q", name, len(m.Dropped), names))
		case found && !counted, name == missingGlyphsWarning && missing, name == scriptsWarning && p.scripts:
			header = append(header, name)
		}
	}
	if d.Strict && len(header) > 0 {
		return "", p.reject(d, header, m, wanted)
	}
	return strings.Join(header, ", "), nil
}

// reject returns the error of a strict document. Another PDF of the document names the pages of the marked elements.
func (p *page) reject(d Document, header []string, m measured, wanted []int) error {
	pdf, err := p.print(d, wanted)
	if err != nil {
		return err
	}
	o, err := readObjects(pdf)
	if err != nil {
		return err
	}
	for i, text := range header {
		name, _, _ := strings.Cut(text, ";")
		var places []string
		for _, instance := range m.Instances[name] {
			place := instance.Selector
			if n := o.places([]string{instance.Mark})[instance.Mark]; n > 0 && n <= len(wanted) {
				place += " on page " + strconv.Itoa(wanted[n-1])
			}
			places = append(places, place)
		}
		if len(places) > 0 {
			header[i] += " (" + strings.Join(places, ", ") + ")"
		}
	}
	found := strings.Join(header, ", ")
	return &event.RejectionError{
		Reason: reasonWarnings, Message: "strict is true, and the document has warnings: " + found, Address: found,
	}
}

// screenScale is the scale of CSS pixels in a page's content: Chromium draws 300 units an inch.
const screenScale = 300.0 / 96

var (
	area     = regexp.MustCompile(`([\d.]+) [\d.]+ re\nW\*? n\nq\n([\d.]+) 0 0 `)
	contents = regexp.MustCompile(`/Contents\s+(\d+)\s+\d+\s+R`)
)

// printedScale returns the scale of the content of the first page that shows any, in Chromium's units; 0 without one.
// The widest area of the page is the page's own.
func (o objects) printedScale() float64 {
	width, scale := 0.0, 0.0
	for n := range o.of("Page") {
		start := o.inflate(number(contents, o.object(n)), 64<<10) // has the first areas
		for _, match := range area.FindAllSubmatch(start, -1) {
			w, _ := strconv.ParseFloat(string(match[1]), 64)
			s, _ := strconv.ParseFloat(string(match[2]), 64)
			if w > width || w == width && s > scale {
				width, scale = w, s
			}
		}
		if scale > 0 {
			return scale
		}
	}
	return 0
}
