package browser

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"svcapi/functions/pdf/render/event"
	"svcapi/test/must"
	"svcapi/test/pdftest"
)

func render(t testing.TB, r *Renderer, html string) []byte {
	t.Helper()
	return printed(t, r, a4(html))
}

// printed returns the PDF of a document that is rendered.
func printed(t testing.TB, r *Renderer, d Document) []byte {
	t.Helper()
	pdf, _, err := r.Render(t.Context(), d)
	must.Succeed(t, err)
	return pdf
}

// folders returns the names in a renderer's folder.
func folders(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	must.Succeed(t, err)
	return names
}

// Text of each script is text in the PDF, in the fonts of the layer, upright and bold.
func TestText(t *testing.T) {
	r := beside(t)
	want := []string{
		"Invoice 2026-114, total Rs. 1,250.00", "ශ්\u200dරී ලංකාව, කොළඹ", "தமிழ் எழுத்துக்கள்", "Ελληνικά", "Русский",
		"ගෙවිය යුතු මුදල", "மொத்தத் தொகை",
		"Übergrößenträger", "naïve café", "हिन्दी", "ภาษาไทย", "বাংলা", "తెలుగు", "മലയാളം", "ಕನ್ನಡ", "ગુજરાતી", "ਪੰਜਾਬੀ",
		"中文", "ひらがな", "한국어", "✓ ☐ → ★ ₨",
	}
	for _, style := range []string{"", "font-weight:bold", "font-family:serif", "font-family:monospace",
		"font-family:Arial,Helvetica", "font-family:'Times New Roman'"} {
		pdf := render(t, r, "<!DOCTYPE html><meta charset=utf-8><body style=\""+style+"\"><p>"+strings.Join(want, "<p>"))
		got := pdftest.Text(t, pdf)
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("%s: %q is missing in %q", style, line, got)
			}
		}
		if path := filepath.Join(filepath.Dir(pdftest.Browser()), "fonts"); exists(path) {
			for _, font := range []string{"Tinos", "NotoSansSinhala", "NotoSansTamil", "NotoSansDevanagari", "NotoSansThai",
				"NotoSansSC", "NotoSansKR", "NotoSansSymbols2"} {
				if fonts := pdftest.Tool(t, pdf, "pdffonts"); !strings.Contains(string(fonts), font) && style == "" {
					t.Errorf("%s is not among the fonts: %s", font, fonts)
				}
			}
		}
	}
}

// Background colours print, scripts do not run, and a document without text is rendered.
func TestContent(t *testing.T) {
	r := beside(t)
	for html, want := range map[string]string{
		"plain <b>text</b>": "plain text",
		"<script>document.write('written')</script><noscript>no script</noscript>":                   "no script",
		"<p id=x>still</p><script>x.textContent='changed'</script>":                                  "still",
		"<body onload=\"document.body.textContent='changed'\">still":                                 "still",
		"<img src=x onerror=\"document.body.textContent='changed'\">still":                           "still",
		"<svg><script>document.documentElement.textContent='changed'</script><text y=9>still</text>": "still",
		"<details>hidden</details>shown<dialog>closed</dialog>":                                      "Details shown",
		"":               "",
		"\x00\x00a&#0;b": "a",
		"<style>@media print{.s{display:none}}@media screen{.p{display:none}}</style><i class=s>screen</i><i " +
			"class=p>print</i>": "print",
	} {
		if got := pdftest.Text(t, render(t, r, html)); !strings.HasPrefix(got, want) || want == "" && got != "" ||
			strings.Contains(got, "changed") || strings.Contains(got, "written") {
			t.Errorf("%q gives %q", html, got)
		}
	}
	if got := pdftest.Inked(t, render(t, r,
		"<!DOCTYPE html><body style='margin:0;height:100vh;background:#204060'>")); got[0] > 16 {
		t.Errorf("the background is not printed: %v", got)
	}
}

// A document reaches no data of an earlier document, because each has its own browser context.
func TestContextsAreApart(t *testing.T) {
	o := limitsOf(t)
	o.scripts = true
	r := run(t, o)
	first := "<script>try{document.cookie='secret=1';localStorage.s='secret'}catch(e){}name='secret'</script>first"
	second := "<p id=p>second</p><script>p.textContent=document.cookie+name;" +
		"try{p.textContent+=localStorage.s}catch(e){}</script>"
	_, _, _ = r.Render(t.Context(), a4(first))
	if got := pdftest.Text(t, render(t, r, second)); strings.Contains(got, "secret") {
		t.Error(got)
	}
}

// Each limit of the browser is named by an error, and the next document is rendered (docs/decisions/pdf.md#pdf-limits).
func TestLimits(t *testing.T) {
	refusal, released := make(chan struct{}), make(chan struct{})
	noise := make([]byte, 0, 300_000)
	for i := range 20_000 {
		noise = fmt.Appendf(noise, "<i style='color:#%06x'>%c</i>", i*7919%0xffffff, 'a'+i%26)
	}
	for _, test := range []struct {
		name, html, reason, says string
		finish                   func([]byte) ([]byte, error)
	}{
		{"as many pages as allowed", strings.Repeat("<p style='break-after:page'>x", 4) + "<p>x", "", "", nil},
		{"a page more", strings.Repeat("<p style='break-after:page'>x", 5) + "<p>x", "pages", "more than 5 pages", nil},
		{"a long page", "<div style='height:100000mm'>x", "pages", "more than 5 pages", nil},
		{"pages named in the title", "<title>/Type /Pages /Count 900 startxref 5 %%EOF</title>x", "", "", nil},
		{"bytes", string(noise), "size", "at most 6000", nil},
		{"time", strings.Repeat("x", 500_000), "time", "longer than 2s", nil},
		{"finish without an end", "x", "time", "longer than 2s", func([]byte) ([]byte, error) { select {} }},
		{"a program that fails in the page", "x", "unprintable", "could not be rendered", func([]byte) ([]byte, error) {
			return nil, fmt.Errorf("%w: measure", errProgram)
		}},
		{"memory of all processes", "<table>" + strings.Repeat("<tr><td>x<td>y", 20_000), "memory", "more than 300 MiB", nil},
		{"finish in much memory", "x", "memory", "more than 300 MiB", func([]byte) ([]byte, error) {
			held := bytes.Repeat([]byte{1}, 500<<20)
			<-refusal
			runtime.KeepAlive(held)
			released <- struct{}{}
			return nil, nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, d := limitsOf(t), a4(test.html)
			switch test.reason {
			case "size":
				d.MaxBytes = 6_000
			case "time":
				o.Time = 2 * time.Second
			case "memory":
				o.Memory = 300 << 20
			default:
				o.Pages = 5
			}
			r := run(t, o)
			d.Finish = test.finish
			_, _, err := r.Render(t.Context(), d)
			if test.reason == "memory" && test.finish != nil {
				refusal <- struct{}{}
				<-released
				debug.FreeOSMemory() // the next document is not refused for it
			}
			var refused *event.RejectionError
			switch {
			case test.reason == "" && err != nil:
				t.Error(err)
			case test.reason != "" && (!errors.As(err, &refused) || refused.Reason != test.reason ||
				!strings.Contains(refused.Message, test.says)):
				t.Errorf("got %v, want %s", err, test.reason)
			}
			render(t, r, "next")
		})
	}
}

// A browser without fonts, which prints empty PDFs, and a program that is no browser fail the self-test. The error has
// the denied system calls, the exit status and the standard error of the browser. The renderer works again after the
// cause is removed.
func TestSelfTest(t *testing.T) {
	beside := filepath.Dir(pdftest.Browser())
	empty := filepath.Join(t.TempDir(), "empty.conf")
	write(t, empty, "<fontconfig></fontconfig>", 0o644)
	with := func(fonts string) string {
		return "#!/bin/sh\nFONTCONFIG_FILE=" + fonts + " LD_LIBRARY_PATH=" + beside + "/lib exec " + pdftest.Browser() +
			` "$@"` + "\n"
	}
	ends := []string{"has ended", "exit status 3", "some call: Operation not permitted"}
	if pdftest.Jailed() {
		ends = append(ends, "undumpable: operation not permitted", "subreaper: operation not permitted",
			"denied here: prctl", "fallocate", "/dev/shm")
	}
	for script, wants := range map[string][]string{
		with(empty): {"self-test"},
		"#!/none\n": {"start"},
		"#!/bin/sh\necho 'some call: Operation not permitted' >&2\nexit 3\n": ends,
	} {
		path := filepath.Join(t.TempDir(), "browser")
		write(t, path, script, 0o755)
		o := limitsOf(t)
		o.Path = path
		r := New(o)
		t.Cleanup(r.Close)
		err := r.Ready(t.Context())
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is missing in: %v", script, want, err)
			}
		}
		if _, _, err := r.Render(t.Context(), a4("x")); err == nil || errors.As(err, new(*event.RejectionError)) {
			t.Errorf("rendered: %v", err)
		}
		write(t, path+".new", with(filepath.Join(beside, "fonts.conf")), 0o755)
		must.Succeed(t, os.Rename(path+".new", path))
		render(t, r, "the cause has ended")
		if left := folders(t, o.Dir); len(left) != 1 {
			t.Errorf("left: %v", left)
		}
	}
}

// The number of pages is that of the page tree, whatever text the document contains.
func TestCountPages(t *testing.T) {
	r := run(t, limitsOf(t))
	for want := 1; want <= 12; want += 11 {
		pdf := render(t, r, strings.Repeat("<p style='break-after:page'>x", want-1)+"<p>x")
		if o, err := readObjects(pdf); o.pages != want || err != nil || len(pdftest.Sheets(t, pdf)) != want {
			t.Errorf("%d pages: %d, %v", want, o.pages, err)
		}
		for _, broken := range [][]byte{nil, pdf[:len(pdf)/2], bytes.ReplaceAll(pdf, []byte("/Pages"), []byte("/Pagez")),
			bytes.ReplaceAll(pdf, []byte("/Root"), []byte("/Rood")), bytes.ReplaceAll(pdf,
				[]byte("xref\n0"), []byte("xref\n1"))} {
			if o, err := readObjects(broken); err == nil {
				t.Errorf("%d pages in a broken PDF", o.pages)
			}
		}
	}
}

func FuzzCountPages(f *testing.F) {
	f.Add([]byte("%PDF-1.4\n1 0 obj\n<</Type /Catalog\n/Pages 2 0 R>>\nendobj\nxref\n0 3\n0000000000 65535 f " +
		"\n0000000009 00000 n \n0000000009 00000 n \ntrailer\n<</Root 1 0 R>>\nstartxref\n57\n%%EOF\n"))
	f.Fuzz(func(_ *testing.T, pdf []byte) {
		if o, err := readObjects(pdf); err == nil {
			o.missGlyphs()
		}
	})
}

// A malformed or too long message ends the connection and not this process.
func TestPipe(t *testing.T) {
	for input, want := range map[string]string{
		"{\"id\":1}\x00": `{"id":1}`,
		"{\"id\":1\x00":  "error",
		"\x00":           "error",
		"[]\x00":         "error",
		"{\"id\":1}":     "error",
		"":               "error",
		"{\"a\":\"" + strings.Repeat("x", maxMessage) + "\"}\x00": "error",
	} {
		got, err := newPipe(strings.NewReader(input), nil).Read()
		if (err != nil) != (want == "error") || err == nil && string(got) != want {
			t.Errorf("%.20q: %.20q, %v", input, got, err)
		}
	}
}

// The pipe returns only JSON objects and an error at the end, for all bytes that a browser can write.
func FuzzPipe(f *testing.F) {
	f.Add([]byte("{\"id\":1}\x00{}\x00"))
	f.Add([]byte("\x00\x00"))
	f.Add([]byte("[1]\x00{"))
	f.Add(append(bytes.Repeat([]byte(" "), 70_000), "{}\x00"...))
	f.Fuzz(func(t *testing.T, written []byte) {
		var sent bytes.Buffer
		p := newPipe(bytes.NewReader(written), &sent)
		for range bytes.Count(written, []byte{0}) + 1 {
			message, err := p.Read()
			if err != nil {
				return
			}
			if message[0] != '{' || !json.Valid(message) {
				t.Fatalf("%q", message)
			}
			if err := p.Send(message); err != nil || !bytes.HasSuffix(sent.Bytes(), append(message, 0)) {
				t.Fatalf("%v, %q", err, sent.Bytes())
			}
		}
		t.Errorf("%q does not end", written)
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestStartLine: the log line of a start has the browser's own version, and the date that the layer has beside it. svc
// reads both names (cmd/svc/logs_search.go).
func TestStartLine(t *testing.T) {
	o := limitsOf(t)
	var log bytes.Buffer
	o.Log = slog.New(slog.NewJSONHandler(&log, nil))
	run(t, o).Close()
	var line struct{ Msg, Browser, Released string }
	_, err := os.Stat(filepath.Join(filepath.Dir(o.Path), "browser.json"))
	if json.Unmarshal(log.Bytes(), &line) != nil || line.Msg != "browser started" ||
		!strings.Contains(line.Browser, "Chrome/1") || err == nil && !strings.HasPrefix(line.Released, "20") {
		t.Errorf("%s", log.Bytes())
	}
	t.Logf("%s", log.Bytes()) // make browser shows it
}
