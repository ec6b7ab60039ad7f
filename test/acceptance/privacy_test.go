package acceptance

import (
	"encoding/base64"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"svcapi/local/demo"
	"svcapi/local/sandbox"
	"svcapi/local/workdir"
	"svcapi/shared/project"
	"svcapi/test/leaks"
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
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, text) {
				found[filepath.Base(file)] = append(found[filepath.Base(file)], line)
			}
		}
	}
	return found
}

// docs/decisions.md#privacy-mode: without it the request's line holds its payload, cut at 4 KB, once it is
// authenticated and decoded; with it nothing of the payload, of the error's message or of the vendor's response.
func TestPrivacy(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{integrations: []integration{{vendor: "twilio", mode: project.BYOK}}}.make(t)
	const rejected, vendorSays = "0770000001", "unsubscribed"
	for name, c := range map[string]struct {
		r       request
		private string // X-Privacy-Mode
		logged  bool   // the payload
		says    bool   // the vendor's words
	}{
		"accepted":                {r: request{as: p.dev, body: single(number(), "TEXT")}, logged: true},
		"accepted, 1":             {r: request{as: p.dev, body: single(number(), "TEXT")}, private: "1"},
		"accepted, true":          {r: request{as: p.dev, body: single(number(), "TEXT")}, private: "true"},
		"accepted, TRUE":          {r: request{as: p.dev, body: single(number(), "TEXT")}, private: "TRUE"},
		"accepted, 0":             {r: request{as: p.dev, body: single(number(), "TEXT")}, private: "0", logged: true},
		"accepted, yes":           {r: request{as: p.dev, body: single(number(), "TEXT")}, private: "yes", logged: true},
		"rejected":                {r: request{as: p.dev, body: single(rejected, "TEXT")}, logged: true, says: true},
		"rejected, 1":             {r: request{as: p.dev, body: single(rejected, "TEXT")}, private: "1"},
		"not authenticated":       {r: request{as: credential{p.dev.ID, "wrong"}, body: single(number(), "TEXT")}},
		"malformed":               {r: request{as: p.dev, body: `{"message":"TEXT"`}},
		"a field wrong":           {r: request{as: p.dev, body: `{"send_method":"single","to":"TEXT","message":"TEXT"}`}},
		"duplicate name":          {r: request{as: p.dev, body: `{"TEXT":1,"TEXT":2}`}},
		"too long":                {r: request{as: p.dev, body: single(number(), "TEXT"+strings.Repeat("x", 460))}, logged: true},
		"too long, 1":             {r: request{as: p.dev, body: single(number(), "TEXT"+strings.Repeat("x", 460))}, private: "1"},
		"no integration, by path": {r: request{as: plainProject(t).dev, body: single(number(), "TEXT")}, logged: true},
	} {
		marker := "marker" + strings.NewReplacer(" ", "", ",", "").Replace(name)
		c.r.path, c.r.body = send, strings.ReplaceAll(c.r.body, "TEXT", marker)
		if c.private != "" {
			c.r.header = map[string]string{"X-Privacy-Mode": c.private}
		}
		a := c.r.do(t)
		if a == nil {
			continue
		}
		lines := logLines(t, fixture.stack.LogDir, a.RequestID)["sms.log"]
		if len(lines) != 1 {
			t.Errorf("%s: %d log lines, want one: %q", name, len(lines), lines)
			continue
		}
		if logged := strings.Contains(lines[0], marker); logged != c.logged {
			t.Errorf("%s: payload logged is %v, want %v: %s", name, logged, c.logged, lines[0])
		}
		if says := strings.Contains(lines[0], vendorSays); says != c.says {
			t.Errorf("%s: the vendor's words logged is %v, want %v: %s", name, says, c.says, lines[0])
		}
		if elsewhere := logLines(t, fixture.stack.LogDir, marker); len(elsewhere) > 1 || !c.logged && len(elsewhere) > 0 {
			t.Errorf("%s: payload logged in %v", name, elsewhere)
		}
	}

	// The payload is cut at 4 KB.
	const tail = "endofmarker"
	body := `{"send_method":"single","to":"` + number() + `","message":"m","x":"` + strings.Repeat("y", 4096) + tail + `"}`
	if a := (request{path: send, as: p.dev, body: body}).do(t); a != nil {
		if line := strings.Join(logLines(t, fixture.stack.LogDir, a.RequestID)["sms.log"], ""); !strings.Contains(line, "yyyy") || strings.Contains(line, tail) {
			t.Errorf("the payload is not cut: %d bytes", len(line))
		}
	}
}

// vendorKeys are the secrets that no log may contain, in each encoding.
func vendorKeys() []string {
	var keys []string
	for _, key := range []string{
		sandbox.QuickSendAPIKey, sandbox.TwilioAuthToken, sandbox.NotifyAPIKey, sandbox.TextLKToken, sandbox.DialogKey,
		sandbox.DialogPassword, sandbox.AWSSecretAccessKey,
	} {
		keys = append(keys, key, url.QueryEscape(key), url.PathEscape(key))
	}
	for _, pair := range []string{sandbox.QuickSendEmail + ":" + sandbox.QuickSendAPIKey, sandbox.TwilioAccountSID + ":" + sandbox.TwilioAuthToken} {
		keys = append(keys, base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	return keys
}

// leaks searches a stack's logs for secrets, after all tests, and notes the secrets for the search through the logs of
// the whole run.
func (s *system) leaks(dir string) (found []string, err error) {
	if kept := os.Getenv(workdir.LogsVariable); kept != "" {
		if err := os.WriteFile(filepath.Join(kept, leaks.KnownFile), []byte(strings.Join(s.secrets, "\n")+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	r, err := leaks.Search(dir, slices.Concat(vendorKeys(), sandbox.Secrets(), demo.Secrets(), s.secrets))
	if err == nil && r.Lines == 0 {
		err = errors.New("there are no logs in " + dir)
	}
	return r.Found, err
}
