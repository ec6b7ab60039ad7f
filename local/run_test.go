package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"svcapi/local/workdir"
	"svcapi/test/must"
)

// started starts a command that runs the stack, and returns its output, line by line.
func started(t *testing.T, name string, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "PORT=0")
	out := must.Get(cmd.StdoutPipe()).Or(t)
	cmd.Stderr = t.Output()
	must.Succeed(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// only returns a folder that has these programs alone, for a PATH.
func only(t *testing.T, programs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, program := range programs {
		path, err := exec.LookPath(program)
		must.Succeed(t, errors.Join(err, os.Symlink(path, filepath.Join(dir, program))))
	}
	return dir
}

// TestRun checks what make run promises: with the programs that README lists it says where everything is and how to
// send, and a signal, while it starts or afterwards, ends everything and leaves no file.
func TestRun(t *testing.T) {
	t.Parallel()
	// Where make builds it, so that it is linked only after a change.
	binary := must.Get(workdir.Local("bin", "local")).Or(t)
	must.Get(workdir.Run(exec.Command("go", "build", "-o", binary, "."), "build")).Or(t)
	for name, c := range map[string]struct {
		signal syscall.Signal
		at     string // the line at which the signal comes
	}{
		"Ctrl-C": {syscall.SIGINT, "Ctrl-C ends everything"}, "SIGTERM while starting": {syscall.SIGTERM, "creating tables"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := only(t, "sh", "bash", "go", "make", "curl", "java", "mvn", "node", "npm")
			cmd, lines := started(t, "env", "PATH="+path, binary, "run", dir)
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
				if _, second := started(t, binary, "run", dir); second.Scan() {
					t.Errorf("a second stack in the folder of the first one: %s", second.Text())
				}
			}
			must.Succeed(t, cmd.Process.Signal(c.signal))
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

// TestCheck checks that make run names each program that is missing or too old, and a port that is taken, before it
// compiles anything. Only the tools that every machine with a shell has are on the PATH.
func TestCheck(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0")).Or(t)
	defer listener.Close()
	_, taken, _ := net.SplitHostPort(listener.Addr().String())
	const java17, java11, go126, go120 = `echo 'openjdk version "17.0.15"' >&2`, `echo 'openjdk version "11.0.2"' >&2`,
		"echo go1.26.8", "echo go1.20.14"
	whole := map[string]string{"java": java17, "go": go126, "mvn": "", "node": "echo v20.0.0", "npm": ""}
	for name, c := range map[string]struct {
		change   map[string]string // of the programs on the PATH; "-": none
		variable string
		want     string // in the output; empty: everything is there
		warning  string // in the output, where nothing that the stack needs is missing
	}{
		"everything": {},
		"no Java":    {change: map[string]string{"java": "-"}, want: "install Java 17 or later"},
		"old Java":   {change: map[string]string{"java": java11}, want: "the java on the PATH is 11"},
		"no Go":      {change: map[string]string{"go": "-"}, want: "there is no go on the PATH"},
		"old Go":     {change: map[string]string{"go": go120}, want: "the go on the PATH is 1.20.14"},
		"Go that may not fetch": {change: map[string]string{"go": "echo go1.25.3"}, variable: "GOTOOLCHAIN=local",
			want: "the go on the PATH is 1.25.3"},
		"Go that fetches": {change: map[string]string{"go": "echo go1.25.3"}},
		"old Node":        {change: map[string]string{"node": "echo v18.20.1"}, warning: "on the PATH is 18.20.1"},
		"no Node":         {change: map[string]string{"node": "-"}, warning: "on the PATH is missing"},
		"an engine":       {change: map[string]string{"java": "-"}, variable: "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1"},
		"a taken port":    {variable: "PORT=" + taken, want: "is taken: choose another one with PORT="},
		"no port":         {variable: "PORT=http", want: "is no port"},
	} {
		dir := only(t, "bash", "awk", "sed", "sort", "head", "ls", "dirname")
		programs := maps.Clone(whole)
		maps.Copy(programs, c.change)
		for program, text := range programs {
			if text != "-" {
				must.Succeed(t, os.WriteFile(filepath.Join(dir, program), []byte("#!"+dir+"/bash\n"+text+"\n"), 0o755))
			}
		}
		cmd := exec.CommandContext(t.Context(), "./check.sh")
		cmd.Env = []string{"PATH=" + dir, "PORT=0", c.variable}
		cmd.Path = filepath.Join(dir, "bash")
		cmd.Args = []string{"bash", "./check.sh"}
		output, err := cmd.CombinedOutput()
		if (err == nil) != (c.want == "") || !strings.Contains(string(output), c.want) ||
			!strings.Contains(string(output), c.warning) || c.want+c.warning == "" && len(output) > 0 {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
	}
}
