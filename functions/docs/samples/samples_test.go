package samples

import (
	"bytes"
	"encoding/json"
	"go/format"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"svcapi/local/workdir"
	"svcapi/test/must"
)

// awkward holds values that a language may read with another meaning.
const awkward = `
text: "it's \"quoted\", a \\ back slash, $HOME, ${x}, %d and {braces}"
lines: "one\ntwo\ttabbed"
unicode: "සිංහල €😀"
back: "` + "`back quotes`" + `"
html: "<script>alert('1 & 2')</script>"
numbers: [0, -1, 2.5, 10000000, 0.1]
yes: true
no: false
nothing: null
"odd 'name'": {empty_object: {}, empty_list: [], nested: [{a: [1]}]}
looks_like_a_number: "007"
looks_like_yes: "true"
`

var cases = []struct {
	name, method, body, mediaType string
}{
	{"awkward values", "POST", awkward, "application/json"},
	{"an empty object", "POST", "{}", "application/json"},
	{"a picture", "POST", "data: x", "image/png"},
	{"a GET", "GET", "", "application/json"},
}

// received is the request of a sample.
type received struct {
	method, path string
	header       http.Header
	body         any
}

// docs/decisions/operating.md#documentation-page: code samples for every operation. The test runs each sample and
// compares the request that it sends. Of PHP the test checks the grammar alone.
func TestSamples(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got *received
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				got = &received{r.Method, r.URL.EscapedPath(), r.Header, nil}
				if len(text) > 0 {
					if err := json.Unmarshal(text, &got.body); err != nil {
						t.Errorf("sent %s: %v", text, err)
					}
				}
				w.Header().Set("Content-Type", c.mediaType)
				_, _ = io.WriteString(w, `{"success":true,"data":{"answer":"42"}}`)
			}))
			defer server.Close()
			request := Request{Method: c.method, URL: server.URL + "/a%20b/c", MediaType: c.mediaType}
			var want any
			if c.body != "" {
				request.Body = document(t, c.body)
				must.Succeed(t, json.Unmarshal([]byte(Pretty(request.Body)), &want))
			}
			for _, sample := range all(t, request) {
				dir := t.TempDir()
				got = nil
				output := run(t, dir, sample)
				if sample.Lang == "PHP" {
					continue
				}
				if got == nil {
					t.Errorf("%s sent nothing: %s\n%s", sample.Label, output, sample.Source)
					continue
				}
				if got.method != c.method || got.path != "/a%20b/c" || !reflect.DeepEqual(got.body, want) {
					t.Errorf("%s sent %s %s %v, want %v\n%s", sample.Label, got.method, got.path, got.body, want, sample.Source)
				}
				for _, h := range request.Headers() {
					if got.header.Get(h.Name) != h.Value {
						t.Errorf("%s: header %s is %q, want %q", sample.Label, h.Name, got.header.Get(h.Name), h.Value)
					}
				}
				if file := request.File(); file != "" {
					saved, err := os.ReadFile(filepath.Join(dir, file))
					output = string(saved)
					if err != nil {
						t.Errorf("%s: %v", sample.Label, err)
					}
				}
				if !strings.Contains(output, "42") {
					t.Errorf("%s shows %q", sample.Label, output)
				}
			}
		})
	}
}

// A failed request ends a sample with the code of the error and not with a stack trace.
func TestSamplesReportErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusPaymentRequired)
		_, _ = io.WriteString(w, `{"success":false,"request_id":"the-request","error":{"code":"insufficient_funds",`+
			`"message":"m"}}`)
	}))
	defer server.Close()
	for _, sample := range all(t, Request{Method: "GET", URL: server.URL, MediaType: "application/json"}) {
		if sample.Lang == "PHP" {
			continue
		}
		output := run(t, t.TempDir(), sample)
		if !strings.Contains(output, "insufficient_funds") || !strings.Contains(output, "the-request") {
			t.Errorf("%s shows %q", sample.Label, output)
		}
	}
}

func all(t *testing.T, r Request) []Sample {
	t.Helper()
	list, err := All(r)
	must.Succeed(t, err)
	return list
}

func document(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var node yaml.Node
	must.Succeed(t, yaml.Unmarshal([]byte(text), &node))
	return node.Content[0]
}

// run runs a sample in a folder and returns its standard output and standard error.
func run(t *testing.T, dir string, s Sample) string {
	t.Helper()
	python, err := filepath.Abs("../../../.local/venv/bin/python")
	if err == nil {
		_, err = os.Stat(python)
	}
	if err != nil {
		t.Fatalf("%v\nrun make policy first: it installs the Python that runs the samples", err)
	}
	languages := map[string]struct {
		file    string
		command []string
	}{
		"Shell":      {"sample.sh", []string{"sh"}},
		"JavaScript": {"sample.mjs", []string{"node"}},
		"Python":     {"sample.py", []string{python}},
		"Go":         {"sample.go", []string{"go", "run"}},
		"PHP":        {"sample.php", []string{"node", "-e", parsePHP}},
	}
	l := languages[s.Lang]
	if s.Lang == "Go" {
		if formatted, err := format.Source([]byte(s.Source + "\n")); err != nil || string(formatted) != s.Source+"\n" {
			t.Errorf("Go: not formatted: %v\n%s", err, s.Source)
		}
	}
	file := filepath.Join(dir, l.file)
	must.Succeed(t, os.WriteFile(file, []byte(s.Source+"\n"), 0o600))
	cmd := exec.CommandContext(t.Context(), l.command[0], append(l.command[1:], file)...)
	cmd.Dir = dir
	if s.Lang == "PHP" {
		modules, err := workdir.Installed(t.Context(), "npm", "node_modules")
		must.Succeed(t, err)
		cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && (s.Lang == "PHP" || !strings.Contains(out.String(), "insufficient_funds")) {
		t.Errorf("%s: %v\n%s\n%s", s.Label, err, out.String(), s.Source)
	}
	return out.String()
}

// parsePHP fails on a file that is not valid PHP.
const parsePHP = `const parser = new (require("php-parser").Engine)({ parser: { suppressErrors: false } });
parser.parseCode(require("fs").readFileSync(process.argv[1], "utf8"), "sample.php");`
