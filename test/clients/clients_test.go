//go:build clients

// Package clients builds the client packages of a release, and calls every operation of the local stack with each.
// `make test-clients` installs what the generators need.
package clients

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"svcapi/local/demo"
	"svcapi/local/stack"
	"svcapi/local/workdir"
	"svcapi/shared/project"
	"svcapi/test/must"
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

// blocks matches the commands and the program of a README, in order.
var blocks = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// client is how a README's program is saved and started, and how the caller of every operation is started. Both run in
// the project of the README.
type client struct {
	language, file string
	run, callAll   string // commands; the latter gets the address, the credentials and a key
	notRun         string // why the README's commands are not run here; empty: they are run
	prepare        string // a command before them
}

var clients = []client{
	{"typescript", "invoice.mjs", "node invoice.mjs", "node call.mjs", "", "npm init -y >/dev/null"},
	{"python", "invoice.py", "python invoice.py", "python $HERE/call.py", "", "python3 -m venv venv"},
	{"php", "invoice.php", "php invoice.php", "php $HERE/call.php", "Composer needs its own registry",
		"mkdir vendor && cp $HERE/autoload.php vendor"},
	{"go", "main.go", "go mod tidy && go run .", "go run ./call", "",
		"go mod init example.com/invoice && mkdir call && cp $HERE/call.go.txt call/main.go"},
}

// TestClients checks that each client of a release works as its README prints: in an empty project the commands and the
// program run with a PDF, a picture and an SMS with a key. The client also calls every operation, and follows the retry
// rules: an SMS without an Idempotency-Key is sent once, and other requests again after the seconds of Retry-After.
func TestClients(t *testing.T) {
	root := must.Get(workdir.Root()).Or(t)
	s, err := stack.Start(t.Context(), stack.Options{LogDir: t.TempDir(), Progress: func(step string) { t.Log(step) }})
	must.Succeed(t, err)
	t.Cleanup(func() { must.Succeed(t, s.Close()) })
	operations := strings.Count(command(t, root, nil, "grep", "-E", `^      operationId: `, "openapi.yaml"), "\n")
	stackURL := must.Get(url.Parse(s.BaseURL)).Or(t)
	for _, c := range clients {
		t.Run(c.language, func(t *testing.T) {
			b := &busy{next: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: stackURL.Host}),
				times: map[string][]time.Time{}}
			server := httptest.NewServer(b)
			t.Cleanup(server.Close)
			dir, credential := t.TempDir(), demo.CredentialOf("managed", project.Production)
			command(t, root, nil, "tools/clients/build.sh", c.language, dir, "1.2.3")
			environment := []string{"HERE=" + filepath.Join(root, "test", "clients"),
				"PATH=" + filepath.Join(dir, "venv", "bin") + ":" + os.Getenv("PATH")}
			readme := c.install(t, root, dir, environment)
			program := strings.NewReplacer("https://…/api/v1", s.BaseURL, "svc_…", credential.ClientID,
				"svcs_…", credential.ClientSecret, "order-1042", "invoice-"+c.language).Replace(readme)
			must.Succeed(t, os.WriteFile(filepath.Join(dir, c.file), []byte(program), 0o600))
			if printed := command(t, dir, environment, "sh", "-ec", c.run); !strings.HasSuffix(printed, "10000\n") {
				t.Errorf("the program of the README prints %q", printed)
			}
			for file, begin := range map[string]string{"invoice.pdf": "%PDF-", "code.png": "\x89PNG"} {
				if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.HasPrefix(string(text), begin) {
					t.Errorf("%s: %v, %.20q", file, err, text)
				}
			}
			credential = demo.CredentialOf("managed", project.Development)
			output, seen := command(t, dir, environment, "sh", "-ec", c.callAll+` "$@"`, "sh", server.URL+stackURL.Path,
				credential.ClientID, credential.ClientSecret, "order-"+c.language), map[string]bool{}
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

// install runs the commands of the README, and returns its program. The compiler of TypeScript also checks the caller.
func (c client) install(t *testing.T, root, dir string, environment []string) (program string) {
	t.Helper()
	readme := must.Get(os.ReadFile(filepath.Join(root, "tools", "clients", c.language, "README.md"))).Or(t)
	command(t, dir, environment, "sh", "-ec", c.prepare)
	for _, block := range blocks.FindAllStringSubmatch(strings.ReplaceAll(string(readme), "VERSION", "1.2.3"), -1) {
		switch {
		case block[1] != "sh":
			program = block[2]
		case c.notRun != "":
			t.Logf("not run, because %s:\n%s", c.notRun, block[2])
		default:
			command(t, dir, environment, "sh", "-ec", block[2])
		}
	}
	if c.language == "typescript" {
		modules := must.Get(workdir.Installed(t.Context(), "npm", "node_modules")).Or(t)
		command(t, dir, environment, "sh", "-ec", "cp $HERE/call.mts . && "+filepath.Join(modules, ".bin", "tsc")+
			" --strict --target es2022 --module nodenext --lib es2022,dom call.mts")
	}
	return program
}
