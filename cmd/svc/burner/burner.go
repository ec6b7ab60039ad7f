// Package burner holds the command "svc burner".
package burner

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/burner"
	"svcapi/shared/project"
)

// Command returns "svc burner".
func Command(a *app.App) *cobra.Command {
	return app.Group("burner", "Keep a project's own list of disposable e-mail domains",
		changing(a, false, normalDomains, &cobra.Command{
			Use:   "add PROJECT DOMAIN...",
			Short: "Add domains and their subdomains to a project's own list",
			Long: `Add domains and their subdomains to a project's own list of disposable domains. The
service reads the project's own list before the global list.`,
			Example: "  svc burner add acme throwaway.example",
		}),
		changing(a, true, normalDomains, &cobra.Command{
			Use:     "remove PROJECT DOMAIN...",
			Short:   "Remove domains from a project's own list; the global list does not change",
			Example: "  svc burner remove acme throwaway.example",
		}),
		a.ProjectCommand(&cobra.Command{Use: "list PROJECT", Short: "Show a project's own list"}, nil, list),
		changing(a, false, func(args []string) ([]string, error) { return readDomains(a, args[0]) }, &cobra.Command{
			Use:   "import PROJECT FILE",
			Short: "Add the domains of a file, one a line, to a project's own list",
			Long: `Add the domains of a file, one a line, to a project's own list. The command ignores
empty lines and the text after a #; "-" is standard input. One line that is not a
domain makes the command refuse the file. Listed domains stay on the list.`,
			Example: "  svc burner import acme domains.txt",
		}))
}

// change is the result of a command that changes a project's list.
type change struct {
	ProjectID string   `json:"project_id"`
	Done      string   `json:"done"` // added or removed
	Domains   []string `json:"domains"`
	Unchanged []string `json:"unchanged"` // added before, or not on the list
}

// normalDomains converts domains to lower-case ASCII, sorts them and removes duplicates.
func normalDomains(texts []string) ([]string, error) {
	var domains []string
	for _, text := range texts {
		domain, err := burner.ASCII(text)
		if err != nil {
			if bare := strings.TrimLeft(text, "*.@"); bare != text {
				if _, err := burner.ASCII(bare); err == nil {
					return nil, app.Usagef("%q is not a domain: write %s, which includes its subdomains", text, bare)
				}
			}
			return nil, app.Usagef("%q is not a domain: it %s", text, err)
		}
		domains = append(domains, domain)
	}
	slices.Sort(domains)
	return slices.Compact(domains), nil
}

// maxDomainFile bounds an imported file, in bytes.
const maxDomainFile = 16 << 20

// readDomains returns the domains of a file, one a line.
func readDomains(a *app.App, file string) (domains []string, err error) {
	text, err := a.Read(file, maxDomainFile)
	if err != nil {
		return nil, err
	}
	for n, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		normal, err := normalDomains([]string{line})
		if err != nil {
			return nil, app.Usagef("line %d: %s", n+1, err)
		}
		domains = append(domains, normal...)
	}
	slices.Sort(domains)
	return slices.Compact(domains), nil
}

// changing completes a command that adds domains to the list of a project, or removes them, and prints the change. parse
// returns the domains of the arguments.
func changing(a *app.App, removes bool, parse func(args []string) ([]string, error), cmd *cobra.Command) *cobra.Command {
	var domains []string
	return a.ProjectCommand(cmd, func(args []string) (err error) {
		domains, err = parse(args)
		return err
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		listed, err := s.Burners.List(ctx, rec.ID)
		if err != nil {
			return err
		}
		on, off := []string{}, []string{}
		for _, d := range domains {
			if _, found := slices.BinarySearch(listed, d); found {
				on = append(on, d)
			} else {
				off = append(off, d)
			}
		}
		c, unchanged, write := change{rec.ID, "added", off, on}, "there already", s.Burners.Add
		if removes {
			c, unchanged, write = change{rec.ID, "removed", on, off}, "not on the list", s.Burners.Remove
		}
		if err := write(ctx, rec.ID, c.Domains...); err != nil {
			return err
		}
		t := app.Table{Header: []string{"DOMAIN", "IS"}, Empty: "Nothing was changed."}
		for _, d := range c.Domains {
			t.Rows = append(t.Rows, []string{d, c.Done})
		}
		for _, d := range c.Unchanged {
			t.Rows = append(t.Rows, []string{d, unchanged})
		}
		return s.Print(c, t)
	})
}

func list(ctx context.Context, s *app.Stack, rec *project.Record) error {
	domains, err := s.Burners.List(ctx, rec.ID)
	if err != nil {
		return err
	}
	domains, rows := app.List(domains, func(d string) (string, []string) { return d, []string{d} })
	t := app.Table{Header: []string{"DOMAIN"}, Rows: rows, Empty: `The project has no own domains. "svc burner add" adds one.`}
	return s.Print(map[string]any{"project_id": rec.ID, "domains": domains}, t)
}
