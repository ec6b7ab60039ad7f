package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// docs/decisions.md#documentation-page: code samples for every operation. Those of the document are run as a reader
// runs them, with credentials in place of the placeholders; the API responds to each with success, so every
// operation's first example is good.
func TestSamples(t *testing.T) {
	local(t) // they send
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(getPage(t, "GET", docsURL()+"/openapi.json", nil).body, &doc); err != nil {
		t.Fatal(err)
	}
	as := demoProject("managed").dev
	sent := request{path: send, body: single(number(), "m"), as: as}.do(t)
	if sent == nil || !sent.is(200, "") {
		t.Fatal("no send whose status can be asked for")
	}
	example := fmt.Sprint(fixture.spec.Components.Parameters["SmsSendReference"].Value.Example)
	fill := strings.NewReplacer(example, sent.provider(t).Reference, "{base_url}", fixture.baseURL, "<API_KEY>", as.ID, "<API_SECRET>", as.Secret)
	commands := map[string][]string{
		"curl": {"sh", "-e", "sample"}, "JavaScript": {"node", "sample.mjs"},
		"Python": {inRoot(t, ".local/venv/bin/python"), "sample"},
	}
	for path, item := range doc.Paths {
		for method, text := range item {
			if method != "get" && method != "post" {
				continue // an extension
			}
			var operation struct {
				Samples []struct{ Label, Source string } `json:"x-codeSamples"`
			}
			if err := json.Unmarshal(text, &operation); err != nil {
				t.Fatal(err)
			}
			var labels []string
			for _, sample := range operation.Samples {
				labels = append(labels, sample.Label)
				command, ok := commands[sample.Label]
				if !ok {
					continue // compiled or parsed by the tests of the samples themselves
				}
				dir := t.TempDir()
				file := filepath.Join(dir, command[len(command)-1])
				if err := os.WriteFile(file, []byte(fill.Replace(sample.Source)), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
				cmd.Dir = dir
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Run(); err != nil || strings.Contains(out.String(), `"success":false`) {
					t.Errorf("%s, %s: %v\n%s\n%s", path, sample.Label, err, out.String(), sample.Source)
				}
			}
			if got := strings.Join(labels, " "); got != "curl JavaScript Python Go PHP" {
				t.Errorf("%s has samples in %s", path, got)
			}
		}
	}
}
