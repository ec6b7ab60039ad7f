package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/template"
	"time"

	"svcapi/functions/pdf/render/event"
	"svcapi/test/must"
	"svcapi/test/pdftest"
)

// shapes returns what the templates of testdata use.
func shapes() template.FuncMap {
	return template.FuncMap{
		"add": func(a, b int) int { return a + b }, "repeat": func(n int, text string) string { return strings.Repeat(text, n) },
		"nest": func(open, within, shut string, depth int) string {
			return strings.Repeat(open, depth) + within + strings.Repeat(shut, depth)
		},
		"base64": func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) },
		"quote":  strings.NewReplacer("&", "&amp;", `"`, "&quot;").Replace, "png": pdftest.DataPNG, "clip": clip,
		"characters": func() string {
			var b strings.Builder
			for r := rune(0x20); r < 0x2ffff && b.Len() < event.MaxHTML-4; r++ {
				if r < 0xd800 || r > 0xdfff {
					b.WriteRune(r)
				}
			}
			return b.String()
		},
		// laughs is the billion laughs in SVG: each level uses the one below ten times.
		"laughs": func(levels int, attribute string) string {
			var b strings.Builder
			b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"><g id="g0"><rect ` +
				`width="1" height="1"/></g>`)
			for level := range levels {
				use := strings.Repeat(fmt.Sprintf(`<use %s="#g%d" x="1"/>`, attribute, level), 10)
				fmt.Fprintf(&b, `<g id="g%d">%s</g>`, level+1, use)
			}
			return b.String() + "</svg>"
		},
		"noise": func(n int) string {
			random, b := rand.New(rand.NewPCG(3, 4)), make([]byte, n)
			for i := range b {
				b[i] = byte(random.Uint32())
			}
			return strings.ToValidUTF8(string(b), "�")
		},
		"tags": func(n int) string {
			random := rand.New(rand.NewPCG(5, 6))
			names := strings.Fields("div span table tr td ul li p b i svg math g use select option button form input a img " +
				"iframe template style title h1 details summary ruby rt frameset frame object")
			var b strings.Builder
			for range n {
				name := names[random.IntN(len(names))]
				if random.IntN(3) == 0 {
					name = "/" + name
				}
				b.WriteString("<" + name + ">x")
			}
			return b.String()
		},
	}
}

// shape returns the text of a template.
func shape(t *testing.T, text string, values any) string {
	t.Helper()
	var out strings.Builder
	must.Succeed(t, template.Must(template.New("").Funcs(shapes()).Parse(text)).Execute(&out, values))
	return out.String()
}

// clip truncates a document to the limit of the API.
func clip(html string) string { return html[:min(len(html), event.MaxHTML)] }

// imageServer serves the images of all hosts.
func imageServer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/20":
		_, _ = w.Write(large20())
	case "/cut":
		_, _ = w.Write(large20()[:len(large20())-12])
	case "/cutsmall":
		small := pdftest.Chequered(700, 800)
		_, _ = w.Write(small[:len(small)*3/4])
	case "/400":
		_, _ = w.Write(pdftest.Chequered(20_000, 20_000))
	case "/tiny":
		_, _ = w.Write(pdftest.Chequered(1, 1))
	case "/redirect":
		http.Redirect(w, r, "/redirect", http.StatusFound)
	case "/endless":
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	case "/never":
		<-r.Context().Done()
	case "/drip":
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte{0x89})
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	case "/broken":
		_, _ = w.Write(pdftest.Chequered(50, 50)[:80])
	}
}

// large20 is an image with the maximum of pixels, drawn once.
var large20 = sync.OnceValue(func() []byte { return pdftest.Chequered(5_000, 4_000) })

// held matches the parent of a process in its status, and the sizes of its private memory.
var held = regexp.MustCompile(`(?m)^(PPid|RssAnon|RssShmem):\s*(\d+)`)

// resident returns the private memory of this process and its children in bytes, as the limit of the function counts.
func resident() (sum int64) {
	parent, own := map[int]int{}, map[int]int64{}
	statuses, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, name := range statuses {
		status, _ := os.ReadFile(name) // empty where the process has ended
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		for _, match := range held.FindAllSubmatch(status, -1) {
			n, _ := strconv.Atoi(string(match[2]))
			if string(match[1]) == "PPid" {
				parent[pid] = n
			} else {
				own[pid] += int64(n) << 10
			}
		}
	}
	for pid, size := range own {
		for up := pid; up > 1; up = parent[up] {
			if up == os.Getpid() {
				sum += size
				break
			}
		}
	}
	return sum
}

// Every hostile document ends in a PDF or a documentError within the time limit, the process tree stays below the
// memory of the function, and the next document is rendered.
func TestHostile(t *testing.T) {
	server := pdftest.Serve(t, imageServer)
	c := configuration(t, server)
	if seconds, err := strconv.Atoi(os.Getenv("RENDER_SECONDS")); err == nil {
		c.RenderSeconds = seconds
	}
	r := started(t, c)
	values := map[string]int{"Elements": documentLimits.Elements, "Depth": documentLimits.Depth,
		"Tables": documentLimits.Tables, "Images": imageLimits.Images}
	ran, all := 0, 0
	for name, text := range pdftest.Rows(t, "testdata/hostile.txt") {
		all++
		if !strings.HasPrefix(name, "* ") && !pdftest.Everything {
			continue
		}
		ran++
		t.Run(strings.TrimPrefix(name, "* "), func(t *testing.T) {
			html := strings.ReplaceAll(clip(shape(t, text, values)), "IMAGES", server.Listener.Addr().String())
			var peak atomic.Int64
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					peak.Store(max(peak.Load(), resident()))
					select {
					case <-stop:
						return
					case <-time.After(50 * time.Millisecond):
					}
				}
			}()
			began := time.Now()
			pdf, _, err := r.render(t.Context(), page(html))
			took := time.Since(began)
			close(stop)
			<-stopped
			outcome := fmt.Sprintf("%d bytes of PDF", len(pdf))
			if err != nil {
				refused, ok := errors.AsType[*event.RejectionError](err)
				if !ok {
					t.Fatalf("neither a PDF nor an error of the document: %v", err)
				}
				outcome = refused.Message
			}
			t.Logf("%s after %v, %d MiB", outcome, took.Round(10*time.Millisecond), peak.Load()>>20)
			if peak.Load() > int64(c.MemoryMB)<<20 {
				t.Errorf("the tree held %d MiB", peak.Load()>>20)
			}
			began = time.Now()
			next, _, err := r.render(t.Context(), page("<p>the next document"))
			if err != nil || pdftest.Text(t, next) != "the next document" {
				t.Errorf("the next document: %v", err)
			}
			// On a busy machine the end of a browser takes as long as the next document, whose browser starts.
			if more := time.Since(began); took > time.Duration(c.RenderSeconds+3)*time.Second+2*more {
				t.Errorf("took %v, and the next document %v", took, more)
			}
		})
	}
	if t.Logf("%d of %d documents", ran, all); all < 131 {
		t.Errorf("%d hostile documents", all)
	}
}
