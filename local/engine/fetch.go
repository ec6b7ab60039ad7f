package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

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

// fetch returns the folder of the engine's libraries below .local/dynamodb of the module, after downloading them once.
func fetch(ctx context.Context, progress func(string)) (string, error) {
	lib, err := workdir.Local("dynamodb", version)
	if err != nil {
		return "", err
	}
	return lib, workdir.Once(lib, func(partial string) error {
		mvn, err := exec.LookPath("mvn")
		if err != nil {
			return errors.New("DynamoDB Local is fetched with Maven, and there is no `mvn` on the PATH. " +
				"Install Maven, or set " + EndpointVariable + " to an engine that runs already")
		}
		progress("fetching DynamoDB Local " + version + " (48 MB, once)")
		extra := ""
		if runtime.GOOS == "darwin" && runtime.GOARCH == "arm64" {
			extra = appleSilicon
		}
		pom := filepath.Join(filepath.Dir(lib), "pom.xml")
		if err := os.WriteFile(pom, fmt.Appendf(nil, project, extra), 0o644); err != nil {
			return err
		}
		_, err = workdir.Run(exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "--file", pom,
			"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+partial),
			"fetching DynamoDB Local with Maven failed (is its registry reachable?)")
		return err
	})
}
