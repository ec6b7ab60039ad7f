// Command release packages the product: a zip for each function, layer and client, a template that points at them, svc
// for several systems, a bill of materials and checksums. The same source gives the same bytes, whatever folder it is
// in.
//
// Usage: go run ./tools/release VERSION FOLDER
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./tools/release VERSION FOLDER")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := sameGo(".", runtime.Version())
	if err == nil {
		err = pack(ctx, ".", os.Args[1], os.Args[2])
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// systems are those that svc is built for.
var systems = []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64"}

// documents are the files that the template's metadata name: sam deploy refuses a template without them.
var documents = []string{"README.md", "LICENSE"}

// epoch is the time of every file: the earliest that a zip can hold.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// resource matches the functions and layers of a template that make builds; the others, the properties of their
// content.
var (
	resource = regexp.MustCompile(`(?m)^  ([A-Za-z0-9]+):\n    Type: AWS::Serverless::(Function|LayerVersion)\n(?:(?:   ` +
		` .*|#.*)?\n)*`)
	metadata = regexp.MustCompile(`(?m)^    Metadata:(?: \{.*\}\n|\n(?:      .*\n)+)`)
	content  = regexp.MustCompile(`(?m)^      (CodeUri|ContentUri): (.*)\n`)
	global   = regexp.MustCompile(`(?m)^    CodeUri: \.\n`)
)

var toolchain = regexp.MustCompile(`(?m)^toolchain (\S+)$`)

// sameGo returns an error for another Go than the toolchain of the go.mod in root: another Go gives other bytes, and an
// older one has known weaknesses (docs/decisions/operating.md#builds).
func sameGo(root, running string) error {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	match := toolchain.FindSubmatch(text)
	if match == nil {
		return errors.New("go.mod has no toolchain line")
	}
	if want := string(match[1]); running != want {
		return fmt.Errorf("this is %s, and a release is built with %s of go.mod: install it, or set GOTOOLCHAIN=%[2]s",
			running, want)
	}
	return nil
}

// pack writes the packages of the module in root into an emptied folder.
func pack(ctx context.Context, root, version, folder string) error {
	folder, noFolder := filepath.Abs(folder)
	text, noTemplate := os.ReadFile(filepath.Join(root, "template.yaml"))
	work, err := os.MkdirTemp("", "release")
	if err := errors.Join(err, noFolder, noTemplate, os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	build := func(source, id string) (string, error) { // returns the folder of what make builds
		artifacts := filepath.Join(work, id)
		environment := []string{"ARTIFACTS_DIR=" + artifacts, "VERSION=" + version}
		err := errors.Join(os.Mkdir(artifacts, 0o755),
			run(ctx, filepath.Join(root, source), environment, "make", "--silent", "build-"+id))
		return artifacts, err
	}
	var binaries []string
	template, err := pointAtZips(string(text), func(id, kind, source string) error {
		artifacts, err := build(source, id)
		if kind == "Function" {
			binaries = append(binaries, filepath.Join(artifacts, "bootstrap"))
		}
		return errors.Join(err, zipFolder(artifacts, filepath.Join(folder, strings.ToLower(id)+".zip")))
	})
	if err != nil {
		return err
	}
	for _, language := range []string{"go", "php", "python", "typescript"} {
		artifacts, err := build(".", "client-"+language)
		if err = errors.Join(err, addClient(artifacts, folder)); err != nil {
			return err
		}
	}
	for _, system := range systems {
		goos, goarch, _ := strings.Cut(system, "/")
		binary := filepath.Join(folder, "svc-"+goos+"-"+goarch)
		if goos == "windows" {
			binary += ".exe"
		}
		environment := []string{"CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + goarch}
		if err := run(ctx, root, environment, "go", "build", "-trimpath", "-buildvcs=false",
			"-ldflags=-s -X main.release="+version, "-o", binary, "./cmd/svc"); err != nil {
			return err
		}
		binaries = append(binaries, binary)
	}
	bom, err := materials(version, binaries)
	files := map[string][]byte{"template.yaml": []byte(template), "sbom.cdx.json": bom}
	for _, name := range documents {
		text, unread := os.ReadFile(filepath.Join(root, name))
		files[name], err = text, errors.Join(err, unread)
	}
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), text, 0o644))
	}
	if err != nil {
		return err
	}
	return checksums(folder)
}

// addClient adds the client of a language to a folder: a file as its package manager takes it, or a zip.
func addClient(artifacts, folder string) error {
	entries, err := os.ReadDir(artifacts)
	for _, entry := range entries {
		from, to := filepath.Join(artifacts, entry.Name()), filepath.Join(folder, entry.Name())
		if entry.IsDir() {
			err = errors.Join(err, zipFolder(from, to+".zip"))
		} else {
			err = errors.Join(err, os.Rename(from, to))
		}
	}
	return err
}

// pointAtZips builds the functions and layers of a template, each in its source folder, and points them at their zips.
func pointAtZips(template string, build func(id, kind, source string) error) (string, error) {
	template = global.ReplaceAllString(template, "")
	for _, at := range resource.FindAllStringSubmatch(template, -1) {
		block, id, kind, source := at[0], at[1], at[2], "."
		if match := content.FindStringSubmatch(block); match != nil {
			source = match[2]
		}
		if err := build(id, kind, source); err != nil {
			return "", err
		}
		property := map[string]string{"Function": "CodeUri", "LayerVersion": "ContentUri"}[kind]
		changed := content.ReplaceAllString(metadata.ReplaceAllString(block, ""), "")
		points := "Properties:\n      " + property + ": " + strings.ToLower(id) + ".zip\n"
		changed = strings.Replace(changed, "Properties:\n", points, 1)
		template = strings.Replace(template, block, changed, 1)
	}
	return template, nil
}

func run(ctx context.Context, root string, environment []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), environment...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, output)
	}
	return nil
}

// zipFolder packs a folder: names in order, one time, and no modes but those that are run.
func zipFolder(folder, file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	z := zip.NewWriter(out)
	z.RegisterCompressor(zip.Deflate,
		func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	err = fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error { // in lexical order
		if err != nil || entry.IsDir() {
			return err
		}
		return zipFile(z, name, filepath.Join(folder, name))
	})
	return errors.Join(err, z.Close())
}

func zipFile(z *zip.Writer, name, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: epoch}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	header.SetMode(mode | info.Mode()&fs.ModeSymlink)
	w, err := z.CreateHeader(header)
	if err != nil {
		return err
	}
	read := os.ReadFile
	if info.Mode()&fs.ModeSymlink != 0 {
		read = func(path string) ([]byte, error) { target, err := os.Readlink(path); return []byte(target), err }
	}
	data, err := read(path)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// materials returns the bill of materials: the modules in the build information of the binaries.
func materials(version string, binaries []string) ([]byte, error) {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		Type: cdx.ComponentTypeApplication, BOMRef: "svcapi", Name: "svcapi", Version: version,
	}}
	modules := map[string]cdx.Component{} // and the standard library
	for _, binary := range binaries {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return nil, err
		}
		standard := library("std", info.GoVersion)
		standard.PackageURL = "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")
		modules[standard.BOMRef] = standard
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if m.Sum == "" {
				return nil, fmt.Errorf("module %s has no checksum", m.Path)
			}
			c := library(m.Path, m.Version)
			// The sum that go.sum holds: of the module's files, so a property and no hash of one file.
			c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
			modules[c.BOMRef] = c
		}
	}
	refs := slices.Sorted(maps.Keys(modules))
	var components []cdx.Component
	for _, ref := range refs {
		components = append(components, modules[ref])
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: "svcapi", Dependencies: &refs}}
	var out bytes.Buffer
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

func library(name, version string) cdx.Component {
	url := "pkg:golang/" + name + "@" + version
	return cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: name, Version: version, PackageURL: url}
}

// checksums writes SHA256SUMS, as sha256sum checks it.
func checksums(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, entry := range entries { // by name
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(data), entry.Name())
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(list.String()), 0o644)
}
