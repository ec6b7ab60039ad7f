// Package leaks searches logs for known secrets in every encoding, and for text that looks like a secret.
package leaks

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Private is in the payload of requests that ask for privacy. No log may hold Private.
const Private = "private-payload-4f1d"

// KnownFile is the file in the folder of a test run's logs with the secrets that the run created, one a line.
const KnownFile = "known-secrets"

// shapes are the patterns of secrets.
var shapes = []struct {
	what  string
	shape *regexp.Regexp
}{
	{"a client secret", regexp.MustCompile(`svcs(?:_|%5[fF]|\\u005[fF])[A-Za-z0-9_%\\-]{20}`)},
	{"a client secret in Base64", regexp.MustCompile(`(?:c3Zjc1|N2Y3Nf|zdmNzX)[A-Za-z0-9+/_-]{24}`)},
	{"a password in a URL", regexp.MustCompile(`[a-z]://[^/\s:@"'\\<>]+:[^/\s@"'\\<>]+@`)},
	{"an Authorization header", regexp.MustCompile(`(?i)\b(?:basic|bearer) [A-Za-z0-9+/_.=-]{16}`)},
	{"a signature of AWS", regexp.MustCompile(`AWS4-HMAC-SHA256 Credential=`)},
	{"a header line with credentials", regexp.MustCompile(`(?i)x-api-(?:key|secret)["'\\]*\s*[:=]\s*["'\\\[]*svc`)},
	{"the payload of a request that asked for privacy", regexp.MustCompile(regexp.QuoteMeta(Private))},
}

// form is one form of a known secret.
type form struct {
	what string
	text []byte
}

// shortest is the least length of a searched text: shorter texts are in logs by chance.
const shortest = 8

// forms returns the encodings of a secret: plain, escaped, in Base64, and each of these without its first or last
// fifth.
func forms(secret string) []form {
	escaped := quoted(secret)
	slashed := strings.ReplaceAll(escaped, "/", `\/`)
	whole := map[string]string{
		"as it is": secret, "escaped for a query": url.QueryEscape(secret), "escaped for a path": url.PathEscape(secret),
		"escaped for JSON": escaped, "escaped for JSON twice": quoted(escaped),
		"escaped for JSON, slashes too": slashed, "escaped for JSON, slashes too, twice": quoted(slashed),
	}
	for before := range 3 { // Base64 of the secret at each offset within a longer text
		for name, encoding := range map[string]*base64.Encoding{"Base64": base64.RawStdEncoding,
			"Base64 for URLs": base64.RawURLEncoding} {
			text := encoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
			whole[fmt.Sprintf("in %s, %d", name, before)] = text[(before*8+5)/6 : (before+len(secret))*8/6]
		}
	}
	var all []form
	for what, text := range whole {
		fifth := len(text) / 5
		for name, part := range map[string]string{"": text, ", its beginning": text[:len(text)-fifth],
			", its end": text[fifth:]} {
			if len(part) >= shortest {
				all = append(all, form{what + name, []byte(part)})
			}
		}
	}
	slices.SortFunc(all, func(a, b form) int { return bytes.Compare(b.text, a.text) })
	return slices.CompactFunc(all, func(a, b form) bool { return bytes.Equal(a.text, b.text) })
}

// quoted returns a text escaped for JSON, without the quotation marks.
func quoted(text string) string {
	quoted, _ := json.Marshal(text) // a string always marshals
	return string(quoted[1 : len(quoted)-1])
}

// Result is the result of a search.
type Result struct {
	Files, Lines int
	Secrets      int      // the number of known secrets
	Found        []string // place and form of each, without the secret itself
}

// Search searches all files below a folder for the given secrets and those of KnownFile. Search reports a line once.
func Search(dir string, secrets []string) (Result, error) {
	var r Result
	known := map[byte][]form{} // by first byte
	noted, err := os.ReadFile(filepath.Join(dir, KnownFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	secrets = slices.Concat(secrets, strings.Fields(string(noted)))
	slices.Sort(secrets)
	for _, secret := range slices.Compact(secrets) {
		if secret == "" {
			continue
		}
		r.Secrets++
		for _, f := range forms(secret) {
			known[f.text[0]] = append(known[f.text[0]], f)
		}
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == KnownFile {
			return err
		}
		file, err := os.Open(path) // also where path is a link to a log
		if err != nil {
			return err
		}
		defer file.Close()
		r.Files++
		in := bufio.NewReaderSize(file, 1<<20)
		for {
			line, err := in.ReadBytes('\n')
			if len(line) == 0 && err != nil {
				return nil // the end
			}
			r.Lines++
			if what, at := find(line, known); at >= 0 {
				r.Found = append(r.Found, fmt.Sprintf("%s, line %d: %s, after %q", path, r.Lines, what, line[max(0, at-80):at]))
			}
		}
	})
	return r, err
}

func find(line []byte, known map[byte][]form) (what string, at int) {
	for _, s := range shapes {
		if found := s.shape.FindIndex(line); found != nil {
			return s.what, found[0]
		}
	}
	for i, b := range line {
		for _, f := range known[b] {
			if bytes.HasPrefix(line[i:], f.text) {
				return "a known secret " + f.what, i
			}
		}
	}
	return "", -1
}
