// The command build makes the table of disposable domains (`make lists`) and its report from the packages of
// sources.json, which pip, npm and git fetch.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"svcapi/functions/security/disposable"
	"svcapi/functions/security/disposable/lists"
)

const folder = "functions/security/disposable"

// report describes the table, beside which it is stored.
type report struct {
	Sources []lists.Source `json:"sources"`
	lists.Counts
	Table int `json:"table"` // domains in the table
	Bytes int `json:"bytes"`
}

func main() {
	if err := run(); err != nil {
		log.Fatal("build list: ", err)
	}
}

func run() error {
	sources, err := lists.Sources()
	if err != nil {
		return err
	}
	var r report
	var all []lists.List
	for _, s := range sources {
		domains, err := read(s)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", s.Package, s.Registry, err)
		}
		s.Domains = len(domains)
		r.Sources = append(r.Sources, s)
		all = append(all, lists.List{Kind: s.Kind, Domains: domains})
	}
	listed, counts := lists.Keep(all)
	table := disposable.NewTable(listed).Bytes()
	r.Counts, r.Table, r.Bytes = counts, len(listed), len(table)
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%s\n", text)
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "report.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(folder, "table.bin"), table, 0o644),
	)
}

// read returns the sorted domains of the package's lists.
func read(s lists.Source) ([]string, error) {
	dir, err := os.MkdirTemp("", "lists-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, err := install(s, dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, read := range s.Reads {
		format, path, _ := strings.Cut(read, ":")
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, err
		}
		domains, err := lists.Parse(format, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, domains...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// install unpacks the package without its dependencies, or the files of the commit that a list needs, into the folder,
// and returns the root of the files.
func install(s lists.Source, dir string) (root string, err error) {
	var command *exec.Cmd
	switch s.Registry {
	case "pypi":
		command = exec.Command("pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary",
			":all:", "--no-compile",
			"--target", dir, s.Package+"=="+s.Version)
		root = dir
	case "npm":
		command = exec.Command("npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", dir,
			s.Package+"@"+s.Version)
		root = filepath.Join(dir, "node_modules", s.Package)
	case "git":
		command = exec.Command("sh", append([]string{"-ec", `cd "$1"; git init --quiet
git remote add origin "https://github.com/$2"
git fetch --quiet --depth 1 --filter=blob:none origin "$3"
shift 3; for read; do git checkout --quiet FETCH_HEAD -- "${read#*:}"; done`, "install",
			dir, s.Package, s.Version}, s.Reads...)...)
		root = dir
	default:
		return "", fmt.Errorf("unknown registry %q", s.Registry)
	}
	command.Stderr = os.Stderr
	return root, command.Run()
}
