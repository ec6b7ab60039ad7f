// The command build makes the table of disposable domains (`make lists`) and its report from the packages of sources.json,
// which pip and npm fetch.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
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
	Reads     []string `json:"reads"`   // format:path in the package
	Domains   int      `json:"domains"` // of the report: different domains in the package
}

// report describes the table, beside which it is stored.
type report struct {
	Sources []source `json:"sources"`
	Joined  int      `json:"joined"` // different domains of all lists
	// Domains of the lists that are not in the table, by reason.
	Malformed int `json:"malformed"`
	Allowed   int `json:"allowed"` // ordinary domains and their parents
	Suffixes  int `json:"public_suffixes"`
	Covered   int `json:"covered_by_parent"`
	Table     int `json:"table"` // domains in the table
	Bytes     int `json:"bytes"`
}

func main() {
	if err := run(); err != nil {
		log.Fatal("build list: ", err)
	}
}

func run() error {
	var lists struct {
		Sources  []source `json:"sources"`
		Excluded []struct {
			Domain string `json:"domain"`
			Reason string `json:"reason"`
		} `json:"excluded"` // domains of the lists that were reviewed and are ordinary
	}
	text, err := os.ReadFile(filepath.Join(folder, "sources.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &lists); err != nil {
		return err
	}
	allowed, err := readAllowed(filepath.Join(folder, "build", "allow.txt"))
	if err != nil {
		return err
	}
	for _, e := range lists.Excluded {
		allow(allowed, e.Domain)
	}
	var r report
	joined := map[string]bool{}
	for _, s := range lists.Sources {
		domains, err := s.domains()
		if err != nil {
			return fmt.Errorf("%s of %s: %w", s.Package, s.Registry, err)
		}
		s.Domains = len(domains)
		r.Sources = append(r.Sources, s)
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

// keep returns the domains that belong into the table and that no listed parent covers.
func keep(joined, allowed map[string]bool, r *report) []string {
	listed := map[string]bool{}
	for d := range joined {
		ascii, err := idna.Lookup.ToASCII(d)
		suffix, _ := publicsuffix.PublicSuffix(ascii)
		switch {
		case err != nil || len(ascii) > 253 || !strings.Contains(ascii, "."):
			r.Malformed++
		case allowed[ascii]:
			r.Allowed++
		case suffix == ascii: // the public may register names below, and one registrant must not affect the others
			r.Suffixes++
		default:
			listed[ascii] = true
		}
	}
	var kept []string
	for d := range listed {
		if hasListedParent(d, listed) {
			r.Covered++
		} else {
			kept = append(kept, d)
		}
	}
	slices.Sort(kept)
	return kept
}

func hasListedParent(domain string, listed map[string]bool) bool {
	_, parent, _ := strings.Cut(domain, ".")
	return strings.Contains(parent, ".") && (listed[parent] || hasListedParent(parent, listed))
}

// layout returns the table in the layout of package disposable.
func layout(domains []string) []byte {
	buckets := make([][]string, disposable.Buckets)
	for _, d := range domains {
		b := disposable.Bucket(d)
		buckets[b] = append(buckets[b], d)
	}
	var index, entries []byte
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

// readAllowed returns the ordinary mail providers with their parents, because a listed parent covers its children.
func readAllowed(path string) (map[string]bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	allowed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		for d := range strings.FieldsSeq(line) {
			allow(allowed, d)
		}
	}
	return allowed, nil
}

// allow adds a domain with its parents.
func allow(allowed map[string]bool, domain string) {
	for d := domain; strings.Contains(d, "."); _, d, _ = strings.Cut(d, ".") {
		allowed[d] = true
	}
}

// domains returns the sorted domains of the package's lists.
func (s source) domains() ([]string, error) {
	dir, err := os.MkdirTemp("", "lists-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, err := s.install(dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, read := range s.Reads {
		format, path, _ := strings.Cut(read, ":")
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, err
		}
		domains, err := parse(format, text)
		if err != nil || len(domains) == 0 {
			return nil, errors.Join(fmt.Errorf("%s: %d domains", path, len(domains)), err)
		}
		for _, d := range domains {
			all = append(all, strings.ToLower(strings.TrimSpace(d)))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// lists find the list in a file of each format.
var lists = map[string]*regexp.Regexp{
	"python":     regexp.MustCompile(`(?s)blocklist = \{(.*?),?\s*\}`),
	"javascript": regexp.MustCompile(`(?s)new Set\(\[(.*?)\]\)`),
	"json":       regexp.MustCompile(`(?s)^\s*\[(.*)\]\s*$`),
}

// parse returns the list of a file. Within its brackets a list is JSON in each format, but for the quotes of Python.
func parse(format string, text []byte) (domains []string, err error) {
	list := lists[format].FindSubmatch(text)
	if list == nil {
		return nil, errors.New("no list")
	}
	err = json.Unmarshal(fmt.Appendf(nil, "[%s]", bytes.ReplaceAll(list[1], []byte("'"), []byte(`"`))), &domains)
	return domains, err
}

// install unpacks the package, without its dependencies, into the folder, and returns the root of the package's files.
func (s source) install(dir string) (root string, err error) {
	var command *exec.Cmd
	switch s.Registry {
	case "pypi":
		command = exec.Command("pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--no-compile",
			"--target", dir, s.Package+"=="+s.Version)
		root = dir
	case "npm":
		command = exec.Command("npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", dir, s.Package+"@"+s.Version)
		root = filepath.Join(dir, "node_modules", s.Package)
	default:
		return "", fmt.Errorf("unknown registry %q", s.Registry)
	}
	command.Stderr = os.Stderr
	return root, command.Run()
}
