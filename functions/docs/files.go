package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"svcapi/shared/credit"
)

// web holds the page and its parts.
//
//go:embed web
var web embed.FS

// page is the name of the page's template in web.
const page = "web/index.html"

// kinds are content types by extension.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8", ".yaml": "application/yaml",
}

// newFiles returns all files by path: the page with the prices of this stack, the document as it was written and in the
// form that the page needs, and the parts of the page.
func newFiles(openAPI []byte, prices credit.Prices, credentials demo) (map[string]*file, error) {
	doc, err := parse(openAPI)
	if err != nil {
		return nil, err
	}
	if err := doc.complete(prices); err != nil {
		return nil, err
	}
	asJSON, err := doc.json()
	if err != nil {
		return nil, err
	}
	parts, err := readParts()
	if err != nil {
		return nil, err
	}
	version := versionOf(parts)
	index, err := render(doc, prices, credentials, version)
	if err != nil {
		return nil, err
	}
	files := map[string]*file{}
	for path, content := range map[string][]byte{"/docs": index, "/docs/openapi.yaml": openAPI, "/docs/openapi.json": asJSON} {
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
	kind := kinds[cmp.Or(path.Ext(name), ".html")] // the page itself has no extension
	return &file{kind: kind, gzipped: compress(content), etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

// readParts returns the parts of the page by name.
func readParts() (map[string]*file, error) {
	parts := map[string]*file{}
	err := fs.WalkDir(web, "web", func(source string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || source == page {
			return err
		}
		content, err := web.ReadFile(source)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(source, "web/")
		parts[name] = newFile(name, content)
		parts[name].lasting = true
		return nil
	})
	return parts, err
}

// versionOf returns a digest of all parts. The digest is in their paths, so that clients may cache them for ever.
func versionOf(parts map[string]*file) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		fmt.Fprintln(sum, name, parts[name].etag)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// view is the data of the template.
type view struct {
	Title, Version string
	Parts          string // where the page's parts are, relative to the page
	Groups         []group
	Common         []response // errors that operations of many groups share
	Reasons        template.HTML
	Demo           demo
	SMS            int64 // credits per unit
}

// render returns the page.
func render(doc *document, prices credit.Prices, credentials demo, version string) ([]byte, error) {
	source, err := web.ReadFile(page)
	if err != nil {
		return nil, err
	}
	t, err := template.New("page").Parse(string(source))
	if err != nil {
		return nil, err
	}
	r := newReference(doc)
	groups, err := r.groups()
	if err != nil {
		return nil, err
	}
	common, err := r.common()
	if err != nil {
		return nil, err
	}
	reasons, err := r.html(text(at(doc.root, "components", "schemas", "ErrorReason", "description")))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, view{
		Title: text(at(doc.root, "info", "title")), Version: text(at(doc.root, "info", "version")),
		Parts: "docs/" + version, Groups: groups, Common: common, Reasons: reasons, Demo: credentials, SMS: prices.Of(credit.SMS),
	})
	return out.Bytes(), err
}
