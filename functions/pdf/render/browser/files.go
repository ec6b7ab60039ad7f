package browser

import (
	"encoding/base64"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"svcapi/functions/pdf/render/event"
	"svcapi/functions/pdf/render/limits"
)

// file returns the name of the file at an address, empty for none.
func (p *page) file(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return p.document.File(parsed)
}

// use notes that the page receives the file at an address, and returns its name.
func (p *page) use(address string) string {
	name := p.file(address)
	if event.MediaType(name) == event.SVG {
		for _, address := range limits.References(string(p.document.Files[name])) {
			p.block(address)
		}
	}
	p.note(p.used, name)
	return name
}

// sheets returns the style sheets among the files that the page received.
func (p *page) sheets() (texts []string) {
	for _, name := range p.noted(p.used) {
		if event.MediaType(name) == event.CSS {
			texts = append(texts, string(p.document.Files[name]))
		}
	}
	return texts
}

// unused returns the number of files that the page did not receive and that no text of the document names. A font that
// no character needs is named.
func (p *page) unused() int {
	d, n := p.document, 0
	texts := []string{string(d.HTML), string(d.Header), string(d.Footer)}
	for name, body := range d.Files {
		if event.MediaType(name) == event.CSS {
			texts = append(texts, string(body))
		}
	}
	used := p.noted(p.used)
	for name := range d.Files {
		own := path.Base(name)
		named := func(text string) bool {
			return strings.Contains(text, own) || strings.Contains(text, url.PathEscape(own))
		}
		if !slices.Contains(used, name) && !slices.ContainsFunc(texts, named) {
			n++
		}
	}
	return n
}

// waitForFonts waits for the fonts in the style sheets of a document that has no layout yet, or for those among the
// files. The end of the document's load does not wait for them.
func (p *page) waitForFonts(all bool) error {
	ofFiles := slices.ContainsFunc(slices.Collect(maps.Keys(p.document.Files)), func(name string) bool {
		return strings.HasPrefix(event.MediaType(name), "font/")
	})
	if !all && !ofFiles {
		return nil
	}
	return p.call("fonts", all, nil)
}

// maxImports bounds the style sheets of a template that load one another.
const maxImports = 8

// inline returns the file at an address, below another one, as a data URL; false for no file.
func (p *page) inline(address, from string, imports int) (string, bool) {
	below, err := url.Parse(event.Base + from)
	if err != nil {
		return "", false
	}
	to, err := below.Parse(address)
	if err != nil || imports == maxImports {
		return "", false
	}
	name := p.file(to.String())
	if name == "" || strings.HasPrefix(event.MediaType(name), "font/") { // a template does not wait for its fonts
		return "", false
	}
	p.use(to.String())
	body := p.document.Files[name]
	if event.MediaType(name) == event.CSS {
		body = []byte(p.sheet(string(body), name, imports+1))
	}
	return "data:" + event.MediaType(name) + ";base64," + base64.StdEncoding.EncodeToString(body), true
}
