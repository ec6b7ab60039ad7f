package engine

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"svcapi/test/must"
)

// tools gives a PATH that holds only the named scripts, and links to those programs that have no script. The current
// folder is a new module.
func tools(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		path := filepath.Join(dir, name)
		if script == "" {
			program := must.Get(exec.LookPath(name)).Or(t)
			must.Succeed(t, os.Symlink(program, path))
			continue
		}
		must.Succeed(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755))
	}
	t.Setenv("PATH", dir)
	t.Setenv(EndpointVariable, "")
	t.Chdir(t.TempDir())
	must.Succeed(t, os.WriteFile("template.yaml", nil, 0o600))
}

// TestMissing checks that what is missing is said plainly.
func TestMissing(t *testing.T) {
	for _, c := range []struct {
		name    string
		scripts map[string]string
		message string
	}{
		{"no java", map[string]string{"mvn": "exit 0"}, "no `java` on the PATH"},
		{"no mvn", map[string]string{"java": "exit 0"}, "no `mvn` on the PATH"},
		{"no registry", map[string]string{"java": "exit 0", "mvn": "echo cannot reach it; exit 1"},
			"with Maven failed (is its registry reachable?): exit status 1\ncannot reach it"},
		{"a broken engine", map[string]string{"java": "exit 7", "mvn": copies, "mkdir": ""},
			"it ended while starting: exit status 7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tools(t, c.scripts)
			_, err := Start(context.Background(), Options{})
			if err == nil || !strings.Contains(err.Error(), c.message) {
				t.Errorf("%v, want %q", err, c.message)
			}
		})
	}
}

// copies plays Maven: it makes the folder that -DoutputDirectory names.
const copies = `for a; do case $a in -DoutputDirectory=*) mkdir "${a#-DoutputDirectory=}";; esac; done`

// TestVersion checks that the constant version, which names the engine's folder, is the version that pom.xml fetches.
func TestVersion(t *testing.T) {
	pom, err := os.ReadFile("pom.xml")
	if !strings.Contains(string(pom), "<artifactId>DynamoDBLocal</artifactId>\n      <version>"+version+"</version>") {
		t.Errorf("pom.xml has another version than %s: %v", version, err)
	}
}

// TestFetchOnce checks that those who need the engine at once download it once, and that what an interrupted download
// left is not taken for it.
func TestFetchOnce(t *testing.T) {
	tools(t, map[string]string{"mvn": copies, "mkdir": ""})
	must.Succeed(t, os.MkdirAll(filepath.Join(".local", "dynamodb", version+".partial"), 0o755))
	var steps []string
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			lib, err := fetch(context.Background(), func(step string) {
				mu.Lock()
				defer mu.Unlock()
				steps = append(steps, step)
			})
			if _, missing := os.Stat(lib); err != nil || missing != nil {
				t.Errorf("%s: %v, %v", lib, err, missing)
			}
		})
	}
	group.Wait()
	if len(steps) != 1 {
		t.Errorf("downloads: %v", steps)
	}
}

// TestRunning checks that an engine that runs already is used, and left alone.
func TestRunning(t *testing.T) {
	t.Setenv(EndpointVariable, "http://127.0.0.1:1")
	e, err := Start(context.Background(), Options{})
	if err != nil || e.URL != "http://127.0.0.1:1" {
		t.Fatalf("%v, %v", e, err)
	}
	e.Close()
}

// TestClose checks that the engine responds, and that nothing of it is left after Close.
func TestClose(t *testing.T) {
	t.Setenv(EndpointVariable, "")
	e := must.Get(Start(context.Background(), Options{})).Or(t)
	must.Get(Client(e.URL).ListTables(context.Background(), nil)).Or(t)
	e.Close()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(e.URL, "http://"), time.Second)
	if err == nil {
		err = errors.Join(errors.New("something still listens"), conn.Close())
		t.Error(err)
	}
	e.Close()
}

// TestForeignServer: a server that responds on the port, but not as DynamoDB does, is not taken for the engine.
func TestForeignServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if err := (&Engine{URL: server.URL}).ready(t.Context()); !errors.Is(err, errForeign) {
		t.Errorf("%v, want %v", err, errForeign)
	}
}
