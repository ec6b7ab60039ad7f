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
	removes := burnerOperation{burner.Disposable, true, "removed", "not on the list"}
	allows := burnerOperation{burner.Allowed, false, "allowed", "allowed already"}
	denies := burnerOperation{burner.Allowed, true, "denied", "not allowed before"}
	return app.Group("burner", adds.command(a, "add PROJECT DOMAIN...", normalDomains),
		removes.command(a, "remove PROJECT DOMAIN...", normalDomains),
		allows.command(a, "allow DOMAIN...", normalDomains),
		denies.command(a, "deny DOMAIN...", normalDomains),
		adds.command(a, "import PROJECT FILE", func(args []string) ([]string, error) { return readDomains(a, args[0]) }),
		listBurners(a), a.Command("status", nil, burnerStatus))
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

// readDomains returns the domains of a file of up to 16 MiB, one a line.
func readDomains(a *app.App, file string) (domains []string, err error) {
	text, err := a.Read(file, 16<<20)
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

// command returns a command that changes the judgement about domains, which parse returns from the arguments. The
// project is the first argument, or for allowed domains a flag.
func (o burnerOperation) command(a *app.App, use string, parse func(args []string) ([]string, error)) *cobra.Command {
	var projectID string
	var domains []string
	var cmd *cobra.Command
	cmd = a.Command(use, func(args []string) (err error) {
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
	if o.judgement == burner.Allowed {
		cmd.Flags().StringVar(&projectID, "project", "", "for this project alone (default: for the stage)")
	}
	return cmd
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
	return a.Command("list [PROJECT]", app.Bind(&projectID), func(ctx context.Context, s *app.Stack) error {
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
	return s.Print(o, app.Table{Rows: app.Rows("Fetched", app.Second(o.Fetched),
		"Age", o.Age(time.Now()).Round(time.Second).String(), "Tried", app.Second(o.Tried),
		"Failure", cmp.Or(o.Failure, "none"), "Domains", s.Number(int64(o.Domains)),
		"Added", s.Number(int64(o.Added)), "Removed", s.Number(int64(o.Removed)))}, sources)
}
