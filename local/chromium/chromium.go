// Package chromium finds the PDF function's browser: the variable CHROMIUM's, or its layer's, unpacked below .local.
package chromium

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"svcapi/local/workdir"
)

// Variable names a browser to use instead of the layer's.
const Variable = "CHROMIUM"

// ErrNone reports that this machine has no browser for the PDF function.
var ErrNone = errors.New("no browser for PDFs: the layer's runs on x86-64 Linux only; set " + Variable +
	" to the path of Chrome or Chromium")

// Path returns the browser's path, after unpacking the layer if the layer has changed.
func Path(ctx context.Context, progress func(string)) (string, error) {
	if path := os.Getenv(Variable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s names no browser: %w", Variable, err)
		}
		return path, nil
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", ErrNone
	}
	return unpack(ctx, progress)
}

// Environment returns the variable that names the browser to the PDF function, or nothing where there is no browser.
func Environment(ctx context.Context, progress func(string)) (map[string]string, error) {
	path, err := Path(ctx, progress)
	if errors.Is(err, ErrNone) {
		progress(err.Error())
		return nil, nil
	}
	return map[string]string{Variable: path}, err
}

func unpack(ctx context.Context, progress func(string)) (string, error) {
	root, err := workdir.Root()
	if err != nil {
		return "", err
	}
	source := filepath.Join(root, "layers", "chromium")
	version, err := digest(source)
	if err != nil {
		return "", err
	}
	layer, err := workdir.Local("layer", version)
	if err != nil {
		return "", err
	}
	return filepath.Join(layer, "chromium", "headless_shell"), workdir.Once(layer, func(partial string) error {
		progress("unpacking the browser for PDFs (77 MB, once)")
		// Nothing but PDFs waits for the browser: the compiler has the processors first.
		cmd := exec.CommandContext(ctx, "nice", "-n", "10", filepath.Join(source, "build.sh"), partial)
		// The script starts others: the end of ctx ends the whole group.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		output, err := workdir.Run(cmd, "unpacking the browser with npm and node failed (are they installed, "+
			"and is their registry reachable?)")
		if _, size, found := strings.Cut(output, "layer: "); found && err == nil {
			progress("browser: " + size)
		}
		return err
	})
}

// digest returns a text that differs for each version of the layer.
func digest(source string) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"box.js", "browser.json", "build.sh", "fetch.sh", "fonts.conf", "fonts.sum",
		"fonts.txt", "fonts.zst", "package-lock.json", "package.json"} {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}
