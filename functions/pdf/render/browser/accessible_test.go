package browser

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"svcapi/test/must"
	"svcapi/test/pdftest"
)

const accessibleHead = `<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Report &amp; (more)</title>
<style>table{border-collapse:collapse}td,th{border:1px solid #888;background:#eee}</style>`

// accessibleBody has headings, links, a table, lists, alternative texts, and what no reader should hear.
const accessibleBody = `<h1 id=top>Report</h1><p>See <a href="https://a.example/x(1)">the <i>far</i> page</a>, <a href="#end">the end</a>.
<h2>Numbers</h2><table><caption>Counts</caption><tr><th>Name<th>Count<tr><td colspan=2>none<tr><td rowspan=2>a<td>1<tr><td>2</table>
<ul><li>one<li>two<ul><li>three</ul></ul><ol><li><p>x</ol><hr><aside>Aside</aside>
<figure><img alt="A dot" ` + dot + `><figcaption>Dot</figcaption></figure><img alt="" ` + dot + `> <svg role=img
aria-label="A disc" width=40 height=40><circle r=10></circle></svg><p lang=fr>bonjour<a href="javascript:x()">js</a>
<h2 id=end style="break-before:page">End</h2><p><a href="mailto:a@b.example"><img alt="Write to us" ` + dot + `></a> <a
href="https://a.example/x(1)" aria-label="Far, again">a link of more words than one line of the page can have, so that the
link has two annotations in the PDF of this document</a> <a href="tel:1" title="Call" style="display:inline-block"><svg width=9 height=9></svg></a>`

const dot = `width=40 height=40 src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"`

// accessible are documents with tags, and the clause of PDF/UA-1 that each breaks by veraPDF; 5 means that only the
// claim to conform is missing.
var accessible = []struct {
	name, html string
	change     func(*Document)
	clause     string
}{
	{"whole", accessibleHead + accessibleBody, nil, ""},
	{"with header and footer", accessibleHead + `<style>@page{@bottom-left{content:"box"}}</style>` +
		accessibleBody, running, ""},
	{"scaled, landscape", accessibleHead + accessibleBody,
		func(d *Document) { running(d); d.Scale, d.Landscape = 0.6, true }, ""},
	{"content height", accessibleHead + accessibleBody, func(d *Document) { running(d); d.ContentHeight = true }, ""},
	{"outline", accessibleHead + accessibleBody, func(d *Document) { d.Tagged, d.Outline = false, true }, ""},
	{"title of the request", `<html lang=ta><p>தமிழ்`, func(d *Document) { d.Metadata.Title = "ස්තුතියි 😀" }, ""},
	{"columns and pages", accessibleHead + `<div style="columns:2">` + strings.Repeat("<p>text of words", 400), nil, ""},
	{"untagged", accessibleHead + accessibleBody, func(d *Document) { d.Tagged = false }, "7.1-11"},
	{"without a title", `<html lang=en>` + accessibleBody, nil, "7.1-9"},
	{"without a language", `<title>T</title>` + accessibleBody, nil, "7.2-34"},
	{"wrong language inside", accessibleHead + `<p lang="x_y">a`, nil, "7.2-29"},
	{"picture without a text", accessibleHead + accessibleBody + `<img ` + dot + `>`, nil, "7.3-1"},
	{"heading left out", accessibleHead + `<h1>a</h1><h3>b</h3>`, nil, "7.4.2-1"},
	{"rows of two lengths", accessibleHead + `<table border=1><tr><th>a<th>b<tr><td>c</table>`, nil, "7.2-43"},
	{"ligature without characters", accessibleHead + `<p>සිංහල`, nil, "7.21.7-2"},
	{"link of a frame", accessibleHead +
		`<p>a<iframe srcdoc="<a href=https://a.example/>x</a>"></iframe>`, nil, "7.18.5-1"},
	{"generated text", accessibleHead + `<style>p::before{content:"x"}</style><p>a`, nil, "5-1"},
	{"group with tags", accessibleHead + `<div style="opacity:.5"><p>a</div>`, nil, "5-1"},
	{"some pages", accessibleHead + accessibleBody, func(d *Document) { d.PageRanges = "2" }, "5-1"},
	{"nothing", accessibleHead, nil, "7.1-11"},
}

func running(d *Document) {
	d.Header = []byte(`<h1 style="font-size:9px">Acme <img alt=x width=9 height=9 src="data:image/gif;base64,` +
		`R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"></h1>`)
	d.Footer = []byte(`<p style="font-size:9px;background:#ccc;border:1px solid">Foot <span class=pageNumber></span>`)
}

// docs/decisions/pdf.md#pdf-accessible: only a PDF that keeps the rules says that it conforms. Where VERAPDF names the
// program of veraPDF, make test-accessible, that program agrees.
func TestAccessible(t *testing.T) {
	r := beside(t)
	folder, files := t.TempDir(), make([]string, len(accessible))
	for i, c := range accessible {
		d := a4(c.html)
		d.Tagged, d.Margins = true, margins(20, 20, 20, 20)
		if c.change != nil {
			c.change(&d)
		}
		pdf, _, err := r.Render(t.Context(), d)
		if err != nil {
			t.Fatal(c.name, err)
		}
		metadata := string(pdftest.Tool(t, pdf, "pdfinfo", "-meta"))
		if claims := strings.Contains(metadata, "<pdfuaid:part>1<"); claims != (c.clause == "") ||
			(len(metadata) > 0) != (d.Tagged || d.Outline) || bytes.Contains(pdf, []byte("/Outlines")) != d.Outline {
			t.Errorf("%s: %s", c.name, metadata)
		}
		files[i] = filepath.Join(folder, strconv.Itoa(i)+".pdf")
		must.Succeed(t, os.WriteFile(files[i], pdf, 0o600))
	}
	jar := os.Getenv("VERAPDF")
	if jar == "" {
		return
	}
	report, _ := exec.CommandContext(t.Context(), "java",
		append([]string{"-cp", jar, "org.verapdf.apps.GreenfieldCliWrapper",
			"-f", "ua1", "-v", "--format", "text"}, files...)...).Output() // exit code 1: a PDF does not conform
	for i, c := range accessible {
		_, result, _ := strings.Cut(string(report), files[i]+" ua1\n")
		result, _, _ = strings.Cut(result, ".pdf ua1\n")
		passes := strings.Contains(string(report), "PASS "+files[i])
		if passes != (c.clause == "") || !passes && !strings.Contains(result, "  FAIL "+c.clause+"\n") {
			t.Errorf("%s: veraPDF wants %q, passes: %v", c.name, result, passes)
		}
	}
}

// docs/decisions/pdf.md#pdf-accessible: another reader finds the metadata, a name of each link, and headers and footers
// outside of the structure.
func TestAccessibleParts(t *testing.T) {
	r := beside(t)
	d := a4(accessibleHead + accessibleBody)
	d.Tagged, d.Margins, d.Metadata.Author = true, margins(20, 20, 20, 20), "Nimal & Co"
	running(&d)
	pdf := printed(t, r, d)
	metadata := string(pdftest.Tool(t, pdf, "pdfinfo", "-meta"))
	for _, want := range []string{">Report &amp; (more)</rdf:li></rdf:Alt></dc:title>",
		"<rdf:li>en</rdf:li></rdf:Bag></dc:language>",
		"<rdf:li>Nimal &amp; Co</rdf:li></rdf:Seq></dc:creator>"} {
		if !strings.Contains(metadata, want) {
			t.Errorf("no %q in %s", want, metadata)
		}
	}
	read := string(pdftest.Tool(t, pdf, "pdfinfo", "-struct-text"))
	if strings.Contains(read, "Acme") || strings.Contains(read, "Foot") || !strings.Contains(read, "bonjour") ||
		!strings.Contains(pdftest.Text(t, pdf), "Foot 2") {
		t.Errorf("the structure is %s", read)
	}
	document, err := pdfcpu.ReadWithContext(t.Context(), bytes.NewReader(pdf), &model.Configuration{Cmd: model.LISTINFO,
		Reader15: true, ValidationMode: model.ValidationRelaxed, Limits: model.DefaultResourceLimits()})
	must.Succeed(t, err)
	var names []string
	for n, entry := range document.Table {
		switch object := entry.Object.(type) {
		case types.Dict:
			if object.Type() != nil && *object.Type() == "Annot" {
				contents, err := document.Dereference(object["Contents"])
				text, _ := types.StringOrHexLiteral(contents)
				if hidden := *object.IntEntry("F") == 2; err != nil || hidden != (text == nil) {
					t.Errorf("annotation %d: %v, %v", n, contents, err)
				}
				if text != nil {
					names = append(names, *text)
				}
			}
		case types.StreamDict:
			if err := object.Decode(); err != nil || !bytes.Contains(object.Content, []byte(" Tj\n")) {
				continue
			}
			for _, part := range []string{"Header", "Footer"} {
				if !bytes.Contains(object.Content, []byte("/Artifact <</Type /Pagination /Subtype /"+part+">> BDC\nBT\n")) {
					t.Errorf("page %d has no %s", n, part)
				}
			}
		}
	}
	slices.Sort(names)
	if want := []string{"Call", "Far, again", "Far, again", "Write to us", "Write to us", "the end",
		"the far page", "the far page",
		"the far page"}; !slices.Equal(names, want) {
		t.Errorf("the links are %q", names)
	}
}
