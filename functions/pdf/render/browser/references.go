package browser

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-rod/rod/lib/proto"
	"github.com/go-rod/rod/lib/utils"

	"svcapi/functions/pdf/render/limits"
)

// maxPasses bounds the passes of a document with page numbers of places: a number that is longer than the last one can
// move its place to another page, and back.
const maxPasses = 3

// referenced are the names of declarations that the program writes where it can.
var referenced = []string{"leader", "target-counter", "target-text"}

// printReferences returns the PDF of the wanted pages, and the declarations that the browser has dropped. A document
// with pages of places or with leaders is printed again with the pages of the places in the PDF before, until no place
// has another page. Every other document is printed once.
func (p *page) printReferences(d Document, wanted []int) ([]byte, []limits.Declaration, error) {
	declarations := limits.Declarations(string(d.HTML), p.sheets()...)
	if !slices.ContainsFunc(declarations, func(d limits.Declaration) bool { return slices.Contains(referenced, d.Name) }) {
		pdf, err := p.print(d, wanted)
		return pdf, declarations, err
	}
	var found struct {
		Written   []int    // indices of declarations
		Fragments []string // of the addresses of places
		Leaders   int
	}
	options := map[string]any{"declarations": declarations}
	if err := p.call("references", options, &found); err != nil {
		return nil, nil, err
	}
	var pdf []byte
	var without []int
	var err error
	if len(found.Fragments)+found.Leaders > 0 {
		if pdf, without, err = p.setPages(d, found.Fragments); err != nil {
			return nil, nil, err
		}
	}
	dropped := []limits.Declaration{}
	for i, declaration := range declarations {
		if !slices.Contains(found.Written, i) || slices.Contains(without, i) {
			dropped = append(dropped, declaration)
		}
	}
	if pdf == nil || d.PageRanges != "" {
		pdf, err = p.print(d, wanted)
	}
	return pdf, dropped, err
}

// setPages writes the pages of places into the document, and fits the leaders to the lines. setPages returns the PDF of
// all pages, nil where the numbers have changed after the last pass, and the indices of the declarations that name a
// place without a page.
func (p *page) setPages(d Document, fragments []string) (pdf []byte, without []int, err error) {
	var numbers map[string]int
	for pass := range maxPasses - 1 {
		if pdf, err = p.print(d, firstPages("", p.maxPages+1)); err != nil {
			return nil, nil, err
		}
		o, err := readObjects(pdf)
		if err != nil {
			return nil, nil, err
		}
		before := numbers
		numbers = o.places(fragments)
		if pass > 0 && maps.Equal(before, numbers) {
			return pdf, without, nil
		}
		if err := p.layOut(d, o); err != nil {
			return nil, nil, err
		}
		if err := p.evaluate("pages", "svcSetPages("+utils.MustToJSON(numbers)+")", &without); err != nil {
			return nil, nil, err
		}
		if err := (proto.EmulationClearDeviceMetricsOverride{}).Call(p.s.in(p.ctx, p.id)); err != nil {
			return nil, nil, err
		}
	}
	return nil, without, nil
}

// layOut gives the window the width and height of a page's content, in which the programs measure.
func (p *page) layOut(d Document, o objects) error {
	if sizes := sheets(o.pdf); (d.CSSSize || d.ContentHeight) && len(sizes) > 0 {
		d.PageSize, d.PageWidth, d.PageHeight, d.Landscape = "", sizes[0].width, sizes[0].height, false
	}
	width, height, scale := d.content()
	return proto.EmulationSetDeviceMetricsOverride{Width: max(1, int(width/scale)), Height: max(2, int(height/scale)),
		DeviceScaleFactor: 1}.Call(p.s.in(p.ctx, p.id))
}

var (
	destinations = regexp.MustCompile(`/Dests\s+(\d+)\s+\d+\s+R`)
	place        = regexp.MustCompile(`/(\S+) \[(\d+) 0 R`)
	// escaped are the characters that Chromium escapes in a name (ISO 32000-1, 7.3.5).
	escaped = regexp.MustCompile(`[^!-~]|[#%()/<>\[\]{}]`)
)

// places returns the numbers of a PDF's pages that have the places of an address's fragments, of named destinations
// (ISO 32000-1, 12.3.2.3).
func (o objects) places(fragments []string) map[string]int {
	objectOf := map[string]string{}
	names := number(destinations, o.object(number(rootEntry, o.trailer)))
	for _, match := range place.FindAllSubmatch(o.object(names), -1) {
		objectOf[string(match[1])] = string(match[2])
	}
	pages, found := slices.Collect(o.of("Page")), map[string]int{}
	for _, fragment := range fragments {
		name := escaped.ReplaceAllStringFunc(fragment, func(c string) string { return fmt.Sprintf("#%02X", c[0]) })
		object, err := strconv.Atoi(objectOf[name])
		if i := slices.Index(pages, object); err == nil && i >= 0 {
			found[fragment] = i + 1
		}
	}
	return found
}

// files are the programs that run in the page, of which common.js has what they share, the template of a PDF's
// metadata, and the flags of the browser.
//
//go:embed *.js flags.txt
var files embed.FS

// call runs a program with its options, and decodes what the program returns, if there is a result.
func (p *page) call(name string, options, result any) error {
	common, _ := files.ReadFile("common.js")
	text, _ := files.ReadFile(name + ".js") // the files are a part of this program
	program := strings.Replace(string(text), "COMMON", string(common), 1)
	return p.evaluate(name, strings.Replace(program, "OPTIONS", utils.MustToJSON(options), 1), result)
}

// evaluate runs a text in the page, and decodes the JSON that the text, or its promise, returns, if there is a result.
// An error of the text names its purpose.
func (p *page) evaluate(purpose, text string, result any) error {
	run, err := proto.RuntimeEvaluate{Expression: text, AwaitPromise: true, ReturnByValue: true}.Call(p.s.in(p.ctx, p.id))
	if err != nil {
		return err
	}
	if run.ExceptionDetails != nil {
		return fmt.Errorf("%w: %s: %s", errProgram, purpose, run.ExceptionDetails.Text)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal([]byte(run.Result.Value.Str()), result)
}
