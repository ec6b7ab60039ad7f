// Package tools installs the pinned tools, other than Go's, that tests run. The Makefile knows how, as its checks need
// some of them too.
package tools

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"svcapi/local/workdir"
)

// NodeModules returns the folder node_modules with the packages of tools/npm.
func NodeModules(ctx context.Context) (string, error) {
	return install(ctx, "npm", "node_modules")
}

// Schemathesis returns the path of the program, as tools/schemathesis.txt pins it.
func Schemathesis(ctx context.Context) (string, error) {
	return install(ctx, "schemathesis", filepath.Join("bin", "schemathesis"))
}

// install makes .local/<name> where it is not up to date, and returns the path of what is within. Processes that need
// it at once wait for the first one.
func install(ctx context.Context, name, within string) (string, error) {
	root, err := workdir.Root()
	if err != nil {
		return "", err
	}
	lock, err := workdir.Local(name + ".lock")
	if err != nil {
		return "", err
	}
	unlock, err := workdir.Lock(lock)
	if err != nil {
		return "", err
	}
	defer unlock()
	cmd := exec.CommandContext(ctx, "make", "--silent", "--directory", root, filepath.Join(".local", name, ".ready"))
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("installing %s: %w\n%s", name, err, strings.TrimSpace(string(output)))
	}
	return filepath.Join(root, ".local", name, within), nil
}
