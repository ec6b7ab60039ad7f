package acceptance

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"svcapi/shared/project"
)

// fixedSeed is the seed of the requests that every run of the tests sends; another one is drawn and printed.
const fixedSeed = 11

// hostileAtOnce is how many requests are under way.
const hostileAtOnce = 6

// everything connects a project to one vendor of each kind.
func everything(mode project.Mode) []integration {
	return []integration{
		{vendor: "quicksend", mode: mode}, {kind: project.Security, vendor: "vpnapi", mode: mode}, {kind: project.Location,
			vendor: "ip-api", mode: mode},
		{kind: project.Currency, vendor: "openexchangerates", mode: mode},
	}
}

// Every response to a hostile request is in openapi.yaml, is no 5xx and contains no internals. A refused request is not
// charged, and each charge has a response. REQUESTS and SEED choose other requests, and AT chooses the one of an index.
func TestHostileRequests(t *testing.T) {
	local(t)
	total := number64(t, "REQUESTS", 600)
	seeds := []uint64{fixedSeed, uint64(time.Now().UnixNano() % 1_000_000)}
	if text := os.Getenv("SEED"); text != "" {
		seeds = []uint64{uint64(number64(t, "SEED", 0))}
	} else if os.Getenv("REQUESTS") != "" {
		seeds = seeds[1:]
	}
	const granted = int64(1_000_000_000_000)
	managed := plan{credits: granted, integrations: everything(project.Managed)}.make(t).drawing(t,
		project.Managed).printing(t, project.Managed)
	byok := plan{integrations: everything(project.BYOK)}.make(t).drawing(t, project.BYOK)
	var mu sync.Mutex
	statusOf, statuses := map[string]int{}, map[int]int{} // by request ID; the responses of each
	for _, seed := range seeds {
		g := &generator{seed: seed, examples: examples(fixture.spec), tenants: []*tenant{managed, managed, byok}}
		first, n := 0, total/len(seeds)
		t.Logf("%d requests, SEED=%d", n, seed)
		if os.Getenv("AT") != "" {
			first, n = number64(t, "AT", 0), 1
			t.Logf("%.4096q", fmt.Sprint(g.request(first)))
		}
		atOnce(n, hostileAtOnce, func(i int) *response {
			r := g.request(first + i)
			a := r.send(t)
			mu.Lock()
			statusOf[a.header.Get("X-SVC-Request-ID")] = a.status
			statuses[a.status]++
			mu.Unlock()
			checkHostile(t, r, a)
			return nil
		})
	}
	t.Logf("responses by status: %v", statuses)
	checkMoney(t, managed, granted, statusOf)
	checkMoney(t, byok, 0, statusOf)
	checkProcesses(t)
	// The stack is as it was.
	if a := (request{path: balance, as: managed.dev, body: "{}"}).do(t); a.status != 200 {
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

// inside matches internals that a response never contains.
var inside = regexp.MustCompile(`goroutine \d|runtime ` +
	`error|panic:|\.go:\d+|/(tmp|root|home|var|usr|proc)/|127\.0\.0\.1|localhost|dynamodb|secretsmanager|svcs_|AKIA|ResourceNotFound|github\.com`)

// checkHostile checks one response.
func checkHostile(t *testing.T, r request, a *response) {
	t.Helper()
	media := a.header.Get("Content-Type")
	_, malformed := url.PathUnescape(r.path)
	found := inside.FindString(string(a.body))
	switch {
	case a.status >= 500:
		t.Errorf("%s: %s %.100q: %d %.300s", r.about, r.method, r.path, a.status, a.body)
	case found != "" && !strings.Contains(r.body, found) && !strings.HasPrefix(media, "image/"):
		t.Errorf("%s: %s %.100q: the response contains internals: %q in %.300s", r.about, r.method, r.path, found, a.body)
	case r.method == http.MethodHead ||
		strings.EqualFold(r.method, "post") && r.method != "POST": // the adapter reads post as POST
	case malformed != nil && a.status == 400 &&
		bytes.Contains(a.body, []byte(`"request_not_served"`)): // docs/decisions/requests.md#routes
	case strings.HasPrefix(media, "application/json"):
		a.check(t, r)
	case a.status != 200 || len(a.body) == 0 ||
		a.header.Get("Content-Length") != strconv.Itoa(len(a.body)) && !strings.Contains(r.path, "/pdf/stream"):
		t.Errorf("%s: %s %.100q: %d %v, %d bytes", r.about, r.method, r.path, a.status, a.header, len(a.body))
	}
}

// checkMoney compares the project's wallet with its ledger, and the ledger with the responses.
func checkMoney(t *testing.T, p *tenant, granted int64, statusOf map[string]int) {
	t.Helper()
	charged := int64(0)
	for id, e := range p.ledger(t) {
		if e.State != "captured" {
			continue
		}
		charged += e.Credits
		if status := statusOf[id]; status != 200 || e.Uncertain || e.Credits <= 0 {
			t.Errorf("project %s: %+v got the response %d", p.id, e, status)
		}
	}
	t.Logf("project %s: %d credits charged", p.id, charged)
	if left := p.balance(t); left != granted-charged || granted > 0 && charged == 0 {
		t.Errorf("project %s: %d credits of %d are left, %d were charged", p.id, left, granted, charged)
	}
}

// peak returns the most memory that one of the processes has needed, in bytes; 0 on a machine without Linux's /proc.
func peak(t *testing.T, processes []int) (largest int) {
	t.Helper()
	for _, id := range processes {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", id)) // a process that has ended has none
		_, value, _ := strings.Cut(string(status), "\nVmHWM:")
		kilobytes := 0
		_, _ = fmt.Sscan(value, &kilobytes)
		largest = max(largest, kilobytes<<10)
	}
	return largest
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
		content := readFile(t, file)
		for _, sign := range []string{"panic:", "goroutine ", "fatal error", "Runtime.ExitError", "Could not convert"} {
			if at := strings.Index(content, sign); at >= 0 {
				t.Errorf("%s: %.600s", filepath.Base(file), content[max(0, at-200):])
			}
		}
	}
}
