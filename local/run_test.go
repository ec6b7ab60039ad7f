package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"svcapi/local/workdir"
)

// linked links this program where make builds it, so that it is linked only after a change.
var linked = sync.OnceValues(func() (string, error) {
	binary, err := workdir.Local("bin", "local")
	if err != nil {
		return "", err
	}
	output, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, output)
	}
	return binary, err
})

func compiled(t *testing.T) string {
	t.Helper()
	binary, err := linked()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// started starts a command that runs the stack, and returns its output, line by line.
func started(t *testing.T, name string, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "PORT=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// TestRun checks what make run promises: it says where everything is and how to send, and a signal, while it starts or
// afterwards, ends everything and leaves no file.
func TestRun(t *testing.T) {
	t.Parallel()
	binary := compiled(t)
	for name, c := range map[string]struct {
		signal syscall.Signal
		at     string // the line at which the signal comes
	}{
		"Ctrl-C": {syscall.SIGINT, "Ctrl-C ends everything"}, "SIGTERM while starting": {syscall.SIGTERM, "creating tables"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd, lines := started(t, binary, "run", dir)
			var text strings.Builder
			for lines.Scan() && !strings.Contains(lines.Text(), c.at) {
				if text.WriteString(lines.Text() + "\n"); strings.Contains(lines.Text(), "Ctrl-C ends everything") {
					t.Errorf("no line says %q", c.at) // the last line has come
					break
				}
			}
			var urls struct {
				DynamoDB string `json:"dynamodb_url"`
				Gateway  string `json:"base_url"`
			}
			if strings.HasPrefix(c.at, "Ctrl-C") {
				content, _ := os.ReadFile(filepath.Join(dir, "demo.json"))
				if err := json.Unmarshal(content, &urls); err != nil {
					t.Fatalf("demo file: %v", err)
				}
				for _, part := range []string{urls.Gateway, "\ndemo-managed ", "svc_demo-managed_localdev",
					"svcs_local-failover-production", "curl -sS " + urls.Gateway, "DynamoDbEndpointUrl=" + urls.DynamoDB} {
					if !strings.Contains(text.String(), part) {
						t.Errorf("it does not print %s", part)
					}
				}
			}
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() { // to the end of the stack
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 1 ||
				len(left) == 1 && filepath.Base(left[0]) != "logs" {
				t.Errorf("it left %v", left)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "logs", "*")); len(left) > 0 {
				t.Errorf("it left %v", left)
			}
			for _, u := range []string{urls.DynamoDB, urls.Gateway} {
				if parsed, _ := url.Parse(u); u != "" && u != os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") {
					if conn, err := net.Dial("tcp", parsed.Host); err == nil {
						conn.Close()
						t.Errorf("%s still listens", u)
					}
				}
			}
		})
	}
}

// TestRunEndsWithItsStarter checks that a stack does not outlive a starter that dies without a word.
func TestRunEndsWithItsStarter(t *testing.T) {
	t.Parallel()
	binary, dir := compiled(t), t.TempDir()
	// The shell stays the parent: it has a further command to run.
	shell, lines := started(t, "sh", "-c", `"$0" run "$1"; true`, binary, dir)
	for lines.Scan() && !strings.Contains(lines.Text(), "ready") {
	}
	if err := shell.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // the stack holds the pipe open
	}
	if _, err := os.Stat(filepath.Join(dir, "demo.json")); err == nil {
		t.Error("it left its demo file")
	}
}

// TestRunWithoutJava checks that a missing Java is said plainly.
func TestRunWithoutJava(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), compiled(t), "run", t.TempDir())
	cmd.Env = []string{"PATH=" + t.TempDir(), "PORT=0", "HOME=" + t.TempDir()}
	output, err := cmd.CombinedOutput()
	if text := string(output); err == nil || !strings.Contains(text, "needs Java") || strings.Contains(text, "goroutine") {
		t.Errorf("%v\n%s", err, output)
	}
}
