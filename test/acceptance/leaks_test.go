package acceptance

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
	"testing"

	"svcapi/local/demo"
	"svcapi/local/sandbox"
	"svcapi/test/must"
)

// private is in the payload of requests that ask for privacy. No log may hold private.
const private = "private-payload-4f1d"

// knownFile is the file in the folder of a test run's logs with the secrets that the run created, one a line.
const knownFile = "known-secrets"

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
	{"the payload of a request that asked for privacy", regexp.MustCompile(regexp.QuoteMeta(private))},
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

// searched is the result of a search.
type searched struct {
	files, lines int
	secrets      int      // the number of known secrets
	found        []string // place and form of each, without the secret itself
}

// search searches all files below a folder for the given secrets and those of knownFile. search reports a line once.
func search(dir string, secrets []string) (r searched, err error) {
	known := map[byte][]form{} // by first byte
	noted, err := os.ReadFile(filepath.Join(dir, knownFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	secrets = slices.Concat(secrets, strings.Fields(string(noted)))
	slices.Sort(secrets)
	for _, secret := range slices.Compact(secrets) {
		if secret == "" {
			continue
		}
		r.secrets++
		for _, f := range forms(secret) {
			known[f.text[0]] = append(known[f.text[0]], f)
		}
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == knownFile {
			return err
		}
		file, err := os.Open(path) // also where path is a link to a log
		if err != nil {
			return err
		}
		defer file.Close()
		r.files++
		in := bufio.NewReaderSize(file, 1<<20)
		for {
			line, err := in.ReadBytes('\n')
			if len(line) == 0 && err != nil {
				return nil // the end
			}
			r.lines++
			if what, at := find(line, known); at >= 0 {
				r.found = append(r.found, fmt.Sprintf("%s, line %d: %s, after %q", path, r.lines, what, line[max(0, at-80):at]))
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

// searchRun searches the logs of a whole test run in a folder: make test does that last, with the folder in LEAKS.
func searchRun(dir string) error {
	r, err := search(dir, slices.Concat(sandbox.Secrets(), demo.Secrets()))
	if err != nil {
		return err
	}
	fmt.Printf("%d lines of %d logs searched for %d secrets in all their forms: %d found\n", r.lines, r.files, r.secrets,
		len(r.found))
	if r.files == 0 {
		return errors.New("there is no log in " + dir)
	}
	for _, found := range r.found[:min(20, len(r.found))] {
		fmt.Println(found)
	}
	if len(r.found) > 0 {
		return errors.New("secrets are logged")
	}
	return nil
}

// TestSearchFindsEveryForm plants every form of invented secrets, and finds each of them.
func TestSearchFindsEveryForm(t *testing.T) {
	const vendor, client = "made/up+vendor key", "svcs_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
	planted := []string{
		`{"error":"` + client + `"}`, client[:len(client)*4/5], "for " +
			base64.StdEncoding.EncodeToString([]byte("id:"+client)),
		"for " + base64.StdEncoding.EncodeToString([]byte("id:"+vendor)), url.QueryEscape(vendor), url.PathEscape(vendor),
		"https://user:made-up@vendor.example/", "authorization: Bearer 0123456789abcdef0123",
		"x-api-key: svc_made-up_aaaaaaaa", private,
	}
	for _, f := range forms(vendor) {
		planted = append(planted, "before "+string(f.text)+" behind")
	}
	dir := t.TempDir()
	for i, line := range planted {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.log", i)), []byte("a line\n"+line+"\n"), 0o600))
	}
	if r, err := search(dir, []string{vendor}); err != nil || len(r.found) != len(planted) {
		t.Errorf("found %d of %d planted secrets: %v, %v", len(r.found), len(planted), r.found, err)
	}
}

// Text without secrets has no finding, and a finding does not contain the secret.
func TestSearchFindsNothingElse(t *testing.T) {
	dir := t.TempDir()
	secret := "a-secret-of-a-vendor"
	for name, line := range map[string]string{
		"plain.log": `{"payload":"{\"url\":\"https://vendor.example/a:b?c@d\",\"to\":\"basic things\"}",` +
			`"project":"svc_acme"}`,
		"hit.log":    "key=" + secret,
		"cut.log":    "key=" + secret[:16] + "…",
		"sub/hit.gz": "X" + secret,
	} {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Succeed(t, os.WriteFile(path, []byte(line), 0o600))
	}
	must.Succeed(t, os.WriteFile(filepath.Join(dir, knownFile), []byte(secret+"\n"), 0o600))
	r, err := search(dir, nil)
	if err != nil || r.files != 4 || r.lines != 4 || r.secrets != 1 || len(r.found) != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, found := range r.found {
		if strings.Contains(found, secret[:10]) {
			t.Errorf("the finding contains the secret: %s", found)
		}
	}
}
