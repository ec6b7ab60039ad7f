package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"svcapi/local/demo"
	"svcapi/local/sandbox"
	"svcapi/local/workdir"
	"svcapi/shared/project"
	"svcapi/test/must"
)

// logLines are the lines of a stack's logs that hold a text, by file.
func logLines(t *testing.T, dir, text string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(files) < 3 {
		t.Fatalf("logs in %s: %v, %v", dir, files, err)
	}
	found := map[string][]string{}
	for _, file := range files {
		for line := range strings.Lines(readFile(t, file)) {
			if strings.Contains(line, text) {
				found[filepath.Base(file)] = append(found[filepath.Base(file)], line)
			}
		}
	}
	return found
}

// docs/decisions/requests.md#privacy-mode: without it the request's line holds its masked payload once it is
// authenticated and decoded, and with it none. Nothing of the payload itself, and with it nothing of the error's
// message or of the vendor's response, is in any log of the stack.
func TestPrivacy(t *testing.T) {
	localParallel(t)
	p := plan{integrations: []integration{{vendor: "twilio", mode: project.BYOK}}}.make(t).drawing(t,
		project.BYOK).printing(t, project.BYOK)
	const rejected, vendorSays = "0770000001", "unsubscribed"
	header := map[string]string{"X-Privacy-Mode": "TRUE"}
	missing := "<img src='" + fixture.images.URL + "/TEXT.gif'>"
	for i, c := range []struct {
		path, body string
		header     map[string]string
		status     int
		logged     bool // the shape of the payload
	}{
		{send, single(number(), "TEXT"), nil, 200, true},
		{send, single(number(), "TEXT"), header, 200, false},
		{send, single(number(), "TEXT"), map[string]string{"X-Privacy-Mode": "0"}, 200, true},
		{send, single(rejected, "TEXT"), nil, 502, true},
		{send, single(rejected, "TEXT"), header, 502, false},
		{send, `{"send_method":"single","to":"TEXT","message":"TEXT"}`, nil, 422, false},
		{send, `{"message":"TEXT"`, nil, 422, false},
		{send, single(number(), "TEXT"), map[string]string{"X-API-SECRET": "wrong"}, 401, false},
		{barcodes, `{"data":"TEXT","type":"EAN13"}`, nil, 400, true},
		{barcodes, `{"data":"TEXT","type":"EAN13","privacy_mode":true}`, nil, 400, false},
		{qrcodes, `{"data":"TEXT","privacy_mode":"TEXT"}`, nil, 422, false},
		{pdfs, object(map[string]any{"html": missing}), nil, 400, true},
		{pdfs, object(map[string]any{"html": missing, "privacy_mode": true}), nil, 400, false},
		{streamed, object(map[string]any{"html": "<p>TEXT"}), header, 200, false},
	} {
		marker := fmt.Sprintf("confidential%d", i)
		a := request{path: c.path, body: strings.ReplaceAll(c.body, "TEXT", marker), as: p.dev, header: c.header}.send(t)
		must.Succeed(t, fixture.stack.AwaitIdle(t.Context(), "PdfFunction"))
		if lines := logLines(t, fixture.stack.LogDir, marker); a.status != c.status || len(lines) > 0 {
			t.Errorf("%s %s: %d, want %d, logged: %v", c.path, c.body, a.status, c.status, lines)
		}
		if found := fixture.payloads.quoted("a\n" + marker + "\nb"); len(found) != 1 && json.Valid([]byte(c.body)) {
			t.Errorf("the search for payloads found %q", found)
		}
		if c.path == streamed {
			continue // a PDF has no request ID
		}
		files := logLines(t, fixture.stack.LogDir, a.RequestID)
		delete(files, "gateway.log")
		lines := slices.Concat(slices.Collect(maps.Values(files))...)
		if shaped := slices.ContainsFunc(lines,
			func(line string) bool { return strings.Contains(line, `"payload":"`) }); shaped != c.logged {
			t.Errorf("%s: the shape of the payload is logged: %v: %q", c.body, shaped, lines)
		}
		if c.path != send {
			continue
		}
		if len(lines) != 1 || strings.Contains(lines[0], vendorSays) != (c.status == 502 && c.logged) {
			t.Errorf("%s: %d lines, want one: %q", c.body, len(lines), lines)
		}
	}
}

// leaks searches a stack's logs for secrets and payloads, after all tests, and notes the secrets for the search through
// the logs of the whole run.
func (s *system) leaks(dir string) (found []string, err error) {
	if kept := os.Getenv(workdir.LogsVariable); kept != "" {
		if err := os.WriteFile(filepath.Join(kept, knownFile),
			[]byte(strings.Join(s.secrets, "\n")+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	r, err := search(dir, slices.Concat(sandbox.Secrets(), demo.Secrets(), s.secrets))
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, file := range files {
		log, failed := os.ReadFile(file)
		err, r.found = errors.Join(err, failed), append(r.found, s.payloads.quoted(string(log))...)
	}
	if err == nil && r.lines == 0 {
		err = errors.New("there are no logs in " + dir)
	}
	return r.found, err
}

// word is a word that no log has by chance, or a phone number. The local part of an address and the host and path of an
// image have such words, too.
var word = regexp.MustCompile(`[A-Za-z0-9]{10,}`)

// payloads are the words in the bodies of a run's requests, which no log holds unless LogPayloads is "on"
// (docs/decisions/requests.md#payload-logging).
type payloads struct{ known sync.Map } // by word: whether the word is of a payload alone

// newPayloads returns an empty set. Words of the contract without a digit, such as names of fields, are no payload.
func newPayloads(contract []byte) *payloads {
	p := &payloads{}
	for _, found := range regexp.MustCompile(`[A-Za-z]{10,}`).FindAllString(string(contract), -1) {
		p.known.Store(found, false)
	}
	return p
}

// remember adds the words of a body.
func (p *payloads) remember(body string) {
	in := json.NewDecoder(strings.NewReader(body))
	for token, err := in.Token(); err == nil; token, err = in.Token() {
		text, _ := token.(string)
		for _, found := range word.FindAllString(text, -1) {
			p.known.LoadOrStore(found, true)
		}
	}
}

// quoted returns a finding for each word of a payload in a log.
func (p *payloads) quoted(log string) (found []string) {
	for line := range strings.Lines(log) {
		for _, text := range word.FindAllString(line, -1) {
			if payload, _ := p.known.Load(text); payload == true {
				found = append(found, fmt.Sprintf("the payload's %q is in the line %s", text, line))
			}
		}
	}
	return found
}
