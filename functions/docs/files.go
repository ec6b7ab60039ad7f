package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	htmltemplate "html/template"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"svcapi/shared/credit"
)

// web holds the parts of the page, and those of Swagger UI, compressed and otherwise as in the package swagger-ui-dist.
//
//go:embed web
var web embed.FS

// template is the name of the page in web.
const template = "web/index.html"

// kinds are content types by extension.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8", ".yaml": "application/yaml",
}

// newFiles returns all files by path: the page with the prices of this stack, the document as it was written and in the
// form that the page needs, and the parts of the page.
func newFiles(openAPI []byte, prices credit.Prices) (map[string]*file, error) {
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
	page, err := render(doc, prices, version)
	if err != nil {
		return nil, err
	}
	files := map[string]*file{}
	for path, content := range map[string][]byte{"/docs": page, "/docs/openapi.yaml": openAPI, "/docs/openapi.json": asJSON} {
		files[path] = newFile(path, content, compress(content))
	}
	for name, f := range parts {
		files["/docs/"+version+"/"+name] = f
	}
	return files, nil
}

// newFile returns a file with the content type of its name.
func newFile(name string, content, gzipped []byte) *file {
	sum := sha256.Sum256(content)
	kind := kinds[cmp.Or(path.Ext(name), ".html")] // the page itself has no extension
	return &file{kind: kind, gzipped: gzipped, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

// readParts returns the parts of the page by name.
func readParts() (map[string]*file, error) {
	parts := map[string]*file{}
	err := fs.WalkDir(web, "web", func(source string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || source == template {
			return err
		}
		content, err := web.ReadFile(source)
		if err != nil {
			return err
		}
		name, compressed := strings.CutSuffix(strings.TrimPrefix(source, "web/"), ".gz")
		gzipped := content
		if compressed {
			content, err = decompress(gzipped)
		} else {
			gzipped = compress(content)
		}
		parts[name] = newFile(name, content, gzipped)
		parts[name].lasting = true
		return err
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
	SMS            int64 // credits per unit
}

// group is one tag of the document with its operations.
type group struct {
	Name       string
	Operations []entry
}

// entry is an operation in the list of contents and in the price list.
type entry struct {
	ID, Tag, Method, Summary, Price string
}

func render(doc *document, prices credit.Prices, version string) ([]byte, error) {
	source, err := web.ReadFile(template)
	if err != nil {
		return nil, err
	}
	page, err := htmltemplate.New("page").Parse(string(source))
	if err != nil {
		return nil, err
	}
	v := view{
		Title: text(at(doc.root, "info", "title")), Version: text(at(doc.root, "info", "version")),
		Parts: "docs/" + version, Groups: doc.groups(), SMS: prices.Of(credit.SMS),
	}
	var out bytes.Buffer
	err = page.Execute(&out, v)
	return out.Bytes(), err
}

// groups returns the operations under their tags, in the document's order of tags.
func (d *document) groups() []group {
	var list []group
	for _, tag := range children(at(d.root, "tags")) {
		g := group{Name: text(at(tag, "name"))}
		for _, o := range d.operations() {
			if tags := children(at(o.node, "tags")); len(tags) == 0 || text(tags[0]) != g.Name {
				continue
			}
			g.Operations = append(g.Operations, entry{
				ID: text(at(o.node, "operationId")), Tag: g.Name, Method: o.method,
				Summary: text(at(o.node, "summary")), Price: price(o),
			})
		}
		list = append(list, g)
	}
	return list
}

// price returns the price of a call on a Managed integration.
func price(o operation) string {
	credits, err := strconv.ParseInt(text(at(o.node, "x-svc-credits")), 10, 64)
	if err != nil || credits == 0 {
		return "free"
	}
	cost := credit.Grouped(credits) + " credits"
	name, rows := text(at(o.node, "x-svc-price")), credit.PriceList()
	if i := slices.IndexFunc(rows, func(p credit.Price) bool { return p.Operation == name }); i >= 0 && rows[i].Unit != "" {
		cost += " a " + rows[i].Unit
	}
	return cost
}
