package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"svcapi/local/demo"
	"svcapi/local/workdir"
	"svcapi/shared/project"
	"svcapi/shared/wallet"
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

// TestOperations checks that the table holds every operation of the API and no other, and that each row can be
// measured.
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
		if !found || seen[o.Name] || o.Title == "" || o.VUs < 1 || o.Weight < 1 || o.Most.Median <= 0 ||
			o.Most.P95 < o.Most.Median {
			t.Errorf("row %+v", o)
		}
		if o.Charges != "" && !slices.ContainsFunc(wallet.PriceList(),
			func(p wallet.Price) bool { return p.Name == o.Charges }) {
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

// TestReportMemory checks that a process of the product which grows fails a run, and that no other growth does.
func TestReportMemory(t *testing.T) {
	steady := func(float64) float64 { return 20 }
	leak := func(at float64) float64 { return 20 + 10*at }
	late := func(at float64) float64 {
		if at < 0.8 {
			return 0 // no process
		}
		return 20
	}
	for _, c := range []struct {
		name  string
		other bool                       // not the product
		sizes []func(at float64) float64 // in MiB at a share of the run, one for each process
		wrong string
	}{
		{"steady", false, []func(float64) float64{steady, late}, ""},
		{"warms up", false, []func(float64) float64{func(at float64) float64 { return min(20, 5+80*at) }}, ""},
		{"a small one leaks", false, []func(float64) float64{steady, leak}, "part: one process grew from 23.8 to 28.8 MiB"},
		{"a large one moves a little", false, []func(float64) float64{func(at float64) float64 { return 200 + 16*at }}, ""},
		{"a large one leaks", false, []func(float64) float64{func(at float64) float64 { return 200 + 60*at }},
			"part: one process grew"},
		{"shrinks", false, []func(float64) float64{func(at float64) float64 { return 200 - 60*at }}, ""},
		{"another's leaks", true, []func(float64) float64{leak}, ""},
		{"nothing to judge", false, []func(float64) float64{late}, "part: no process ran"},
		{"no process", false, nil, "part: no process ran"},
	} {
		p := part{name: "part", judged: !c.other}
		for tick := range 400 {
			sizes := map[int]int64{}
			for pid, of := range c.sizes {
				if bytes := int64(of(float64(tick)/400) * mib); bytes > 0 {
					sizes[pid] = bytes
				}
			}
			p.sizes = append(p.sizes, sizes)
		}
		if wrong := fmt.Sprint(reportMemory(t.Output(), []part{p})); (wrong == "<nil>") != (c.wrong == "") ||
			!strings.HasPrefix(wrong, c.wrong) && c.wrong != "" {
			t.Errorf("%s: %s, want %s", c.name, wrong, c.wrong)
		}
	}
}
