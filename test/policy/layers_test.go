package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
)

// pkg is a package of this module, as go list reports it. The paths of this module's packages are below the module.
type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	Deps                               []string
}

// packages are this module's packages by path below the module.
var packages = sync.OnceValue(func() map[string]pkg {
	output, err := run(root(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", "./...")
	output = bytes.ReplaceAll(output, []byte(`"svcapi/`), []byte(`"`))
	out := map[string]pkg{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); err == nil; {
		var p pkg
		if err = decoder.Decode(&p); err == nil {
			out[p.ImportPath] = p
		}
	}
	if !errors.Is(err, io.EOF) {
		panic(err)
	}
	return out
})

// layer is the top folder of a package, and its function's for one of a function.
func layer(path string) (top, function string) {
	top, rest, _ := strings.Cut(path, "/")
	if top == "functions" {
		function, _, _ = strings.Cut(rest, "/")
	}
	return top, function
}

// described are the packages of functions that cmd/svc may import: tables that describe vendors and SMS units, and the
// questions about an uncertain send.
var described = []string{"functions/sms/uncertain", "functions/sms/units", "functions/sms/vendors"}

// forbidden says why one package may not import another; empty when it may. Tests may use the local stack.
func forbidden(from, to string, test bool) string {
	fromTop, fromFunction := layer(from)
	toTop, toFunction := layer(to)
	switch {
	case fromFunction != "" && toFunction != "" && fromFunction != toFunction:
		return "functions never import one another"
	case fromTop == "shared" && toTop == "functions":
		return "shared/ never imports functions/"
	case from == "local/sandbox" && toTop == "functions":
		return "an emulator is written from the other side's documents"
	case fromTop == "cmd" && toTop == "functions" && !slices.Contains(described, to):
		return "cmd/ imports only tables that describe from functions/"
	case toTop == "local" && !test && slices.Contains([]string{"functions", "shared", "cmd"}, fromTop):
		return "product code never imports local/"
	case toTop == "test" && !test && fromTop != "test":
		return "what runs never imports test/"
	}
	return ""
}

// programs are the programs of functions beside those of the folders: the renderer, the lists and the resolver.
var programs = []string{rendererPath, "functions/security/listsync", "functions/sms/resolve"}

// isFunction reports whether a package is the program of a function.
func isFunction(path string) bool {
	_, function := layer(path)
	return function != "" && (path == "functions/"+function || slices.Contains(programs, path))
}

// rendererPath is the program of the function that runs the browser.
const rendererPath = "functions/pdf/render"

func TestLayers(t *testing.T) {
	for path, p := range packages() {
		for i, imports := range [][]string{p.Imports, p.TestImports, p.XTestImports} {
			for _, to := range imports {
				if why := forbidden(path, to, i > 0); why != "" {
					t.Errorf("%s imports %s: %s", path, to, why)
				}
			}
		}
	}
}

// TestBenchIsApart checks that the module bench/ takes this module from the same tree, with the same releases of what
// both use, and that this module does not require it: Go then refuses each import.
func TestBenchIsApart(t *testing.T) {
	own, bench := read("go.mod"), read("bench", "go.mod")
	if !strings.Contains(bench, "\nreplace svcapi => ../\n") || strings.Contains(own, "svcapi/bench") {
		t.Error("bench/go.mod does not take this module from the same tree, or go.mod requires it")
	}
	for line := range strings.Lines(own) {
		name, release, _ := strings.Cut(strings.TrimSpace(line), " ")
		if at := strings.Index(bench, "\t"+name+" v"); at >= 0 && !strings.HasPrefix(bench[at+len(name)+2:], release) {
			t.Errorf("bench/go.mod has another release than %s %s: go mod tidy -C bench", name, release)
		}
	}
}

// A package that only one program uses belongs into that program's folder. The programs are the functions and the
// operator's command line; the local stack is not a program. shared/project/admin and shared/secret are the operator's
// halves of shared/project and shared/upstream, with which the local stack and the tests of functions make projects.
func TestSharedIsShared(t *testing.T) {
	users := map[string][]string{}
	for path, p := range packages() {
		if path != "cmd/svc" && !isFunction(path) {
			continue // the vendors of a function and such are among the function's own Deps
		}
		for _, dep := range p.Deps {
			users[dep] = append(users[dep], path)
		}
	}
	for path := range packages() {
		if top, _ := layer(path); top == "shared" && len(users[path]) < 2 && path != "shared/project/admin" &&
			path != "shared/secret" {
			t.Errorf("%s is used by %v only: shared/ is for what two or more programs use", path, users[path])
		}
	}
}

// The libraries that make a function's binary large, and its cold start slow, without need.
var tooHeavy = []string{
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue", // drags in a client of DynamoDB Streams
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs",          // is for svc logs
	"github.com/getkin/kin-openapi/openapi3",
	"github.com/spf13/cobra",
	"go.yaml.in/yaml/v3",
	"net/http/pprof",
	"testing",
}

// The documentation generates its samples from the YAML document when it starts, and its page is not urgent. The
// renderer's library of PDFs can read a configuration from YAML; the browser's start is much longer.
var excused = map[string]string{"functions/docs": "go.yaml.in/yaml/v3", rendererPath: "go.yaml.in/yaml/v3"}

func TestFunctionsStaySmall(t *testing.T) {
	for path, p := range packages() {
		// The binary's packages are the Deps of the function's own package; its benchmarks are not in it.
		if !isFunction(path) {
			continue
		}
		for _, dep := range p.Deps {
			heavy := slices.Contains(tooHeavy, dep) && excused[path] != dep
			// The browser is apart from the money (docs/decisions/pdf.md#pdf-renderer).
			browser := strings.HasPrefix(dep, "github.com/go-rod/") || strings.HasPrefix(dep, rendererPath+"/browser")
			if heavy || browser && path != rendererPath ||
				strings.HasPrefix(dep, "github.com/aws/aws-sdk-go-v2/") && path == rendererPath {
				t.Errorf("%s depends on %s", path, dep)
			}
		}
	}
}
