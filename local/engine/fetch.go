package engine

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"

	"svcapi/local/workdir"
)

// version is that of pom.xml, whose dependencies are the engine: its jars and native libraries.
const version = "3.1.0"

// fetch returns the folder of the engine's libraries below .local/dynamodb of the module, after downloading them once.
func fetch(ctx context.Context, progress func(string)) (string, error) {
	lib, err := workdir.Local("dynamodb", version)
	if err != nil {
		return "", err
	}
	root, err := workdir.Root()
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
		pom := filepath.Join(root, "local", "engine", "pom.xml")
		_, err = workdir.Run(exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "--file", pom,
			"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+partial),
			"fetching DynamoDB Local with Maven failed (is its registry reachable?)")
		return err
	})
}
