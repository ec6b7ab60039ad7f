//go:build clients

// Package clients generates API clients from openapi.yaml with three public generators, compiles them, and calls every
// operation of the local stack with each. `make test-clients` installs what the generators need.
package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// copyFile copies a file into a folder.
func copyFile(t *testing.T, file, folder string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, filepath.Base(file)), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestGeneratedClients(t *testing.T) {
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
	credential := demo.CredentialOf("managed", project.Development)
	caller := []string{s.BaseURL, credential.ClientID, credential.ClientSecret}
	document, here := filepath.Join(root, "openapi.yaml"), filepath.Join(root, "test", "clients")
	installed := filepath.Join(root, ".local", "clients")
	operations := strings.Count(command(t, root, nil, "grep", "-E", `^      operationId: `, document), "\n")

	called := func(t *testing.T, output string) {
		t.Helper()
		seen := map[string]bool{}
		for line := range strings.Lines(output) {
			if name := strings.TrimSpace(line); name != "" && !strings.Contains(name, " ") {
				seen[name] = true
			}
		}
		if len(seen) != operations || !strings.Contains(output, "an error") {
			t.Errorf("%d of %d operations were called:\n%s", len(seen), operations, output)
		}
	}
	t.Run("Python", func(t *testing.T) {
		dir := t.TempDir()
		bin := filepath.Join(installed, "venv", "bin")
		path := []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
		command(t, dir, path, filepath.Join(bin, "openapi-python-client"), "generate", "--path", document, "--output-path", filepath.Join(dir, "client"))
		command(t, dir, nil, filepath.Join(bin, "python"), "-m", "compileall", "-q", "client")
		called(t, command(t, dir, []string{"PYTHONPATH=" + filepath.Join(dir, "client")},
			filepath.Join(bin, "python"), append([]string{filepath.Join(here, "call.py")}, caller...)...))
	})
	t.Run("TypeScript", func(t *testing.T) {
		modules, err := workdir.NodeModules(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		command(t, dir, nil, filepath.Join(modules, ".bin", "openapi-typescript"), document, "-o", "api.ts")
		copyFile(t, filepath.Join(here, "call.ts"), dir)
		command(t, dir, nil, filepath.Join(modules, ".bin", "tsc"), "--strict", "--target", "es2022", "--module", "commonjs",
			"--moduleResolution", "node10", "--lib", "es2022,dom", "call.ts")
		called(t, command(t, dir, nil, "node", append([]string{"call.js"}, caller...)...))
	})
	t.Run("PHP", func(t *testing.T) {
		dir := t.TempDir()
		jars, err := filepath.Glob(filepath.Join(installed, "openapi-generator-cli-*.jar"))
		if err != nil || len(jars) != 1 {
			t.Fatalf("OpenAPI Generator: %v %v (make test-clients fetches it)", jars, err)
		}
		command(t, dir, nil, "java", "-jar", jars[0], "generate", "-i", document, "-g", "php", "-o", "client", "--additional-properties=invokerPackage=SvcApi")
		for _, file := range strings.Fields(command(t, dir, nil, "find", "client/lib", "-name", "*.php")) {
			command(t, dir, nil, "php", "-l", file)
		}
		called(t, command(t, dir, nil, "php", append([]string{filepath.Join(here, "call.php"), filepath.Join(dir, "client")}, caller...)...))
	})
}
