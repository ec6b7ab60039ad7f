package event

import (
	"bytes"
	"encoding/xml"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The media types of files that the renderer treats in a way of their own.
const (
	SVG = "image/svg+xml"
	CSS = "text/css; charset=utf-8"
)

// ofName has the media type of a file by the ending of its name (openapi.yaml#PdfRequest, files).
var ofName = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".svg": SVG, ".css": CSS, ".ttf": "font/sfnt", ".otf": "font/sfnt", ".woff": "font/woff", ".woff2": "font/woff2",
}

// MediaType returns the media type of a file by its name; empty for no permitted one.
func MediaType(name string) string { return ofName[strings.ToLower(path.Ext(name))] }

// signatures are the first bytes of each binary media type that a document may load (WHATWG MIME Sniffing, 6 and 7).
var signatures = map[string][]string{
	"image/png": {"\x89PNG\r\n\x1a\n"}, "image/jpeg": {"\xff\xd8\xff"}, "image/gif": {"GIF87a", "GIF89a"},
	"image/webp": {"RIFF"}, "font/sfnt": {"\x00\x01\x00\x00", "OTTO", "true"}, "font/woff": {"wOFF"},
	"font/woff2": {"wOF2"},
}

// Sniff returns the media type of an image or a font by its first bytes; empty for any other.
func Sniff(body []byte) string {
	for mediaType, prefixes := range signatures {
		starts := func(prefix string) bool { return bytes.HasPrefix(body, []byte(prefix)) }
		if slices.ContainsFunc(prefixes, starts) &&
			(mediaType != "image/webp" || len(body) >= 16 && string(body[8:12]) == "WEBP") {
			return mediaType
		}
	}
	return ""
}

// Matches reports whether the bytes of a file are of a media type: a text in UTF-8 for a style sheet, one whose first
// element is svg for SVG, and the first bytes for all others.
func Matches(mediaType string, body []byte) bool {
	switch mediaType {
	case CSS:
		return utf8.Valid(body) && !bytes.ContainsRune(body, 0)
	case SVG:
		return utf8.Valid(body) && root(body) == "svg"
	}
	return mediaType != "" && Sniff(body) == mediaType
}

// root returns the name of the first element of an XML text.
func root(text []byte) string {
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Strict = false
	for {
		token, err := d.RawToken()
		if err != nil {
			return ""
		}
		if start, ok := token.(xml.StartElement); ok {
			return start.Name.Local
		}
	}
}

// FileName returns the name of a file in its normal form: a relative path without the segments "." and "..", in Unicode
// form NFC. The result is false for a name that no relative address can have.
func FileName(name string) (string, bool) {
	odd := func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`\?#`, r) }
	if name == "" || len(name) > MaxFileName || !utf8.ValidString(name) || strings.ContainsFunc(name, odd) ||
		strings.TrimSpace(name) != name || slices.Contains(strings.Split(name, "/"), "..") {
		return "", false
	}
	first, _, _ := strings.Cut(name, "/")
	normal := norm.NFC.String(path.Clean(name))
	if first == "" || strings.Contains(first, ":") || normal == "." || strings.HasSuffix(name, "/") ||
		len(normal) > MaxFileName {
		return "", false
	}
	return normal, true
}

// Base is the address of every document. No network has the host of Base (RFC 6761, 6.4): the renderer itself answers
// requests for addresses below Base.
const Base = "http://document.invalid/"

// File returns the name of the file that an address of the document names, empty for none. A query or a fragment of the
// address has no effect.
func (e Event) File(address *url.URL) string {
	base := url.URL{Scheme: "http", Host: "document.invalid", Path: "/"}
	to := base.ResolveReference(address)
	name := norm.NFC.String(strings.TrimPrefix(path.Clean(to.Path), "/"))
	if to.Scheme != base.Scheme || to.Host != base.Host || e.Files[name] == nil {
		return ""
	}
	return name
}

// validFiles reports whether the files of an event have names and types that the operation sends.
func validFiles(files map[string][]byte) bool {
	for name, body := range files {
		if normal, ok := FileName(name); !ok || normal != name || !Matches(MediaType(name), body) {
			return false
		}
	}
	return len(files) <= MaxFiles
}
