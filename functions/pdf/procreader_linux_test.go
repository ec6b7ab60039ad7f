package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"svcapi/local/build"
	"svcapi/local/jail"
	"svcapi/local/jail/spec"
	"svcapi/local/lambda"
	"svcapi/local/template"
	"svcapi/local/workdir"
)

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
	product, err := template.Load(map[string]string{"DynamoDbEndpointUrl": "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	pdf, _ := product.Function("pdf")
	render, _ := product.Function("pdfrender")
	binaries, err := build.Functions(t.Context(), []template.Function{pdf, render})
	if err != nil {
		t.Fatal(err)
	}
	reader := filepath.Join(t.TempDir(), "procreader", "headless_shell")
	compile := exec.CommandContext(t.Context(), "go", "build", "-o", reader, "./testdata/procreader")
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
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
	// The filter denies what would close the renderer's memory, as Lambda does: its own key shows that procreader can read.
	if report[2] == "" && confined.Has(spec.Filter) {
		t.Error("found nothing")
	}
	for found := range strings.SplitSeq(report[2], ";") {
		if found != "" && !strings.HasPrefix(found, "AWS_ACCESS_KEY_ID="+lambda.AccessKeyID(render)) {
			t.Errorf("found %q", found)
		}
	}
}
