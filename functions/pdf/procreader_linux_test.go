package main

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"golang.org/x/sys/unix"

	"svcapi/functions/pdf/render/event"
	"svcapi/local/build"
	"svcapi/local/jail"
	"svcapi/local/jail/spec"
	"svcapi/local/lambda"
	"svcapi/local/template"
	"svcapi/local/workdir"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/test/must"
)

// needs skips a test where the kernel refuses a part of the jail. Root with CAP_SYS_ADMIN may build each part: for that
// user a missing part fails the test.
func needs(t *testing.T, confined *jail.Jail, parts ...string) {
	t.Helper()
	bounded, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_ADMIN, 0, 0, 0)
	for _, part := range parts {
		switch {
		case confined.Has(part):
		case err == nil && bounded == 1 && os.Getuid() == 0 && os.Getenv(jail.Variable) != "off":
			t.Fatalf("the jail has no %s, and this user may build it", part)
		default:
			t.Skipf("this machine's jail has no %s", part)
		}
	}
}

// takenOver returns the functions pdf and pdfrender, with procreader in the place of the browser, on a host with these
// parameters of the template.
func takenOver(t *testing.T, parameters map[string]string) (confined *jail.Jail, host *lambda.Host, pdf,
	render template.Function) {
	confined, err := jail.New(t.Context(), func(line string) { t.Log(line) })
	must.Succeed(t, err)
	needs(t, confined, spec.Namespaces, spec.User)
	product, err := template.Load(parameters)
	must.Succeed(t, err)
	pdf, _ = product.Function("pdf")
	render, _ = product.Function("pdfrender")
	binaries, err := build.Functions(t.Context(), []template.Function{pdf, render})
	must.Succeed(t, err)
	reader := filepath.Join(t.TempDir(), "procreader", "headless_shell")
	compile := exec.CommandContext(t.Context(), "go", "build", "-o", reader, "./testdata/procreader")
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	host, err = lambda.NewHost(lambda.Options{
		LogDir: t.TempDir(), Jail: confined, Concurrency: 1, Environment: map[string]string{"CHROMIUM": reader,
			"SVC_LOCAL": "1"},
	})
	must.Succeed(t, err)
	t.Cleanup(host.Close)
	for _, f := range []template.Function{pdf, render} {
		must.Succeed(t, host.Add(f, binaries[f.LogicalID]))
	}
	return confined, host, pdf, render
}

// reported matches the report of procreader.
var reported = regexp.MustCompile(`procreader: (\d+) processes;(.*?);end`)

// docs/decisions/pdf.md#pdf-renderer: a program in the place of the browser finds no credential but the renderer's, and
// no name of a table, while the function with the money runs on the same machine.
func TestReplacedBrowser(t *testing.T) {
	root, err := workdir.Root()
	must.Succeed(t, err)
	confined, host, pdf, render := takenOver(t, map[string]string{"DynamoDbEndpointUrl": "http://127.0.0.1:1"})
	if result, err := host.Invoke(t.Context(), pdf.LogicalID, []byte(`{"httpMethod":"GET","path":"/"}`)); err != nil ||
		result.FunctionError != "" {
		t.Fatalf("%v %s", err, result.Payload)
	}
	event, err := os.ReadFile(filepath.Join(root, "events", "pdf-render.json"))
	must.Succeed(t, err)
	result, err := host.Invoke(t.Context(), render.LogicalID, event)
	if err != nil || result.FunctionError == "" {
		t.Fatalf("%v %s", err, result.Payload)
	}
	var failure struct{ ErrorMessage string }
	must.Succeed(t, json.Unmarshal(result.Payload, &failure))
	report := reported.FindStringSubmatch(failure.ErrorMessage)
	if report == nil {
		t.Fatalf("no report: %s", failure.ErrorMessage)
	}
	t.Logf("%s processes, %s", report[1], report[2])
	// The filter denies what would close the renderer's memory, as Lambda does: its own key shows that procreader can
	// read.
	if report[2] == "" && confined.Has(spec.Filter) {
		t.Error("found nothing")
	}
	for found := range strings.SplitSeq(report[2], ";") {
		if found != "" && !strings.HasPrefix(found, "AWS_ACCESS_KEY_ID="+lambda.AccessKeyID(render)) {
			t.Errorf("found %q", found)
		}
	}
}

// docs/decisions/pdf.md#pdf-isolation: a program in the place of the browser, which keeps each document that it finds,
// finds the documents of both projects in the mode shared, and of its own project alone in the mode project. Each
// project uses a route of its own.
func TestReplacedBrowserOfProjects(t *testing.T) {
	for isolation, want := range map[string][]string{
		sharedIsolation: {"one", "one two"}, projectIsolation: {"one", "two"},
	} {
		t.Run(isolation, func(t *testing.T) {
			confined, host, pdf, _ := takenOver(t, map[string]string{"PdfIsolation": isolation})
			// else the renderer closes its memory to the browser, and no program finds a document
			needs(t, confined, spec.Filter)
			server := httptest.NewServer(host.API())
			defer server.Close()
			r := newRenderer(aws.Config{
				Region: template.Region, BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b",
					""),
			}, config{Renderer: pdf.Environment["PDF_RENDERER"], Isolation: pdf.Environment["PDF_ISOLATION"]}, nil)
			for i, id := range []string{"one", "two"} {
				operation := r.operations(maxBuffered)[i].(*request.Operation[document])
				call := &request.Call{Project: &project.Project{ID: id}, Integrations: []project.Integration{{}}}
				d := document{event: event.Event{HTML: []byte("<p>Document of " + id), PageSize: "A4"}}
				job, err := operation.Prepare(t.Context(), call, d)
				must.Succeed(t, err)
				_, err = job.Run(t.Context())
				var failure *request.Error
				if !errors.As(err, &failure) || failure.Cause == nil {
					t.Fatalf("%v, want the report of procreader", err)
				}
				found := map[string]bool{}
				for _, report := range reported.FindAllStringSubmatch(failure.Cause.Error(), -1) {
					for _, document := range regexp.MustCompile(`Document of ([a-z]+)`).FindAllStringSubmatch(report[2], -1) {
						found[document[1]] = true
					}
				}
				if got := strings.Join(slices.Sorted(maps.Keys(found)), " "); got != want[i] {
					t.Errorf("document %d: it found those of %q, want %q: %v", i+1, got, want[i], failure.Cause)
				}
			}
		})
	}
}
