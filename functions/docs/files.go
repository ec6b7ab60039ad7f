package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"path"
	"strings"
	"sync"
	plain "text/template"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"svcapi/shared/testvalue"
	"svcapi/shared/wallet"
)

// web holds the page and its parts.
//
//go:embed web
var web embed.FS

// page and llms are the names of templates in web: of the page, and of the reference as Markdown.
const page, llms = "index.html", "llms.txt"

// kinds are content types by extension.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8", ".yaml": "application/yaml",
}

// newFiles returns all files by path: the page with the prices of this stack, the document as it was written and in the
// form that the page needs, and the parts of the page.
func newFiles(openAPI, changelog []byte, prices wallet.Prices, credentials demo) (map[string]*file, error) {
	doc, err := parse(openAPI)
	if err != nil {
		return nil, err
	}
	parts, version := readParts()
	incomplete := doc.complete(prices)
	asJSON, noJSON := doc.json()
	index, noIndex := render(doc, prices, credentials, version)
	markdown, noText := renderText(doc)
	if err := errors.Join(incomplete, noJSON, noIndex, noText); err != nil {
		return nil, err
	}
	ofPage, _ := doc.playground().json() // a part of what asJSON has
	files := map[string]*file{}
	for path, content := range map[string][]byte{
		"/docs": index, "/docs/openapi.yaml": openAPI, "/docs/openapi.json": asJSON, "/docs/page.json": ofPage,
		"/docs/changelog.txt": changelog, "/docs/llms.txt": markdown,
	} {
		files[path] = newFile(path, content)
	}
	for name, f := range parts {
		files["/docs/"+version+"/"+name] = f
	}
	return files, nil
}

// newFile returns a file with the content type of its name.
func newFile(name string, content []byte) *file {
	sum := sha256.Sum256(content)
	kind := kinds[cmp.Or(path.Ext(name), ".html")]                        // the page itself has no extension
	gzipped := sync.OnceValue(func() []byte { return compress(content) }) // no visitor waits for a file of another one
	return &file{kind: kind, plain: content, gzipped: gzipped,
		etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

// readParts returns the parts of the page by name, and a digest of all parts. The digest is in their paths, so that
// clients may cache them for ever.
func readParts() (parts map[string]*file, version string) {
	parts, sum := map[string]*file{}, sha256.New()
	entries, _ := web.ReadDir("web") // the program contains the folder and its files
	for _, entry := range entries {
		if name := entry.Name(); name != page && name != llms {
			content, _ := web.ReadFile("web/" + name)
			parts[name] = newFile(name, content)
			parts[name].lasting = true
			fmt.Fprintln(sum, name, parts[name].etag)
		}
	}
	return parts, hex.EncodeToString(sum.Sum(nil))[:12]
}

// render returns the page.
func render(doc *document, prices wallet.Prices, credentials demo, version string) ([]byte, error) {
	// A narrow page may break a path after each slash, and a name after each dot.
	t := template.Must(template.New(page).Funcs(template.FuncMap{"splitAfter": strings.SplitAfter}).ParseFS(web, "web/"+
		page))
	r := newReference(doc, goldmark.New(goldmark.WithExtensions(extension.Table)))
	content := r.content()
	content["Parts"] = "docs/" + version // where the page's parts are, relative to the page
	content["Reasons"] = r.html(at(doc.root, "components", "schemas", "ErrorReason"))
	content["Demo"], content["SMS"], content["Values"] = credentials, prices[wallet.SMS], testvalue.All()
	var out bytes.Buffer
	err := t.Execute(&out, content)
	return out.Bytes(), err
}

// content returns what the page and llms.txt have in common.
func (r *reference) content() map[string]any {
	info := at(r.root, "info")
	return map[string]any{"Title": text(at(info, "title")), "Version": text(at(info, "version")), "Groups": r.groups(),
		"Common": r.common()}
}

// renderText returns llms.txt, the whole reference as Markdown.
func renderText(doc *document) ([]byte, error) {
	line := func(text template.HTML) string { return strings.Join(strings.Fields(string(text)), " ") }
	t := plain.Must(plain.New(llms).Funcs(plain.FuncMap{"line": line}).ParseFS(web, "web/"+llms))
	var out bytes.Buffer
	err := t.Execute(&out, newReference(doc, nil).content())
	return out.Bytes(), err
}
