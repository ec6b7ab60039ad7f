// Package build compiles the functions for this machine, with the flags that they ship with.
package build

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"svcapi/local/template"
	"svcapi/local/workdir"
)

// flags are the build flags of every shipped binary.
var flags = []string{"-trimpath", "-tags", "lambda.norpc", "-ldflags=-s"}

// Functions compiles functions into .local/functions/bin of the module and returns the paths by logical ID. One call of
// the compiler builds them all: that costs next to nothing where they are up to date.
func Functions(ctx context.Context, functions []template.Function) (map[string]string, error) {
	dir, err := workdir.Local("functions", "bin")
	if err != nil {
		return nil, err
	}
	paths, packages := map[string]string{}, []string{}
	for _, function := range functions {
		paths[function.LogicalID] = filepath.Join(dir, filepath.Base(function.Package))
		packages = append(packages, "./functions/"+function.Package)
	}
	return paths, Packages(ctx, dir+string(filepath.Separator), packages...)
}

// Program compiles a program into .local/programs of the module, where only a changed one is linked again, and returns
// its path.
func Program(ctx context.Context, pkg string) (string, error) {
	path, err := workdir.Local("programs", filepath.Base(pkg))
	if err != nil {
		return "", err
	}
	return path, Packages(ctx, path, pkg)
}

// Packages builds packages of the module, with the functions' flags, into a binary, or into a folder whose name ends
// with a slash. Two processes do not write one output at a time.
func Packages(ctx context.Context, output string, packages ...string) error {
	root, err := workdir.Root()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, flags, []string{"-o", output}, packages)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return workdir.Locked(filepath.Clean(output)+".lock", func() error {
		_, err := workdir.Run(cmd, "build "+strings.Join(packages, " "))
		return err
	})
}
