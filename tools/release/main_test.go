package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"svcapi/test/must"
)

// TestZips: the same files give the same bytes, whenever and wherever they were written.
func TestZips(t *testing.T) {
	var packed [][]byte
	for i, umask := range []os.FileMode{0o600, 0o644} {
		folder := filepath.Join(t.TempDir(), strings.Repeat("x", i+1))
		for name, mode := range map[string]os.FileMode{"bootstrap": umask | 0o111, "lib/b": umask,
			"lib/a": umask, "names.txt": umask} {
			path := filepath.Join(folder, name)
			must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must.Succeed(t, os.WriteFile(path, []byte(name), mode))
			must.Succeed(t, os.Chtimes(path, time.Now(), time.Now().Add(-time.Duration(i)*time.Hour)))
		}
		must.Succeed(t, os.Symlink("a", filepath.Join(folder, "lib", "link")))
		file := filepath.Join(t.TempDir(), "out.zip")
		must.Succeed(t, zipFolder(folder, file))
		data, err := os.ReadFile(file)
		must.Succeed(t, err)
		packed = append(packed, data)
	}
	if !bytes.Equal(packed[0], packed[1]) {
		t.Error("the zips differ")
	}
}

// TestTemplate: every function and layer of the released template points at its zip, and none at make. The release has
// the files of the metadata.
func TestTemplate(t *testing.T) {
	text, err := os.ReadFile("../../template.yaml")
	must.Succeed(t, err)
	template, err := pointAtZips(string(text), func(string, string, string) error { return nil })
	var doc struct {
		Metadata  map[string]map[string]yaml.Node `yaml:"Metadata"`
		Globals   map[string]map[string]yaml.Node `yaml:"Globals"`
		Resources map[string]struct {
			Type       string               `yaml:"Type"`
			Metadata   map[string]any       `yaml:"Metadata"`
			Properties map[string]yaml.Node `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	must.Succeed(t, errors.Join(err, yaml.Unmarshal([]byte(template), &doc)))
	zips := 0
	for id, r := range doc.Resources {
		property := map[string]string{"AWS::Serverless::Function": "CodeUri",
			"AWS::Serverless::LayerVersion": "ContentUri"}[r.Type]
		if property == "" {
			continue
		}
		zips++
		if at := r.Properties[property]; at.Value != strings.ToLower(id)+".zip" || r.Metadata["BuildMethod"] != nil {
			t.Errorf("%s is at %q, metadata %v", id, at.Value, r.Metadata)
		}
	}
	for _, name := range []string{"ReadmeUrl", "LicenseUrl"} {
		if file := doc.Metadata["AWS::ServerlessRepo::Application"][name].Value; !slices.Contains(documents, file) {
			t.Errorf("%s is %q, which no release has", name, file)
		}
	}
	if _, ok := doc.Globals["Function"]["CodeUri"]; ok || zips == 0 {
		t.Errorf("%d zips, CodeUri in Globals: %t", zips, ok)
	}
}

// TestSameGo: a release is built with the Go that go.mod names, and with no older or newer one
// (docs/decisions/operating.md#builds).
func TestSameGo(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct{ mod, running, want string }{
		{"module m\n\ngo 1.26.0\n\ntoolchain go1.26.11\n", "go1.26.11", ""},
		{"module m\n\ngo 1.26.0\n\ntoolchain go1.26.11\n", "go1.26.8",
			"this is go1.26.8, and a release is built with go1.26.11 of go.mod: install it, or set GOTOOLCHAIN=go1.26.11"},
		{"module m\n\ngo 1.26.0\n\ntoolchain go1.26.11\n", "go1.27.0", "this is go1.27.0, and"},
		{"module m\n\ngo 1.26.0\n", "go1.26.11", "go.mod has no toolchain line"},
	} {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(c.mod), 0o600))
		err := sameGo(folder, c.running)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s with %q: %v, want %q", c.running, c.mod, err, c.want)
		}
	}
}

// TestMaterials: a binary's modules are listed with their checksums, the same each time.
func TestMaterials(t *testing.T) {
	self, err := os.Executable()
	must.Succeed(t, err)
	first, err := materials("1.2.3", []string{self})
	must.Succeed(t, err)
	second, err := materials("1.2.3", []string{self, self})
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("differs: %v", err)
	}
	for _, want := range []string{`"bomFormat": "CycloneDX"`, `"pkg:golang/github.com/CycloneDX/cyclonedx-go@v`,
		`"go:sum"`, `"version": "1.2.3"`, `"name": "std"`} {
		if !bytes.Contains(first, []byte(want)) {
			t.Errorf("no %s in\n%s", want, first)
		}
	}
}
