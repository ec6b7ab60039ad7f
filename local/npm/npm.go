// Package npm installs the pinned tools of npm that tests run.
package npm

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"svcapi/local/workdir"
)

// Modules returns the folder node_modules with the packages of tools/npm. They are installed where that has not been
// done since the lock file last changed; processes that need them at once wait for the first one.
func Modules(ctx context.Context) (string, error) {
	root, err := workdir.Root()
	if err != nil {
		return "", err
	}
	modules, err := workdir.Local("npm", "node_modules")
	if err != nil {
		return "", err
	}
	unlock, err := workdir.Lock(filepath.Join(root, ".local", "npm.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	// The Makefile knows how, as its checks need the same packages.
	cmd := exec.CommandContext(ctx, "make", "--silent", "--directory", root, ".local/npm/.ready")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("installing the tools of npm: %w\n%s", err, strings.TrimSpace(string(output)))
	}
	return modules, nil
}
