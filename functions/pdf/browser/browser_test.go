package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svcapi/local/pdftest"
)

func render(t testing.TB, r *Renderer, html string) []byte {
	t.Helper()
	pdf, err := r.Render(t.Context(), Document{HTML: html, Geometry: a4})
	if err != nil {
		t.Fatal(err)
	}
	return pdf
}

// folders lists what a renderer left in its folder.
func folders(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// browsers lists this process's browsers, as heads of process groups, and what is left of dead ones.
func browsers(t testing.TB) (groups []int, zombies int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tasks {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		switch {
		case fields[0] == "Z":
			zombies++
		case bytes.Contains(stat, []byte("(headless")):
			groups = append(groups, pid)
		}
	}
	return groups, zombies
}

// Sinhala, Tamil and Latin text is in the PDF as text, in the layer's fonts, upright and bold.
func TestText(t *testing.T) {
	r := run(t, limitsOf(t))
	want := []string{
		"Invoice 2026-114, total Rs. 1,250.00", "ශ්\u200dරී ලංකාව, කොළඹ", "தமிழ் எழுத்துக்கள்", "Ελληνικά", "Русский", "ගෙවිය යුතු මුදල", "மொத்தத் தொகை",
		"Übergrößenträger", "naïve café",
	}
	for _, style := range []string{"", "font-weight:bold", "font-family:serif", "font-family:monospace", "font-family:Arial,Helvetica", "font-family:'Times New Roman'"} {
		pdf := render(t, r, "<!DOCTYPE html><meta charset=utf-8><body style=\""+style+"\"><p>"+strings.Join(want, "<p>"))
		got := pdftest.Text(t, pdf)
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("%s: %q is missing in %q", style, line, got)
			}
		}
		if path := filepath.Join(filepath.Dir(pdftest.Browser()), "fonts"); exists(path) {
			for _, font := range []string{"OpenSans", "NotoSansSinhala", "NotoSansTamil"} {
				if fonts := pdftest.Fonts(t, pdf); !strings.Contains(fonts, font) && style == "" {
					t.Errorf("%s is not among the fonts: %s", font, fonts)
				}
			}
		}
	}
}

// Background colours print, scripts do not run, and a document without text is a document.
func TestContent(t *testing.T) {
	r := run(t, limitsOf(t))
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
		"<style>@media print{.s{display:none}}@media screen{.p{display:none}}</style><i class=s>screen</i><i class=p>print</i>": "print",
	} {
		if got := pdftest.Text(t, render(t, r, html)); !strings.HasPrefix(got, want) || want == "" && got != "" || strings.Contains(got, "changed") || strings.Contains(got, "written") {
			t.Errorf("%q gives %q", html, got)
		}
	}
	if got := pdftest.Inked(t, render(t, r, "<!DOCTYPE html><body style='margin:0;height:100vh;background:#204060'>")); got[0] > 16 {
		t.Errorf("the background is not printed: %v", got)
	}
}

// What a document can reach through the rendering of earlier ones is nothing: each has a context of its own.
func TestContextsAreApart(t *testing.T) {
	r := start(limitsOf(t), true)
	defer r.Close()
	first := "<script>try{document.cookie='secret=1';localStorage.s='secret'}catch(e){}name='secret'</script>first"
	second := "<p id=p>second</p><script>p.textContent=document.cookie+name;try{p.textContent+=localStorage.s}catch(e){}</script>"
	_, _ = r.Render(t.Context(), Document{HTML: first, Geometry: a4})
	if got := pdftest.Text(t, render(t, r, second)); strings.Contains(got, "secret") {
		t.Error(got)
	}
}

// Limits around the browser: each ends in a refusal that names the limit, and the next document is rendered.
func TestLimits(t *testing.T) {
	o := limitsOf(t)
	o.Pages = 5
	noise := make([]byte, 0, 300_000)
	for i := range 20_000 {
		noise = fmt.Appendf(noise, "<i style='color:#%06x'>%c</i>", i*7919%0xffffff, 'a'+i%26)
	}
	for _, test := range []struct{ name, html, reason, says string }{
		{"as many pages as allowed", strings.Repeat("<p style='break-after:page'>x", 4) + "<p>x", "", ""},
		{"a page more", strings.Repeat("<p style='break-after:page'>x", 5) + "<p>x", "pages", "more than 5 pages"},
		{"a long page", "<div style='height:100000mm'>x", "pages", "more than 5 pages"},
		{"pages named in the title", "<title>/Type /Pages /Count 900 startxref 5 %%EOF</title>x", "", ""},
		{"bytes", string(noise), "size", "at most 6000"},
		{"time", "<table>" + strings.Repeat("<tr><td style='columns:9'>x<td>y", 12_000), "time", "longer than 2s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := o
			switch test.reason {
			case "size":
				o.Pages, o.Bytes = 500, 6_000
			case "time":
				o.Time = 2 * time.Second
			}
			r := run(t, o)
			_, err := r.Render(t.Context(), Document{HTML: test.html, Geometry: a4})
			var refused *RefusedError
			switch {
			case test.reason == "" && err != nil:
				t.Error(err)
			case test.reason != "" && (!errors.As(err, &refused) || refused.Reason != test.reason || !strings.Contains(refused.Refusal(), test.says)):
				t.Errorf("got %v, want %s", err, test.reason)
			}
			render(t, r, "next")
		})
	}
}

// The memory of the whole process tree is watched: a document that takes too much ends the browser, and nothing else.
func TestMemory(t *testing.T) {
	o := limitsOf(t)
	o.Memory = 300 << 20
	r := run(t, o)
	began := time.Now()
	_, err := r.Render(t.Context(), Document{HTML: "<table>" + strings.Repeat("<tr><td>x<td>y", 20_000), Geometry: a4})
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Reason != "memory" || !strings.Contains(refused.Message, "300 MiB") {
		t.Errorf("got %v after %v", err, time.Since(began))
	}
	render(t, r, "next")
}

// A browser without fonts prints valid, empty PDFs: it does not pass its self-test. Nor does one that is none. Neither
// failure outlives its cause.
func TestSelfTest(t *testing.T) {
	bare := t.TempDir()
	lib := filepath.Join(filepath.Dir(pdftest.Browser()), "lib")
	empty := filepath.Join(bare, "empty.conf")
	write(t, empty, "<fontconfig></fontconfig>", 0o644)
	for name, test := range map[string]struct{ script, want string }{
		"no fonts":   {"#!/bin/sh\nFONTCONFIG_FILE=" + empty + " LD_LIBRARY_PATH=" + lib + " exec " + pdftest.Browser() + ` "$@"` + "\n", "self-test"},
		"no program": {"#!/none\n", "start"},
		"ends":       {"#!/bin/sh\nexit 1\n", "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "browser")
			write(t, path, test.script, 0o755)
			o := limitsOf(t)
			o.Path = path
			r := New(o)
			defer r.Close()
			if err := r.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			if _, err := r.Render(t.Context(), Document{HTML: "x", Geometry: a4}); err == nil || errors.As(err, new(*RefusedError)) {
				t.Errorf("rendered: %v", err)
			}
			write(t, path+".new", "#!/bin/sh\nFONTCONFIG_FILE="+filepath.Join(filepath.Dir(pdftest.Browser()), "fonts.conf")+" LD_LIBRARY_PATH="+lib+" exec "+pdftest.Browser()+` "$@"`+"\n", 0o755)
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			render(t, r, "the cause is gone")
			if left := folders(t, o.Dir); len(left) != 1 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A browser is replaced after so many documents, and when it has grown.
func TestRecycle(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"documents": func(o *Options) { o.RecycleAfter = 2 },
		"growth":    func(o *Options) { o.RecycleMemory = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			o := limitsOf(t)
			change(&o)
			r := run(t, o)
			seen := map[int]bool{}
			for range 4 {
				render(t, r, "x")
				if err := r.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				groups, zombies := browsers(t)
				if len(groups) != 1 || zombies != 0 {
					t.Fatalf("%d browsers, %d zombies", len(groups), zombies)
				}
				seen[groups[0]] = true
			}
			if len(seen) < 2 {
				t.Error("the browser was kept")
			}
		})
	}
}

// Close leaves nothing behind, and a request that is given up leaves a renderer that works.
func TestClose(t *testing.T) {
	o := limitsOf(t)
	r := run(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := r.Render(ctx, Document{HTML: strings.Repeat("<p>x", 20_000), Geometry: a4}); err == nil {
		t.Error("rendered within 30 ms")
	}
	render(t, r, "next")
	r.Close()
	groups, zombies := browsers(t)
	if left := folders(t, o.Dir); len(left)+len(groups)+zombies != 0 {
		t.Errorf("left: %v, %v, %d zombies", left, groups, zombies)
	}
	if _, err := r.Render(t.Context(), Document{HTML: "x", Geometry: a4}); err == nil {
		t.Error("rendered after Close")
	}
	r.Close() // again, harmless
}

// Folders of dead processes are swept, those of living ones are not.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	dead := exec.Command("/bin/true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		profilePrefix + strconv.Itoa(dead.Process.Pid) + "-1", profilePrefix + strconv.Itoa(os.Getpid()) + "-2", profilePrefix + strconv.Itoa(os.Getppid()) + "-3",
		profilePrefix + "x-4", "other",
	} {
		if err := os.MkdirAll(filepath.Join(dir, name, "Default"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	// The process ID of this one may be a dead one's, too: Sweep comes before the first browser.
	if got := strings.Join(folders(t, dir), " "); got != "other "+profilePrefix+strconv.Itoa(os.Getppid())+"-3 "+profilePrefix+"x-4" {
		t.Error(got)
	}
}

// storm renders n documents from two sides while browsers are killed at random moments, and tells what went wrong.
func storm(t *testing.T, n int, between time.Duration) {
	t.Helper()
	o := limitsOf(t)
	o.Time = 5 * time.Second
	r := run(t, o)
	random := rand.New(rand.NewPCG(1, 2))
	stop := make(chan struct{})
	var killer, work sync.WaitGroup
	kills := 0
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(random.Int64N(int64(between)))):
			}
			// Any process of the browser, not only the first.
			groups, _ := browsers(t)
			for _, group := range groups {
				if pids := members(group); len(pids) > 0 && syscall.Kill(pids[random.IntN(len(pids))], syscall.SIGKILL) == nil {
					kills++
				}
			}
		}
	})
	var mu sync.Mutex
	outcomes := map[string]int{}
	for range 2 {
		work.Go(func() {
			for range n / 2 {
				began := time.Now()
				_, err := r.Render(t.Context(), Document{HTML: strings.Repeat("<p>x", 500), Geometry: a4})
				// Twice the limit: a render waits for the other side's, which may have been tried twice.
				if took := time.Since(began); took > 4*o.Time {
					t.Errorf("a render took %v", took)
				}
				outcome := "rendered"
				if err != nil {
					outcome = err.Error()
				}
				mu.Lock()
				outcomes[outcome]++
				mu.Unlock()
			}
		})
	}
	work.Wait()
	close(stop)
	killer.Wait()
	t.Logf("%d kills: %v", kills, outcomes)
	if outcomes["rendered"] == 0 || kills == 0 {
		t.Error("nothing was tried")
	}
	render(t, r, "after the storm")
	r.Close()
	groups, zombies := browsers(t)
	if left := folders(t, o.Dir); len(left)+len(groups)+zombies != 0 {
		t.Errorf("left: %v, %v, %d zombies", left, groups, zombies)
	}
}

// Killing the browser at random moments under load: no request hangs beyond its limit, no zombie and no folder is left.
func TestKilled(t *testing.T) {
	if everything {
		storm(t, 60, 500*time.Millisecond)
		return
	}
	storm(t, 12, time.Second)
}

// The environment and the memory of this process are closed to a child of the same user.
func TestSeclude(t *testing.T) {
	if os.Getenv("SECLUDE_CHILD") != "" {
		secludeChild()
		return
	}
	dir, err := os.MkdirTemp("", "seclude") //nolint:usetesting // another user enters it: no folder above may be closed
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	write(t, program, string(self), 0o755)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]string{"open": "SECRET_OF_PARENT", "secluded": "Permission denied"} {
		cmd := exec.Command(program, "-test.run=^TestSeclude$")
		cmd.Dir, cmd.Env = "/", []string{"SECLUDE_CHILD=" + mode, "SECRET_OF_PARENT=1", "CHROMIUM=" + pdftest.Browser()}
		if os.Getuid() == 0 { // root may read everything
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || mode == "secluded" && strings.Contains(string(out), "SECRET_OF_PARENT") {
			t.Errorf("%s: %s", mode, out)
		}
	}
}

func secludeChild() {
	if os.Getenv("SECLUDE_CHILD") == "open" {
		_ = unseclude()
	}
	cmd := exec.Command("/bin/sh", "-c", "cat /proc/$PPID/environ | tr '\\0' '\\n'; head -c 1 /proc/$PPID/mem")
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	out, _ := cmd.CombinedOutput()
	_, _ = os.Stdout.Write(out)
}

// What a page's count is read from is the page tree, and nothing that a document writes.
func TestCountPages(t *testing.T) {
	r := run(t, limitsOf(t))
	for want := 1; want <= 12; want += 11 {
		pdf := render(t, r, strings.Repeat("<p style='break-after:page'>x", want-1)+"<p>x")
		if got, err := countPages(pdf); got != want || err != nil || len(pdftest.Sheets(t, pdf)) != want {
			t.Errorf("%d pages: %d, %v", want, got, err)
		}
		for _, broken := range [][]byte{nil, pdf[:len(pdf)/2], bytes.ReplaceAll(pdf, []byte("/Pages"), []byte("/Pagez")), bytes.ReplaceAll(pdf, []byte("/Root"), []byte("/Rood")), bytes.ReplaceAll(pdf, []byte("xref\n0"), []byte("xref\n1"))} {
			if got, err := countPages(broken); err == nil {
				t.Errorf("%d pages in a broken PDF", got)
			}
		}
	}
}

func FuzzCountPages(f *testing.F) {
	f.Add([]byte("%PDF-1.4\n1 0 obj\n<</Type /Catalog\n/Pages 2 0 R>>\nendobj\nxref\n0 3\n0000000000 65535 f \n0000000009 00000 n \n0000000009 00000 n \ntrailer\n<</Root 1 0 R>>\nstartxref\n57\n%%EOF\n"))
	f.Fuzz(func(_ *testing.T, pdf []byte) { _, _ = countPages(pdf) })
}

// A message that is no JSON, or too long, ends the connection instead of this process.
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
