package main

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

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/wallet"
)

func showBalance(ctx context.Context, s *app.Stack, rec *project.Record) error {
	balance, err := s.Credits.Balance(ctx, rec.ID)
	if err != nil {
		return err
	}
	return s.PrintRows(map[string]any{"project_id": rec.ID, "balance": balance}, "Project", rec.ID,
		"Balance", app.Credits(balance))
}

func setAlert(a *app.App) *cobra.Command {
	var credits int64
	return a.ProjectCommand("alert PROJECT CREDITS", func(args []string) (err error) {
		credits, err = app.Integer("CREDITS", args[0], 0, wallet.MaxBalance)
		return err
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		if err := admin.RefuseClosed(&rec.Project); err != nil {
			return err
		}
		if err := s.Credits.SetAlert(ctx, rec.ID, credits); err != nil {
			return err
		}
		text := "none"
		if credits > 0 {
			text = "below " + app.Credits(credits)
		}
		return s.PrintRows(map[string]any{"project_id": rec.ID, "alert": credits}, "Project", rec.ID, "Alert", text)
	})
}

// movedCredits is the result of a movement, with the new balance.
type movedCredits struct {
	ProjectID string     `json:"project_id"`
	ID        wallet.Key `json:"id"`
	Credits   int64      `json:"credits"`
	Actor     string     `json:"actor"`
	Balance   int64      `json:"balance"`
}

func (m movedCredits) show(ctx context.Context, s *app.Stack, name string) (err error) {
	if m.Balance, err = s.Credits.Balance(ctx, m.ProjectID); err != nil {
		return err
	}
	return s.PrintRows(m, "Project", m.ProjectID, name, string(m.ID), "Credits", app.Credits(m.Credits), "By", m.Actor,
		"Balance", app.Credits(m.Balance))
}

var errNoReason = app.Usagef("give a --reason for the ledger")

// parseKey returns a parse function that stores the ID of an entry. The text says what the argument is.
func parseKey(into *wallet.Key, text string) func(args []string) error {
	return func(args []string) (err error) {
		if *into, err = wallet.ParseKey(args[0]); err != nil {
			err = app.Usagef("%s, not %q", text, args[0])
		}
		return err
	}
}

// movement is an operator's movement: a new one, or a repeat with --id.
type movement struct {
	wallet.Entry
	name, id string
}

func (m *movement) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.id, "id", "", "repeat the "+m.name+" of this ID")
	cmd.Flags().StringVar(&m.Reason, "reason", "", "reason for the ledger")
}

// identify validates the reason and sets the movement's ID: a new ID, or the value of --id.
func (m *movement) identify() (err error) {
	if m.Reason == "" {
		return errNoReason
	}
	m.RequestID = uuid.NewString()
	if m.id == "" {
		m.Key = wallet.NewKey(time.Now(), m.RequestID)
		return nil
	}
	if m.Key, err = wallet.ParseKey(m.id); err != nil {
		return app.Usagef("--id is an ID that this command printed, not %q", m.id)
	}
	return app.ValidateDay("--id", m.Key.Time())
}

// move writes and prints the movement. After a failure that may hide a success, move prints the command's --id.
func (m *movement) move(ctx context.Context, s *app.Stack, rec *project.Record,
	write func(context.Context, wallet.Entry) error) (err error) {
	if err := admin.RefuseClosed(&rec.Project); err != nil {
		return err
	}
	m.Project = rec.ID
	if m.Actor, err = s.Actor(ctx); err != nil {
		return err
	}
	if err := write(ctx, m.Entry); err != nil {
		if !app.CertainlyRefused(err) {
			s.Note("The %s may have taken effect. Repeat the command with --id %s: the repeat counts once.", m.name, m.Key)
		}
		return err
	}
	return movedCredits{m.Project, m.Key, m.Credits, m.Actor, 0}.show(ctx, s, strings.ToUpper(m.name[:1])+m.name[1:])
}

// askFrom is the largest grant that the command makes without asking: credits of 100 USD.
const askFrom = 100_000_000

// dollars matches an amount in USD, such as 5usd or 2.50usd.
var dollars = regexp.MustCompile(`^(\d{1,9})(?:\.(\d{1,6}))?usd$`)

// amount reads a number of credits, or an amount in USD.
func amount(text string) (int64, error) {
	if match := dollars.FindStringSubmatch(strings.ToLower(text)); match != nil {
		text = strings.TrimLeft(match[1]+match[2]+strings.Repeat("0", 6-len(match[2])), "0")
	}
	return app.Integer("CREDITS", text, 1, wallet.MaxBalance)
}

func grantCredits(a *app.App) *cobra.Command {
	m, file, batch, yes := &movement{name: "grant"}, "", "", false
	var given []bulkGrant
	cmd := a.Command("grant [PROJECT CREDITS]", func(args []string) (err error) {
		switch {
		case file != "" && (len(args) > 0 || m.id != ""), file == "" && batch != "":
			return app.Usagef("give PROJECT and CREDITS, or --file with --batch")
		case file != "":
			text, err := a.Read(file, maxFile)
			if err == nil {
				given, err = readGrants(string(text), batch, m.Reason)
			}
			return err
		case len(args) < 2:
			return app.Usagef("missing %s, or --file", strings.Join([]string{"PROJECT", "CREDITS"}[len(args):], " and "))
		}
		m.Project = args[0]
		if m.Credits, err = amount(args[1]); err != nil {
			return err
		}
		return m.identify()
	}, func(ctx context.Context, s *app.Stack) error {
		if file != "" {
			return grantAll(ctx, s, given)
		}
		rec, err := s.Load(ctx, m.Project)
		if err != nil {
			return err
		}
		if m.Credits > askFrom {
			if err := s.Confirm(ctx, yes, "Grant "+app.Credits(m.Credits)+" to "+rec.ID+"?"); err != nil {
				return err
			}
		}
		return m.move(ctx, s, rec, func(ctx context.Context, m wallet.Entry) error { return makeGrant(ctx, s, m) })
	})
	m.addFlags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "grant more than 100 USD without asking")
	cmd.Flags().StringVar(&file, "file", "", "CSV file of grants to many projects, - for standard input")
	cmd.Flags().StringVar(&batch, "batch", "", "name of the file's grants, beginning with their date: 2026-03-31-invoices")
	return cmd
}

// makeGrant makes a grant. A project without a wallet gets one, unless the ledger refuses the grant.
func makeGrant(ctx context.Context, s *app.Stack, m wallet.Entry) error {
	err := s.Credits.Grant(ctx, m)
	if errors.Is(err, books.ErrNoWallet) {
		if err = s.Credits.CreateWallet(ctx, m.Project); err == nil {
			err = s.Credits.Grant(ctx, m)
		}
	}
	return err
}

func adjustBalance(a *app.App) *cobra.Command {
	m, by := &movement{name: "adjustment"}, ""
	cmd := a.ProjectCommand("adjust PROJECT --by CREDITS", func([]string) (err error) {
		if m.Credits, err = app.Integer("--by", by, -wallet.MaxBalance, wallet.MaxBalance); err != nil {
			return err
		}
		if m.Credits == 0 {
			return app.Usagef("--by is a whole number other than 0")
		}
		return m.identify()
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		if s.DryRun && m.id == "" { // the store validates the balance only as it writes
			wallet, err := s.Credits.Wallet(ctx, rec.ID)
			if err == nil {
				err = cmp.Or(wallet, &books.Wallet{}).ValidateAdjustment(m.Credits)
			}
			if err != nil {
				return err
			}
		}
		return m.move(ctx, s, rec, s.Credits.Adjust)
	})
	cmd.Flags().StringVar(&by, "by", "0", "`credits` to add; a negative number removes credits")
	m.addFlags(cmd)
	return cmd
}

func refundCharge(a *app.App) *cobra.Command {
	var charge wallet.Key
	var reason string
	cmd := a.ProjectCommand("refund PROJECT CHARGE", func(args []string) error {
		err := parseKey(&charge, `CHARGE is an ID of "svc credit ledger"`)(args)
		if err == nil && reason == "" {
			err = errNoReason
		}
		return err
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		if err := admin.RefuseClosed(&rec.Project); err != nil {
			return err
		}
		actor, err := s.Actor(ctx)
		if err != nil {
			return err
		}
		entry, err := s.Credits.RefundCharge(ctx, rec.ID, charge, reason, actor)
		if err != nil {
			return err
		}
		return movedCredits{rec.ID, charge, entry.Credits, actor, 0}.show(ctx, s, "Refund of")
	})
	cmd.Flags().StringVar(&reason, "reason", "", "reason for the ledger")
	return cmd
}

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
	step := s.Progress("granting", len(grants))
	for i := range grants {
		g := &grants[i]
		step()
		var err error
		if g.Outcome = "would be granted"; !s.DryRun {
			g.Outcome, err = "granted", makeGrant(ctx, s, wallet.Entry{
				Project: g.ProjectID, Key: g.ID, Credits: g.Credits, Reason: g.Reason, Actor: actor, RequestID: string(g.ID),
			})
		}
		if err != nil {
			g.Outcome = err.Error()
			failed++
		} else {
			total += g.Credits
		}
	}
	err = app.PrintList(s.App, "PROJECT, CREDITS, REASON, ID, OUTCOME", "", grants, func(g bulkGrant) []string {
		return []string{g.ProjectID, s.Number(g.Credits), g.Reason, string(g.ID), g.Outcome}
	})
	if err != nil {
		return err
	}
	s.Note("%s in %s, %d failed.", app.Credits(total), app.Count(len(grants)-failed, "grant", "grants"), failed)
	if failed > 0 {
		return errors.New("some grants failed: correct the file and run the command again; grants that were made are " +
			"not repeated")
	}
	return nil
}
