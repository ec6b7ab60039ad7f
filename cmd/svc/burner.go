package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"svcapi/shared/address"
)

func (a *app) burner() *cobra.Command {
	return group("burner", "Keep a project's own list of disposable e-mail domains",
		a.burnerAdd(), a.burnerRemove(), a.burnerList(), a.burnerImport())
}

// burnerChange says what a command did to a project's list.
type burnerChange struct {
	ProjectID string   `json:"project_id"`
	Done      string   `json:"done"`      // added or removed
	Domains   []string `json:"domains"`   // to which this was done
	Unchanged []string `json:"unchanged"` // those on the list already, or not on it
}

// normalDomains brings domains to the form in which they are compared, sorted and each once.
func normalDomains(texts []string) ([]string, error) {
	var domains []string
	for _, text := range texts {
		domain, err := address.ASCII(text)
		if err != nil {
			if bare := strings.TrimLeft(text, "*.@"); bare != text {
				if _, err := address.ASCII(bare); err == nil {
					return nil, &usageError{fmt.Sprintf("%q is no domain: write %s, which covers all beneath it", text, bare)}
				}
			}
			return nil, &usageError{fmt.Sprintf("%q is no domain: it %s", text, err)}
		}
		domains = append(domains, domain)
	}
	slices.Sort(domains)
	return slices.Compact(domains), nil
}

func (a *app) burnerAdd() *cobra.Command {
	return &cobra.Command{
		Use:   "add PROJECT DOMAIN...",
		Short: "List domains as disposable, with all that is beneath them",
		Long: `List domains as disposable for one project, with all that is beneath them. The
project's own list is asked before the global one.`,
		Example: "  svc burner add acme throwaway.example",
		Args:    cobra.MinimumNArgs(2),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			domains, err := normalDomains(args[1:])
			if err != nil {
				return err
			}
			return a.addDomains(ctx, s, args[0], domains)
		}),
	}
}

func (a *app) addDomains(ctx context.Context, s *stack, projectID string, domains []string) error {
	on, off, err := s.partDomains(ctx, projectID, domains)
	if err != nil {
		return err
	}
	if err := s.burners.Add(ctx, projectID, off...); err != nil {
		return err
	}
	return a.printChange(burnerChange{projectID, "added", off, on}, "there already")
}

// partDomains parts domains by whether they are on the project's list.
func (s *stack) partDomains(ctx context.Context, projectID string, domains []string) (on, off []string, err error) {
	if _, err := s.load(ctx, projectID); err != nil {
		return nil, nil, err
	}
	listed, err := s.burners.List(ctx, projectID)
	on, off = []string{}, []string{}
	for _, d := range domains {
		if _, found := slices.BinarySearch(listed, d); found {
			on = append(on, d)
		} else {
			off = append(off, d)
		}
	}
	return on, off, err
}

func (a *app) printChange(c burnerChange, unchanged string) error {
	t := table{header: []string{"DOMAIN", "IS"}, empty: "Nothing was changed."}
	for _, d := range c.Domains {
		t.rows = append(t.rows, []string{d, c.Done})
	}
	for _, d := range c.Unchanged {
		t.rows = append(t.rows, []string{d, unchanged})
	}
	return a.print(c, t)
}

func (a *app) burnerRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "remove PROJECT DOMAIN...",
		Short:   "Take domains off a project's own list",
		Long:    `Take domains off a project's own list. The global list is not changed.`,
		Example: "  svc burner remove acme throwaway.example",
		Args:    cobra.MinimumNArgs(2),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			domains, err := normalDomains(args[1:])
			if err != nil {
				return err
			}
			on, off, err := s.partDomains(ctx, args[0], domains)
			if err != nil {
				return err
			}
			if err := s.burners.Remove(ctx, args[0], on...); err != nil {
				return err
			}
			return a.printChange(burnerChange{args[0], "removed", on, off}, "not on the list")
		}),
	}
}

func (a *app) burnerList() *cobra.Command {
	return &cobra.Command{
		Use:   "list PROJECT",
		Short: "Show a project's own list",
		Args:  cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			if _, err := s.load(ctx, args[0]); err != nil {
				return err
			}
			domains, err := s.burners.List(ctx, args[0])
			if err != nil {
				return err
			}
			t := table{header: []string{"DOMAIN"}, empty: `No domains of its own. "svc burner add" lists one.`}
			for _, d := range domains {
				t.rows = append(t.rows, []string{d})
			}
			return a.print(struct {
				ProjectID string   `json:"project_id"`
				Domains   []string `json:"domains"`
			}{args[0], domains}, t)
		}),
	}
}

// maxDomainFile bounds what is imported at once, in bytes.
const maxDomainFile = 16 << 20

func (a *app) burnerImport() *cobra.Command {
	return &cobra.Command{
		Use:   "import PROJECT FILE",
		Short: "Add the domains of a file, one a line, to a project's own list",
		Long: `Add the domains of a file, one a line, to a project's own list. Empty lines and
what follows a # are passed over; "-" is standard input. A line that is no domain
refuses the whole file. What is on the list already stays on it.`,
		Example: "  svc burner import acme domains.txt",
		Args:    cobra.ExactArgs(2),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			domains, err := a.readDomains(args[1])
			if err != nil {
				return err
			}
			return a.addDomains(ctx, s, args[0], domains)
		}),
	}
}

func (a *app) readDomains(file string) ([]string, error) {
	from := a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, &usageError{err.Error()}
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	var domains []string
	lines := bufio.NewScanner(io.LimitReader(from, maxDomainFile))
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		normal, err := normalDomains([]string{text})
		if err != nil {
			return nil, &usageError{fmt.Sprintf("line %d: %s", n, err)}
		}
		domains = append(domains, normal...)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read domains: %w", err)
	}
	slices.Sort(domains)
	return slices.Compact(domains), nil
}
