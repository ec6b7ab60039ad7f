package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/burner"
	"svcapi/shared/project/admin"
)

func burnerCommand(a *app.App) *cobra.Command {
	adds := burnerOperation{burner.Disposable, false, "added", "there already"}
	return app.Group("burner", "Add disposable e-mail domains, and allow domains that are none",
		adds.command(a, normalDomains, &cobra.Command{
			Use:   "add PROJECT DOMAIN...",
			Short: "Add domains and their subdomains to a project's own list",
			Long: `Add domains and their subdomains to a project's own list of disposable domains. The
service reads the project's own list before the global list.`,
			Example: "  svc burner add acme throwaway.example",
		}),
		burnerOperation{burner.Disposable, true, "removed", "not on the list"}.command(a, normalDomains, &cobra.Command{
			Use:     "remove PROJECT DOMAIN...",
			Short:   "Remove domains from a project's own list; the global list does not change",
			Example: "  svc burner remove acme throwaway.example",
		}),
		burnerOperation{burner.Allowed, false, "allowed", "allowed already"}.command(a, normalDomains, &cobra.Command{
			Use:   "allow DOMAIN...",
			Short: "Allow domains and their subdomains: they are not disposable, whatever a list says",
			Long: `Allow domains and their subdomains for one project or for the stage: they are not
disposable, whatever the global list says. A project's own judgement about a domain
comes before the stage's. The functions follow a project's change at once, and a
change of the stage within ten minutes.`,
			Example: `  svc burner allow example.com --project acme
  svc burner allow example.com`,
		}),
		burnerOperation{burner.Allowed, true, "denied", "not allowed before"}.command(a, normalDomains, &cobra.Command{
			Use:     "deny DOMAIN...",
			Short:   "Take allowed domains back: the lists judge them again",
			Example: "  svc burner deny example.com --project acme",
		}), listBurners(a),
		adds.command(a, func(args []string) ([]string, error) { return readDomains(a, args[0]) }, &cobra.Command{
			Use:   "import PROJECT FILE",
			Short: "Add the domains of a file, one a line, to a project's own list",
			Long: `Add the domains of a file, one a line, to a project's own list. The command ignores
empty lines and the text after a #; "-" is standard input. One line that is not a
domain makes the command refuse the file. Listed domains stay on the list.`,
			Example: "  svc burner import acme domains.txt",
		}),
		a.Command(&cobra.Command{Use: "status", Short: "Show the age, the sources and the counts of the global list"}, nil,
			burnerStatus))
}

// burnerOperation is what a command does with its domains.
type burnerOperation struct {
	judgement       burner.Judgement
	removes         bool
	done, unchanged string
}

// burnerChange is the result of a command that changes judgements.
type burnerChange struct {
	ProjectID string   `json:"project_id"` // empty for the stage
	Done      string   `json:"done"`       // added, removed, allowed or denied
	Domains   []string `json:"domains"`
	Unchanged []string `json:"unchanged"` // as the command would leave them
}

// normalDomains converts domains to lower-case ASCII.
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
	return domains, nil
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
	return domains, nil
}

// command completes a command that changes the judgement about domains, which parse returns from the arguments. The
// project is the first argument, or for allowed domains a flag.
func (o burnerOperation) command(a *app.App, parse func(args []string) ([]string, error),
	cmd *cobra.Command) *cobra.Command {
	var projectID string
	var domains []string
	if o.judgement == burner.Allowed {
		cmd.Flags().StringVar(&projectID, "project", "", "for this project alone (default: for the stage)")
	}
	return a.Command(cmd, func(args []string) (err error) {
		if o.judgement != burner.Allowed {
			projectID, args = args[0], args[1:]
		}
		domains, err = parse(args)
		slices.Sort(domains)
		domains = slices.Compact(domains)
		return err
	}, func(ctx context.Context, s *app.Stack) error {
		if o.judgement != burner.Allowed || cmd.Flags().Changed("project") {
			rec, err := s.Load(ctx, projectID)
			if err == nil {
				err = admin.RefuseClosed(&rec.Project)
			}
			if err != nil {
				return err
			}
		}
		return o.write(ctx, s, projectID, domains)
	})
}

// write changes the judgements about domains, and prints the change.
func (o burnerOperation) write(ctx context.Context, s *app.Stack, projectID string, domains []string) error {
	judged, err := s.Burners.List(ctx, projectID)
	if err != nil {
		return err
	}
	c := burnerChange{projectID, o.done, []string{}, []string{}}
	for _, d := range domains {
		if _, found := slices.BinarySearch(judged.Of(o.judgement), d); found == o.removes {
			c.Domains = append(c.Domains, d)
		} else {
			c.Unchanged = append(c.Unchanged, d)
		}
	}
	if o.removes {
		err = s.Burners.Remove(ctx, projectID, c.Domains...)
	} else {
		err = s.Burners.Put(ctx, projectID, o.judgement, c.Domains...)
	}
	if err != nil {
		return err
	}
	rows := append(rowsOf(c.Domains, o.done), rowsOf(c.Unchanged, o.unchanged)...)
	return s.Print(c, app.Table{Header: burnerHeader, Rows: rows, Empty: "Nothing was changed."})
}

var burnerHeader = []string{"DOMAIN", "IS"}

func rowsOf(domains []string, is string) (rows [][]string) {
	for _, d := range domains {
		rows = append(rows, []string{d, is})
	}
	return rows
}

func listBurners(a *app.App) *cobra.Command {
	var projectID string
	return a.Command(&cobra.Command{
		Use:   "list [PROJECT]",
		Short: "Show a project's own domains, or the domains that are allowed for the stage",
	}, app.Bind(&projectID), func(ctx context.Context, s *app.Stack) error {
		t := app.Table{Header: burnerHeader, Empty: `No domain is allowed for the stage. "svc burner allow" allows one.`}
		if projectID != "" {
			if _, err := s.Load(ctx, projectID); err != nil {
				return err
			}
			t.Empty = `The project has no own domains. "svc burner add" adds one.`
		}
		judged, err := s.Burners.List(ctx, projectID)
		if err != nil {
			return err
		}
		t.Rows = append(rowsOf(judged.Disposable, "disposable"), rowsOf(judged.Allowed, "allowed")...)
		return s.Print(struct {
			ProjectID string `json:"project_id"`
			burner.Domains
		}{projectID, judged}, t)
	})
}

// burnerStatus shows the outcome of the function listsync.
func burnerStatus(ctx context.Context, s *app.Stack) error {
	judged, err := s.Burners.List(ctx, burner.Stage)
	if err != nil {
		return err
	}
	o := judged.Difference.Outcome
	if o.Tried.IsZero() {
		return s.Print(o, app.Table{Empty: "The published lists were not fetched yet: the global list is that of the " +
			"deployed version."})
	}
	sources := app.Table{Header: []string{"SOURCE", "DOMAINS"}, Empty: "No fetch was good yet."}
	for _, address := range slices.Sorted(maps.Keys(o.Sources)) {
		sources.Rows = append(sources.Rows, []string{address, s.Number(int64(o.Sources[address]))})
	}
	return s.Print(o, app.Table{Rows: app.Rows("Fetched", app.Second(o.Fetched), "Age",
		o.Age(time.Now()).Round(time.Second).String(),
		"Tried", app.Second(o.Tried), "Failure", cmp.Or(o.Failure, "none"), "Domains", s.Number(int64(o.Domains)),
		"Added", s.Number(int64(o.Added)), "Removed", s.Number(int64(o.Removed)))}, sources)
}
