package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"svcapi/local/workdir"
)

const version = "3.1.0"

// project is the Maven project whose dependencies are the engine: its jars and native libraries.
const project = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>dynamodb</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>software.amazon.dynamodb</groupId>
      <artifactId>DynamoDBLocal</artifactId>
      <version>` + version + `</version>
    </dependency>%s
  </dependencies>
</project>
`

// appleSilicon is the native library that the engine lacks there.
const appleSilicon = `
    <dependency>
      <groupId>io.github.ganadist.sqlite4java</groupId>
      <artifactId>libsqlite4java-osx-aarch64</artifactId>
      <version>1.0.392</version>
      <type>dylib</type>
    </dependency>`

// fetch returns the folder of the engine's libraries below .local/dynamodb of the module. Processes that need the folder at
// once wait for the first one's download.
func fetch(ctx context.Context, progress func(string)) (string, error) {
	lib, err := workdir.Local("dynamodb", version)
	if err != nil || exists(lib) {
		return lib, err
	}
	cache := filepath.Dir(lib)
	unlock, err := workdir.Lock(filepath.Join(cache, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(lib) {
		return lib, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", errors.New("DynamoDB Local is fetched with Maven, and there is no `mvn` on the PATH. " +
			"Install Maven, or set " + EndpointVariable + " to an engine that runs already")
	}
	progress("fetching DynamoDB Local " + version + " (48 MB, once)")
	extra := ""
	if runtime.GOOS == "darwin" && runtime.GOARCH == "arm64" {
		extra = appleSilicon
	}
	pom := filepath.Join(cache, "pom.xml")
	if err := os.WriteFile(pom, fmt.Appendf(nil, project, extra), 0o644); err != nil {
		return "", err
	}
	partial := lib + ".partial" // renamed when complete: an interrupted download is never taken for the engine
	if err := os.RemoveAll(partial); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "--file", pom,
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+partial)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("fetching DynamoDB Local with Maven failed (is its registry reachable?): %w\n%s",
			err, strings.TrimSpace(output.String()))
	}
	return lib, os.Rename(partial, lib)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
