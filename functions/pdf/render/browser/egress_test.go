package browser

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"svcapi/functions/pdf/render/fetch"
	"svcapi/test/must"
	"svcapi/test/pdftest"
)

// canary listens for all traffic of the browser.
type canary struct {
	http, tcp net.Listener
	udp, dns  net.PacketConn // dns is nil where port 53 is not available

	mu       sync.Mutex
	arrivals map[string]bool // IDs of vectors, or the traffic itself where it has no ID
}

// nameserver is the address of the name server of these tests.
const nameserver = "127.0.0.9"

var vectorID = regexp.MustCompile(`v\d{3}`)

func listen(t *testing.T) *canary {
	t.Helper()
	c := &canary{arrivals: map[string]bool{}}
	var errs [3]error
	c.http, errs[0] = net.Listen("tcp", "127.0.0.1:0")
	c.tcp, errs[1] = net.Listen("tcp", "127.0.0.1:0")
	c.udp, errs[2] = net.ListenPacket("udp", "127.0.0.1:0")
	must.Succeed(t, errors.Join(errs[:]...))
	var err error
	if c.dns, err = net.ListenPacket("udp", nameserver+":53"); err != nil {
		t.Logf("names are not watched, as only root listens on port 53: %v", err)
	}
	server := &http.Server{
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				c.arrived("connection over HTTP")
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.arrived(r.URL.String())
			fmt.Fprint(w, "CANARY-SECRET")
		}),
	}
	go func() { _ = server.Serve(c.http) }()
	go func() {
		for {
			conn, err := c.tcp.Accept()
			if err != nil {
				return
			}
			c.arrived("connection over TCP")
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		server.Close()
		c.tcp.Close()
	})
	for what, conn := range map[string]net.PacketConn{"datagram": c.udp, "query": c.dns} {
		if conn == nil {
			continue
		}
		t.Cleanup(func() { conn.Close() })
		go func() {
			packet := make([]byte, 1500)
			for {
				n, _, err := conn.ReadFrom(packet)
				if err != nil {
					return
				}
				c.arrived(what + " " + string(packet[:n]))
			}
		}()
	}
	return c
}

func (c *canary) arrived(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := vectorID.FindString(what); id != "" {
		what = id
	}
	c.arrivals[what] = true
}

func (c *canary) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.arrivals))
}

// aim puts the canary's addresses into a vector.
func (c *canary) aim(vector, id string) string {
	port := func(a net.Addr) string { return a.String()[strings.LastIndexByte(a.String(), ':')+1:] }
	host := c.http.Addr().String()
	return strings.NewReplacer(
		"RTCPeerConnection", "RTCPeerConnection", "NEWLINE", "\n",
		"HTTP", "http://"+host+"/"+id, "WS", "ws://"+host+"/"+id, "HOST", host, "NAME", id+".canary.test", "ID", id,
		"PORT", port(c.http.Addr()), "UDPPORT", port(c.udp.LocalAddr()), "TCPPORT", port(c.tcp.Addr()),
		"UDP", c.udp.LocalAddr().String(), "TCP", c.tcp.Addr().String(),
		"RUNTIME", host, "PARENT", strconv.Itoa(os.Getpid()),
	).Replace(vector)
}

// launcher returns a program that starts the browser with the canary as its name server where the canary has one,
// without the flags that match a pattern of the shell.
func (c *canary) launcher(t *testing.T, drop string) string {
	t.Helper()
	start := `exec "$browser" "$@"`
	if c.dns != nil {
		resolv := filepath.Join(t.TempDir(), "resolv.conf")
		write(t, resolv, "nameserver "+nameserver+"\noptions attempts:1 timeout:1\n", 0o644)
		start = `exec /usr/bin/unshare --mount /bin/sh -c '/bin/mount --bind ` + resolv +
			` /etc/resolv.conf && exec "$0" "$@"' "$browser" "$@"`
	}
	more := ""
	if drop != "" { // a page of the internet asks before it reaches the loopback, where the canary listens
		more = `set -- "$@" --disable-features=LocalNetworkAccessChecks`
	}
	path := filepath.Join(t.TempDir(), "headless_shell")
	beside := filepath.Dir(pdftest.Browser())
	write(t, path, `#!/bin/sh
browser=`+pdftest.Browser()+`
export FONTCONFIG_FILE=`+beside+`/fonts.conf
for argument; do
	shift
	case "$argument" in `+drop+`) ;; *) set -- "$@" "$argument" ;; esac
done
`+more+`
LD_LIBRARY_PATH=`+beside+`/lib; export LD_LIBRARY_PATH
`+start+"\n", 0o755)
	return path
}

func write(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	must.Succeed(t, os.WriteFile(path, []byte(content), mode))
}

// linger renders as Render does, and leaves the document open for a while before the print.
func linger(t *testing.T, r *Renderer, d Document, open time.Duration) ([]byte, error) {
	t.Helper()
	next(t, r)
	p := <-r.ready
	ctx, cancel := context.WithTimeout(t.Context(), r.options.Time)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	p.page.ctx, p.page.fail, p.page.document = ctx, fail, d
	p.session.page.Store(p.page)
	err := p.page.load(string(d.HTML))
	time.Sleep(open)
	var pdf []byte
	if err == nil {
		d.MaxBytes = 1 << 30
		pdf, err = p.page.print(d, firstPages("", 5))
	}
	p.session.page.Store(nil)
	p.renders++
	if err != nil {
		p.session.end()
		p = prepared{}
	}
	r.replace(t.Context(), p)
	return pdf, err
}

// alone matches vectors that leave or end their document. Each of these vectors has a document of its own.
var alone = regexp.MustCompile(`refresh|frameset|form|declarative|base|csp|speculation|import map|^js ` +
	`(location|history|open|popup|redirect|document|unload|print)`)

// batches returns the documents with the vectors that contain a text. The IDs of the vectors begin with first.
func (c *canary) batches(t *testing.T, first int, containing string) (documents []string, names map[string]string) {
	names = map[string]string{}
	var together []string
	for name, vector := range pdftest.Rows(t, "testdata/egress/vectors.txt") {
		if !strings.Contains(vector, containing) {
			continue
		}
		id := fmt.Sprintf("v%03d", first+len(names))
		names[id] = name
		if aimed := c.aim(vector, id); alone.MatchString(name) {
			documents = append(documents, "<!DOCTYPE html><body>"+aimed)
		} else {
			together = append(together, "<div>"+aimed+"</div>")
		}
	}
	for batch := range slices.Chunk(together, 12) {
		documents = append(documents, "<!DOCTYPE html><body>"+strings.Join(batch, "\n"))
	}
	return documents, names
}

// files returns files that try to reach the canary, and the part of a document that loads them.
func (c *canary) files(t *testing.T, id string) (map[string][]byte, string) {
	files := map[string][]byte{}
	for _, name := range []string{"a.css", "a.svg", "b.svg"} {
		text, err := os.ReadFile(filepath.Join("testdata", "egress", name))
		must.Succeed(t, err)
		files[name] = []byte(c.aim(string(text), id))
	}
	return files, `<link rel=stylesheet href=a.css><p>x<img src=a.svg><img src=b.svg><svg><use href=a.svg#f /></svg>` +
		`<object data=a.svg></object><iframe src=a.svg></iframe><embed src=b.svg>`
}

// secrets are parts of the data that no PDF shows: of files, the environment, the metadata address, the Runtime API,
// and the browser's own pages.
var secrets = []string{"root:", "CANARY", "AWS_", "ami-", "Chromium", "PATH="}

// The browser cannot reach a network and a PDF shows no data of this machine, whether scripts run (long tests) or not.
// Without scripts each vector is tried as a document, and as a header and footer
// (docs/decisions/pdf.md#pdf-containment).
func TestEgress(t *testing.T) {
	t.Parallel()
	listen(t).render(t, func(*canary) string { return pdftest.Browser() }, "")
}

// The browser resolves no name. The test runs outside the jail, where root can watch the look-ups.
func TestEgressOfNames(t *testing.T) {
	if pdftest.Jailed() {
		return
	}
	listen(t).render(t, func(c *canary) string { return c.launcher(t, "--none") }, "NAME")
}

// render renders the vectors that contain a text, and fails the test for each that arrives or shows a secret.
func (c *canary) render(t *testing.T, browser func(*canary) string, containing string) {
	t.Helper()
	all := map[string]string{}
	t.Run("documents", func(t *testing.T) { // returns when all browsers have ended
		for first, scripts := range map[int]bool{0: false, 500: true} {
			// no function runs scripts: the long tests show that the network is closed to scripts, too
			if scripts && !pdftest.Everything {
				continue
			}
			documents, names := c.batches(t, first, containing)
			if containing == "" && len(names) < 201 {
				t.Errorf("%d vectors", len(names))
			}
			t.Logf("scripts %v: %d vectors in %d documents", scripts, len(names), len(documents))
			for id, name := range names {
				all[id] = fmt.Sprintf("%s, scripts %v", name, scripts)
			}
			open, browsers := 20*time.Millisecond, 1
			if scripts {
				open, browsers = 200*time.Millisecond, 4
			}
			for share := range browsers {
				t.Run(fmt.Sprintf("scripts %v, browser %d", scripts, share), func(t *testing.T) {
					t.Parallel()
					options := limitsOf(t)
					options.Path, options.scripts = browser(c), scripts
					if scripts {
						options.Time = 3 * time.Second
					}
					r := New(options)
					defer r.Close()
					images := fetch.New(fetch.Options{Limits: fetch.Limits{Images: 100, Time: time.Second}})
					for i := share; i < len(documents); i += browsers {
						files, loads := c.files(t, "v999")
						d := a4(documents[i] + loads)
						d.Images, d.Files = images.Document(), files
						pdf, err := linger(t, r, d, open)
						if err != nil && !scripts { // a document whose script leaves it has no PDF
							t.Errorf("%s: %v", documents[i], err)
						}
						if err == nil {
							shown := pdftest.Text(t, pdf)
							if slices.ContainsFunc(secrets, func(secret string) bool { return strings.Contains(shown, secret) }) {
								t.Errorf("%s shows %q", documents[i], shown)
							}
						}
						if !scripts { // not each is printed, as Chromium refuses some headers
							d := a4("<p>x")
							d.Header, d.Footer, d.Images = []byte(documents[i]+loads), []byte(documents[i]), images.Document()
							d.Files = files
							_, _ = linger(t, r, d, 0)
						}
					}
					time.Sleep(300 * time.Millisecond) // for what arrives late
				})
			}
		}
	})
	for _, what := range c.all() {
		t.Errorf("arrived: %s %s", what, all[what])
	}
}
