package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// target is a package in which a test must notice every mutant.
type target struct {
	folder string
	files  []string // of the folder; none: all
	skip   string   // tests that take no part, in the form of go test -skip
}

var targets = []target{
	{folder: "functions/sms/units"},
	{folder: "shared/rates", files: []string{"rates.go"},
		skip: "^Test(CurrentIsReplacedWhole|Sources|History|Claim)$"},
	{folder: "functions/currency", files: []string{"operations.go"}},
	{folder: "shared/ipaddr"},
	{folder: "functions/pdf/render/fetch", files: []string{"fetch.go"}},
	{folder: "shared/burner", files: []string{"address.go"}, skip: "^TestStore$"},
	{folder: "shared/ratelimit"},
	{folder: "shared/books"},
	{folder: "shared/wallet", skip: "^TestExact"}, // the same under load: much longer, and no rule of its own
	{folder: "functions/settle", files: []string{"settle.go"}},
	{folder: "shared/request", files: []string{"pipeline.go", "errors.go", "idempotency.go", "operation.go"}},
}

func (t target) mutates(file string) bool { return len(t.files) == 0 || slices.Contains(t.files, file) }

// sources returns the names of the files to change.
func (t target) sources(root string) (names []string, err error) {
	paths, err := filepath.Glob(filepath.Join(root, t.folder, "*.go"))
	for _, path := range paths {
		if name := filepath.Base(path); !strings.HasSuffix(name, "_test.go") && t.mutates(name) {
			names = append(names, name)
		}
	}
	return names, err
}
