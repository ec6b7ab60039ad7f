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
	"time"

	"svcapi/functions/pdf/render/event"
	"svcapi/test/pdftest"
)

// bomb is one hostile document. IMAGES is a placeholder for the address of the image server.
type bomb struct {
	name  string
	html  func() string
	short bool // runs also without the tag hostile: one of each kind
}

func fixed(html string) func() string { return func() string { return html } }

func repeat(parts ...string) func(n int) func() string {
	return func(n int) func() string {
		return func() string {
			return clip(parts[0] + strings.Repeat(parts[1], n) + strings.Join(parts[2:], ""))
		}
	}
}

// clip truncates a document to the limit of the API.
func clip(html string) string { return html[:min(len(html), event.MaxHTML)] }

func nested(open, within, shut string, depth int) func() string {
	return func() string { return clip(strings.Repeat(open, depth) + within + strings.Repeat(shut, depth)) }
}

// laughs is the billion laughs in SVG: each level uses the one below ten times.
func laughs(levels int, attribute string) func() string {
	return func() string {
		var b strings.Builder
		b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"><g id="g0"><rect ` +
			`width="1" height="1"/></g>`)
		for level := 1; level <= levels; level++ {
			fmt.Fprintf(&b, `<g id="g%d">%s</g>`, level,
				strings.Repeat(fmt.Sprintf(`<use %s="#g%d" x="1"/>`, attribute, level-1), 10))
		}
		return b.String() + "</svg>"
	}
}

func noise(n int) func() string {
	return func() string {
		random := rand.New(rand.NewPCG(3, 4))
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return strings.ToValidUTF8(string(b), "�")
	}
}

func tags(n int) func() string {
	return func() string {
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
		return clip(b.String())
	}
}

// bombs are hostile documents. Each ends in a PDF or in a documentError, within the limits.
var bombs = []bomb{
	// Depth and number of elements.
	{"deep blocks", nested("<div>", "x", "</div>", 90_000), true},
	{"as deep as allowed", nested("<div>", "x", "</div>", documentLimits.Depth), true},
	{"deep inline elements", nested("<b>", "x", "</b>", 60_000), false},
	{"unclosed formatting", repeat("", "<b><i><u><a href=x>")(20_000), false},
	{"deep lists", nested("<ul><li>", "x", "", 40_000), false},
	{"deep tables", nested("<table><tr><td>", "x", "", 30_000), false},
	{"tables as deep as allowed", nested("<table><tr><td>", "x", "", documentLimits.Tables), true},
	{"tables in tables, wide", func() string {
		inner := "x"
		for range 6 {
			inner = "<table><tr>" + strings.Repeat("<td>"+inner, 4) + "</table>"
		}
		return clip(inner)
	}, false},
	{"deep fieldsets", nested("<fieldset><legend>x</legend>", "x", "", documentLimits.Depth-2), false},
	{"deep flexboxes", nested("<div style='display:flex'>", "x", "", documentLimits.Depth), false},
	{"deep grids", nested("<div style='display:grid'>", "x", "", documentLimits.Depth), true},
	{"deep inline blocks", nested("<div style='display:inline-block;padding:1%'>", "x", "", documentLimits.Depth), false},
	{"deep columns", nested("<div style='columns:2'>", "x y z", "", 60), false},
	{"deep floats", nested("<div style='float:left'>", "x", "", documentLimits.Depth), false},
	{"deep shadow trees", nested("<div><template shadowrootmode=open>", "x", "</template></div>", 120), true},
	{"a million elements", repeat("", "<p>")(1_000_000), true},
	{"as many elements as allowed", repeat("", "<b>x</b>")(documentLimits.Elements), false},
	{"as many blocks as allowed", repeat("", "<div>x</div>")(documentLimits.Elements), false},
	{"as many boxes on one page", repeat("<div style='font-size:1px;line-height:1px'>",
		"<div></div>")(documentLimits.Elements - 1), false},
	{"line breaks", repeat("", "<br>")(100_000), false},
	{"attributes", repeat("<p ", "a ")(250_000), false},
	{"many attributes", func() string {
		var b strings.Builder
		b.WriteString("<p")
		for i := range 60_000 {
			fmt.Fprintf(&b, " a%d", i)
		}
		return b.String() + ">x"
	}, true},
	{"one long attribute", repeat("<p title='", "x")(event.MaxHTML), false},

	// Tables.
	{"a plain table", repeat("<table>", "<tr><td>abcdefg")(34_000), true},
	{"as many rows as allowed", repeat("<table>", "<tr><td>x")(documentLimits.Elements/2 - 2), false},
	{"as many cells as allowed", repeat("<table><tr>", "<td>x")(documentLimits.Elements - 3), false},
	{"large spans", repeat("<table>", "<tr><td colspan=1000 rowspan=65534>x")(100), false},
	{"spans of columns", repeat("<table><colgroup>", "<col span=1000>")(1000), false},
	{"a table with borders", repeat("<table border style='border-collapse:collapse'>", "<tr><td>x<td>y<td>z")(9_000),
		false},
	{"repeated heads", repeat("<table><thead><tr><td><div style='height:200px'>x</div><tbody>", "<tr><td>y")(10_000),
		false},

	// Text.
	{"one long word", repeat("", "x")(event.MaxHTML), false},
	{"one long line", repeat("<pre>", "x y ")(131_000), false},
	{"every character", func() string {
		var b strings.Builder
		for r := rune(0x20); r < 0x2ffff && b.Len() < event.MaxHTML-4; r++ {
			if r < 0xd800 || r > 0xdfff {
				b.WriteRune(r)
			}
		}
		return b.String()
	}, false},
	{"combining marks", repeat("x", "̂")(200_000), true},
	{"directions", repeat("", "\u202eא\u202da")(40_000), false},
	{"joined Sinhala", repeat("", "ක්\u200dෂ්\u200dර්\u200dය")(15_000), false},
	{"soft hyphens", repeat("<p style='width:1px;hyphens:manual'>", "x\u00ad")(60_000), false},
	{"broken encodings", noise(400_000), true},
	{"null characters", repeat("", "\x00<\x00p\x00>")(60_000), false},
	{"entities", repeat("", "&CounterClockwiseContourIntegral;&#x10ffff;")(12_000), false},
	{"random tags", tags(60_000), true},
	{"a truncated tag", fixed("<p>x<div class='"), false},
	{"a large font", fixed("<p style='font-size:1000000px'>x"), false},
	{"a small font", repeat("<p style='font-size:0.001px'>", "x ")(200_000), false},
	{"shadows of text", repeat("<p style='text-shadow:", "0 0 99px red,", "0 0 9px blue'>xxxxxxxx")(1_000), false},

	// Pages and sizes.
	{"a million centimetres", fixed("<div style='height:1000000cm'>x"), false},
	{"a million centimetres, filled",
		fixed("<div style='height:1000000cm;background:linear-gradient(red,blue)'>x"), false},
	{"a wide page", fixed("<div style='width:1000000cm;height:1px;background:red'>x"), true},
	{"endless breaks", repeat("", "<p style='break-after:page'>x")(17_000), false},
	{"as many pages as allowed", repeat("", "<p style='break-after:page'>x")(499), true},
	{"zero page", fixed("<style>@page{size:0 0!important;margin:0!important}</style>x"), true},
	{"negative margins", fixed("<style>@page{margin:-9999mm!important}</style><p style='margin:-99999px'>x"), false},
	{"a giant page", fixed("<style>@page{size:100000mm 100000mm!important}</style>x"), false},
	{"orphans", repeat("<div style='orphans:100000;widows:100000'>", "x<br>")(20_000), false},
	{"unbreakable", repeat("", "<div style='break-inside:avoid;height:99cm'>x</div>")(300), false},
	{"margin boxes", repeat("<style>@page{", "@top-left{content:counter(page) counter(pages)}", "}</style>")(10_000),
		false},
	{"fixed on each page", fixed("<div style='position:fixed;inset:0;background:conic-gradient(red,blue)'></div><div " +
		"style='height:400000mm'>"), false},

	// Images.
	{"a large data image", func() string { return "<img src=" + pdftest.DataPNG(20_000, 20_000) + ">" }, true},
	{"a hidden data image", func() string {
		return "<style>@import 'data:text/css;base64," +
			base64.StdEncoding.EncodeToString([]byte("body{background:url("+pdftest.DataPNG(9_000, 9_000)+")}")) + "'</style>x"
	}, false},
	{"an image in an image", func() string {
		return `<img src="data:image/svg+xml;base64,` +
			base64.StdEncoding.EncodeToString([]byte("<svg xmlns='http://www.w3.org/2000/svg'><image width='9' height='9' href='"+pdftest.DataPNG(9_000, 9_000)+"'/></svg>")) + `">`
	}, false},
	{"one image, often", func() string { return clip(strings.Repeat("<img width=1 src=https://IMAGES/20>", 9_000)) },
		false},
	{"as many pixels as allowed", fixed("<img width=99 src=https://IMAGES/20?1><img width=99 " +
		"src=https://IMAGES/20?2><img width=99 src=https://IMAGES/20?3>"), false},
	{"as many damaged pixels as allowed",
		fixed("<img width=99 src=https://IMAGES/cut?1><img width=99 src=https://IMAGES/cut?2><img width=99 " +
			"src=https://IMAGES/cut?3>"), false},
	{"as many damaged images as allowed", func() string {
		var b strings.Builder
		for i := range imageLimits.Images {
			fmt.Fprintf(&b, "<img width=9 src=https://IMAGES/cutsmall?%d>", i)
		}
		return b.String()
	}, false},
	{"more pixels than allowed", fixed("<img src=https://IMAGES/20?1><img src=https://IMAGES/20?2><img " +
		"src=https://IMAGES/20?3><img src=https://IMAGES/20?4>"), true},
	{"an image too large", fixed("<img src=https://IMAGES/400>"), false},
	{"too many images", func() string {
		var b strings.Builder
		for i := range 500 {
			fmt.Fprintf(&b, "<img src=https://IMAGES/tiny?%d>", i)
		}
		return b.String()
	}, true},
	{"endless redirects", fixed("<img src=https://IMAGES/redirect>"), false},
	{"an endless image", fixed("<img src=https://IMAGES/endless>"), true},
	{"an image that never comes", fixed("<img src=https://IMAGES/never>"), false},
	{"an image that drips", fixed("<img src=https://IMAGES/drip>"), false},
	{"a broken image", fixed("<img src=https://IMAGES/broken>"), false},
	{"a tiled image", func() string {
		return "<body style='background:url(" + pdftest.DataPNG(1, 1) + ") 0 0/1px 1px'><div style='height:3000mm'>"
	}, false},

	// SVG.
	{"a billion laughs", laughs(9, "href"), false},
	{"a million laughs", laughs(6, "xlink:href"), false},
	{"laughs in an image", func() string {
		return `<img src="data:image/svg+xml;base64,` + base64.StdEncoding.EncodeToString([]byte(laughs(8, "href")())) + `">`
	}, false},
	{"a use of itself", fixed(`<svg><g id="a"><use href="#a"/><use href="#b"/></g><g id="b"><use href="#a"/></g></svg>`),
		true},
	{"patterns in patterns", func() string {
		var b strings.Builder
		b.WriteString("<svg width=900 height=900>")
		for i := range 30 {
			fmt.Fprintf(&b, `<pattern id="p%d" width=".01" height=".01"><rect width="9" height="9" fill="url(#p%d)"/><rect `+
				`width="5" height="5" fill="url(#p%d)"/></pattern>`, i, i+1, i+1)
		}
		return b.String() + `<rect width="900" height="900" fill="url(#p0)"/></svg>`
	}, false},
	{"filters in filters", func() string {
		var b strings.Builder
		b.WriteString(`<svg width="5000" height="5000"><filter id="f" x="0" y="0" width="1" height="1">`)
		for range 300 {
			b.WriteString(`<feGaussianBlur stdDeviation="99"/><feTurbulence numOctaves="99" baseFrequency=".9"/>`)
		}
		return b.String() + `</filter><rect width="5000" height="5000" filter="url(#f)"/></svg>`
	}, false},
	{"a large convolution", fixed(`<svg width="4000" height="4000"><filter id="f"><feMorphology operator="dilate" ` +
		`radius="999"/><feConvolveMatrix order="50" kernelMatrix="` + strings.Repeat("1 ", 2500) +
		`"/></filter><rect width="4000" height="4000" filter="url(#f)"/></svg>`), false},
	{"a large SVG", fixed(`<svg width="99999999" height="99999999"><rect width="100%" height="100%" fill="red"/></svg>`),
		false},
	{"a long path", func() string {
		return clip(`<svg><path d="M0 0`+strings.Repeat(" L9 9C1 2 3 4 5 6", 25_000)) + `"/></svg>`
	}, false},
	{"dashes", fixed(`<svg width="900" height="900"><path d="M0 0L1e9 1e9" stroke="red" stroke-dasharray=".0001"/></svg>`),
		false},
	{"masks in masks", func() string {
		var b strings.Builder
		b.WriteString("<svg width=900 height=900>")
		for i := range 200 {
			fmt.Fprintf(&b, `<mask id="m%d"><rect width="900" height="900" fill="#fff" mask="url(#m%d)"/></mask>`, i, i+1)
		}
		return b.String() + `<rect width="900" height="900" mask="url(#m0)"/></svg>`
	}, false},
	{"animations", repeat("<svg><rect width=9 height=9>",
		"<animate attributeName=x from=0 to=9 dur=.001s repeatCount=indefinite />")(6_000), false},

	// Style sheets.
	{"counters", repeat("<style>body{counter-reset:a}p{counter-increment:a 999999}p::before{content:counters(a,'.') "+
		"counter(a,lower-roman)}</style>", "<p>")(5_000), false},
	{"counters in counters", nested("<ol style='counter-reset:x'><li style='counter-increment:x'>",
		"<style>li::before{content:counters(x,'.........')}</style>", "", documentLimits.Depth/2-2), true},
	{"a large grid", fixed("<div style='display:grid;grid-template:repeat(100000,1px)/repeat(100000,1px)'><p>x"), false},
	{"a grid with far cells", repeat("<div style='display:grid'>", "<p style='grid-area:99999/99999'>x")(2_000), false},
	{"a grid of lines", fixed("<div style='display:grid;grid-template-columns:repeat(auto-fill,minmax(1px,1fr));" +
		"grid-template-rows:repeat(9999,1px)'><p>x"), false},
	{"columns", fixed("<div style='columns:1000000;height:1px'>" + strings.Repeat("x ", 9_000)), false},
	{"columns in columns", repeat("", "<div style='columns:999;column-fill:auto;height:1px'>x y z")(100), false},
	{"rules", func() string {
		var b strings.Builder
		b.WriteString("<style>")
		for i := range 12_000 {
			fmt.Fprintf(&b, "p:nth-child(%d) a>b~i{c:d}", i)
		}
		return b.String() + "</style>" + strings.Repeat("<p>x", 3_000)
	}, false},
	{"has", repeat("<style>:has(:has(*)) *:has(~*:has(+*)){color:red}</style>", "<p><b>x</b>")(4_000), false},
	{"has, within has", repeat("<style>"+strings.Repeat(":is(", 50)+"*"+strings.Repeat(")", 50)+"{color:red}</style>",
		"<p>x")(5_000), false},
	{"variables", func() string {
		var b strings.Builder
		b.WriteString("<style>p{--a0:xxxxxxxxxx;")
		for i := 1; i < 12; i++ {
			fmt.Fprintf(&b, "--a%d:%s;", i, strings.Repeat(fmt.Sprintf("var(--a%d)", i-1), 10))
		}
		return b.String() + "}p::before{content:var(--a11)}</style><p>x"
	}, true},
	{"calc", fixed("<p style='width:" + strings.Repeat("calc(1px + ", 9_000) + "1px" + strings.Repeat(")", 9_000) + "'>x"),
		false},
	{"nested rules", fixed("<style>" + strings.Repeat("p{&:not(x){", 5_000) + "color:red" + strings.Repeat("}}", 5_000) +
		"</style><p>x"), true},
	{"imports of itself", fixed("<style>@import 'data:text/css,@import \"data:text/css,p{color:red}\"';</style><p>x"),
		true},
	{"gradients", repeat("<p style='height:200mm;background:", "radial-gradient(red,blue 1px,green 2px),",
		"red'>x")(2_000), false},
	{"a repeating gradient", fixed("<p style='height:200mm;background:repeating-linear-gradient(red 0,blue .001px)'>x"),
		false},
	{"filters", repeat("<div style='filter:blur(99px)'>",
		"<div style='filter:blur(99px) drop-shadow(9px 9px 99px red);height:300mm;background:red'>x</div>")(60), false},
	{"backdrop filters", repeat("", "<div style='position:absolute;inset:0;backdrop-filter:blur(99px)'>x</div>")(300),
		false},
	{"shadows", repeat("<p style='box-shadow:", "0 0 999px 99px red,", "0 0 9px blue'>x")(1_500), false},
	{"blend modes", repeat("", "<div style='mix-blend-mode:difference;position:absolute;inset:0;background:red;"+
		"opacity:.5'>x</div>")(1_500), false},
	{"transforms", repeat("<div style='perspective:1px'>",
		"<div style='transform:rotate3d(1,1,1,9deg) scale(99999)'>x</div>")(3_000), false},
	{"masks and clips", repeat("",
		"<div style='mask:linear-gradient(#000,transparent);clip-path:polygon(0 0,99% 0,50% 99%)'>x")(200), false},
	{"zoom", nested("<div style='zoom:10'>", "x", "", 60), false},
	{"large content", fixed("<style>p::before{content:'" + strings.Repeat("x", 200_000) + "'}</style><p><p><p><p>"),
		false},
	{"fonts", func() string {
		var b strings.Builder
		b.WriteString("<style>")
		for i := range 3_000 {
			fmt.Fprintf(&b, "@font-face{font-family:f%d;src:url(data:font/woff2;base64,d09GMgABAAAAAA)}", i)
		}
		return clip(b.String() + "</style>" + strings.Repeat("<p style='font-family:f1,f2,f3'>x", 500))
	}, false},
	{"animations of style", repeat("<style>@keyframes a{to{transform:rotate(360deg)}}p{animation:a .001s infinite}</style>", "<p>x")(3_000), false},
	{"sticky", repeat("", "<div style='position:sticky;top:0'>x")(240), false},
	{"subgrids", nested("<div style='display:grid;grid-template:subgrid/subgrid'>", "x", "", 100), false},
	{"references", repeat("<style>a::after{content:target-text('#x') leader('.') target-counter('#x',page)}</style>"+
		"<body id=x>"+strings.Repeat("word ", 20_000), "<a href='#x'>x</a>")(8_000), false},
	{"anchors", repeat("", "<p style='anchor-name:--a;position:absolute;position-anchor:--a;top:anchor(bottom)'>x")(1_500),
		false},

	// Nested documents, and attributes that need scripts.
	{"frames", repeat("", "<iframe srcdoc='<p>x'></iframe>")(2_000), false},
	{"frames in frames", func() string {
		inner := "x"
		for range 7 {
			inner = "<iframe srcdoc=\"" + strings.NewReplacer("&", "&amp;", `"`, "&quot;").Replace(inner) + "\"></iframe>"
		}
		return clip(inner)
	}, true},
	{"frames of data", repeat("", "<iframe src='data:text/html,<p>x'></iframe>")(500), false},
	{"objects", repeat("", "<object data='data:image/svg+xml,<svg/>'></object>")(1_500), false},
	{"an endless script", fixed("<script>for(;;);</script>x"), true},
	{"a history flood", fixed("<script>for(;;)history.pushState({},'')</script><body " +
		"onload='for(;;)history.pushState({},0)'>x"), true},
	{"a script of memory", fixed("<script>a=[];for(;;)a.push(new ArrayBuffer(1e8))</script>x"), false},
	{"dialogs", fixed("<script>for(;;)alert(1)</script><dialog open>x</dialog>"), false},
	{"refreshes", fixed("<meta http-equiv=refresh content=0>x"), false},
	{"refreshes to data", fixed("<meta http-equiv=refresh content='0;url=data:text/html,x'><meta http-equiv=refresh " +
		"content='0;url=about:blank'>x"), true},
	{"forms", repeat("<form action=x>", "<input autofocus><select><option>x</select><textarea>x</textarea>")(3_000),
		false},
	{"media", repeat("", "<video autoplay src=data:video/mp4;base64,AAAA></video><audio autoplay controls "+
		"src=data:,></audio>")(1_000), false},
	{"canvases", repeat("", "<canvas width=32767 height=32767></canvas>")(2_000), true},
	{"mathematics", nested("<math><mfrac><mi>x</mi>", "<mi>x", "", 100), false},
	{"mathematics, wide", repeat("<math>", "<msubsup><mi>x</mi><mi>y</mi><mi>z</mi></msubsup>")(5_000), false},
	{"ruby", repeat("<ruby>", "x<rt>y")(15_000), false},
	{"details", repeat("", "<details open><summary>x</summary>")(120), false},
}

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
	if len(bombs) < 60 {
		t.Fatalf("%d hostile documents", len(bombs))
	}
	server := pdftest.Serve(t, imageServer)
	c := configuration(t, server)
	if seconds, err := strconv.Atoi(os.Getenv("RENDER_SECONDS")); err == nil {
		c.RenderSeconds = seconds
	}
	r := started(t, c)
	ran := 0
	for _, bomb := range bombs {
		if !bomb.short && !pdftest.Everything {
			continue
		}
		ran++
		t.Run(bomb.name, func(t *testing.T) {
			html := strings.ReplaceAll(bomb.html(), "IMAGES", server.Listener.Addr().String())
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
	t.Logf("%d of %d documents", ran, len(bombs))
}
