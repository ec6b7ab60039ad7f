package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svcapi/test/must"
)

// TestPatch checks that fonts of other versions are left as they are. The tests of PDFs use the patched ones.
func TestPatch(t *testing.T) {
	list, err := os.ReadFile("../../layers/chromium/fonts.sum")
	must.Succeed(t, err)
	folder := t.TempDir()
	for line := range strings.Lines(string(list)) {
		if err := patch("../../layers/chromium", folder); err == nil {
			t.Fatal("a font is missing, and the patch succeeds")
		}
		path := filepath.Join(folder, strings.Fields(line)[2])
		must.Succeed(t, os.WriteFile(path, []byte("another version"), 0o600))
	}
	if err := patch("../../layers/chromium", folder); err == nil {
		t.Error("the patch of other fonts succeeds")
	}
	for line := range strings.Lines(string(list)) {
		if text, _ := os.ReadFile(filepath.Join(folder, strings.Fields(line)[2])); string(text) != "another version" {
			t.Errorf("%s is changed", strings.TrimSpace(line))
		}
	}
}
