package acceptance

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"svcapi/shared/project"
)

// fixedSeed is the seed of the requests that every run of the tests sends; another one is drawn and printed.
const fixedSeed = 11

// hostileAtOnce is how many requests are under way.
const hostileAtOnce = 6

// everything connects a project to one vendor of each kind.
func everything(mode project.Mode) []integration {
	return []integration{
		{vendor: "quicksend", mode: mode}, {kind: project.Security, vendor: "vpnapi", mode: mode}, {kind: project.Location, vendor: "ip-api", mode: mode},
		{kind: project.Currency, vendor: "openexchangerates", mode: mode},
	}
}

// Every response to hostile bytes is in openapi.yaml, is no 5xx and contains no internals. A refused request is not
// charged, and each charge has a response. REQUESTS and SEED choose other requests, and AT chooses the one of an index.
//
// The local gateway is net/http, which refuses by itself what is no HTTP; API Gateway refuses more, and in words of its
// own. What reaches a function is the same.
func TestHostileRequests(t *testing.T) {
	local(t)
	total := number64(t, "REQUESTS", 2000)
	seeds := []uint64{fixedSeed, uint64(time.Now().UnixNano() % 1_000_000)}
	if text := os.Getenv("SEED"); text != "" {
		seeds = []uint64{uint64(number64(t, "SEED", 0))}
	} else if os.Getenv("REQUESTS") != "" {
		seeds = seeds[1:]
	}
	const granted = int64(1_000_000_000_000)
	managed := plan{credits: granted, integrations: everything(project.Managed)}.make(t).drawing(t, project.Managed)
	svc[any](t, "", "integration", "set", managed.id, "pdf", "builtin", "--env", "development", "--mode", "managed")
	byok := plan{integrations: everything(project.BYOK)}.make(t).drawing(t, project.BYOK)
	forget()
	host := strings.TrimPrefix(fixture.baseURL, "http://")
	host, prefix, _ := strings.Cut(host, "/")
	run := &hostile{t: t, host: host, statusOf: map[string]int{}, statuses: map[int]int{}}
	for _, seed := range seeds {
		g := &generator{seed: seed, prefix: "/" + prefix, host: host, examples: examples(fixture.spec), tenants: []*tenant{managed, managed, byok}}
		n := total / len(seeds)
		t.Logf("%d requests, SEED=%d", n, seed)
		run.all(g, n)
	}
	t.Logf("%d responses by status: %v; %d connections ended without one", run.total(), run.statuses, run.silent.Load())
	if run.total() < total/2 && os.Getenv("AT") == "" {
		t.Errorf("only %d of %d requests got a response", run.total(), total)
	}
	run.checkMoney(managed, granted)
	run.checkMoney(byok, 0)
	checkProcesses(t)
	// The stack is as it was.
	if a := (request{path: balance, as: managed.dev, body: "{}"}).do(t); a != nil && a.status != 200 {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

func number64(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(variable), strconv.Itoa(otherwise)))
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// hostile sends requests and checks the responses.
type hostile struct {
	t      *testing.T
	host   string
	silent atomic.Int64
	errors atomic.Int64

	mu       sync.Mutex
	statusOf map[string]int // status by request ID, of those with credentials
	statuses map[int]int
}

func (h *hostile) total() int {
	sum := 0
	for _, n := range h.statuses {
		sum += n
	}
	return sum
}

func (h *hostile) all(g *generator, n int) {
	if at := os.Getenv("AT"); at != "" {
		index := number64(h.t, "AT", 0)
		h.t.Logf("request %d, %q:\n%.4096q", index, g.request(index).how, g.request(index).bytes())
		h.one(g, index)
		return
	}
	next := make(chan int)
	var running sync.WaitGroup
	for range hostileAtOnce {
		running.Go(func() {
			for i := range next {
				h.one(g, i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	running.Wait()
}

// one sends the request of an index and reads all that comes back.
func (h *hostile) one(g *generator, index int) {
	w := g.request(index)
	wrong := func(format string, arguments ...any) {
		if h.errors.Add(1) <= 20 {
			h.t.Errorf("SEED=%d AT=%d, %s %.100q %q: %s", g.seed, index, w.method, w.target, w.how, fmt.Sprintf(format, arguments...))
		}
	}
	conn, err := net.Dial("tcp", h.host)
	if err != nil {
		wrong("%v", err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(45 * time.Second)) // a connection has one
	sent, data, sound := make(chan struct{}), w.bytes(), w.sound
	go func() {
		defer close(sent)
		_, _ = conn.Write(data) // refused midway is refused
		if !sound {
			_ = conn.(*net.TCPConn).CloseWrite() // what was announced and does not come, does not come
		}
	}()
	defer func() { conn.Close(); <-sent }()
	in := bufio.NewReader(conn)
	for responses := range 3 {
		got, err := http.ReadResponse(in, &http.Request{Method: w.method})
		if err != nil {
			if netErr := net.Error(nil); errors.As(err, &netErr) && netErr.Timeout() {
				wrong("no response in 45 s")
			} else if responses == 0 && w.sound {
				wrong("no response: %v", err)
			} else if responses == 0 {
				h.silent.Add(1)
			}
			return
		}
		body, err := io.ReadAll(got.Body)
		if err != nil && w.sound {
			wrong("cut off: %v", err)
		}
		if got.StatusCode == http.StatusContinue {
			continue
		}
		h.note(w, got, body, wrong)
		w = &wire{method: http.MethodGet, how: append(w.how, "what came next"), free: true} // a response to the bytes after the request
	}
}

// inside matches internals that a response never contains.
var inside = regexp.MustCompile(`goroutine \d|runtime error|panic:|\.go:\d+|/(tmp|root|home|var|usr|proc)/|127\.0\.0\.1|localhost|dynamodb|secretsmanager|svcs_|AKIA|ResourceNotFound|github\.com`)

// note checks one response and counts its status.
func (h *hostile) note(w *wire, got *http.Response, body []byte, wrong func(string, ...any)) {
	id := got.Header.Get("X-SVC-Request-ID")
	h.mu.Lock()
	h.statuses[got.StatusCode]++
	if id != "" {
		h.statusOf[id] = got.StatusCode
	}
	h.mu.Unlock()
	if got.StatusCode >= 500 {
		wrong("%d %.300s", got.StatusCode, body)
		return
	}
	if _, err := uuid.Parse(id); err != nil {
		wrong("%d without a request ID: %v, %.300s", got.StatusCode, got.Header, body)
		return
	}
	isPage := strings.HasPrefix(w.target, "/docs") || strings.Contains(got.Header.Get("Content-Security-Policy"), "default-src")
	if got.StatusCode == 304 || isPage || w.method == http.MethodHead || len(body) == 0 && w.method == "" {
		return
	}
	echoes := got.StatusCode == 200 || len(w.body) == 0
	if found := inside.Find(body); found != nil && !bytes.Contains(w.body, found) && (!echoes || !strings.Contains(got.Header.Get("Content-Type"), "image")) {
		wrong("the response contains internals: %q in %.300s", found, body)
	}
	media, _, _ := strings.Cut(got.Header.Get("Content-Type"), ";")
	var value any
	if media == "application/json" {
		if err := json.Unmarshal(body, &value); err != nil {
			wrong("%d is no JSON: %v", got.StatusCode, err)
			return
		}
		var a response
		if err := json.Unmarshal(body, &a); err != nil || a.RequestID != id || a.Success != (got.StatusCode == 200) || a.Success != (a.Error.Code == "") {
			wrong("%d is no envelope: %.300s", got.StatusCode, body)
		}
	}
	// What is no HTTP ends at the gateway, in the same shape.
	if !w.sound && slices.Contains([]int{400, 413, 417, 431}, got.StatusCode) && bytes.Contains(body, []byte(`"http_error"`)) {
		return
	}
	documented := h.documented(w, got.StatusCode)
	if documented == nil {
		if w.sound || !slices.Contains([]int{401, 403, 404, 405, 413}, got.StatusCode) {
			wrong("%d is not documented: %.300s", got.StatusCode, body)
		}
		return
	}
	content := documented.Content[media]
	if content == nil {
		wrong("%d with media type %q", got.StatusCode, media)
		return
	}
	if media != "application/json" {
		if strings.Contains(w.target, "/pdf/stream") && got.Header.Get("Content-Length") == "" && len(body) > 0 {
			return // a stream has no length
		}
		if n, err := strconv.Atoi(got.Header.Get("Content-Length")); err != nil || n != len(body) || n == 0 {
			wrong("%d bytes, Content-Length %q", len(body), got.Header.Get("Content-Length"))
		}
		return
	}
	if err := content.Schema.Value.VisitJSON(value, openapi3.VisitAsResponse()); err != nil {
		wrong("%d, schema: %v", got.StatusCode, err)
	}
}

// documented finds the response in openapi.yaml, by the example's path or by the changed target.
func (h *hostile) documented(w *wire, status int) *openapi3.Response {
	path := w.path
	if path == "" {
		target := strings.TrimPrefix(w.target, "http://evil.example") // the host makes no difference
		path, _, _ = strings.Cut(strings.TrimPrefix(target, "/api/v1"), "?")
		if !strings.HasPrefix(target, "/api/v1/") {
			path = "/nothing"
		}
	}
	return fixture.documented(request{method: cmp.Or(strings.ToUpper(w.method), http.MethodGet), path: path}, status) // the adapter reads post as POST
}

// checkMoney compares the project's wallet with its ledger, and the ledger with the responses.
func (h *hostile) checkMoney(p *tenant, granted int64) {
	h.t.Helper()
	charged := int64(0)
	for id, e := range p.ledger(h.t) {
		if e.State != "captured" {
			continue
		}
		charged += e.Credits
		if status := h.statusOf[id]; status != 200 || e.Uncertain || e.Credits <= 0 {
			h.t.Errorf("project %s: %+v got the response %d", p.id, e, status)
		}
	}
	h.t.Logf("project %s: %d credits charged", p.id, charged)
	if left := p.balance(h.t); left != granted-charged || granted > 0 && charged == 0 {
		h.t.Errorf("project %s: %d credits of %d are left, %d were charged", p.id, left, granted, charged)
	}
}

// checkProcesses holds every function's processes to its memory, and looks for those that died.
func checkProcesses(t *testing.T) {
	t.Helper()
	for _, f := range fixture.stack.Template.Functions {
		if largest := peak(t, fixture.stack.Processes(f.LogicalID)); largest > f.MemoryMB<<20 {
			t.Errorf("%s: a process has held %d MB of %d", f.LogicalID, largest>>20, f.MemoryMB)
		} else {
			t.Logf("%s: the largest process has held %d MB of %d", f.LogicalID, largest>>20, f.MemoryMB)
		}
	}
	files, err := filepath.Glob(filepath.Join(fixture.stack.LogDir, "*.log"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, sign := range []string{"panic:", "goroutine ", "fatal error", "Runtime.ExitError", "Could not convert"} {
			if at := bytes.Index(content, []byte(sign)); at >= 0 {
				t.Errorf("%s: %.600s", filepath.Base(file), content[max(0, at-200):])
			}
		}
	}
}
