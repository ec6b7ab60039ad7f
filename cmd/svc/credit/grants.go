package credit

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"svcapi/cmd/svc/app"
	"svcapi/shared/books"
	"svcapi/shared/wallet"
)

// bulkGrant is one line of a file of grants.
type bulkGrant struct {
	ProjectID string     `json:"project_id"`
	Credits   int64      `json:"credits"`
	Reason    string     `json:"reason"`
	ID        wallet.Key `json:"id"`
	Outcome   string     `json:"outcome"` // granted, would be granted, or the error
}

var batchPattern = regexp.MustCompile(`^.{10}(-[A-Za-z0-9._-]{1,80})?$`)

// byteOrderMark begins the UTF-8 files of spreadsheets.
const byteOrderMark = "\ufeff"

const (
	maxFile     = 64 << 20 // bytes
	maxGrants   = 100_000  // in one file
	maxProblems = 20       // in one error
)

// readGrants reads lines of project, credits and an optional reason. The error lists the problems of all lines. A
// project occurs once: batch and project form the ID of the grant, so that a repeat has no effect.
func readGrants(text, batch, reason string) ([]bulkGrant, error) {
	day, err := parseBatch(batch)
	if err != nil {
		return nil, err
	}
	lines := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, byteOrderMark)))
	lines.FieldsPerRecord, lines.Comment, lines.TrimLeadingSpace = -1, '#', true
	var grants []bulkGrant
	var problems []string
	seen := map[string]bool{}
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, app.Usagef("%v", err)
		}
		line, _ := lines.FieldPos(0)
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if line == 1 && (strings.EqualFold(fields[0], "project") || strings.EqualFold(fields[0], "project_id")) {
			continue
		}
		g, problem := parseGrant(fields, reason, seen)
		if problem != "" {
			problems = append(problems, fmt.Sprintf("line %d%s", line, problem))
		}
		seen[g.ProjectID] = true
		g.ID = wallet.NewKey(day, batch+"#"+g.ProjectID)
		if grants = append(grants, g); len(grants) > maxGrants {
			return nil, app.Usagef("more than %d grants: split the file", maxGrants)
		}
	}
	if len(problems) > 0 {
		return nil, app.Usagef("%s", strings.Join(problems[:min(len(problems), maxProblems)], "\n     "))
	}
	if len(grants) == 0 {
		return nil, app.Usagef("the file has no grants")
	}
	return grants, nil
}

// parseBatch returns the day in the name of a batch.
func parseBatch(batch string) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, batch[:min(len(batch), len(time.DateOnly))])
	if err != nil || !batchPattern.MatchString(batch) {
		return day, app.Usagef("--batch names the file's grants and begins with their date, such as 2026-03-31-invoices, "+
			"not %q", batch)
	}
	return day, app.ValidateDay("--batch", day)
}

// parseGrant reads the fields of a line, and returns the problem of a line that is not valid.
func parseGrant(fields []string, reason string, seen map[string]bool) (g bulkGrant, problem string) {
	g = bulkGrant{ProjectID: fields[0], Reason: reason}
	var err error
	if len(fields) > 1 {
		g.Credits, err = strconv.ParseInt(fields[1], 10, 64)
	}
	if len(fields) > 2 {
		g.Reason = cmp.Or(fields[2], reason)
	}
	switch {
	case len(fields) < 2 || len(fields) > 3 || err != nil || g.Credits < 1:
		return g, " is not PROJECT,CREDITS or PROJECT,CREDITS,REASON"
	case seen[g.ProjectID]:
		return g, ": " + g.ProjectID + " is in the file twice"
	case g.Reason == "":
		return g, " has no reason, and no --reason is given"
	}
	return g, ""
}

var errNotAll = errors.New("some grants failed: correct the file and run the command again; grants that were made " +
	"are not repeated")

// grantAll makes the grants where all projects exist.
func grantAll(ctx context.Context, s *app.Stack, grants []bulkGrant) error {
	known, err := s.Projects.ListProjects(ctx)
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for _, p := range known {
		open[p.ID] = p.Closed.IsZero()
	}
	var absent []string
	for _, g := range grants {
		if !open[g.ProjectID] {
			absent = append(absent, g.ProjectID)
		}
	}
	if len(absent) > 0 {
		return app.Usagef("no such projects, or closed ones: %s", strings.Join(absent[:min(len(absent), maxProblems)], ", "))
	}
	actor, err := s.Actor(ctx)
	if err != nil {
		return err
	}
	failed, total := 0, int64(0)
	t := app.Table{Header: []string{"PROJECT", "CREDITS", "REASON", "ID", "OUTCOME"}}
	step := s.Progress("granting", len(grants))
	for i := range grants {
		g := &grants[i]
		step()
		var err error
		if g.Outcome = "would be granted"; !s.DryRun {
			g.Outcome, err = "granted", makeGrant(ctx, s, books.Movement{
				Project: g.ProjectID, ID: g.ID, Credits: g.Credits, Reason: g.Reason, Actor: actor, RequestID: string(g.ID),
			})
		}
		if err != nil {
			g.Outcome = err.Error()
			failed++
		} else {
			total += g.Credits
		}
		t.Rows = append(t.Rows, []string{g.ProjectID, s.Number(g.Credits), g.Reason, string(g.ID), g.Outcome})
	}
	if err := s.Print(grants, t); err != nil {
		return err
	}
	s.Note("%s in %s, %d failed.", app.Credits(total), app.Count(len(grants)-failed, "grant", "grants"), failed)
	if failed > 0 {
		return errNotAll
	}
	return nil
}
