package stack_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"svcapi/local/demo"
	"svcapi/local/sandbox"
	"svcapi/local/stack"
	"svcapi/local/template"
	"svcapi/local/workdir"
	"svcapi/shared/project"
	"svcapi/test/must"
)

// TestStack starts a stack beside whatever else runs here: it responds before its browser is unpacked, and a PDF waits
// for the browser. TestStack checks the demo file and the end, too.
func TestStack(t *testing.T) {
	t.Setenv("CHROMIUM", "")
	dir := t.TempDir()
	file, logs := filepath.Join(dir, "demo.json"), filepath.Join(dir, "logs")
	lock := must.Get(workdir.Local("layer", "lock")).Or(t) // which unpacking takes
	var s *stack.Stack
	var fetched []sandbox.Call // the schedules have run once: rates and lists are there before the first request
	must.Succeed(t, workdir.Locked(lock, func() error {
		s = startStack(t, stack.Options{LogDir: logs, DemoFile: file, Progress: func(step string) { t.Log(step) }})
		fetched = s.Sandbox.Calls()
		if status, _, body := post(t, s, "/security/burner-email-shield", `{"email":"a@example.com"}`); status != 200 {
			t.Errorf("a look-up before the browser is there: %d %s", status, body)
		}
		select {
		case <-s.Renderer():
			t.Error("the renderer runs without the lock of its layer")
		default:
		}
		return nil
	}))
	if status, _, body := post(t, s, "/utilities/pdf/generate", `{"html":"<p>a"}`); status != 200 {
		t.Errorf("a PDF that waits: %d %.300s", status, body)
	}
	for vendor, operation := range map[string]string{"openexchangerates": "rates", "lists": "list"} {
		if !slices.ContainsFunc(fetched,
			func(c sandbox.Call) bool { return c.Vendor == vendor && c.Operation == operation }) {
			t.Errorf("the sandbox received %+v, and nothing for %s", fetched, vendor)
		}
	}
	checkFile(t, s, file)
	urls := []string{s.BaseURL, s.SandboxURL, s.DynamoDBURL, s.SecretsURL, s.LambdaURL}
	must.Succeed(t, s.Close())
	for _, u := range urls {
		parsed, _ := url.Parse(u)
		if conn, err := net.Dial("tcp", parsed.Host); err == nil && os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") != u {
			_ = conn.Close()
			t.Errorf("%s still listens", u)
		}
	}
	left, _ := filepath.Glob(filepath.Join(logs, "*"))
	if _, err := os.Stat(file); err == nil || len(left) > 0 {
		t.Errorf("left behind: %v, demo file: %v", left, err)
	}
}

// checkFile checks what the stack reports to other programs.
func checkFile(t *testing.T, s *stack.Stack, file string) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("demo file: %v, %v", info, err)
	}
	text, _ := os.ReadFile(file)
	var got struct {
		stack.Addresses
		Prices   map[string]int64 `json:"prices"`
		Projects map[string]struct {
			ProjectID   string                       `json:"project_id"`
			Credentials map[string]map[string]string `json:"credentials"`
			Faults      []demo.Fault                 `json:"faults"`
		} `json:"projects"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	must.Succeed(t, decoder.Decode(&got))
	for _, name := range []string{"base_url", "docs_url", "sandbox_url", "dynamodb_url", "secrets_url",
		"lambda_url", "log_dir"} {
		if !strings.Contains(string(text), `"`+name+`": "`) {
			t.Errorf("the demo file lacks %s: %s", name, text)
		}
	}
	if got.Addresses != s.Addresses || len(got.Prices) != 7 || got.Prices["sms"] != 10_000 {
		t.Errorf("demo file: %s", text)
	}
	managed := got.Projects["managed"]
	want := demo.CredentialOf("managed", project.Production)
	if len(got.Projects) != 11 || managed.ProjectID != "demo-managed" || fmt.Sprint(managed.Credentials["production"]) !=
		fmt.Sprint(map[string]string{"client_id": want.ClientID, "client_secret": want.ClientSecret}) {
		t.Errorf("demo projects: %v", got.Projects)
	}
}

// TestPortTaken checks that a port that is taken is said so before anything is started.
func TestPortTaken(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0")).Or(t)
	defer listener.Close()
	began := false
	_, err := stack.Start(t.Context(), stack.Options{
		Port: listener.Addr().(*net.TCPAddr).Port, LogDir: t.TempDir(), Progress: func(string) { began = true },
	})
	if err == nil || !strings.Contains(err.Error(), "PORT") || began {
		t.Errorf("%v, began: %v", err, began)
	}
}

// TestOnLaptop checks that the local settler waits for seconds although the template permits none so short, that the
// documentation page gets a demo project's credentials, and that nothing else of a function changes.
func TestOnLaptop(t *testing.T) {
	product := must.Get(template.Load(stack.Addresses{}.Overrides())).Or(t)
	for _, f := range product.Functions {
		want := maps.Clone(f.Environment)
		if f.Folder == "settle" {
			if want["SETTLE_AFTER_SECONDS"] != "110" {
				t.Errorf("the template says %s", want["SETTLE_AFTER_SECONDS"])
			}
			want["SETTLE_AFTER_SECONDS"] = "50"
		}
		if f.Folder == "docs" {
			want["DEMO_CLIENT_ID"], want["DEMO_CLIENT_SECRET"] = "svc_demo-managed_localdev", "svcs_local-managed-development"
		}
		if got := stack.OnLaptop(f).Environment; !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", f.Folder, got, want)
		}
	}
}

// TestNoBrowser checks that a stack without a browser refuses PDFs alone.
func TestNoBrowser(t *testing.T) {
	t.Setenv("CHROMIUM", filepath.Join(t.TempDir(), "absent"))
	s := startStack(t, stack.Options{LogDir: t.TempDir()})
	for path, c := range map[string]struct {
		body   string
		status int
		retry  string
	}{
		"/utilities/pdf/generate":       {`{"html":"<p>a"}`, http.StatusServiceUnavailable, "60"},
		"/security/burner-email-shield": {`{"email":"a@example.com"}`, http.StatusOK, ""},
	} {
		status, header, body := post(t, s, path, c.body)
		if status != c.status || header.Get("Retry-After") != c.retry ||
			c.retry != "" && !strings.Contains(body, "cannot make PDFs") {
			t.Errorf("%s: %d, Retry-After %q, %s", path, status, header.Get("Retry-After"), body)
		}
	}
}

func startStack(t *testing.T, options stack.Options) *stack.Stack {
	t.Helper()
	options.Log = t.Output()
	s := must.Get(stack.Start(t.Context(), options)).Or(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func post(t *testing.T, s *stack.Stack, path, body string) (status int, header http.Header, text string) {
	t.Helper()
	r := must.Get(http.NewRequest(http.MethodPost, s.BaseURL+path, strings.NewReader(body))).Or(t)
	credential := demo.CredentialOf("managed", project.Development)
	r.Header.Set("X-API-KEY", credential.ClientID)
	r.Header.Set("X-API-SECRET", credential.ClientSecret)
	response := must.Get(http.DefaultClient.Do(r)).Or(t)
	defer response.Body.Close()
	return response.StatusCode, response.Header, string(must.Get(io.ReadAll(response.Body)).Or(t))
}
