// Package samples writes an example request as code in several languages.
package samples

import (
	"bytes"
	"embed"
	"fmt"
	"strings"
	"sync"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// Request is an example request of an operation.
type Request struct {
	Method    string
	URL       string
	Body      *yaml.Node // of a POST; nil: none
	MediaType string     // of the response
}

// Sample is one item of the extension x-codeSamples, which documentation tools know.
type Sample struct {
	Lang   string `yaml:"lang"`
	Label  string `yaml:"label"`
	Source string `yaml:"source"`
}

// Header is a header of a request.
type Header struct{ Name, Value string }

// labels are listed in the order of the page. Each has a template of its name in lower case, which receives a Request.
var labels = []string{"curl", "JavaScript", "Python", "Go", "PHP"}

//go:embed templates
var files embed.FS

// templates parses the templates at its first call, and not before the function asks for its first event.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("samples").Funcs(template.FuncMap{
		"indent": indent, "json": Pretty, "lower": strings.ToLower, "php": phpSyntax.literal, "phpQuoted": phpQuoted,
		"python": pythonSyntax.literal, "quoted": quoted, "raw": raw, "shell": shell,
	}).ParseFS(files, "templates/*.tmpl"))
})

// All returns the request in every language.
func All(r Request) ([]Sample, error) {
	var list []Sample
	for _, label := range labels {
		var source bytes.Buffer
		if err := templates().ExecuteTemplate(&source, strings.ToLower(label)+".tmpl", r); err != nil {
			return nil, fmt.Errorf("code sample: %w", err)
		}
		lang := strings.Replace(label, "curl", "Shell", 1)
		list = append(list, Sample{lang, label, strings.TrimRight(source.String(), "\n")})
	}
	return list, nil
}

// Headers returns the headers of every sample. The values are placeholders that a reader recognises as such.
func (r Request) Headers() []Header {
	list := []Header{{"X-API-KEY", "<API_KEY>"}, {"X-API-SECRET", "<API_SECRET>"}, {"X-ENV", "development"}}
	if r.Body != nil {
		list = append(list, Header{"Content-Type", "application/json"})
	}
	return list
}

// File returns the file into which a sample saves the response, or nothing for JSON.
func (r Request) File() string {
	return map[string]string{"image/png": "code.png", "image/svg+xml": "code.svg",
		"application/pdf": "document.pdf"}[r.MediaType]
}

// shell returns a literal in single quotes, where a shell replaces nothing.
func shell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// raw returns a Go raw string literal, or an interpreted literal for text with a back quote.
func raw(s string) string {
	if strings.ContainsAny(s, "`\r") {
		return quoted(s)
	}
	return "`" + s + "`"
}
