// Package burner holds the command "svc burner".
package burner

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/address"
)

// Command returns "svc burner".
func Command(a *app.App) *cobra.Command {
	return app.Group("burner", "Keep a project's own list of disposable e-mail domains", add(a), remove(a), list(a), importFile(a))
}

// change says what a command did to a project's list.
type change struct {
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
					return nil, app.Usagef("%q is no domain: write %s, which covers all beneath it", text, bare)
				}
			}
			return nil, app.Usagef("%q is no domain: it %s", text, err)
		}
		domains = append(domains, domain)
	}
	slices.Sort(domains)
	return slices.Compact(domains), nil
}

type options struct {
	*app.App
	projectID, file string
	domains         []string
}

// parse reads the project and the domains.
func (o *options) parse(args []string) (err error) {
	o.projectID = args[0]
	o.domains, err = normalDomains(args[1:])
	return err
}

func add(a *app.App) *cobra.Command {
	o := &options{App: a}
	return &cobra.Command{
		Use:   "add PROJECT DOMAIN...",
		Short: "List domains as disposable, with all that is beneath them",
		Long: `List domains as disposable for one project, with all that is beneath them. The
project's own list is asked before the global one.`,
		Example: "  svc burner add acme throwaway.example",
		Args:    cobra.MinimumNArgs(2),
		RunE:    a.On(o.parse, o.add),
	}
}

func (o *options) add(ctx context.Context, s *app.Stack) error {
	on, off, err := o.listed(ctx, s)
	if err != nil {
		return err
	}
	if err := s.Burners.Add(ctx, o.projectID, off...); err != nil {
		return err
	}
	return o.print(change{o.projectID, "added", off, on}, "there already")
}

// listed splits the domains by whether they are on the project's list.
func (o *options) listed(ctx context.Context, s *app.Stack) (on, off []string, err error) {
	if _, err := s.Load(ctx, o.projectID); err != nil {
		return nil, nil, err
	}
	listed, err := s.Burners.List(ctx, o.projectID)
	on, off = []string{}, []string{}
	for _, d := range o.domains {
		if _, found := slices.BinarySearch(listed, d); found {
			on = append(on, d)
		} else {
			off = append(off, d)
		}
	}
	return on, off, err
}

func (o *options) print(c change, unchanged string) error {
	t := app.Table{Header: []string{"DOMAIN", "IS"}, Empty: "Nothing was changed."}
	for _, d := range c.Domains {
		t.Rows = append(t.Rows, []string{d, c.Done})
	}
	for _, d := range c.Unchanged {
		t.Rows = append(t.Rows, []string{d, unchanged})
	}
	return o.Print(c, t)
}

func remove(a *app.App) *cobra.Command {
	o := &options{App: a}
	return &cobra.Command{
		Use:     "remove PROJECT DOMAIN...",
		Short:   "Take domains off a project's own list",
		Long:    `Take domains off a project's own list. The global list is not changed.`,
		Example: "  svc burner remove acme throwaway.example",
		Args:    cobra.MinimumNArgs(2),
		RunE:    a.On(o.parse, o.remove),
	}
}

func (o *options) remove(ctx context.Context, s *app.Stack) error {
	on, off, err := o.listed(ctx, s)
	if err != nil {
		return err
	}
	if err := s.Burners.Remove(ctx, o.projectID, on...); err != nil {
		return err
	}
	return o.print(change{o.projectID, "removed", on, off}, "not on the list")
}

func list(a *app.App) *cobra.Command {
	o := &options{App: a}
	return &cobra.Command{
		Use:   "list PROJECT",
		Short: "Show a project's own list",
		Args:  cobra.ExactArgs(1),
		RunE:  a.On(app.Bind(&o.projectID), o.list),
	}
}

func (o *options) list(ctx context.Context, s *app.Stack) error {
	if _, err := s.Load(ctx, o.projectID); err != nil {
		return err
	}
	domains, err := s.Burners.List(ctx, o.projectID)
	if err != nil {
		return err
	}
	t := app.Table{Header: []string{"DOMAIN"}, Empty: `No domains of its own. "svc burner add" lists one.`}
	for _, d := range domains {
		t.Rows = append(t.Rows, []string{d})
	}
	return o.Print(struct {
		ProjectID string   `json:"project_id"`
		Domains   []string `json:"domains"`
	}{o.projectID, domains}, t)
}

// maxDomainFile bounds what is imported at once, in bytes.
const maxDomainFile = 16 << 20

func importFile(a *app.App) *cobra.Command {
	o := &options{App: a}
	return &cobra.Command{
		Use:   "import PROJECT FILE",
		Short: "Add the domains of a file, one a line, to a project's own list",
		Long: `Add the domains of a file, one a line, to a project's own list. Empty lines and
what follows a # are passed over; "-" is standard input. A line that is no domain
refuses the whole file. What is on the list already stays on it.`,
		Example: "  svc burner import acme domains.txt",
		Args:    cobra.ExactArgs(2),
		RunE:    a.On(app.Bind(&o.projectID, &o.file), o.importFile),
	}
}

func (o *options) importFile(ctx context.Context, s *app.Stack) (err error) {
	if o.domains, err = o.readDomains(); err != nil {
		return err
	}
	return o.add(ctx, s)
}

func (o *options) readDomains() ([]string, error) {
	from, err := o.Read(o.file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	var domains []string
	lines := bufio.NewScanner(io.LimitReader(from, maxDomainFile))
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		normal, err := normalDomains([]string{text})
		if err != nil {
			return nil, app.Usagef("line %d: %s", n, err)
		}
		domains = append(domains, normal...)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read domains: %w", err)
	}
	slices.Sort(domains)
	return slices.Compact(domains), nil
}
