package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"

	"svcapi/functions/pdf/render/event"
	"svcapi/test/pdftest"
)

// handled returns the result of an event.
func handled(t *testing.T, r *renderer, e event.Event) event.Result {
	t.Helper()
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	response, err := r.handle(t.Context(), json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	result, err := event.Read(response, e.MaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// accessible reports whether an encrypted PDF permits reading aloud (bit 10 of ISO 32000-1, table 22).
func accessible(pdf []byte) bool {
	_, handler, _ := bytes.Cut(pdf, []byte("/Standard"))
	permissions, err := strconv.Atoi(string(regexp.MustCompile(`/P (-?\d+)`).FindSubmatch(handler)[1]))
	return err == nil && permissions&(1<<9) != 0
}

// docs/decisions/pdf.md#pdf-password: a reader that is not the product's opens the PDF with its password alone, and
// finds text, title, bookmarks and tags. No error has the password.
func TestPassword(t *testing.T) {
	r := started(t, configuration(t, serveFiles(t)))
	for _, password := range []string{"1234", "pässwörd ශ්\u200dරී", strings.Repeat("x", 32)} {
		e := event.Event{
			HTML: []byte("<html lang=en><h1>Salary</h1><p style='break-before:page'>2026"), PageWidth: 100, PageHeight: 150,
			Outline:  true,
			MaxBytes: 1 << 20,
			Password: event.Password(password), Metadata: event.Metadata{Title: "Pay slip", Author: "Acme"},
		}
		result := handled(t, r, e)
		if strings.Contains(fmt.Sprintf("%v %+v", e, e), password) {
			t.Errorf("%+v", e)
		}
		path := filepath.Join(t.TempDir(), "a.pdf")
		if err := os.WriteFile(path, result.PDF, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("pdfinfo", "-upw", password, path).CombinedOutput()
		described, metaErr := exec.Command("pdfinfo", "-upw", password, "-meta", path).CombinedOutput()
		if metaErr != nil || !strings.Contains(string(described), "<rdf:li>en</rdf:li>") ||
			strings.Contains(string(described),
				"<pdfuaid:part>") || !accessible(result.PDF) {
			t.Errorf("%v: the metadata is %s", metaErr, described)
		}
		shown, textErr := exec.Command("pdftotext", "-upw", password, path, "-").CombinedOutput()
		for _, want := range []string{
			"Pay slip", "Acme", "Tagged:          yes", "Pages:           2", "yes (print:yes copy:yes change:no addNotes:no " +
				"algorithm:AES-256)", "283.92 x 426 pts",
		} {
			if !strings.Contains(string(out), want) {
				t.Errorf("no %q in %s", want, out)
			}
		}
		if err != nil || textErr != nil || !strings.Contains(string(shown), "Salary") ||
			!strings.Contains(string(result.PDF), "/R 6") {
			t.Errorf("%v, %v (make poppler installs both tools): %s", err, textErr, shown)
		}
		for _, wrong := range []string{"", password[1:]} {
			if out, err := exec.Command("pdfinfo", "-upw", wrong, path).CombinedOutput(); err == nil {
				t.Errorf("%q opens the PDF: %s", wrong, out)
			}
		}
		if _, err := encrypt(result.PDF, event.Password(password), e.MaxBytes); err == nil ||
			strings.Contains(err.Error(), password) {
			t.Errorf("a PDF that is encrypted: %v", err)
		}
	}
	d := page("<p>x")
	pdf, _, err := r.render(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", event.MaxPassword) // poppler's programs take 32 bytes at most
	whole, err := encrypt(pdf, event.Password(long), 1<<20)
	for user, opens := range map[string]bool{long: true, long[1:]: false} {
		conf := &model.Configuration{Cmd: model.LISTINFO, Reader15: true, UserPW: user,
			ValidationMode: model.ValidationRelaxed, Limits: model.DefaultResourceLimits()}
		if _, readErr := pdfcpu.ReadWithContext(t.Context(), bytes.NewReader(whole), conf); err != nil ||
			(readErr == nil) != opens {
			t.Errorf("%d bytes: %v, %v", len(user), err, readErr)
		}
	}
	var rejected *event.RejectionError
	if _, err := encrypt(pdf, "1234", int64(len(pdf))); !errors.As(err, &rejected) || !rejected.TooLarge {
		t.Errorf("an encrypted PDF over the limit: %v", err)
	}
}

// docs/decisions/pdf.md#pdf-fields: bookmarks of the headings, sheets in millimetres, and the size of the document's
// page rule, which has a limit and leaves the margins to the request.
func TestSheets(t *testing.T) {
	r := started(t, configuration(t, serveFiles(t)))
	for _, c := range []struct {
		name, style   string
		e             event.Event
		width, height float64 // in points; 0: an error
	}{
		{"receipt", "", event.Event{PageWidth: 80, PageHeight: 2000}, 227, 5669},
		{"smallest", "", event.Event{PageWidth: 10, PageHeight: 10}, 28, 28},
		{"page rule", "@page{size:80mm 200mm;margin:40mm}", event.Event{PageSize: "A4", CSSSize: true}, 227, 567},
		{"label", "@page{size:62mm 29mm}", event.Event{PageSize: "A4", CSSSize: true,
			Margins: event.Margins{Top: 15, Right: 15, Bottom: 15, Left: 15}}, 176, 82},
		{"no page rule", "", event.Event{PageSize: "Letter", Landscape: true, CSSSize: true}, 792, 612},
		{"huge page rule", "@page{size:1000000cm 1000000cm}", event.Event{PageSize: "A4", CSSSize: true}, 0, 0},
		{"page rule of nothing", "@page{size:0 0}", event.Event{PageSize: "A4", CSSSize: true}, 596, 842},
	} {
		c.e.HTML, c.e.MaxBytes, c.e.Outline = []byte("<style>"+c.style+
			"</style><body style='margin:0'><h1 style='margin:0;font-size:3px'>A"), 1<<20, true
		if c.e.Margins == (event.Margins{}) {
			c.e.Margins = event.Margins{Top: 2, Right: 2, Bottom: 2, Left: 2}
		}
		result := handled(t, r, c.e)
		if (result.Rejection != nil) != (c.width == 0) {
			t.Errorf("%s: %v", c.name, result.Rejection)
		}
		if result.PDF == nil {
			continue
		}
		sheet := pdftest.Sheets(t, result.PDF)[0]
		if sheet[0] < c.width-2 || sheet[0] > c.width+2 || sheet[1] < c.height-2 || sheet[1] > c.height+2 ||
			!strings.Contains(string(result.PDF), "/Outlines") {
			t.Errorf("%s: %v points", c.name, sheet)
		}
		if got := pdftest.Inked(t, result.PDF); got[3] > c.e.Margins.Left+2 {
			t.Errorf("%s: margins %v", c.name, got)
		}
	}
}
