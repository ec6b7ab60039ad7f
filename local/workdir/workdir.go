// Package workdir knows where the module and its .local folder of caches, logs and builds are.
package workdir

import (
	"errors"
	"os"
	"path/filepath"
)

// Root is the folder of the module: the nearest one, from the current folder upwards, that holds go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in this folder or above it: run from within the repository")
		}
		dir = parent
	}
}

// Local is the path of a name in the module's .local folder. The folder is made, the name is not.
func Local(name ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(append([]string{root, ".local"}, name...)...)
	return path, os.MkdirAll(filepath.Dir(path), 0o755)
}
