package browser

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/proto"

	"svcapi/functions/pdf/render/event"
	"svcapi/test/pdftest"
)

// block fills the whole content area of the pages.
const block = `<div style="height:600mm;background:#000"></div>`

func wantSheet(t *testing.T, pdf []byte, d Document) {
	t.Helper()
	sheet := d.sheet()
	for i, got := range pdftest.Sheets(t, pdf) {
		if math.Abs(got[0]-sheet.width/25.4*72) > 1 || math.Abs(got[1]-sheet.height/25.4*72) > 1 {
			t.Errorf("page %d has %v points, want %v mm", i+1, got, sheet)
		}
	}
	want := pdftest.Margins{d.Margins.Top, d.Margins.Right, d.Margins.Bottom, d.Margins.Left}
	if got := pdftest.Inked(t, pdf); !got.Near(want, 1) {
		t.Errorf("margins are %v, want %v", got, want)
	}
}

// openapi.yaml#PdfRequest: page_size A4, Letter, Legal; orientation portrait, landscape; margins 0 to 100 mm.
func TestGeometry(t *testing.T) {
	t.Parallel()
	r := run(t, limitsOf(t))
	for name := range named {
		for _, landscape := range []bool{false, true} {
			several := []event.Margins{margins(15, 15, 15, 15), margins(5, 12.5, 30, 60)}
			if name == "A4" {
				several = append(several, event.Margins{}, margins(100, 100, 100, 100))
			}
			for _, margins := range several {
				d := a4("<!DOCTYPE html><body style='margin:0'>" + block)
				d.PageSize, d.Landscape, d.Margins = name, landscape, margins
				t.Run(fmt.Sprintf("%s,%v,%v", name, landscape, margins), func(t *testing.T) {
					pdf, _, err := r.Render(t.Context(), d)
					if err != nil {
						t.Fatal(err)
					}
					wantSheet(t, pdf, d)
				})
			}
		}
	}
}

// Chromium lays a document out for the window only before the print, and only where the document may need that.
func TestHideOnScreen(t *testing.T) {
	page := next(t, run(t, limitsOf(t))).page
	page.ctx = t.Context()
	for i, step := range []func() error{
		func() error { return page.load("<b>") },
		func() error { return page.load("<b style='color:url(a)'>") }, // alone is shown
		func() error { return page.insertRules(a4("")) },
	} {
		err := step()
		const program = "String(document.querySelector('b').checkVisibility())"
		shown, failed := page.evaluate("test", proto.RuntimeEvaluate{Expression: program, ReturnByValue: true})
		if err != nil || failed != nil || shown != fmt.Sprint(i == 1) {
			t.Errorf("step %d: shown is %s; %v, %v", i, shown, err, failed)
		}
	}
}

// Page size, orientation and margins of the request override every form of @page in the document.
func TestGeometryOverridesDocument(t *testing.T) {
	t.Parallel()
	const evil = "margin:3mm!important;margin-left:70mm!important;size:A5 " +
		"landscape!important;page-orientation:rotate-left!important"
	sheet := func(css string) string {
		return "data:text/css;base64," + base64.StdEncoding.EncodeToString([]byte(css))
	}
	forms := map[string]string{
		"plain":     "@page{margin:3mm;size:A5}",
		"important": "@page{" + evil + "}",
		"landscape": "@page{size:landscape!important}",
		"lengths":   "@page{size:50mm 400mm!important;margin:1in!important}",
		"zero":      "@page{margin:0!important}",
		"auto":      "@page{size:auto!important;margin:auto!important}",
		"sides": "@page{margin-top:50mm!important;margin-right:1mm!important;margin-bottom:50mm!important;" +
			"margin-left:1mm!important}",
		"logical sides":     "@page{margin-block:50mm!important;margin-inline:1mm!important}",
		"first":             "@page :first{" + evil + "}",
		"left and right":    "@page :left{" + evil + "}@page :right{" + evil + "}",
		"blank":             "@page :blank{" + evil + "}",
		"named":             "@page n{" + evil + "}div{page:n}",
		"named first":       "@page n:first{" + evil + "}html,body,div{page:n}",
		"layer":             "@layer a{@page{" + evil + "}}",
		"layers before":     "@layer a,b,c;@layer c{@page{" + evil + "}}@layer a{@page :first{" + evil + "}}",
		"nested layers":     "@layer a{@layer b{@page{" + evil + "}}@page{" + evil + "}}",
		"anonymous layer":   "@layer{@page{" + evil + "}}",
		"layer after":       "@layer z{@page n:first{" + evil + "}}div{page:n}",
		"media":             "@media print{@page{" + evil + "}}",
		"supports":          "@supports(margin:0){@page{" + evil + "}}",
		"media in layer":    "@media all{@layer a{@media print{@page{" + evil + "}}}}",
		"escapes":           `@\70 age{` + strings.ReplaceAll(evil, "margin", `\6d argin`) + "}",
		"upper case":        "@PAGE{MARGIN:3MM!IMPORTANT;SIZE:LANDSCAPE!IMPORTANT}",
		"comments":          "@page/**/{margin/**/:/**/3mm!/**/important;size:/**/landscape}",
		"import":            "@import '" + sheet("@page{"+evil+"}") + "';",
		"import in a layer": "@import url(" + sheet("@page{"+evil+"}") + ") layer(a);",
		"import, twice":     "@import '" + sheet("@import '"+sheet("@layer a{@page:first{"+evil+"}}")+"'") + "' layer;",
		"orientation":       "@page{page-orientation:rotate-right!important}",
		"initial":           "@page{all:initial!important;margin:initial!important;size:initial!important}",
		"revert": "@page{margin:revert-layer!important;size:revert!important;" +
			"page-orientation:revert-layer!important}",
		"revert in a layer": "@layer a{@page{margin:revert-layer!important}}@page{margin:40mm!important}",
		"variables":         ":root{--m:40mm}@page{--m:40mm;margin:var(--m)!important}",
		"calc":              "@page{margin:calc(1mm*50)!important;size:calc(1mm*100) 200mm!important}",
		"nesting":           "@page{&{margin:3mm!important}margin:3mm!important}",
		"container":         "@container(width>0){@page{" + evil + "}}",
		"scope":             "@scope(html){@page{" + evil + "}}",
		"starting style":    "@starting-style{@page{" + evil + "}}",
		"our own form": "@layer{@page{size:210mm " +
			"500mm!important;page-orientation:rotate-left!important;margin:1mm!important}}",
		"margin boxes":        "@page{margin:1mm;@top-left{content:'x';margin:20mm;width:80mm}}",
		"padding and borders": "@page{padding:20mm!important;border:10mm solid red!important;box-sizing:border-box}",
		"small box":           "@page{width:20mm;height:20mm}",
		"large box":           "@page{width:1000mm;height:1000mm}",
		"box, important":      "@page{width:20mm!important;height:20mm!important}",
		"box in a layer":      "@layer a{@page{width:20mm!important;height:20mm!important}}",
		"box, named":          "@page n{padding:3cm!important;width:10mm!important}html{page:n}",
		"box without margins": "@page{margin:auto!important;width:20mm!important}",
		"border box":          "@page{box-sizing:border-box!important;width:50mm!important}",
		"logical box":         "@page{inline-size:20mm!important;block-size:20mm!important}",
		"vertical box":        "@page{writing-mode:vertical-rl!important;inline-size:20mm!important}",
		"least box":           "@page{width:195mm;min-width:210mm;min-height:297mm}",
		"least box, layer":    "@layer{@page{min-width:500mm!important;min-height:500mm!important}}",
		"least logical box":   "@page{min-inline-size:500mm!important;min-block-size:500mm!important}",
		"most box":            "@page{max-width:20mm!important;max-height:20mm!important}",
		"most logical box":    "@page{max-inline-size:20mm!important;max-block-size:20mm!important}",
		"padding":             "@page{padding:3cm}",
		"padding, layer":      "@layer a{@page{padding:3cm!important}}",
		"logical padding":     "@page{padding-inline:3cm!important;padding-block:1cm!important}",
		"border":              "@page{border:50px solid white}",
		"border, layer":       "@layer a{@page{border:50px solid white!important}}",
		"logical border":      "@page{border-inline:50px solid white!important;border-block:50px solid white!important}",
		"outline":             "@page{outline:50px solid black!important;outline-offset:20px!important}",
		"outline, layer":      "@layer a{@page{outline:50px solid black!important}}",
		"root zoom .1":        "html{zoom:.1}",
		"root zoom .01":       ":root{zoom:.01}",
		"root zoom 3":         "html{zoom:3}",
		"root zoom 30":        "html{zoom:30}",
		"root zoom, percent":  ":root:root{zoom:300%!important}",
		"root zoom, layer":    "@layer{html{zoom:.1!important}}@layer a{:root{zoom:3!important}}",
		"root zoom, printed":  "@media print{html{zoom:3!important}}",
		"root zoom, animated": "html{animation:a 9s infinite}@keyframes a{0%,100%{zoom:.2}}",
		"root zoom, slow":     "html{zoom:.1!important;transition:all 100s!important}",
		"zoom":                "@page{zoom:2!important;scale:2!important;transform:scale(2)!important}",
		"writing mode": "@page{writing-mode:vertical-rl!important;direction:rtl!important;margin:1mm 2mm 3mm " +
			"4mm!important}",
	}
	places := []string{
		"<!DOCTYPE html><style>CSS</style>",
		"<!DOCTYPE html><p hidden>x<style>CSS</style>",
		"<!DOCTYPE html><link rel=stylesheet media=print href='LINK'>",
	}
	r := run(t, limitsOf(t))
	n := 0
	for name, css := range forms { // in random order: make test renders some of them, the long tests all
		if n == 25 && !pdftest.Everything {
			break
		}
		head := strings.NewReplacer("CSS", css, "LINK", sheet(css)).Replace(places[n%len(places)])
		d := a4(head + "<body style='margin:0'>" + block)
		d.Landscape, d.Margins = n%2 == 1, margins(15, 20, 25, 30)
		n++
		t.Run(name, func(t *testing.T) {
			pdf, _, err := r.Render(t.Context(), d)
			if err != nil {
				t.Fatalf("%s: %v", head, err)
			}
			wantSheet(t, pdf, d)
			if t.Failed() {
				t.Log(head)
			}
		})
	}
	for name, html := range map[string]string{
		"clobbered": "<!DOCTYPE html><form hidden name=documentElement></form><img hidden name=prepend><body " +
			"style='margin:0'><style>@page{margin:3mm!important}</style>" + block,
		"shown styles": "<!DOCTYPE html><style>@page{margin:3mm!important}</style><style>style,head{display:block;height:0;" +
			"font-size:0}</style><body style='margin:0'>" + block,
		"an SVG root": "<svg xmlns='http://www.w3.org/2000/svg'><style>@page{margin:3mm!important}</style></svg><div " +
			"style='position:absolute;left:0;top:0;right:0'>" + block + "</div>",
		"a shadow tree": "<!DOCTYPE html><body style='margin:0'><div><template " +
			"shadowrootmode=open><style>@page{margin:3mm!important}:host{page:n}</style><slot></slot></template>" + block +
			"</div>",
		"a meta refresh": "<!DOCTYPE html><meta http-equiv=refresh " +
			"content='0;url=https://example.com/'><style>@page{margin:3mm!important}</style><body style='margin:0'>" + block,
		"a base": "<!DOCTYPE html><base " +
			"href='https://example.com/'><style>@page{margin:3mm!important}</style><body style='margin:0'>" + block,
		"a zoomed root": "<!DOCTYPE html><html style='zoom:.1!important;transition:zoom 100s!important'><body " +
			"style='margin:0'>" + block,
		"a root's style": "<!DOCTYPE html><html style='zoom:3!important'><form hidden name=style></form><body " +
			"style='margin:0'>" + block,
		"a policy": "<!DOCTYPE html><meta http-equiv=content-security-policy content=\"default-src 'none'\"><body " +
			"style='margin:0'>" + block,
	} {
		t.Run(name, func(t *testing.T) {
			pdf, _, err := r.Render(t.Context(), a4(html))
			if err != nil {
				t.Fatal(err)
			}
			wantSheet(t, pdf, a4(html))
		})
	}
}
