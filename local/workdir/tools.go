package workdir

import (
	"context"
	"os/exec"
	"path/filepath"
)

// NodeModules returns the folder node_modules with the packages of tools/npm, which the Makefile installs.
func NodeModules(ctx context.Context) (string, error) {
	return install(ctx, "npm", "node_modules")
}

// Schemathesis returns the path of the program, as tools/schemathesis.txt pins it.
func Schemathesis(ctx context.Context) (string, error) {
	return install(ctx, "schemathesis", filepath.Join("bin", "schemathesis"))
}

// install lets make update .local/<name>, one process at a time, and returns the path of a file within.
func install(ctx context.Context, name, within string) (string, error) {
	lock, err := Local(name + ".lock")
	if err != nil {
		return "", err
	}
	root := filepath.Dir(filepath.Dir(lock))
	return filepath.Join(root, ".local", name, within), Locked(lock, func() error {
		_, err := Run(exec.CommandContext(ctx, "make", "--silent", "--directory", root,
			filepath.Join(".local", name, ".ready")),
			"installing "+name)
		return err
	})
}
