// Package lists reads published lists of disposable mail domains, and holds the rules for the domains that the service
// takes from them. The command build and the function listsync use the same sources and rules.
package lists

import (
	"bytes"
	_ "embed" // the sources and the ordinary providers
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

var (
	//go:embed sources.json
	sources []byte
	//go:embed allow.txt
	providers string
)

// Source is one published list.
type Source struct {
	Package   string   `json:"package"`
	Registry  string   `json:"registry"` // pypi, npm or git
	Kind      Kind     `json:"kind"`
	Version   string   `json:"version"`
	Published string   `json:"published"` // day, UTC
	Licence   string   `json:"licence"`
	Reads     []string `json:"reads"`  // format:path in the package
	Newest    []string `json:"newest"` // format:address where the list's project publishes its newest state
	Domains   int      `json:"domains,omitempty"`
}

// Sources returns the content of sources.json.
func Sources() (all []Source, err error) {
	err = json.Unmarshal(sources, &all)
	return all, err
}

// Kind says what it proves that a list has a domain (docs/decisions/look-ups.md#disposable-domains).
type Kind string

// The kinds of lists.
const (
	Collected Kind = "collected" // needs a second list
	Reviewed  Kind = "reviewed"  // its project saw the service that gives the domain's addresses out
	Examined  Kind = "examined"  // its project asked for the domain's mail servers, and proves nothing but that
	Alive     Kind = "alive"     // its project found mail servers of the domain
)

// List holds the domains of one source.
type List struct {
	Kind    Kind
	Domains []string
}

// Counts are the domains of the lists, and those that are left out by reason.
type Counts struct {
	Joined    int `json:"joined"` // different domains of all lists
	Malformed int `json:"malformed"`
	Allowed   int `json:"allowed"` // ordinary domains and their parents
	Suffixes  int `json:"public_suffixes"`
	Dead      int `json:"dead"`   // examined, not alive, and not reviewed
	Single    int `json:"single"` // collected by one list only
	Covered   int `json:"covered_by_parent"`
}

// Keep returns the sorted domains of the lists that belong into the table and that no listed parent covers.
func Keep(read []List) ([]string, Counts) {
	found := map[string]map[Kind]int{}
	for _, list := range read {
		for _, d := range slices.Compact(slices.Sorted(slices.Values(list.Domains))) {
			if found[d] == nil {
				found[d] = map[Kind]int{}
			}
			found[d][list.Kind]++
		}
	}
	r, listed, allowed := Counts{Joined: len(found)}, map[string]bool{}, ordinary()
	for d, by := range found {
		ascii, err := idna.Lookup.ToASCII(d)
		suffix, _ := publicsuffix.PublicSuffix(ascii)
		switch {
		case err != nil || len(ascii) > 253 || !strings.Contains(ascii, "."):
			r.Malformed++
		case allowed[ascii]:
			r.Allowed++
		case suffix == ascii: // the public may register names below, and one registrant must not affect the others
			r.Suffixes++
		case by[Alive]+by[Reviewed] == 0 && by[Examined] > 0:
			r.Dead++
		case by[Alive]+by[Reviewed] == 0 && by[Collected] < 2:
			r.Single++
		default:
			listed[ascii] = true
		}
	}
	var kept []string
	for d := range listed {
		if HasListedParent(d, listed) {
			r.Covered++
		} else {
			kept = append(kept, d)
		}
	}
	slices.Sort(kept)
	return kept, r
}

// HasListedParent reports whether a parent of the domain with at least two labels is listed.
func HasListedParent(domain string, listed map[string]bool) bool {
	_, parent, _ := strings.Cut(domain, ".")
	return strings.Contains(parent, ".") && (listed[parent] || HasListedParent(parent, listed))
}

// ordinary returns the domains of allow.txt with their parents, because a listed parent covers its children.
func ordinary() map[string]bool {
	allowed := map[string]bool{}
	for line := range strings.Lines(providers) {
		line, _, _ = strings.Cut(line, "#")
		for d := range strings.FieldsSeq(line) {
			for ; strings.Contains(d, "."); _, d, _ = strings.Cut(d, ".") {
				allowed[d] = true
			}
		}
	}
	return allowed
}

// formats find the list in a file of each format.
var formats = map[string]*regexp.Regexp{
	"python":     regexp.MustCompile(`(?s)blocklist = \{(.*?),?\s*\}`),
	"javascript": regexp.MustCompile(`(?s)new Set\(\[(.*?)\]\)`),
	"json":       regexp.MustCompile(`(?s)^\s*\[(.*)\]\s*$`),
}

// Parse returns the lower-case domains of a file. A text has one a line, and comments after # or //. Within its
// brackets a list of the other formats is JSON, but for the quotes of Python.
func Parse(format string, text []byte) (domains []string, err error) {
	if format == "text" {
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, "#")
			line, _, _ = strings.Cut(line, "//")
			domains = append(domains, strings.Fields(line)...)
		}
	} else {
		list := formats[format].FindSubmatch(text)
		if list == nil {
			return nil, errors.New("no list")
		}
		err = json.Unmarshal(fmt.Appendf(nil, "[%s]", bytes.ReplaceAll(list[1], []byte("'"), []byte(`"`))), &domains)
	}
	for i, d := range domains {
		domains[i] = strings.ToLower(strings.TrimSpace(d))
	}
	if len(domains) == 0 && err == nil {
		err = errors.New("no domains")
	}
	return domains, err
}
