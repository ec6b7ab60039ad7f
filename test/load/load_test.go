package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"svcapi/local/demo"
	"svcapi/local/workdir"
	"svcapi/shared/project"
)

// TestOperations checks that the table holds every operation of the API, names none that is not there, and that each row
// can be measured.
func TestOperations(t *testing.T) {
	root, err := workdir.Root()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := openapi3.NewLoader().LoadFromFile(filepath.Join(root, "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := operations()
	if err != nil {
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
			t.Errorf("nothing is asked for %s", id)
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

// played is the size of a process over an hour.
func played(from, to time.Duration, mebibytes func(hours float64) float64) (list []sample, began time.Time) {
	began = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for at := from; at <= to; at += 10 * time.Second {
		list = append(list, sample{began.Add(at), int64(mebibytes(at.Hours()) * mib)})
	}
	return list, began
}

// TestFlat checks what is called flat.
func TestFlat(t *testing.T) {
	for _, c := range []struct {
		name       string
		from       time.Duration
		mebibytes  func(hours float64) float64
		throughout bool
		flat       bool
		perHour    float64
	}{
		{"constant", 0, func(float64) float64 { return 20 }, true, true, 0},
		{"warms up, then is flat", 0, func(h float64) float64 { return min(20, 5+80*h) }, true, true, 0},
		{"a small one leaks", 0, func(h float64) float64 { return 20 + 10*h }, true, false, 10},
		{"a large one moves a little", 0, func(h float64) float64 { return 200 + 16*h }, true, true, 16},
		{"a large one leaks", 0, func(h float64) float64 { return 200 + 60*h }, true, false, 60},
		{"shrinks", 0, func(h float64) float64 { return 200 - 60*h }, true, true, -60},
		{"one peak", 0, func(h float64) float64 {
			if h > 0.9 && h < 0.92 {
				return 100
			}
			return 20
		}, true, true, 0},
		{"came later", 30 * time.Minute, func(float64) float64 { return 20 }, false, false, 0},
	} {
		series, began := played(c.from, time.Hour, c.mebibytes)
		g, throughout := grown(series, began, began.Add(time.Hour))
		if throughout != c.throughout || throughout && g.flat() != c.flat {
			t.Errorf("%s: %+v, throughout %t, flat %t", c.name, g, throughout, g.flat())
		}
		if off := g.perHour/mib - c.perHour; c.name != "one peak" && (off > 0.01 || off < -0.01) {
			t.Errorf("%s: %.3f MiB an hour, want %.3f", c.name, g.perHour/mib, c.perHour)
		}
	}
}

// TestMemoryReport checks that what grows fails a run, and that what stands in for others does not.
func TestMemoryReport(t *testing.T) {
	leak, began := played(0, time.Hour, func(h float64) float64 { return 20 + 10*h })
	steady, _ := played(0, time.Hour, func(float64) float64 { return 20 })
	late, _ := played(50*time.Minute, time.Hour, func(float64) float64 { return 20 })
	for _, c := range []struct {
		name   string
		judged bool
		series map[int][]sample
		wrong  string
	}{
		{"leaks", true, map[int][]sample{1: steady, 2: leak}, "leaks: one process grew from 23."},
		{"another's", false, map[int][]sample{1: leak}, ""},
		{"steady", true, map[int][]sample{1: steady, 2: late}, ""},
		{"nothing to judge", true, map[int][]sample{1: late}, "nothing to judge: no process ran"},
	} {
		w := &watch{parts: []part{{name: c.name, judged: c.judged}}, began: began, series: []map[int][]sample{c.series}, done: make(chan struct{})}
		close(w.done)
		// The end of a run is the last sample of any part.
		w.parts = append(w.parts, part{name: "other"})
		w.series = append(w.series, map[int][]sample{9: steady})
		wrong := strings.Join(w.report(&system{out: io.Discard}), "\n")
		if c.wrong == "" && wrong != "" || !strings.HasPrefix(wrong, c.wrong) {
			t.Errorf("%s: %q, want %q", c.name, wrong, c.wrong)
		}
	}
}

// TestReport checks how k6's summary is read.
func TestReport(t *testing.T) {
	const text = `{"metrics": {
		"breaches": {"type": "counter", "values": {"count": 2, "rate": 0.1}, "thresholds": {"count==0": {"ok": false}}},
		"served_pdf": {"values": {"count": 7}, "thresholds": {"count>0": {"ok": true}}},
		"took_pdf": {"values": {"med": 1.5, "p(95)": 3}}}}`
	r := &report{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		t.Fatal(err)
	}
	if failures := r.failures(); len(failures) != 1 || failures[0] != "breaches: count==0" {
		t.Errorf("failures %v", failures)
	}
	if r.count("served_pdf") != 7 || r.value("took_pdf", "p(95)") != 3 || r.count("refused") != 0 {
		t.Errorf("%+v", r)
	}
}

// TestCauses checks that refusals are counted by what the logs say of them.
func TestCauses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sms.log")
	text := `{"operation":"sms.send","error":"reserve: no answer"}
{"operation":"sms.send","outcome":"ok"}
no JSON
{"resource":"/api/v1/sms/send","failure":"THROTTLED: over the stage's rate"}
{"operation":"sms.send","error":"reserve: no answer"}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	if err := count(path, counts); err != nil {
		t.Fatal(err)
	}
	if len(counts) != 2 || counts["sms.send: reserve: no answer"] != 2 || counts["gateway: THROTTLED: over the stage's rate"] != 1 {
		t.Errorf("%v", counts)
	}
}
