package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"svcapi/local/build"
	"svcapi/local/jail"
	"svcapi/local/jail/spec"
	"svcapi/local/lambda"
	"svcapi/local/template"
	"svcapi/local/workdir"
)

// browserName is the name under which this program takes the place of the browser.
const browserName = "headless_shell"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == browserName {
		readProcesses()
	}
	os.Exit(m.Run())
}

// docs/decisions.md#pdf-renderer: a program in the place of the browser finds no credential but the renderer's, and no name
// of a table, while the function with the money runs on the same machine.
func TestReplacedBrowser(t *testing.T) {
	confined, err := jail.New(t.Context(), func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	if !confined.Has(spec.Namespaces) || !confined.Has(spec.User) {
		t.Skip("this machine's kernel gives the functions no /proc and no user of their own")
	}
	root, err := workdir.Root()
	if err != nil {
		t.Fatal(err)
	}
	product, err := template.Load(filepath.Join(root, "template.yaml"), map[string]string{"DynamoDbEndpointUrl": "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	pdf, _ := product.Function("pdf")
	render, _ := product.Function("pdfrender")
	binaries, err := build.Functions(t.Context(), []template.Function{pdf, render})
	if err != nil {
		t.Fatal(err)
	}
	reader := filepath.Join(t.TempDir(), "procreader", browserName)
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Dir(reader), 0o755), os.WriteFile(reader, program, 0o755)); err != nil {
		t.Fatal(err)
	}
	host, err := lambda.NewHost(lambda.Options{
		LogDir: t.TempDir(), Jail: confined, Concurrency: 1, Environment: map[string]string{"CHROMIUM": reader, "SVC_LOCAL": "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(host.Close)
	for _, f := range []template.Function{pdf, render} {
		if err := host.Add(f, binaries[f.LogicalID]); err != nil {
			t.Fatal(err)
		}
	}
	if result, err := host.Invoke(t.Context(), pdf.LogicalID, []byte(`{"httpMethod":"GET","path":"/"}`)); err != nil || result.FunctionError != "" {
		t.Fatalf("%v %s", err, result.Payload)
	}
	event, err := os.ReadFile(filepath.Join(root, "events", "pdf-render.json"))
	if err != nil {
		t.Fatal(err)
	}
	result, err := host.Invoke(t.Context(), render.LogicalID, event)
	if err != nil || result.FunctionError == "" {
		t.Fatalf("%v %s", err, result.Payload)
	}
	var failure struct{ ErrorMessage string }
	if err := json.Unmarshal(result.Payload, &failure); err != nil {
		t.Fatal(err)
	}
	report := regexp.MustCompile(`procreader: (\d+) processes;(.*);end`).FindStringSubmatch(failure.ErrorMessage)
	if report == nil {
		t.Fatalf("no report: %s", failure.ErrorMessage)
	}
	t.Logf("%s processes, %s", report[1], report[2])
	// The filter denies what would close the renderer's memory, as Lambda does: its own key shows that readProcesses can read.
	if report[2] == "" && confined.Has(spec.Filter) {
		t.Error("found nothing")
	}
	for found := range strings.SplitSeq(report[2], ";") {
		if found != "" && !strings.HasPrefix(found, "AWS_ACCESS_KEY_ID="+lambda.AccessKeyID(render)) {
			t.Errorf("found %q", found)
		}
	}
}

// wanted are an access key of the local stack, which names its function, and the name of a table.
var wanted = regexp.MustCompile(`AWS_ACCESS_KEY_ID=LOCAL[A-Z]+|[A-Z]+_TABLE=[a-z-]+|PRICE_[A-Z]+=[0-9]+`)

// most is the number of bytes that readProcesses reads of one file.
const most = 16 << 20

// readProcesses runs in the place of a browser that was taken over. The function reads all of /proc that it may, and writes
// to standard error which access keys and names of tables it found, with the number of processes that it saw.
func readProcesses() {
	found, processes := map[string]bool{}, 0
	look := func(text []byte) {
		for _, match := range wanted.FindAll(text, -1) {
			found[string(match)] = true
		}
	}
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, pid := range pids {
		if pid == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		processes++
		_ = filepath.WalkDir(pid, func(path string, entry fs.DirEntry, err error) error {
			if entry != nil && entry.IsDir() && (entry.Name() == "task" || entry.Name() == "net") {
				return fs.SkipDir // threads have the memory and the environment of their process
			}
			// memory reads mem; pagemap has the places of pages and no content.
			if err == nil && entry.Type().IsRegular() && entry.Name() != "mem" && entry.Name() != "pagemap" {
				if file, err := os.Open(path); err == nil {
					text, _ := io.ReadAll(io.LimitReader(file, most))
					file.Close()
					look(text)
				}
			}
			return nil
		})
		look(memory(pid))
	}
	fmt.Fprintf(os.Stderr, "procreader: %d processes;%s;end", processes, strings.Join(slices.Sorted(maps.Keys(found)), ";"))
	os.Exit(1)
}

// memory returns the writable memory of a process, as far as it may be read.
func memory(pid string) []byte {
	maps, _ := os.ReadFile(pid + "/maps")
	mem, err := os.Open(pid + "/mem")
	if err != nil {
		return nil
	}
	defer mem.Close()
	var all []byte
	for line := range bytes.Lines(maps) {
		var from, to int64
		var rights string
		if n, _ := fmt.Sscanf(string(line), "%x-%x %s", &from, &to, &rights); n == 3 && strings.HasPrefix(rights, "rw") && to-from < most && len(all) < most {
			region := make([]byte, to-from)
			n, _ := mem.ReadAt(region, from)
			all = append(all, region[:n]...)
		}
	}
	return all
}
