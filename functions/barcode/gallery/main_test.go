package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The gallery in docs/ has the pictures that the code draws: same request, same bytes, on any machine.
func TestGalleryIsCurrent(t *testing.T) {
	fresh, stored := t.TempDir(), filepath.Join("..", "..", "..", "docs", "gallery")
	if err := run(fresh); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(fresh, pictures, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, filepath.Join(fresh, "barcodes.md")) {
		name, err := filepath.Rel(fresh, file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(stored, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/gallery/%s differs from the code's picture: run make gallery (%v)", name, err)
		}
	}
	if n, _ := filepath.Glob(filepath.Join(stored, pictures, "*")); len(n) != len(files) {
		t.Errorf("docs/gallery has %d pictures, want %d", len(n), len(files))
	}
}
