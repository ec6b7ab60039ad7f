//go:build clients

// Package clients builds the client packages of a release, and calls every operation of the local stack with each.
// `make test-clients` installs what the generators need.
package clients

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"svcapi/local/demo"
	"svcapi/local/stack"
	"svcapi/local/workdir"
	"svcapi/shared/project"
)

// command runs a program and returns what it prints.
func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(name), err, out)
	}
	return string(out)
}

// busy passes requests on, but the first balance, the first SMS without an Idempotency-Key and the first SMS of each
// key, which are 503 with Retry-After. times has the requests of each kind.
type busy struct {
	next  http.Handler
	mu    sync.Mutex
	times map[string][]time.Time
}

func (b *busy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation := path.Base(r.URL.Path)
	kind := operation + r.Header.Get("Idempotency-Key")
	b.mu.Lock()
	b.times[kind] = append(b.times[kind], time.Now())
	first := len(b.times[kind]) == 1 && (operation == "send" || operation == "balance")
	b.mu.Unlock()
	if first {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"success":false,"request_id":"9ed060e6-a6e3-427c-99b8-ef1365dc7f51",`+
			`"error":{"code":"http_error","message":"Busy.","details":{"reason":"not_connected"}}}`)
		return
	}
	b.next.ServeHTTP(w, r)
}

// TestClients checks that the client packages of a release call every operation, and follow the retry rules: an SMS
// without an Idempotency-Key is sent once, and other requests again after the seconds of Retry-After.
func TestClients(t *testing.T) {
	root, err := workdir.Root()
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(t.Context(), stack.Options{LogDir: t.TempDir(), Progress: func(step string) { t.Log(step) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	here, installed := filepath.Join(root, "test", "clients"), filepath.Join(root, ".local", "clients")
	operations := strings.Count(command(t, root, nil, "grep", "-E", `^      operationId: `, "openapi.yaml"), "\n")
	stackURL, err := url.Parse(s.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		language string
		call     func(t *testing.T, dir string, caller ...string) string
	}{
		{"python", func(t *testing.T, dir string, caller ...string) string {
			python := filepath.Join(installed, "venv", "bin", "python")
			command(t, dir, nil, python, "-m", "compileall", "-q", "client")
			return command(t, dir, []string{"PYTHONPATH=client"}, python,
				append([]string{filepath.Join(here, "call.py")}, caller...)...)
		}},
		{"typescript", func(t *testing.T, dir string, caller ...string) string {
			modules, err := workdir.NodeModules(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			command(t, dir, nil, "mkdir", "node_modules")
			command(t, dir, nil, "ln", "-s", "../client", "node_modules/svc-api-client")
			command(t, dir, nil, "ln", "-s", modules, "client/node_modules")
			command(t, dir, nil, "cp", filepath.Join(here, "call.mts"), ".")
			command(t, dir, nil, filepath.Join(modules, ".bin", "tsc"), "--strict", "--target", "es2022", "--module", "nodenext",
				"--lib", "es2022,dom", "call.mts")
			return command(t, dir, nil, "node", append([]string{"call.mjs"}, caller...)...)
		}},
		{"php", func(t *testing.T, dir string, caller ...string) string {
			command(t, dir, nil, "find", "client/lib", "-name", "*.php", "-exec", "php", "-l", "{}", ";")
			return command(t, dir, nil, "php", append([]string{filepath.Join(here, "call.php"), "client"}, caller...)...)
		}},
	} {
		t.Run(c.language, func(t *testing.T) {
			b := &busy{next: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: stackURL.Host}),
				times: map[string][]time.Time{}}
			server := httptest.NewServer(b)
			t.Cleanup(server.Close)
			dir, credential := t.TempDir(), demo.CredentialOf("managed", project.Development)
			command(t, root, nil, "tools/clients/build.sh", c.language, filepath.Join(dir, "client"), "1.2.3")
			output := c.call(t, dir, server.URL+stackURL.Path, credential.ClientID, credential.ClientSecret, "order-"+c.language)
			seen := map[string]bool{}
			for line := range strings.Lines(output) {
				if name := strings.TrimSpace(line); name != "" && !strings.Contains(name, " ") {
					seen[name] = true
				}
			}
			if len(seen) != operations || !strings.Contains(output, "an error") {
				t.Errorf("%d of %d operations were called:\n%s", len(seen), operations, output)
			}
			for kind, want := range map[string]int{"send": 1, "sendorder-" + c.language: 2, "balance": 2} {
				times := b.times[kind]
				if len(times) != want || want == 2 && times[1].Sub(times[0]) < 2*time.Second {
					t.Errorf("%s was requested at %v, want %d times, and again after the 2 s of Retry-After", kind, times, want)
				}
			}
		})
	}
}

// TestGoClient checks that a Go client which oapi-codegen generates from openapi.yaml compiles.
func TestGoClient(t *testing.T) {
	root, err := workdir.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir, module := t.TempDir(), filepath.Join(root, "tools", "go")
	client, file := filepath.Join(dir, "client.go"), filepath.Join(dir, "overlay.json")
	command(t, module, nil, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "client", "-o", client,
		filepath.Join(root, "openapi.yaml"))
	// The overlay makes the client a package of the module tools/go, which has what the client imports.
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(module, "client",
		"client.go"): client}})
	if err == nil {
		err = os.WriteFile(file, overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	command(t, module, nil, "go", "build", "-overlay", file, "./client")
}
