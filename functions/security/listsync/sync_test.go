package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/functions/security/disposable"
	"svcapi/functions/security/disposable/lists"
	"svcapi/local/sandbox"
	"svcapi/shared/burner"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
	"svcapi/test/enginetest"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// docs/decisions/look-ups.md#fresh-lists: a good fetch replaces the difference, and any other changes only the age.
func TestSync(t *testing.T) {
	db, tables := enginetest.Client(t)
	server, err := sandbox.Start()
	must.Succeed(t, err)
	t.Cleanup(func() { _ = server.Close() })
	now, log := time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC), bytes.Buffer{}
	s := &syncer{
		store: burner.NewStore(db, tables.Projects), client: upstream.New(upstream.Config{TimeoutSeconds: 9,
			Local: true}), endpoint: server.URL,
		now: func() time.Time { return now }, log: telemetry.New(&log, telemetry.Config{}),
	}
	compiled := slices.Collect(disposable.Compiled().All)
	publish := func(text, array []string) {
		sources, err := lists.Sources()
		must.Succeed(t, err)
		var all []string
		for _, source := range sources {
			all = append(all, source.Newest...)
		}
		for _, newest := range all {
			format, address, ok := strings.Cut(newest, ":https://")
			if !ok {
				t.Errorf("%s has no https address", newest)
			}
			_, path, _ := strings.Cut(address, "/")
			content, _ := json.Marshal(array)
			if format == "text" {
				content = []byte(strings.Join(text, "\n"))
			}
			server.SetFile("/"+path, content)
		}
	}
	var last burner.Difference
	run := func(after time.Duration, failure string) {
		t.Helper()
		now = now.Add(after)
		log.Reset()
		must.Succeed(t, s.handle(t.Context()))
		var line struct {
			Level, Failure string
			ListsAge       float64
		}
		judged, err := s.store.List(t.Context(), burner.Stage)
		must.Succeed(t, json.Unmarshal(log.Bytes(), &line))
		d := judged.Difference
		if err != nil || !strings.Contains(d.Failure, failure) || line.Failure != d.Failure ||
			(failure == "") != (line.Level == "INFO") ||
			line.ListsAge != d.Age(now).Seconds() || !d.Tried.Equal(now) {
			t.Errorf("%v, %+v, %s", err, d.Outcome, &log)
		}
		if failure != "" {
			last.Failure, last.Tried = d.Failure, d.Tried
			if !bytes.Equal(d.Packed, last.Packed) || !reflect.DeepEqual(d.Outcome, last.Outcome) {
				t.Errorf("%s: a failure has changed %+v to %+v", failure, last.Outcome, d.Outcome)
			}
		}
		last = d
	}
	last.Since = now
	run(0, "status 404") // a new stage, and a source without the file
	run(24*time.Hour, "status 404")
	if last.Age(now) != 24*time.Hour {
		t.Errorf("before the first list the age is %s", last.Age(now))
	}

	added := []string{"New-1.example # remark.example", "b\u00fccher.example", "deep.new-2.example"}
	// Ordinary domains and their parents, a public suffix, a child of a listed domain, texts that are no domains,
	// comments.
	never := []string{"gmail.com", "appleid.com", "test.de", "co.uk", "child.new-1.example", "example", "a_b.example",
		"# the list of remark.example", "// remark.example"}
	publish(slices.Concat(compiled[100:], added, never), compiled[1000:2000])
	run(24*time.Hour, "")
	d, err := disposable.Read(last.Packed)
	if err != nil || last.Added != 3 || last.Removed != 100 || last.Domains != len(compiled)-97 ||
		len(last.Sources) != 6 || last.Age(now) != 0 {
		t.Fatalf("%v, %+v", err, last.Outcome)
	}
	for domain, want := range map[string]bool{
		"new-1.example": true, "xn--bcher-kva.example": true, "x.deep.new-2.example": true, "new-2.example": false,
		compiled[0]: false, compiled[100]: true,
		"gmail.com": false, "privaterelay.appleid.com": false, "test.de": false, "x.co.uk": false,
	} {
		if _, ok := d.Find(domain); ok != want {
			t.Errorf("%s is listed: %v", domain, ok)
		}
	}

	for _, outcome := range []sandbox.Outcome{sandbox.ServerError, sandbox.Unparseable,
		sandbox.Truncated, sandbox.Closed} {
		must.Succeed(t, server.SetRules(sandbox.Rule{Vendor: "lists", Outcome: outcome, Times: 1}))
		run(time.Hour, "disposable_email_blocklist.conf: ")
	}
	if last.Age(now) != 4*time.Hour {
		t.Errorf("after four failures of an hour the age is %s", last.Age(now))
	}
	publish(compiled, compiled[:99])
	run(0, "99 domains, not 100 to")
	publish(compiled, []string{})
	run(0, "no domains")
	publish([]string{strings.Repeat("x", maxBytes+1)}, compiled)
	run(0, fmt.Sprint("over ", maxBytes, " bytes"))
	publish(append(noDomains(2000), compiled...), compiled)
	run(0, "texts are no domains")
	kept := len(compiled) - len(compiled)*maxChange/100
	publish(compiled[:kept-300], compiled[:1000])
	run(0, "over 20 %")
	publish(compiled[:kept+300], compiled[:1000])
	run(0, "")
	// The bound is about the list in use: from here another eighth may go, which is with the last more than a fifth of the
	// compiled list.
	publish(compiled[:kept-len(compiled)/8], compiled[:1000])
	run(24*time.Hour, "")
	publish(compiled, compiled[:1000])
	run(0, "over 20 %")

	damaged := burner.Difference{Outcome: last.Outcome, Packed: []byte("damaged")}
	must.Succeed(t, s.store.PutDifference(t.Context(), damaged))
	run(time.Hour, "") // the fetch replaces what cannot be read
	if _, err := disposable.Read(last.Packed); err != nil {
		t.Error(err)
	}

	s.store = burner.NewStore(db, "no-such-table")
	if log.Reset(); s.handle(t.Context()) == nil || !bytes.Contains(log.Bytes(), []byte("lists not synced")) ||
		bytes.Contains(log.Bytes(), []byte("ListsAge")) {
		t.Errorf("without a table: %s", &log)
	}
}

// noDomains returns texts that are no domains.
func noDomains(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf("<p>%d", i))
	}
	return texts
}

func TestConfig(t *testing.T) {
	t.Setenv("PROJECTS_TABLE", "")
	for _, c := range []struct {
		name, value string
		valid       bool
	}{{"PROJECTS_TABLE", "projects", true}, {"LISTS_ENDPOINT_URL", "http://127.0.0.1", false}, {"SVC_LOCAL", "1",
		true}, {"VENDOR_TIMEOUT_SECONDS", "0", false}} {
		if _, err := settings.Read[config](); err == nil && c.name == "PROJECTS_TABLE" {
			t.Error("no table, no error")
		}
		t.Setenv(c.name, c.value)
		if _, err := settings.Read[config](); (err == nil) != c.valid {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
	}
}
