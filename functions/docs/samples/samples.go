// Package samples writes an example request as code in several languages.
package samples

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Request is an example request of an operation.
type Request struct {
	Method string
	URL    string
	Body   *yaml.Node // of a POST; nil: none
	Answer string     // media type of the answer
}

// Sample is one item of the extension x-codeSamples, which documentation tools know.
type Sample struct {
	Lang   string `yaml:"lang"`
	Label  string `yaml:"label"`
	Source string `yaml:"source"`
}

// languages are the languages, in the order in which they are shown.
var languages = []struct {
	lang, label string
	write       func(*writer, Request)
}{
	{"Shell", "curl", curl},
	{"JavaScript", "JavaScript", javaScript},
	{"Python", "Python", python},
	{"Go", "Go", golang},
	{"PHP", "PHP", php},
}

// All writes the request in every language.
func All(r Request) []Sample {
	var list []Sample
	for _, l := range languages {
		w := &writer{}
		l.write(w, r)
		list = append(list, Sample{l.lang, l.label, strings.TrimRight(w.String(), "\n")})
	}
	return list
}

// headers are what every sample sends. The values are placeholders: whoever copies them sees at once what is missing.
func (r Request) headers() [][2]string {
	list := [][2]string{{"X-API-KEY", "<API_KEY>"}, {"X-API-SECRET", "<API_SECRET>"}, {"X-ENV", "development"}}
	if r.Body != nil {
		list = append(list, [2]string{"Content-Type", "application/json"})
	}
	return list
}

// file is where an answer that is no JSON is saved; empty for JSON.
func (r Request) file() string {
	names := map[string]string{"image/png": "code.png", "image/svg+xml": "code.svg", "application/pdf": "document.pdf"}
	return names[r.Answer]
}

// writer collects lines.
type writer struct{ bytes.Buffer }

func (w *writer) line(format string, values ...any) {
	fmt.Fprintf(w, format+"\n", values...)
}

func curl(w *writer, r Request) {
	words := []string{}
	if r.Method != http.MethodGet && r.Body == nil {
		words = append(words, "-X "+r.Method)
	}
	for _, h := range r.headers() {
		words = append(words, "-H "+shell(h[0]+": "+h[1]))
	}
	if r.Body != nil {
		words = append(words, "-d "+shell(pretty(r.Body)))
	}
	if r.file() != "" {
		words = append(words, "--fail-with-body -o "+r.file())
	}
	w.line("curl -sS %s \\\n  %s", shell(r.URL), strings.Join(words, " \\\n  "))
}

func shell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func javaScript(w *writer, r Request) {
	if r.file() != "" {
		w.line("import { writeFile } from \"node:fs/promises\";\n")
	}
	w.line("const response = await fetch(%s, {", quoted(r.URL))
	if r.Method != http.MethodGet {
		w.line("  method: %s,", quoted(r.Method))
	}
	w.line("  headers: {")
	for _, h := range r.headers() {
		w.line("    %s: %s,", quoted(h[0]), quoted(h[1]))
	}
	w.line("  },")
	if r.Body != nil {
		w.line("  body: JSON.stringify(%s),", indented(pretty(r.Body), "  "))
	}
	w.line("});")
	w.line("if (!response.ok) {")
	w.line("  const { error, request_id } = await response.json();")
	w.line("  throw new Error(`${error.code}: ${error.message} (${request_id})`);")
	w.line("}")
	if r.file() != "" {
		w.line("await writeFile(%s, Buffer.from(await response.arrayBuffer()));", quoted(r.file()))
		return
	}
	w.line("const { data } = await response.json();")
	w.line("console.log(data);")
}

func python(w *writer, r Request) {
	w.line("import requests\n")
	w.line("response = requests.%s(", strings.ToLower(r.Method))
	w.line("    %s,", quoted(r.URL))
	w.line("    headers={")
	for _, h := range r.headers() {
		if r.Body == nil || h[0] != "Content-Type" { // json= sets it
			w.line("        %s: %s,", quoted(h[0]), quoted(h[1]))
		}
	}
	w.line("    },")
	if r.Body != nil {
		w.line("    json=%s,", indented(literal(r.Body, pythonSyntax), "    "))
	}
	w.line("    timeout=40,")
	w.line(")")
	w.line("if not response.ok:")
	w.line("    failed = response.json()")
	w.line("    raise SystemExit(f\"{failed['error']['code']}: {failed['error']['message']} ({failed['request_id']})\")")
	if r.file() != "" {
		w.line("with open(%s, \"wb\") as file:", quoted(r.file()))
		w.line("    file.write(response.content)")
		return
	}
	w.line("print(response.json()[\"data\"])")
}

func golang(w *writer, r Request) {
	imports := []string{"fmt", "io", "log", "net/http"}
	body := "nil"
	if r.Body != nil {
		imports = append(imports, "strings")
		body = "body"
	}
	if r.file() != "" {
		imports = append(imports, "os")
		imports = slices.DeleteFunc(imports, func(name string) bool { return name == "fmt" })
	}
	slices.Sort(imports)
	w.line("package main\n")
	w.line("import (")
	for _, name := range imports {
		w.line("\t%q", name)
	}
	w.line(")\n")
	w.line("func main() {")
	if r.Body != nil {
		w.line("\tbody := strings.NewReader(%s)", raw(pretty(r.Body)))
	}
	w.line("\trequest, err := http.NewRequest(%q, %s, %s)", r.Method, quoted(r.URL), body)
	w.line("\tif err != nil {\n\t\tlog.Fatal(err)\n\t}")
	for _, h := range r.headers() {
		w.line("\trequest.Header.Set(%s, %s)", quoted(h[0]), quoted(h[1]))
	}
	w.line("\tresponse, err := http.DefaultClient.Do(request)")
	w.line("\tif err != nil {\n\t\tlog.Fatal(err)\n\t}")
	w.line("\tdefer response.Body.Close()")
	w.line("\tanswer, err := io.ReadAll(response.Body)")
	w.line("\tif err != nil {\n\t\tlog.Fatal(err)\n\t}")
	w.line("\tif response.StatusCode != http.StatusOK {\n\t\tlog.Fatalf(\"%%s: %%s\", response.Status, answer)\n\t}")
	if r.file() != "" {
		w.line("\tif err := os.WriteFile(%q, answer, 0o644); err != nil {\n\t\tlog.Fatal(err)\n\t}", r.file())
	} else {
		w.line("\tfmt.Println(string(answer))")
	}
	w.line("}")
}

// raw is a Go raw string literal, or an interpreted one for text with a back quote.
func raw(s string) string {
	if strings.ContainsAny(s, "`\r") {
		return quoted(s)
	}
	return "`" + s + "`"
}

func php(w *writer, r Request) {
	w.line("<?php\n")
	w.line("$request = curl_init(%s);", phpSyntax.quote(r.URL))
	w.line("curl_setopt_array($request, [")
	w.line("    CURLOPT_RETURNTRANSFER => true,")
	w.line("    CURLOPT_HTTPHEADER => [")
	for _, h := range r.headers() {
		w.line("        %s,", phpSyntax.quote(h[0]+": "+h[1]))
	}
	w.line("    ],")
	if r.Body != nil {
		w.line("    CURLOPT_POSTFIELDS => json_encode(%s),", indented(literal(r.Body, phpSyntax), "    "))
	}
	w.line("]);")
	w.line("$answer = curl_exec($request);")
	w.line("if ($answer === false) {")
	w.line("    throw new RuntimeException(curl_error($request));")
	w.line("}")
	w.line("if (curl_getinfo($request, CURLINFO_RESPONSE_CODE) !== 200) {")
	w.line("    throw new RuntimeException($answer);")
	w.line("}")
	if r.file() != "" {
		w.line("file_put_contents(%s, $answer);", phpSyntax.quote(r.file()))
		return
	}
	w.line("print_r(json_decode($answer, true)['data']);")
}
