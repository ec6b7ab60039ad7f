package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"svcapi/local/demo"
	"svcapi/local/workdir"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

// operation is a row of operations.json. The scripts read further fields: the request's body and the expected response.
type operation struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Project string `json:"project"` // demo project; empty: no credentials
	Method  string `json:"method"`  // default POST
	Path    string `json:"path"`
	VUs     int    `json:"vus"`     // clients at once, where the operation is measured alone
	Weight  int    `json:"weight"`  // in the mix
	Charges string `json:"charges"` // the price list's name; empty: free

	// Most are the thresholds, in multiples of the hello function's time at that moment.
	Most struct {
		Median float64 `json:"median"`
		P95    float64 `json:"p95"`
	} `json:"most"`
}

// TestOperations checks that the table holds every operation of the API and no other, and that each row can be measured.
func TestOperations(t *testing.T) {
	root, err := workdir.Root()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := openapi3.NewLoader().LoadFromFile(filepath.Join(root, "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var list []operation
	text, err := os.ReadFile("operations.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for path, item := range spec.Paths.Map() {
		for method := range item.Operations() {
			missing[method+" "+path] = true
		}
	}
	declared := len(missing)
	known := map[string]bool{}
	seen := map[string]bool{}
	for _, o := range list {
		method := o.Method
		if method == "" {
			method = "POST"
		}
		found := o.Path == "/docs" // of the stack, not of the API
		for path, item := range spec.Paths.Map() {
			if fits(path, o.Path) && item.GetOperation(method) != nil {
				delete(missing, method+" "+path)
				found = true
			}
		}
		if !found || seen[o.Name] || o.Title == "" || o.VUs < 1 || o.Weight < 1 || o.Most.Median <= 0 || o.Most.P95 < o.Most.Median {
			t.Errorf("row %+v", o)
		}
		if o.Charges != "" && !slices.ContainsFunc(credit.PriceList(), func(p credit.Price) bool { return p.Name == o.Charges }) {
			t.Errorf("%s: no price %s", o.Name, o.Charges)
		}
		if o.Project != "" && demo.CredentialOf(o.Project, project.Development).ClientID == "" {
			t.Errorf("%s: no project %s", o.Name, o.Project)
		}
		seen[o.Name] = true
		known[o.Project] = true
	}
	if len(missing) > 0 || declared == 0 {
		t.Errorf("operations without a row: %v", missing)
	}
	for _, id := range spenders {
		if !known[id] {
			t.Errorf("no operation uses the project %s", id)
		}
		delete(known, id)
	}
	if delete(known, ""); len(known) > 0 {
		t.Errorf("projects whose ledgers are not read: %v", known)
	}
}

// fits compares a path with a template's.
func fits(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i, segment := range want {
		if segment != got[i] && !strings.HasPrefix(segment, "{") {
			return false
		}
	}
	return true
}

// played returns a part with one process for each function, which gives the size in MiB at an hour of a run; 0: no
// process. The run takes an hour, with a tick every ten seconds.
func played(judged bool, mebibytes ...func(hours float64) float64) part {
	p := part{name: "part", judged: judged}
	for at := time.Duration(0); at <= time.Hour; at += 10 * time.Second {
		sizes := map[int]int64{}
		for pid, of := range mebibytes {
			if bytes := int64(of(at.Hours()) * mib); bytes > 0 {
				sizes[pid+1] = bytes
			}
		}
		p.sizes = append(p.sizes, sizes)
	}
	return p
}

func since(hours float64, size func(float64) float64) func(float64) float64 {
	return func(h float64) float64 {
		if h < hours {
			return 0
		}
		return size(h)
	}
}

func steady(float64) float64 { return 20 }

func leak(h float64) float64 { return 20 + 10*h }

// TestFlat checks which growth counts as flat.
func TestFlat(t *testing.T) {
	for _, c := range []struct {
		name       string
		mebibytes  func(hours float64) float64
		throughout bool
		flat       bool
		perHour    float64
	}{
		{"constant", steady, true, true, 0},
		{"warms up, then is flat", func(h float64) float64 { return min(20, 5+80*h) }, true, true, 0},
		{"a small one leaks", leak, true, false, 10},
		{"a large one moves a little", func(h float64) float64 { return 200 + 16*h }, true, true, 16},
		{"a large one leaks", func(h float64) float64 { return 200 + 60*h }, true, false, 60},
		{"shrinks", func(h float64) float64 { return 200 - 60*h }, true, true, -60},
		{"one peak", func(h float64) float64 {
			if h > 0.9 && h < 0.92 {
				return 100
			}
			return 20
		}, true, true, 0},
		{"came later", since(0.5, steady), false, false, 0},
	} {
		p := played(true, c.mebibytes)
		g, throughout := p.grown(1)
		if throughout != c.throughout || throughout && g.flat() != c.flat {
			t.Errorf("%s: %+v, throughout %t, flat %t", c.name, g, throughout, g.flat())
		}
		if off := g.perHour(time.Hour) - c.perHour; c.throughout && (off > 0.01 || off < -0.01) {
			t.Errorf("%s: %.3f MiB an hour, want %.3f", c.name, g.perHour(time.Hour), c.perHour)
		}
	}
}

// TestMemoryReport checks that growth of the product fails a run, and that growth of other programs does not.
func TestMemoryReport(t *testing.T) {
	late := since(5.0/6, steady)
	for _, c := range []struct {
		name  string
		part  part
		wrong string
	}{
		{"leaks", played(true, steady, leak), "part: one process grew from 23."},
		{"another's", played(false, leak), ""},
		{"steady", played(true, steady, late), ""},
		{"nothing to judge", played(true, late), "part: no process ran"},
		{"no process at all", played(true), "part: no process ran"},
	} {
		wrong := strings.Join(reportMemory(io.Discard, []part{c.part}, time.Hour), "\n")
		if c.wrong == "" && wrong != "" || !strings.HasPrefix(wrong, c.wrong) {
			t.Errorf("%s: %q, want %q", c.name, wrong, c.wrong)
		}
	}
}

// TestReport checks how k6's summary is read.
func TestReport(t *testing.T) {
	const text = `{"failed": ["breaches: count==0"], "paid": {"pdf": 7}, "values": {
		"breaches": {"count": 2, "rate": 0.1}, "served_pdf": {"count": 7}, "took_pdf": {"med": 1.5, "p(95)": 3}}}`
	r := &report{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		t.Fatal(err)
	}
	if len(r.Failed) != 1 || r.Failed[0] != "breaches: count==0" {
		t.Errorf("failures %v", r.Failed)
	}
	if r.count("served_pdf") != 7 || r.Paid["pdf"] != 7 || r.Values["took_pdf"]["p(95)"] != 3 || r.count("refused") != 0 {
		t.Errorf("%+v", r)
	}
}

// TestCauses checks that refusals are counted by their errors in the logs.
func TestCauses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sms.log")
	text := `{"operation":"sms.send","error":"reserve: no response"}
{"operation":"sms.send","outcome":"ok"}
no JSON
{"resource":"/api/v1/sms/send","failure":"THROTTLED: over the stage's rate"}
{"operation":"sms.send","error":"reserve: no response"}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	if err := count(path, counts); err != nil {
		t.Fatal(err)
	}
	if len(counts) != 2 || counts["sms.send: reserve: no response"] != 2 || counts["gateway: THROTTLED: over the stage's rate"] != 1 {
		t.Errorf("%v", counts)
	}
}
