// Command build makes the table of disposable domains (`make lists`). It
// fetches the pinned packages of sources.json with their registries' own
// clients, joins their lists, takes out what must not be on them, and writes
// table.bin and report.json.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"svcapi/functions/security/disposable"
)

const folder = "functions/security/disposable"

// source is one published list.
type source struct {
	Package   string   `json:"package"`
	Registry  string   `json:"registry"` // pypi or npm
	Version   string   `json:"version"`
	Published string   `json:"published"` // day, UTC
	Licence   string   `json:"licence"`
	Reads     []string `json:"reads"` // form:path in the package
}

// report is what the build did, kept beside the table.
type report struct {
	Sources []counted `json:"sources"`
	Joined  int       `json:"joined"` // different domains of all lists
	// Why domains of the lists are not in the table.
	Malformed int `json:"malformed"`
	Allowed   int `json:"allowed"` // ordinary mail providers, and the parents of such
	Suffixes  int `json:"public_suffixes"`
	Covered   int `json:"covered_by_parent"`
	Table     int `json:"table"` // domains in the table
	Bytes     int `json:"bytes"`
}

type counted struct {
	source
	Domains int `json:"domains"`
}

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal("build list: ", err)
	}
}

func run() error {
	var sources []source
	text, err := os.ReadFile(filepath.Join(folder, "sources.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &sources); err != nil {
		return err
	}
	allowed, err := readAllowed(filepath.Join(folder, "build", "allow.txt"))
	if err != nil {
		return err
	}
	var r report
	joined := map[string]bool{}
	for _, s := range sources {
		domains, err := s.domains()
		if err != nil {
			return fmt.Errorf("%s of %s: %w", s.Package, s.Registry, err)
		}
		r.Sources = append(r.Sources, counted{s, len(domains)})
		for _, d := range domains {
			joined[d] = true
		}
	}
	r.Joined = len(joined)
	listed := keep(joined, allowed, &r)
	table := layout(listed)
	r.Table, r.Bytes = len(listed), len(table)
	text, err = json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%s\n", text)
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "report.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(folder, "table.bin"), table, 0o644),
	)
}

// keep sorts out what does not belong into the table, and what a listed parent covers.
func keep(joined, allowed map[string]bool, r *report) []string {
	listed := map[string]bool{}
	for d := range joined {
		ascii, err := idna.Lookup.ToASCII(d)
		switch {
		case err != nil || len(ascii) > 253 || !strings.Contains(ascii, "."):
			r.Malformed++
		case allowed[ascii]:
			r.Allowed++
		case isSuffix(ascii):
			r.Suffixes++
		default:
			listed[ascii] = true
		}
	}
	var kept []string
	for d := range listed {
		if hasListedParent(d, listed) {
			r.Covered++
			continue
		}
		kept = append(kept, d)
	}
	slices.Sort(kept)
	return kept
}

// isSuffix tells whether anybody may register beneath the domain: what one
// registrant does there says nothing of the others.
func isSuffix(domain string) bool {
	suffix, _ := publicsuffix.PublicSuffix(domain)
	return suffix == domain
}

func hasListedParent(domain string, listed map[string]bool) bool {
	for {
		_, parent, ok := strings.Cut(domain, ".")
		if !ok || !strings.Contains(parent, ".") {
			return false
		}
		if listed[parent] {
			return true
		}
		domain = parent
	}
}

// layout writes the table as package disposable reads it.
func layout(domains []string) []byte {
	buckets := make([][]string, disposable.Buckets)
	for _, d := range domains {
		b := disposable.Bucket(d)
		buckets[b] = append(buckets[b], d)
	}
	index := make([]byte, 0, 4*(len(buckets)+1))
	var entries []byte
	start := 4 * (len(buckets) + 1)
	for _, bucket := range buckets {
		index = binary.LittleEndian.AppendUint32(index, uint32(start+len(entries)))
		for _, d := range bucket {
			entries = append(append(entries, byte(len(d))), d...)
		}
	}
	index = binary.LittleEndian.AppendUint32(index, uint32(start+len(entries)))
	return append(index, entries...)
}

// readAllowed reads the ordinary mail providers, with their parents: a listed
// parent would put them on the list too.
func readAllowed(path string) (map[string]bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	allowed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		for d := range strings.FieldsSeq(line) {
			for ; strings.Contains(d, "."); _, d, _ = strings.Cut(d, ".") {
				allowed[d] = true
			}
		}
	}
	return allowed, nil
}

// domains fetches the package and reads its lists.
func (s source) domains() ([]string, error) {
	files, err := s.fetch()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, read := range s.Reads {
		form, path, _ := strings.Cut(read, ":")
		text, ok := files[path]
		if !ok {
			return nil, fmt.Errorf("no file %s in the package", path)
		}
		domains, err := parse(form, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(domains) == 0 {
			return nil, fmt.Errorf("%s: no domains", path)
		}
		all = append(all, domains...)
	}
	for i := range all {
		all[i] = strings.ToLower(strings.TrimSpace(all[i]))
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

var (
	pythonSet     = regexp.MustCompile(`(?s)blocklist = \{(.*?)\}`)
	pythonText    = regexp.MustCompile(`'([^']+)'`)
	javascriptSet = regexp.MustCompile(`(?s)new Set\((\[.*?\])\)`)
)

// parse takes the list out of a file.
func parse(form string, text []byte) ([]string, error) {
	switch form {
	case "python":
		set := pythonSet.FindSubmatch(text)
		if set == nil {
			return nil, errors.New("no blocklist")
		}
		var domains []string
		for _, m := range pythonText.FindAllSubmatch(set[1], -1) {
			domains = append(domains, string(m[1]))
		}
		return domains, nil
	case "javascript":
		set := javascriptSet.FindSubmatch(text)
		if set == nil {
			return nil, errors.New("no set")
		}
		text = set[1]
	}
	var domains []string
	return domains, json.Unmarshal(text, &domains)
}

// fetch downloads the package and returns its files.
func (s source) fetch() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "lists-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	command := map[string][]string{
		"pypi": {"pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--dest", dir, s.Package + "==" + s.Version},
		"npm":  {"npm", "pack", "--silent", "--pack-destination", dir, s.Package + "@" + s.Version},
	}[s.Registry]
	if command == nil {
		return nil, fmt.Errorf("unknown registry %q", s.Registry)
	}
	fetch := exec.Command(command[0], command[1:]...)
	fetch.Stderr = os.Stderr
	if err := fetch.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", command[0], err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(found) != 1 {
		return nil, errors.Join(fmt.Errorf("wanted one file, got %v", found), err)
	}
	archive, err := os.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	if s.Registry == "pypi" {
		return unzip(archive)
	}
	return untar(archive)
}

func unzip(archive []byte) (map[string][]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
		files[f.Name] = text
	}
	return files, nil
}

func untar(archive []byte) (map[string][]byte, error) {
	g, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for t := tar.NewReader(g); ; {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(t)
		if err != nil {
			return nil, err
		}
		files[header.Name] = text
	}
}
