// Package build compiles the functions for this machine, with the flags that they ship with.
package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"svcapi/local/template"
	"svcapi/local/workdir"
)

// flags are the build flags of every shipped binary.
var flags = []string{"-trimpath", "-tags", "lambda.norpc", "-ldflags=-s"}

// Functions compiles functions into .local/functions/<folder>/bootstrap of the module and returns the paths by logical
// ID.
func Functions(ctx context.Context, functions []template.Function) (map[string]string, error) {
	root, err := workdir.Root()
	if err != nil {
		return nil, err
	}
	lock, err := workdir.Local("functions", "lock") // two processes must not write one binary
	if err != nil {
		return nil, err
	}
	unlock, err := workdir.Lock(lock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	paths := map[string]string{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, function := range functions {
		path := filepath.Join(root, ".local", "functions", function.Folder, "bootstrap")
		paths[function.LogicalID] = path
		group.Go(func() error { return Package(ctx, root, "./functions/"+function.Folder, path) })
	}
	return paths, group.Wait()
}

// Package builds one package of the module at root into a binary, with the functions' flags.
func Package(ctx context.Context, root, pkg, binary string) error {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build"}, flags...), "-o", binary, pkg)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, strings.TrimSpace(string(output)))
	}
	return nil
}
